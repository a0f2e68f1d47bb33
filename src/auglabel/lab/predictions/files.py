"""Predictions and labels out of files: .npy, .npz and .csv by numpy alone, others by extras."""

from __future__ import annotations

import csv
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from auglabel.calibration import require_logits, require_probs
from auglabel.data.corrupted_files import mapped
from auglabel.data.npz import arrays_of
from auglabel.errors import UserError
from auglabel.util.checks import Array, as_predictions, entry, shown

LABELS = ("labels", "label", "targets", "target", "ground_truth", "y_true", "y")
LOGITS, PROBABILITIES = ("logits",), ("probabilities", "probs")
LEAST = math.log(torch.finfo(torch.float32).tiny)  # what a logarithm of 0 is taken as where it must be finite
NO_SCORES = (  # columns that people and data frames write beside the scores
    *("", "id", "index", "unnamed: 0", "__index_level_0__"),
    *("prediction", "predicted", "pred", "y_pred", "confidence"),
)


@dataclass(frozen=True)
class Predictions:
    """Logits, or logarithms of probabilities, and labels."""

    logits: Tensor  # (N, K) float64; -infinity where a probability is 0
    labels: Tensor  # (N,) int64
    source: str

    @property
    def finite(self) -> Tensor:
        """The logits, with a probability of 0 as float32's smallest: for fits."""
        return self.logits.clamp(min=LEAST) if self.logits.isinf().any() else self.logits


def read_predictions(file: str, labels: str | None, probabilities: bool) -> Predictions:
    """`file` with scores (N, K), and labels (N,) in it or in a second one; either may be FILE:NAME."""
    place, name = _named(file)
    arrays = read_arrays(place)
    scores = _chosen(place, arrays, name, PROBABILITIES if probabilities else LOGITS, "scores")
    if labels is not None:
        place, name = _named(labels)
        found = _chosen(place, read_arrays(place), name, LABELS, "labels")
    elif (known := next((each for each in LABELS if each in arrays), None)) is not None:
        found = arrays[known]
    else:
        raise UserError(
            f"{place} holds no labels ({_listed(arrays)}): call them labels, or give them as a second file."
        )
    where = file if labels is None else f"{file} with {labels}"
    return Predictions(*_checked(where, scores, _whole(place, found), probabilities), file)


def _checked(where: str, scores: Array, labels: Array, probabilities: bool) -> tuple[Tensor, Tensor]:
    """Logits (N, K) float64 and labels (N,) int64, if that is what they are; `where` begins a complaint."""
    try:
        values, ids = as_predictions(scores, labels)
        if probabilities:
            checked = require_probs(values, ids, "Are these logits? Then leave out --probabilities.")
            logits = checked.double().log()
        else:
            logits = require_logits(values, ids, "If they are, say --probabilities.").double()
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    if len(ids) == 0:
        raise UserError(f"{where} holds no predictions: it is empty.")
    return logits, ids


def _named(text: str) -> tuple[Path, str | None]:
    """FILE, or FILE:NAME for one of its arrays."""
    file, _, name = text.rpartition(":")
    return (Path(text), None) if not file or Path(text).exists() else (Path(file), name)


def _chosen(
    file: Path, arrays: Mapping[str, Array], name: str | None, known: Sequence[str], what: str
) -> Array:
    """The array of that name, of a known one, or the only one there is beside labels."""
    if name is not None:
        return entry(f"array in {file}", arrays, name)
    others = [key for key in arrays if what == "labels" or key not in LABELS]
    found = next((key for key in known if key in arrays), others[0] if len(others) == 1 else None)
    if found is None:
        raise UserError(
            f"which {what} of {file}? It holds {_listed(arrays)}: say {file}:NAME, or name them {known[0]}."
        )
    return arrays[found]


def _listed(arrays: Mapping[str, Array]) -> str:
    told = [f"{shown(key, 40)} {value.dtype} {value.shape}".strip() for key, value in arrays.items()]
    return "; ".join(told[:8]) + ("; ..." if len(told) > 8 else "") or "nothing"


def read_arrays(file: Path) -> Mapping[str, Array]:
    """The arrays of a file by name; one without a name is under ""."""
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}.")
    if file.suffix.lower() not in READERS:
        raise UserError(f"{file} is of no kind that is read: {', '.join(READERS)}.")
    return READERS[file.suffix.lower()](file)


def _npy(file: Path) -> Mapping[str, Array]:
    return {"": mapped(file)}


def _safetensors(file: Path) -> Mapping[str, Array]:
    from auglabel.lab.runs.checkpoint import load_weights

    return {**load_weights(file)}


def _csv(file: Path) -> Mapping[str, Array]:
    """A column per class, in order, and perhaps one of labels, which a first line of names tells."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            names = next(csv.reader(opened), [])
            header = not all(_is_number(name) for name in names)
            opened.seek(0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that it is empty is said below
                cells = np.loadtxt(opened, delimiter=",", skiprows=int(header), ndmin=2, quotechar='"')
    except (ValueError, csv.Error) as error:
        raise UserError(f"{file} must hold numbers with commas between, but: {shown(error)}.") from None
    if len(names) > 1 and names == [str(place) for place in range(len(names))]:  # as data frames number them
        raise UserError(
            f"{file} begins with {shown(','.join(names), 40)}: scores, or the numbers of columns? Name "
            'these, as data.add_prefix("class ").to_csv does, or write 0.0,1.0,... if it is a prediction.'
        )
    if not header or not len(cells):
        return {"": cells}
    names = [name.strip() for name in names]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UserError(f'{file} has two columns "{shown(twice[0])}": leave out one.')
    return _columns(file, dict(zip(names, cells.T, strict=True)))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _columns(file: Path, columns: Mapping[str, npt.NDArray[Any]]) -> Mapping[str, Array]:
    """Columns of single numbers as one array, but for labels; others as they are."""
    lists = {name.lower(): column for name, column in columns.items() if column.ndim > 1}
    labels = {name.lower(): columns[name] for name in columns if name.lower() in LABELS}
    scores = {name: column for name, column in columns.items() if name.lower() not in lists | labels}
    if lists or not scores:
        return lists | labels
    if wrong := [name for name in scores if name.lower() in NO_SCORES]:
        way_out = "" if wrong[0] else ", with to_csv(index=False)"
        raise UserError(f'{file} has a column "{shown(wrong[0])}", which is no class: leave it out{way_out}.')
    cells = np.stack(list(scores.values()), axis=1)
    if odd := _no_class(list(scores), cells):
        raise UserError(
            f'{file} has a column "{shown(odd)}" of whole numbers beside fractions, as no class '
            "has: leave it out, or, if it is one, give scores without names, and labels in a second file."
        )
    return {"": cells, **labels}


def _no_class(names: list[str], cells: npt.NDArray[Any]) -> str:
    """The first column of whole numbers, not all 0, beside fractions: an id, or a class; "" without one."""
    whole = (cells == np.rint(cells)).all(axis=0)
    if whole.all() or np.allclose(cells.sum(axis=1), 1, atol=1e-3):  # counts; probabilities
        return ""
    return next((names[place] for place in np.flatnonzero(whole & cells.any(axis=0))), "")


def _whole(file: Path, labels: Any) -> Array:
    """Text has no types: in a .csv 3.0 is the label 3. Other files keep theirs."""
    column: Array = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if isinstance(column, Tensor) or file.suffix.lower() != ".csv" or column.ndim != 1:
        return column
    odd = ~(np.abs(column) < 2**53) | (column != np.round(column))
    if odd.any():
        row = int(odd.argmax())
        raise UserError(f"{file}: labels must be whole numbers, got {column[row]:g} in row {row + 1}.")
    return column.astype(np.int64)


def _parquet(file: Path) -> Mapping[str, Array]:
    """Columns as in a .csv, or a column of lists of one length each."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise ImportError("parquet files need pyarrow: pip install 'auglabel[parquet]'.") from None
    try:
        table = parquet.read_table(file)
    except (ValueError, OSError) as error:
        raise UserError(f"{file} cannot be read as parquet ({shown(error)}).") from None
    return _columns(file, {name: _column(file, name, table[name]) for name in table.column_names})


def _column(file: Path, name: str, column: Any) -> npt.NDArray[Any]:
    found: npt.NDArray[Any] = column.to_numpy()
    try:
        found = np.stack(list(found)) if found.dtype == object and len(found) else found
    except (ValueError, TypeError):
        found = np.empty(0, object)
    if found.dtype.kind not in "biuf":
        raise UserError(
            f'{file}: column "{shown(name)}" must hold numbers, or lists of one length: leave it out.'
        )
    return found


READERS: dict[str, Callable[[Path], Mapping[str, Array]]] = {
    ".npy": _npy,
    ".npz": arrays_of,
    ".csv": _csv,
    ".parquet": _parquet,
    ".safetensors": _safetensors,
}
