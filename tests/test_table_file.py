import json

import pytest
import torch

from auglabel import DistanceGrid, load_table, save_table

GRID = DistanceGrid((2, 1), ("rotate", "equalize"))


def test_a_table_comes_back_as_it_was(tmp_path):
    table = torch.tensor([1.0, 0.7123456, 1 / 3])
    save_table(tmp_path / "table.json", table, GRID)
    assert torch.equal(load_table(tmp_path / "table.json", GRID), table)
    assert [file.name for file in tmp_path.iterdir()] == ["table.json"]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "table.json"
    save_table(path, torch.ones(3), GRID)
    before = path.read_text()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        save_table(path, torch.zeros(3), GRID)
    assert path.read_text() == before
    assert [file.name for file in tmp_path.iterdir()] == ["table.json"]


GOOD = {"format": "auglabel table, version 1", "confidence": {"rotate": [1, 0.5], "equalize": [0.25]}}


def table(rotate, equalize):
    return json.dumps({**GOOD, "confidence": {"rotate": rotate, "equalize": equalize}})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[]", r"is not a label table: got list \[\]"),
        (
            json.dumps({**GOOD, "format": "auglabel table, version 9"}),
            "got str 'auglabel table, version 9'",
        ),
        (json.dumps({**GOOD, "confidence": 3}), "a list of numbers per kind, got int 3"),
        (table([1], [1, 1]), r"it has \{'rotate': 1, 'equalize': 2\}, but the grid has"),
        (json.dumps({**GOOD, "confidence": {"shear_x": [1, 1], "equalize": [1]}}), "it has {'shear_x': 2"),
        (table([1, 2], [1]), r"number in \[0, 1\], got int 2"),
        (table([1, "x"], [1]), r"number in \[0, 1\], got str 'x'"),
        (table([1, True], [1]), r"number in \[0, 1\], got bool True"),
        (table([1, float("nan")], [1]), r"number in \[0, 1\], got float nan"),
    ],
)
def test_files_that_are_no_such_table_are_refused(tmp_path, content, message):
    path = tmp_path / "table.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        load_table(path, GRID)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, 1.0], "the grid has 3 buckets, but the table has 2"),
        ([1.0, 2.0, 1.0], r"table must be in \[0, 1\], got 2"),
        ([1.0, float("nan"), 1.0], r"table must be in \[0, 1\], got nan"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(tmp_path, values, message):
    with pytest.raises(ValueError, match=message):
        save_table(tmp_path / "table.json", torch.tensor(values), GRID)
    assert not any(tmp_path.iterdir())
