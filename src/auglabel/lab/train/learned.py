"""The augmentation and the labels of a run: a policy of the catalogue, or the tables of an earlier run."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from auglabel.augment_and_label import AugmentAndLabel
from auglabel.data.source import DataSet
from auglabel.data.split import Parts
from auglabel.distance import DistanceGrid
from auglabel.errors import UserError
from auglabel.lab.parts.catalogue import augmentation_for, labels_for
from auglabel.lab.recipe.recipe import Recipe
from auglabel.lab.recipe.yamlfile import read_yaml
from auglabel.lab.runs.records import SplitRows, require_untested
from auglabel.lab.runs.run import Run
from auglabel.labels import LabelPolicy, TablePolicy
from auglabel.table_file import load_table
from auglabel.util.checks import shown

MORE_THAN_A_TABLE = ("autolabel_by_class", "self_distilled")


def learned_for(recipe: Recipe, num_classes: int) -> AugmentAndLabel:
    """The recipe's augmentation and label policy as one module."""
    augment = augmentation_for(recipe.augment.name, **recipe.augment.options)
    how, labels = recipe.calibrate, recipe.labels
    policy: LabelPolicy
    if (first := replayed(recipe)) is not None:
        tables = tables_of(first, num_classes, augment.grid)
        policy = Replay(num_classes, tables, recipe.training.epochs)
    else:
        epochs = recipe.training.held_out_epochs  # alpha "auto" is done when labels are final
        policy = labels_for(labels.name, num_classes, augment.grid, epochs, **labels.options)
    return AugmentAndLabel(
        augment, policy=policy, rule=how.rule, visits=how.visits, memory=how.memory, bins=how.bins
    )


def replayed(recipe: Recipe) -> Run | None:
    """The run whose labels the recipe's run has, if any."""
    labels = recipe.labels
    first = labels.options.get("replay") if labels.name == "autolabel" else None
    return None if first is None else Run(Path(first))


class Replay(TablePolicy):
    """The labels that another run had at the same part of its training.

    `tables` (E + 1, num_buckets) are those of its start and after each of its E epochs. In a run of as many
    epochs each is used as it is; in a shorter or longer one those between two epochs are on a straight line.
    """

    tables: Tensor

    def __init__(self, num_classes: int, tables: Tensor, epochs: int) -> None:
        super().__init__(num_classes, tables[0])
        self.epochs = epochs  # of this run
        self.register_buffer("tables", tables)

    def go_to(self, epoch: int) -> None:
        """Take the labels for the time after `epoch` epochs of this run."""
        before, part = divmod(epoch * (len(self.tables) - 1), self.epochs)
        after = min(before + 1, len(self.tables) - 1)
        self.table.copy_(torch.lerp(self.tables[before], self.tables[after], part / self.epochs))


def tables_of(run: Run, num_classes: int, grid: DistanceGrid) -> Tensor:
    """The labels of a finished run, before its first epoch and after each; they must be for this grid."""
    run.require()
    labels, facts = read_yaml(run.recipe_file)[1]["labels"], run.facts()
    if facts is None or not run.model_file.is_file():
        raise UserError(
            f"{run.path} is not finished, so its labels cannot be replayed: "
            f"auglabel train --resume --out {run.path} goes on with it."
        )
    if labels["name"] in MORE_THAN_A_TABLE or not run.tables_file.is_file():
        raise UserError(
            f"{run.path} has no label table to replay: it was trained with {labels['name']}, "
            "whose labels are not all in a table. Name a run of autolabel."
        )
    if labels["name"] == "autolabel" and labels.get("replay") is not None:
        raise UserError(f"{run.path} has learned no labels: it replays {labels['replay']}, so name that run.")
    classes = facts.data.classes
    if classes is not None and len(classes) != num_classes:
        raise UserError(f"{run.path} was trained on {len(classes)} classes, but this run has {num_classes}.")
    history = run.history()
    has, wants = history[0].levels, dict(zip(grid.kinds, grid.levels, strict=True))
    if has != wants:
        raise UserError(
            f"{run.path} has labels for other distances: {shown(has)}, but this run has {shown(wants)}."
        )
    after = torch.tensor([[v for kind in grid.kinds for v in each.confidence[kind]] for each in history])
    if (file := labels.get("start_table")) is not None:
        start = load_table(file, grid)
    else:  # AutoLabel begins with one-hot labels; of others only those after the first epoch are known
        start = torch.ones(len(grid)) if "autolabel" in labels["name"] else after[0]
    return torch.cat([start[None], after])


def labelled_images(recipe: Recipe, data: DataSet, parts: Parts) -> int:
    """How many images a run uses with their labels, those of a run that it replays included."""
    if (run := replayed(recipe)) is None:
        return len(parts.train) + len(parts.validation)
    own = SplitRows.of(parts).labelled(recipe.split["validation_from"], data)
    if not _same_images(run, data):
        return len(own) + sum(len(rows) for rows in run.split()[:2])
    return len(torch.cat([own, _labelled(run, data)]).unique())


def require_untested_replay(recipe: Recipe, data: DataSet, parts: Parts) -> None:
    """The run that is replayed, if any, must not have learned from test images of this one."""
    if (run := replayed(recipe)) is not None and _same_images(run, data):
        require_untested(str(run.path), _labelled(run, data), data, parts)


def _same_images(run: Run, data: DataSet) -> bool:
    facts = run.facts()
    assert facts is not None  # `tables_of` has looked
    return facts.data.checksum == data.checksum


def _labelled(run: Run, data: DataSet) -> Tensor:
    return run.split().labelled(read_yaml(run.recipe_file)[1]["split"]["validation_from"], data)
