"""An augmentation and the labels learned for it, as one module: AutoLabel in four lines of a loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Generator, Tensor, nn

from auglabel.augment.base import Augmentation
from auglabel.augment.normalized import OnNormalized
from auglabel.auto_step import AutoStep
from auglabel.autolabel import AutoLabel
from auglabel.calibration import Calibration
from auglabel.errors import UserError, UserTypeError
from auglabel.labels import LabelPolicy, TablePolicy
from auglabel.measure import Batches, calibrate, pair, turns_to_see_all
from auglabel.pooling import Pool
from auglabel.table_file import table_text
from auglabel.util.checks import kind_of, require_whole
from auglabel.util.ranks import rank_and_world
from auglabel.view import View


class AugmentAndLabel(nn.Module):
    """Augments a batch and returns its soft targets; `update` learns them after each epoch.

    With `rule="pooled"` each validation image visits `visits` buckets an epoch, and a `Pool` makes the most
    of it; "exact" is the paper's, every image in every bucket. `policy` takes the place of AutoLabel; one
    that does not learn is left as it is by `update`, so that a loop stays the same for all kinds of labels.
    `epochs` is for alpha "auto": the number of updates until labels are final. `mean` and `std`, a number per
    channel, are for images that come normalised, and go to the model so. Labels equal to `ignore_index` get a
    row of zeros for a target, which `losses.soft_cross_entropy` leaves out, and are not measured.
    After `freeze` the labels stay, and the validation images may be trained on.
    The state holds the table, the pool and the number of updates, which is what resuming takes, and names the
    distances they are for: it loads into no other augmentation.
    """

    updates: Tensor  # () int64: how often `update` was called
    frozen: Tensor  # () bool

    def __init__(
        self,
        augment: Augmentation,
        num_classes: int | None = None,
        alpha: float | Literal["auto"] = "auto",
        *,
        epochs: int | None = None,
        policy: LabelPolicy | None = None,
        rule: Literal["pooled", "exact"] = "pooled",
        visits: int = 2,
        memory: float = 0.5,
        bins: int = 15,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        ignore_index: int | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(augment, Augmentation):
            raise UserTypeError(
                f"AugmentAndLabel takes an Augmentation, such as AugMix(), got {kind_of(augment)}."
            )
        if rule not in ("pooled", "exact"):
            raise UserError(f'rule must be "pooled" or "exact", got {kind_of(rule)}.')
        require_whole("visits", visits, 1)
        require_whole("bins", bins, 1)
        if mean is not None and std is not None:
            augment = OnNormalized(augment, mean, std)
        elif mean is not None or std is not None:
            raise UserError("mean and std come together, got only one of them.")
        self.augment, self.ignore_index = augment, ignore_index
        if policy is None:
            if num_classes is None:
                raise UserTypeError("AugmentAndLabel takes num_classes, or a policy instead.")
            self.policy: LabelPolicy = AutoLabel(num_classes, len(augment.grid), alpha, epochs)
        else:
            _require_policy(augment, policy, alone=(num_classes, alpha, epochs) == (None, "auto", None))
            self.policy = policy
        buckets = len(augment.grid)
        self.rule, self.bins = rule, bins
        self.visits = min(visits, buckets) if rule == "pooled" else buckets
        self.pool = Pool(augment.grid, memory)
        self.register_buffer("updates", torch.zeros((), dtype=torch.int64))
        self.register_buffer("frozen", torch.zeros((), dtype=torch.bool))

    def forward(
        self,
        images: Tensor,
        labels: Tensor,
        model: nn.Module | None = None,
        *,
        generator: Generator | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The augmented images and their targets (B, K). Only attacks use `model`."""
        view = self.augment(images, labels, model, generator=generator)
        if self.ignore_index is None:
            return view.images, self.policy(view)
        known, view = some_label(view, self.ignore_index)
        return view.images, self.policy(view) * known[:, None]

    def expect(self, epochs: int) -> None:
        """Tell labels with alpha "auto" how many updates there will be, unless they have been told."""
        auto = getattr(self.policy, "auto", None)
        if isinstance(auto, AutoStep) and auto.epochs is None:
            require_whole("epochs", epochs, 1)
            auto.epochs = epochs

    def updates_to_see_all(self, images: int) -> int:
        """Updates until validation images have visited every bucket; 0 if the policy does not learn."""
        return turns_to_see_all(len(self.augment.grid), images, self.visits) if self.policy.adaptive else 0

    def freeze(self, frozen: bool = True) -> None:
        """Keep the labels as they are: `update` then does nothing, so that no image need be held out."""
        self.frozen.fill_(frozen)

    def update(
        self, model: nn.Module, loader: Batches, *, generator: Generator | None = None
    ) -> Calibration | None:
        """Learn from the model on validation images, once after each epoch; returns its calibration.

        `loader` yields (images, labels); under several ranks, each rank's own share. The model is called with
        floating point in [0, 1], also where the images are bytes. Without a `generator` the draws depend on
        the number of the update and the rank alone: they never shift the training's.
        """
        if not self.policy.adaptive or self.frozen:
            return None
        self.policy.require_ready()
        turn = int(self.updates)
        seen = calibrate(
            model,
            self.augment,
            loader if self.ignore_index is None else _labelled(loader, self.ignore_index),
            visits=self.visits,
            turn=turn,
            bins=self.bins,
            generator=_generator(turn) if generator is None else generator,
        )
        table = self.policy.table if isinstance(self.policy, TablePolicy) else None
        self.policy.update(self.pool(seen, table) if self.rule == "pooled" else seen)
        self.updates += 1
        return seen

    @property
    def table(self) -> Tensor:
        """The label confidence per bucket, where the policy has one."""
        if not isinstance(self.policy, TablePolicy):
            raise UserTypeError(f"{type(self.policy).__name__} has no table: it is not learned per bucket.")
        return self.policy.table

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        if (state := state_dict.get(f"{prefix}pool._extra_state")) is not None:
            self.pool.set_extra_state(state)  # before the table is loaded
        state_dict.setdefault(f"{prefix}frozen", torch.zeros((), dtype=torch.bool))  # older states have none
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def show(self) -> None:
        """Print the table: a line per kind, a column per level, in %."""
        print(f"Label confidence in %, after {int(self.updates)} updates")
        print(table_text(self.table, self.augment.grid, self.augment.level_name))

    def extra_repr(self) -> str:
        visits = f", visits={self.visits}" if self.rule == "pooled" else ""
        return f"{self.augment!r}, rule={self.rule}{visits}, updates={int(self.updates)}"


def _require_policy(augment: Augmentation, policy: LabelPolicy, alone: bool) -> None:
    if not alone:
        raise UserTypeError("AugmentAndLabel takes num_classes, alpha and epochs, or a policy, got both.")
    if not isinstance(policy, LabelPolicy):
        raise UserTypeError(f"policy must be a LabelPolicy, such as OneHot(10), got {kind_of(policy)}.")
    if isinstance(policy, TablePolicy) and len(policy.table) != len(augment.grid):
        raise UserError(
            f"the policy has a table of {len(policy.table)} buckets, but {type(augment).__name__} has "
            f"{len(augment.grid)}: build it with len(augment.grid)."
        )


def some_label(view: View, ignored: int) -> tuple[Tensor, View]:
    """Which images have labels, their partners too, and the view with class 0 for labels that are ignored."""
    parts = {"labels": view.labels} | ({} if view.partner is None else {"partner": view.partner})
    known = torch.stack([part != ignored for part in parts.values()]).all(dim=0)
    return known, replace(view, **{name: part.where(part != ignored, 0) for name, part in parts.items()})


def _labelled(loader: Batches, ignored: int) -> Batches:
    for images, labels in map(pair, loader):
        known = labels != ignored
        if known.any():
            yield images[known.to(images.device)], labels[known]


def _generator(turn: int) -> Generator:
    return Generator().manual_seed((turn << 20) + rank_and_world()[0])
