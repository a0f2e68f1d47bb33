import json
import os
import resource
import signal
import subprocess
import sys
import time

import pytest

from auglabel.lab.runs.files import append_line, read_lines
from auglabel.util.atomic_write import write_atomically, write_text
from auglabel.util.checksummed_json import write_checksummed


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def fail(partial):
        partial.write_text("half")
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        write_atomically(path, fail)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_a_process_killed_in_the_middle_of_a_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")
    writing = (
        "import sys, time; from pathlib import Path\n"
        "from auglabel.util.atomic_write import write_atomically\n"
        "def slow(partial):\n"
        "    with partial.open('w') as file:\n"
        "        file.write('x' * 1000); file.flush(); print('half', flush=True); time.sleep(60)\n"
        f"write_atomically(Path({str(path)!r}), slow)\n"
    )
    with subprocess.Popen([sys.executable, "-c", writing], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "half\n"
        process.send_signal(signal.SIGKILL)
    assert path.read_text() == "old"
    write_text(path, "new")
    assert path.read_text() == "new"


def test_a_full_disk_is_an_error_and_the_old_file_stays(tmp_path):
    path = tmp_path / "a.json"
    write_checksummed(path, {"old": 1})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            write_checksummed(path, {"new": "x" * 5000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert json.loads(path.read_text())["old"] == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_others_may_read_what_the_umask_lets_them(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "a", "x")
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_lines_read_back_and_a_torn_last_one_does_not_count(tmp_path):
    path = tmp_path / "lines.jsonl"
    assert read_lines(path) == {}
    for number in range(3):
        append_line(path, {"epoch": number, "time": time.time()})
    with path.open("a") as file:
        file.write('{"epoch": 3, "ti')
    assert [line["epoch"] for line in read_lines(path).values()] == [0, 1, 2]


def test_a_damaged_line_inside_is_named(tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_text('{"epoch": 1}\n{"epo\n{"epoch": 3}\n')
    with pytest.raises(ValueError, match=r"lines.jsonl, line 2 is damaged"):
        read_lines(path)
