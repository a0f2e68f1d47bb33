"""bf16 on processors that announce AMX and hide its palette: limited in time, or refused in a sentence."""

import os
import platform
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from auglabel import cli
from auglabel.util import cpu

FLAGS = "processor\t: 0\nflags\t\t: fpu sse2 {}\n"

# A processor that announces AMX and has no palette, wherever this runs: `auglabel.util.cpu` is loaded
# by itself, with its answers replaced, before the package asks it.
HIDDEN = f"""
import importlib.util, sys
spec = importlib.util.spec_from_file_location("auglabel.util.cpu", {cpu.__file__!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
module.announces_amx, module.tile_palettes = lambda: True, lambda: {{palettes}}
sys.modules["auglabel.util.cpu"] = module
"""


def run_hidden(code, palettes=0, **environment):
    """What `code` prints in a process whose processor gives these answers."""
    kept = {key: value for key, value in os.environ.items() if key != cpu.VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", HIDDEN.format(palettes=palettes) + code],
        env=kept | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def hidden(monkeypatch):
    monkeypatch.setenv(cpu.VARIABLE, "set so that it is put back")
    monkeypatch.delenv(cpu.VARIABLE)
    monkeypatch.setattr(cpu, "announces_amx", lambda: True)
    monkeypatch.setattr(cpu, "tile_palettes", lambda: 0)


@pytest.mark.parametrize("command", ["import auglabel", "from auglabel import cli; cli.main(['--version'])"])
def test_importing_the_package_limits_onednn_where_the_palette_is_hidden(command):
    told = run_hidden(f"{command}\nimport os; print(os.environ.get('{cpu.VARIABLE}'))")
    assert told.splitlines()[-1] == "AVX512_CORE_FP16"


def test_a_healthy_amx_is_kept():
    told = run_hidden(f"import auglabel, os; print(os.environ.get('{cpu.VARIABLE}'))", palettes=1)
    assert told == "None"


def test_a_limit_that_the_user_has_set_stays():
    told = run_hidden(f"import auglabel, os; print(os.environ['{cpu.VARIABLE}'])", ONEDNN_MAX_CPU_ISA="AVX2")
    assert told == "AVX2"


def test_a_processor_that_cannot_be_asked_is_left_alone(hidden, monkeypatch):
    monkeypatch.setattr(cpu, "tile_palettes", lambda: None)
    cpu.guard()
    assert cpu.VARIABLE not in os.environ


@pytest.mark.parametrize(
    ("flags", "announced"),
    [("amx_bf16 avx512f amx_tile amx_int8", True), ("avx512f avx512_bf16", False), ("amx_tile", False)],
)
def test_the_flags_of_the_processor_are_read(flags, announced, tmp_path, monkeypatch):
    (tmp_path / "cpuinfo").write_text(FLAGS.format(flags))
    real = open
    monkeypatch.setattr("builtins.open", lambda path, **how: real(tmp_path / Path(path).name, **how))
    assert cpu.announces_amx() is announced


def test_without_a_list_of_flags_nothing_is_announced(monkeypatch):
    def missing(*words, **options):
        raise FileNotFoundError

    monkeypatch.setattr("builtins.open", missing)
    assert cpu.announces_amx() is False


@pytest.mark.parametrize(("highest", "palettes"), [(0x1C, 0), (0x16, 0), (0x1D, 1), (0x20, 1), (None, None)])
def test_a_leaf_beyond_the_highest_is_not_asked(highest, palettes, monkeypatch):
    """An Intel processor answers such a leaf with the data of its highest one, which may be any number."""
    answers = {0: highest, 0x1D: 1 if highest is not None and highest >= 0x1D else 2100}
    monkeypatch.setattr(cpu, "_cpuid", answers.__getitem__)
    assert cpu.tile_palettes() == palettes


def test_the_processor_names_its_highest_leaf():
    """Every x86-64 processor has leaf 1 at least; other machines are not asked."""
    highest = cpu._cpuid(0)
    assert highest is None if platform.machine() != "x86_64" else 1 <= highest < 0x100


def test_a_program_that_may_not_write_code_cannot_ask(monkeypatch):
    def refused(*words, **options):
        raise PermissionError

    monkeypatch.setattr(cpu.mmap, "mmap", refused)
    assert cpu.tile_palettes() is None


def test_bf16_that_would_end_by_a_signal_is_refused_in_a_sentence(hidden, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(cpu, "_compute_bfloat16", lambda: os.kill(os.getpid(), signal.SIGILL))
    words = ["train", "embedded", "--engine.precision=bf16", "--tracker=none", f"--out={tmp_path / 'run'}"]
    assert cli.main(words) == 1
    assert capsys.readouterr().err == (
        "auglabel: bf16 does not work in this process: the processor announces AMX but hides its tile "
        "palette, and nothing keeps oneDNN from using it. Set ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16 in the "
        "environment before Python starts, or import auglabel before the first layer is computed, or train "
        "in float32.\n"
    )
    assert not (tmp_path / "run").exists()


def test_bf16_is_tried_too_where_the_processor_cannot_be_asked(hidden, monkeypatch):
    monkeypatch.setattr(cpu, "tile_palettes", lambda: None)
    monkeypatch.setattr(cpu, "_compute_bfloat16", lambda: os.kill(os.getpid(), signal.SIGILL))
    with pytest.raises(ValueError, match="bf16 does not work in this process"):
        cpu.require_bfloat16()


def test_bf16_that_works_is_not_refused(hidden, monkeypatch):
    monkeypatch.setattr(cpu, "_compute_bfloat16", lambda: None)
    cpu.require_bfloat16()


def test_a_layer_that_never_ends_does_not_work(monkeypatch):
    assert not cpu._survives(signal.pause, seconds=0.1)
