"""Every augmentation, label policy, data set and loss by name, and the training regimes they make up.

Plain dictionaries; nothing registers itself. A new entry is one line here, and the contract tests run
over it at once. Parts of a user's own need none: they are named as `module:function`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from auglabel.augment.adversarial import Adversarial
from auglabel.augment.augmix import AugMix
from auglabel.augment.base import Augmentation
from auglabel.augment.clean import Clean
from auglabel.augment.mixing import CutMix, Mixup
from auglabel.augment.occlusion import Erasing, WideCrop
from auglabel.augment.randaug import RandAug
from auglabel.autolabel import AutoLabel
from auglabel.by_class import AutoLabelByClass
from auglabel.data.cifar import cifar10, cifar100
from auglabel.data.embedded import embedded
from auglabel.data.folder import folder, imagenet
from auglabel.data.huggingface import huggingface
from auglabel.data.npz import npz
from auglabel.data.source import DataSet
from auglabel.distance import DistanceGrid
from auglabel.errors import UserError
from auglabel.lab.parts.variants import AutoLabelVariant
from auglabel.labels import CCAT, FixedTable, LabelPolicy, LabelSmoothing, MixupLabels, OneHot
from auglabel.losses import GAMMA, focal_loss, jensen_shannon, trades, weighted_cross_entropy
from auglabel.models.by_name import imported
from auglabel.self_distilled import SelfDistilled
from auglabel.soft_augmentation import SoftAugmentation
from auglabel.table_file import load_table
from auglabel.util.checks import entry, require_instance, shown
from auglabel.util.inference import model_input
from auglabel.view import View

Entry = TypeVar("Entry")


def named(what: str, menu: Mapping[str, Entry], name: str) -> Entry:
    """The entry of that name, or the function or class of a user's own that `module:function` names.

    Importing runs code, so a name with a colon must come from the user: see `read_recipe`.
    """
    module, colon, attribute = name.partition(":")
    if not colon:
        return entry(what, menu, name)
    if not module or not attribute:
        raise UserError(f'{what}: name one of your own as module:function, got "{name}".')
    found: Entry = imported(module, attribute)
    return found


def clean() -> Clean:
    """Nothing beyond what `prepare` does to all training images"""
    return Clean(pad=0, flip=False)


AUGMENTATIONS: dict[str, Callable[..., Augmentation]] = {
    "clean": clean,
    "randaug": RandAug,
    "augmix": AugMix,
    "adversarial": Adversarial,
    "mixup": Mixup,
    "cutmix": CutMix,
    "wide_crop": WideCrop,
    "erasing": Erasing,
}


def fixed_table(num_classes: int, grid: DistanceGrid, path: str) -> FixedTable:
    """The confidences of a file that `save_table` wrote, for this very grid."""
    return FixedTable(num_classes, load_table(path, grid))


def autolabel(
    num_classes: int,
    grid: DistanceGrid,
    alpha: float | Literal["auto"] = "auto",
    start_table: str | None = None,
    replay: str | None = None,  # which training reads: see lab/train/learned.py
    epochs: int | None = None,
) -> AutoLabel:
    """AutoLabel, from one-hot labels or from those of a file.

    Args:
        alpha: how far one epoch moves a label: alpha times the calibration error; auto needs no setting
        start_table: file of an audit, or of a table that another run learned, to begin with
        replay: a finished run whose labels are used, epoch by epoch, and none learned: no hold-out is needed
    """
    if replay is not None and alpha != "auto":
        raise UserError(f"a replay learns no labels, so alpha must be auto, got {alpha}.")
    if replay is not None and start_table is not None:
        raise UserError(f"a replay begins as its run did: leave out start_table {shown(start_table)}.")
    policy = AutoLabel(num_classes, len(grid), alpha, epochs)
    if start_table is not None:
        policy.table.copy_(load_table(start_table, grid))
    return policy


LABELS: dict[str, Callable[..., LabelPolicy]] = {
    "one_hot": OneHot,
    "label_smoothing": LabelSmoothing,
    "autolabel": autolabel,
    "autolabel_by_class": AutoLabelByClass,
    "self_distilled": SelfDistilled,
    "ccat": CCAT,
    "mixup": MixupLabels,
    "table": fixed_table,
    "soft_augmentation": SoftAugmentation,
    "autolabel_variant": AutoLabelVariant,
}


DATASETS: dict[str, Callable[..., DataSet]] = {
    "embedded": embedded,
    "cifar10": cifar10,
    "cifar100": cifar100,
    "folder": folder,
    "imagenet": imagenet,
    "npz": npz,
    "huggingface": huggingface,
}

# A loss gets the model, the images as they are, their view, the label policy, and a way to draw another view.
Loss = Callable[[nn.Module, Tensor, View, LabelPolicy, Callable[[], View]], Tensor]


def augmix_loss(
    model: nn.Module, images: Tensor, view: View, policy: LabelPolicy, again: Callable[[], View]
) -> Tensor:
    """AugMix's own: cross-entropy on the images as they are, and 12 times how far two views disagree."""
    clean, *views = model(torch.cat([model_input(images, model), view.images, again().images])).chunk(3)
    return F.cross_entropy(clean, view.labels) + 12 * jensen_shannon(clean, *views)


def cross_entropy(
    model: nn.Module, images: Tensor, view: View, policy: LabelPolicy, again: Callable[[], View]
) -> Tensor:
    """Cross-entropy with the policy's soft targets."""
    return F.cross_entropy(_logits(model, view, policy), policy(view))


def weighted(
    model: nn.Module, images: Tensor, view: View, policy: LabelPolicy, again: Callable[[], View]
) -> Tensor:
    """The same, each image weighted by the confidence of its label."""
    return weighted_cross_entropy(_logits(model, view, policy), policy(view), policy.confidence(view))


def focal(
    model: nn.Module,
    images: Tensor,
    view: View,
    policy: LabelPolicy,
    again: Callable[[], View],
    gamma: float = GAMMA,
) -> Tensor:
    """The focal loss with the policy's soft targets."""
    return focal_loss(_logits(model, view, policy), policy(view), gamma)


def _logits(model: nn.Module, view: View, policy: LabelPolicy) -> Tensor:
    """The model's on the view, which the policy sees too."""
    logits: Tensor = model(view.images)
    policy.see(logits.detach(), view.labels)
    return logits


HARD_LABELS = ("trades", "jensen_shannon")  # losses that take the label as it is, whatever the policy
LOSSES: dict[str, Loss] = {
    "cross_entropy": cross_entropy,
    "focal": focal,
    "weighted_cross_entropy": weighted,
    "trades": lambda model, images, view, policy, again: trades(model, images, view),
    "jensen_shannon": augmix_loss,
}


def loss_function(name: str, gamma: float | None = None) -> Loss:
    """The loss of that name, ours or a user's own; with a `gamma`, the focal loss."""
    return named("loss", LOSSES, name) if gamma is None else partial(focal, gamma=gamma)


@dataclass(frozen=True)
class Regime:
    """One way to train: an augmentation, a label policy and a loss, by name, the first two with options."""

    augment: str
    labels: str
    augment_options: Mapping[str, Any] = field(default_factory=dict)
    label_options: Mapping[str, Any] = field(default_factory=dict)
    loss: str = "cross_entropy"  # a name out of LOSSES


# rho is the paper's for CIFAR-100; recipes change options under `regimes`, those of the paper alpha too.
REGIMES: dict[str, Regime] = {
    "vanilla": Regime("clean", "one_hot"),
    "randaug": Regime("randaug", "one_hot"),
    "randaug_ls": Regime("randaug", "label_smoothing", {}, {"rho": 0.02}),
    "randaug_autolabel": Regime("randaug", "autolabel"),
    "augmix": Regime("augmix", "one_hot"),
    "augmix_js": Regime("augmix", "one_hot", {"chains": 3}, loss="jensen_shannon"),
    "augmix_ls": Regime("augmix", "label_smoothing", {}, {"rho": 0.02}),
    "augmix_autolabel": Regime("augmix", "autolabel"),
    "at": Regime("adversarial", "one_hot", {"fixed": True}),
    "at_multi": Regime("adversarial", "one_hot"),
    "at_ls": Regime("adversarial", "label_smoothing", {"fixed": True}, {"rho": 0.02}),
    "ccat": Regime("adversarial", "ccat", {"clean_share": 0.5}),
    "at_autolabel": Regime("adversarial", "autolabel"),
    "trades": Regime("adversarial", "one_hot", {"fixed": True, "against": "prediction"}, loss="trades"),
    "mixup": Regime("mixup", "mixup"),
    "mixup_autolabel": Regime("mixup", "autolabel"),
    "cutmix": Regime("cutmix", "mixup"),
    "cutmix_autolabel": Regime("cutmix", "autolabel"),
    "wide_crop": Regime("wide_crop", "one_hot"),
    "wide_crop_soft": Regime("wide_crop", "soft_augmentation", loss="weighted_cross_entropy"),
    "wide_crop_autolabel": Regime("wide_crop", "autolabel"),
    "erasing": Regime("erasing", "one_hot"),
    "erasing_soft": Regime("erasing", "soft_augmentation", loss="weighted_cross_entropy"),
    "erasing_autolabel": Regime("erasing", "autolabel"),
}


def labels_for(
    name: str, num_classes: int, grid: DistanceGrid, epochs: int | None = None, **options: Any
) -> LabelPolicy:
    """The label policy of that name, told of classes, buckets and `epochs` if it asks for them.

    `epochs` is the number of updates until labels are final.
    """
    make = named("label policy", LABELS, name)
    asked = inspect.signature(make).parameters
    given = {"num_classes": num_classes, "num_buckets": len(grid), "grid": grid, "epochs": epochs}
    policy = make(**{key: value for key, value in given.items() if key in asked}, **options)
    return require_instance(LabelPolicy, name, policy)


def augmentation_for(name: str, /, **options: Any) -> Augmentation:
    """The augmentation of that name, ours or a user's own, with these options."""
    return require_instance(Augmentation, name, named("augmentation", AUGMENTATIONS, name)(**options))


def data_set_for(name: str, /, **options: Any) -> DataSet:
    """The data set of that name, ours or a user's own, with these options."""
    return require_instance(DataSet, name, named("data set", DATASETS, name)(**options))
