import subprocess
import sys

import pytest

from auglabel import __version__, cli


def test_demo_prints_every_method_and_the_learned_labels(capfd):
    assert cli.main(["demo", "--seeds", "1", "--epochs", "1"]) == 0
    printed = capfd.readouterr().out
    for word in (
        "one-hot",
        "label smoothing",
        "AutoLabel",
        "clean",
        "noise",
        "occlude",
        "shear_x",
        "equalize",
    ):
        assert word in printed


def test_version(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out.strip() == f"auglabel {__version__}"


@pytest.mark.parametrize("words", [["demo", "--seeds", "0"], ["demo", "--epochs", "x"], ["dmo"], []])
def test_words_it_does_not_know_end_with_one_sentence(words, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(words)
    assert end.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_a_missing_extra_is_named_without_a_traceback():
    blocked = "import sys; sys.modules['rich'] = None; from auglabel import cli; sys.exit(cli.main(['demo']))"
    done = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.strip().count("\n") == 0
    assert "pip install 'auglabel[train]'" in done.stderr


def test_a_failure_is_one_sentence(monkeypatch, capsys):
    def fail(asked):
        raise ValueError("the file is damaged.")

    monkeypatch.setattr(cli, "_demo", fail)
    assert cli.main(["demo"]) == 1
    assert capsys.readouterr().err == "auglabel: the file is damaged.\n"


def test_an_interrupt_says_so(monkeypatch, capsys):
    def stop(asked):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_demo", stop)
    assert cli.main(["demo"]) == 130
    assert "stopped" in capsys.readouterr().err
