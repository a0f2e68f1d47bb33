"""Every reader: its valid files, how they are spoilt, and cases written by hand."""

from __future__ import annotations

import json

from safetensors.torch import save

from auglabel.data.cifar import cifar10
from auglabel.data.folder import folder
from auglabel.data.npz import npz
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.recipe.yamlfile import with_checksum
from auglabel.lab.runs.checkpoint import WEIGHTS
from auglabel.lab.runs.checkpoint import _checksum as checkpoint_sum
from auglabel.lab.share.sharing import load_shared
from auglabel.table_file import FORMAT, load_table
from hostile.archives import tar_cases, tar_of
from hostile.arrays import npz_cases, npz_of, some_arrays, spoil_npz
from hostile.cifar import binary_cases, binary_files, packed, python_cases, read_cifar, spoil_packed
from hostile.corrupted_copies import copies, copies_cases, read_copies, spoil_copies
from hostile.images import picture_cases, picture_files, spoil_picture_tar, spoil_pictures
from hostile.pickles import python2_batch, python_batch, python_files, spoil_pickle
from hostile.recipes import RECIPES, recipe_cases, spoil_recipe
from hostile.results import a_job, a_result, read_result, result_files
from hostile.runs import (
    a_begun_run,
    a_run,
    read_inspected,
    read_report,
    read_resumed,
    resumed_cases,
    run_cases,
    spoil_begun,
)
from hostile.shared import a_shared_model, shared_cases
from hostile.spoil import Reader, as_json, json_cases, line_cases, spoil_one
from hostile.tables import GRID, a_table, an_audit, spoil_file
from hostile.tensors import (
    FACTS,
    a_checkpoint,
    read_checkpoint,
    read_weights,
    safetensors_cases,
    some_tensors,
    spoil_checkpoint,
)

READERS = [
    Reader(
        "CIFAR, python",
        12,
        lambda: [python_files(c) for c in (python2_batch(2), python_batch(2), python_batch(2, protocol=4))],
        lambda draw, files: {**files, "data_batch_1": spoil_pickle(draw, files["data_batch_1"])},
        read_cifar,
        python_cases,
    ),
    Reader("CIFAR, binary", 8, lambda: [binary_files()], spoil_one, read_cifar, binary_cases),
    Reader(
        "CIFAR, packed",
        9,
        packed,
        spoil_packed,
        lambda place: cifar10(next(place.iterdir()), verify=False),
        lambda: tar_cases(binary_files, "cifar-10-binary.tar.gz", zipped=True),
    ),
    Reader(
        "npz",
        12,
        lambda: [{"data.npz": npz_of(some_arrays())}, {"data.npz": npz_of(some_arrays(), packed=False)}],
        spoil_npz,
        lambda place: npz(place / "data.npz"),
        npz_cases,
    ),
    Reader(
        "image folder",
        12,
        picture_files,
        spoil_pictures,
        lambda place: folder(place, size=8, cache=False),
        picture_cases,
    ),
    Reader(
        "image tar",
        8,
        lambda: [{"set.tar": tar_of(files)} for files in picture_files()],
        spoil_picture_tar,
        lambda place: folder(place / "set.tar", size=8, cache=False),
        lambda: tar_cases(lambda: picture_files()[0], "set.tar", zipped=False),
    ),
    Reader(
        "recipe",
        5,
        lambda: [
            *({"recipe.yaml": text.encode()} for text in RECIPES),
            {"recipe.yaml": with_checksum(RECIPES[0]).encode()},
        ],
        spoil_recipe,
        lambda place: read_recipe(str(place / "recipe.yaml")),
        recipe_cases,
    ),
    Reader(
        "checkpoint",
        8,
        lambda: [{"checkpoints/step-00000001.safetensors": a_checkpoint(some_tensors(), json.dumps(FACTS))}],
        spoil_checkpoint,
        read_checkpoint,
        lambda: safetensors_cases("checkpoints/step-00000001.safetensors"),
    ),
    Reader(
        "weights",
        8,
        lambda: [
            {"model.safetensors": save(some_tensors())},
            {"model.safetensors": save(some_tensors(), {WEIGHTS: checkpoint_sum(some_tensors(), "")})},
        ],
        spoil_file,
        read_weights,
        lambda: safetensors_cases("model.safetensors"),
    ),
    Reader("corrupted copies", 6, copies, spoil_copies, read_copies, copies_cases),
    Reader(
        "label table",
        7,
        lambda: [{"table.json": as_json(a_table(FORMAT))}],
        spoil_file,
        lambda place: load_table(place / "table.json", GRID),
        lambda: json_cases("table.json", a_table(FORMAT)),
    ),
    Reader(
        "audit",
        7,
        lambda: [{"audit.json": as_json(an_audit())}],
        spoil_file,
        lambda place: load_table(place / "audit.json", GRID),
        lambda: json_cases("audit.json", an_audit()),
    ),
    Reader("run, report", 1, lambda: [a_run()], spoil_file, read_report, run_cases),
    Reader("run, resume", 2, lambda: [a_begun_run()[0]], spoil_begun, read_resumed, resumed_cases),
    Reader(
        "run, inspect",
        2,
        lambda: [{"tables.jsonl": a_run()["tables.jsonl"]}],
        spoil_file,
        read_inspected,
        lambda: line_cases("tables.jsonl", json.loads(a_run()["tables.jsonl"].split(b"\n")[0]), {}),
    ),
    Reader(
        "result",
        6,
        result_files,
        spoil_file,
        read_result,
        lambda: json_cases(f"{a_job().stem}.json", a_result()),
    ),
    Reader("shared model", 4, lambda: [a_shared_model()], spoil_file, load_shared, shared_cases),
]
