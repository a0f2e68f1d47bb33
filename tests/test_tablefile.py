import json

import pytest
import torch

from auglabel import DistanceGrid, load_table, save_table

GRID = DistanceGrid((2, 1))


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


GOOD = {"format": "auglabel table, version 1", "confidence": [[1, 0.5], [0.25]]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[]", 'its "format" must be'),
        (json.dumps({**GOOD, "format": "auglabel table, version 9"}), 'its "format" must be'),
        (json.dumps({**GOOD, "confidence": 3}), "one list of numbers per kind"),
        (
            json.dumps({**GOOD, "confidence": [[1], [1, 1]]}),
            r"levels \(1, 2\), but the grid has levels \(2, 1\)",
        ),
        (json.dumps({**GOOD, "confidence": [[1, 2], [1]]}), r"number in \[0, 1\]"),
        (json.dumps({**GOOD, "confidence": [[1, "x"], [1]]}), r"number in \[0, 1\]"),
        (json.dumps({**GOOD, "confidence": [[1, True], [1]]}), r"number in \[0, 1\]"),
        ('{"format": "auglabel table, version 1", "confidence": [[1, NaN], [1]]}', r"number in \[0, 1\]"),
    ],
)
def test_files_that_are_no_such_table_are_refused(tmp_path, content, message):
    path = tmp_path / "table.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        load_table(path, GRID)


def test_a_table_of_another_size_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="the grid has 3 buckets, but the table has shape"):
        save_table(tmp_path / "table.json", torch.ones(2), GRID)
    assert not any(tmp_path.iterdir())
