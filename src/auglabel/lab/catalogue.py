"""The menu: every augmentation and label policy by name, and the training regimes they make up.

Plain dictionaries; nothing registers itself. A new entry is one line here, and the contract tests run
over it at once.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from auglabel.augment.adversarial import Adversarial
from auglabel.augment.augmix import AugMix
from auglabel.augment.base import Augmentation
from auglabel.augment.clean import Clean
from auglabel.augment.mixing import CutMix, Mixup
from auglabel.augment.randaug import RandAug
from auglabel.autolabel import AutoLabel
from auglabel.labels import CCAT, FixedTable, LabelPolicy, LabelSmoothing, MixupLabels, OneHot
from auglabel.losses import trades
from auglabel.view import View

AUGMENTATIONS: dict[str, type[Augmentation]] = {
    "clean": Clean,
    "randaug": RandAug,
    "augmix": AugMix,
    "adversarial": Adversarial,
    "mixup": Mixup,
    "cutmix": CutMix,
}

LABELS: dict[str, type[LabelPolicy]] = {
    "one_hot": OneHot,
    "label_smoothing": LabelSmoothing,
    "autolabel": AutoLabel,
    "ccat": CCAT,
    "mixup": MixupLabels,
    "table": FixedTable,
}


LOSSES: dict[str, Callable[[nn.Module, Tensor, View, LabelPolicy], Tensor]] = {
    "cross_entropy": lambda model, images, view, policy: F.cross_entropy(model(view.images), policy(view)),
    "trades": lambda model, images, view, policy: trades(model, images, view),
}


@dataclass(frozen=True)
class Regime:
    """One way to train: an augmentation, a label policy and a loss, by name, the first two with options.

    Training images are cropped and flipped (`Clean`) before any augmentation but `clean`, which is that.
    """

    augment: str
    labels: str
    augment_options: Mapping[str, Any] = field(default_factory=dict)
    label_options: Mapping[str, Any] = field(default_factory=dict)
    loss: str = "cross_entropy"  # a name out of LOSSES

    def build(self, num_classes: int) -> tuple[Augmentation, LabelPolicy]:
        augment = AUGMENTATIONS[self.augment](**self.augment_options)
        options = dict(self.label_options)
        if self.labels == "autolabel":
            options["num_buckets"] = len(augment.grid)
        return augment, LABELS[self.labels](num_classes, **options)

    def loss_of(self, model: nn.Module, images: Tensor, view: View, policy: LabelPolicy) -> Tensor:
        """The loss of one batch: `images` as they are, and their `view`."""
        return LOSSES[self.loss](model, images, view, policy)


# Hyper-parameters are the paper's for CIFAR-100; recipes change them.
REGIMES: dict[str, Regime] = {
    "vanilla": Regime("clean", "one_hot"),
    "randaug": Regime("randaug", "one_hot"),
    "randaug_ls": Regime("randaug", "label_smoothing", {}, {"rho": 0.02}),
    "randaug_autolabel": Regime("randaug", "autolabel", {}, {"alpha": 0.01}),
    "augmix": Regime("augmix", "one_hot"),
    "augmix_ls": Regime("augmix", "label_smoothing", {}, {"rho": 0.02}),
    "augmix_autolabel": Regime("augmix", "autolabel", {}, {"alpha": 0.02}),
    "at": Regime("adversarial", "one_hot", {"fixed": True}),
    "at_multi": Regime("adversarial", "one_hot"),
    "at_ls": Regime("adversarial", "label_smoothing", {"fixed": True}, {"rho": 0.02}),
    "ccat": Regime("adversarial", "ccat", {"clean_share": 0.5}),
    "at_autolabel": Regime("adversarial", "autolabel", {}, {"alpha": 0.005}),
    "trades": Regime("adversarial", "one_hot", {"fixed": True, "against": "prediction"}, loss="trades"),
    "mixup": Regime("mixup", "mixup"),
    "mixup_autolabel": Regime("mixup", "autolabel", {}, {"alpha": 0.008}),
    "cutmix": Regime("cutmix", "mixup"),
    "cutmix_autolabel": Regime("cutmix", "autolabel", {}, {"alpha": 0.008}),
}


def regime(name: str) -> Regime:
    """The regime of that name; for one that is not there, a sentence with the nearest."""
    if name not in REGIMES:
        near = difflib.get_close_matches(name, REGIMES, n=1)
        hint = f' Did you mean "{near[0]}"?' if near else ""
        raise ValueError(f'there is no regime "{name}". There are: {", ".join(REGIMES)}.{hint}')
    return REGIMES[name]
