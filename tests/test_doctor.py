import copy
import json
import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from auglabel import __version__, cli
from auglabel.lab.doctor import doctor
from auglabel.lab.doctor import files as doctor_files
from auglabel.lab.doctor import hardware as doctor_machine
from auglabel.lab.doctor import packages as doctor_packages
from auglabel.lab.doctor import probe as doctor_probe
from auglabel.lab.doctor import text as doctor_text
from auglabel.lab.doctor import tries as doctor_tries
from auglabel.lab.doctor.problems import find_problems

REQUIRES = [
    "torch>=2.5.1",
    "numpy>=1.26",
    "nowhere-to-be-found[all]>=3; extra == 'report'",
    "pytest>=8.3; extra == 'report'",
    'hypothesis>=9999.1; extra == "sweep"',
    "auglabel[report,sweep]; extra == 'all'",
]
STUB = """
import json, os, signal, sys, time
torch = {"version": "9.8.7", "instructions": "AVX2", "threads": 3, "gpus": [], "trial": "a network"}
for task in sys.argv[1:]:
    if task == os.environ.get("DIES"):
        os.kill(os.getpid(), signal.SIGILL)
    if task == os.environ.get("HANGS"):
        time.sleep(60)
    print(json.dumps({"task": task, "result": torch if task == "torch" else 100.0}), flush=True)
"""


@pytest.fixture
def stub(tmp_path, monkeypatch):
    """The child replaced by a program that answers at once, or dies or hangs where it is told to."""
    program = tmp_path / "stub.py"
    program.write_text(STUB)
    monkeypatch.setattr(doctor_tries, "PROGRAM", program)
    monkeypatch.setattr(metadata, "requires", lambda name: REQUIRES)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("AUGLABEL_CACHE", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def facts(stub):
    """A machine with nothing wrong, to be changed by a test."""
    found = copy.deepcopy(doctor.gather())
    del found["packages"]["hypothesis"]  # the one that is too old
    found["variables"] = {}
    found["cpu"] |= {"amx": False, "amx_hidden": False, "cores": 8, "usable_cores": 8}
    found["torch"]["threads"] = 8
    found["memory"]["available"] = 8e9
    found["cache"]["free"] = found["folder"]["free"] = 8e9
    assert find_problems(found, doctor_packages.requirements()) == []
    return found


def only_problem(facts):
    (problem,) = find_problems(facts, doctor_packages.requirements())
    return problem


def run_apart(words, folder, missing=()):
    """A command in a process of its own, where the modules of a folder come first; what it printed."""
    code = f"""
import sys
from importlib import metadata
sys.modules.update(dict.fromkeys({missing}))
metadata.requires = lambda name: {REQUIRES}
from auglabel import cli
sys.exit(cli.main(sys.argv[1:]))
"""
    variables = {"HOME": str(folder), "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_json_has_every_part_with_its_type(stub, capsys):
    assert cli.main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {key: type(value) for key, value in found.items()} == {
        "problems": list,
        "versions": dict,
        "system": str,
        "extras": dict,
        "packages": dict,
        "cpu": dict,
        "memory": dict,
        "variables": dict,
        "torch": dict,
        "gpus": list,
        "precisions": dict,
        "cache": dict,
        "folder": dict,
        "data": dict,
        "fastest": str,
        "verdict": str,
    }
    assert found["versions"]["auglabel"] == __version__
    assert found["versions"]["torch"] == "9.8.7"
    assert found["torch"] == {"error": None, "instructions": "AVX2", "threads": 3, "trial": "a network"}
    assert found["precisions"]["float32"] == {"images_per_second": 100.0, "error": None, "death": None}
    assert all(problem.keys() == {"problem", "way_out"} for problem in found["problems"])
    assert type(found["cache"]["bytes"]) is type(found["cache"]["free"]) is int


def test_the_screen_has_problems_first_and_the_fastest_precision_last(stub, capsys):
    assert cli.main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Problems"
    assert lines[1].startswith("  1. ")
    assert lines[-1].startswith("Fastest here: float32 channels-last")
    titles = [line for line in lines if line and not line.startswith(" ")][:-1]
    assert titles == ["Problems", "Versions", "Extras", "Machine", "Training", "Files", "Data"]
    assert max(map(len, lines)) <= 100


def test_a_precision_that_dies_is_a_problem_and_the_rest_is_tried(stub, monkeypatch, capsys):
    monkeypatch.setenv("DIES", "train bf16 channels-last")
    assert cli.main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "Training in bf16 channels-last dies with SIGILL" in found["problems"][0]["problem"]
    dead = found["precisions"].pop("bf16 channels-last")
    assert dead == {"images_per_second": None, "error": None, "death": "dies with SIGILL"}
    assert [tried["images_per_second"] for tried in found["precisions"].values()] == [100.0] * 3
    assert found["packages"]["pytest"]["error"] is None


def test_an_amx_that_dies_is_kept_from_by_a_variable(facts):
    facts["cpu"]["amx"] = True
    facts["precisions"]["bf16 channels-last"]["death"] = "dies with SIGILL"
    assert "ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16" in only_problem(facts).way_out
    facts["precisions"]["bf16 channels-last"]["death"] = None
    facts["variables"]["ONEDNN_MAX_CPU_ISA"] = "AVX512_CORE_BF16"
    assert "oneDNN is kept from using it: ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16" in only_problem(facts).problem
    facts["cpu"]["amx_hidden"] = True  # then the limit is as it should be
    assert find_problems(facts, doctor_packages.requirements()) == []


def test_a_task_that_hangs_is_given_up(stub, monkeypatch):
    monkeypatch.setenv("HANGS", "two")
    found = doctor_tries.try_each(["one", "two", "three"], task_seconds=2)
    assert found["one"].result == found["three"].result == 100.0
    assert found["two"].death == "gives no answer within 2 s"


def test_missing_extras_are_named_with_how_to_install_them(stub, capsys):
    assert cli.main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert "report         missing nowhere-to-be-found: pip install 'auglabel[report]'\n" in printed
    assert "complete       sweep\n" in printed  # and not all, which is made of others
    assert f"pytest {metadata.version('pytest')}" in printed


def test_the_extras_are_those_of_the_package():
    extras = doctor_packages.describe_extras(doctor_packages.requirements())
    assert set(extras) <= set(metadata.metadata("auglabel").get_all("Provides-Extra"))
    assert {"train", "report", "sweep", "timm"} <= set(extras)
    assert "rich" in extras["train"]["packages"]


def test_a_package_that_is_too_old_is_a_problem(stub):
    texts = [str(problem) for problem in doctor.gather()["problems"]]
    assert any("hypothesis" in text and "'hypothesis>=9999.1'" in text for text in texts)
    assert not any("pytest" in text for text in texts)


def test_a_broken_package_is_named_without_the_users_folders(tmp_path, monkeypatch, facts):
    (tmp_path / "wrecked").mkdir()
    (tmp_path / "wrecked" / "__init__.py").write_text("raise RuntimeError(f'no operator in {__file__}.')")
    about = tmp_path / "broken_vision-1.5.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-vision\nVersion: 1.5\n")
    (about / "RECORD").write_text("wrecked/__init__.py,,\nbroken_vision.libs/other.so,,\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(metadata, "requires", lambda name: [*REQUIRES, "broken-vision; extra == 'timm'"])
    monkeypatch.setattr(doctor_tries, "PROGRAM", Path(doctor_probe.__file__))
    monkeypatch.setattr(doctor, "PRECISIONS", {})
    problems = [problem["problem"] for problem in doctor.gather()["problems"]]
    assert (
        "broken-vision 1.5 is installed but cannot be imported: RuntimeError: no operator in "
        "~/wrecked/__init__.py." in problems
    )


@pytest.mark.parametrize(
    ("package", "module"), [("pillow", "PIL"), ("opencv-python-headless", "cv2"), ("pytest", "pytest")]
)
def test_the_module_of_a_package_is_found(package, module):
    if doctor_packages.version_of(package) is None:
        pytest.skip(f"needs {package}")
    assert doctor_packages.module_of(package) == module


def test_it_needs_none_of_the_extras_and_measures_for_real(tmp_path):
    missing = ("rich", "accelerate", "PIL", "yaml", "safetensors")
    found = json.loads(run_apart(["doctor", "--json"], tmp_path, missing))
    for name in ("float32", "float32 channels-last"):
        assert found["precisions"][name]["images_per_second"] > 1
    assert found["torch"]["error"] is None
    assert found["data"]["embedded"]["where"] == "inside the package"
    assert found["fastest"] in found["precisions"]


def test_packages_that_fail_as_torch_does_are_not_named_again(facts):
    facts["torch"]["error"] = facts["packages"]["pytest"]["error"] = "OSError: libtorch.so: cannot open"
    assert only_problem(facts).problem.startswith("torch cannot be used")


def test_a_gpu_that_torch_does_not_find_is_a_problem(facts, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert only_problem(facts).problem == "There is an NVIDIA driver, but torch 9.8.7 finds no GPU."
    facts["gpus"] = [{"name": "Fast One", "memory": 24_000_000_000}]
    assert find_problems(facts, doctor_packages.requirements()) == []
    assert "GPU            Fast One, 24.0 GB\n" in doctor_text.screen(facts)


def test_no_path_of_the_home_directory_is_printed(stub, capsys):
    (stub / "cifar-10-batches-py").mkdir()
    assert cli.main(["doctor", "--data.root", str(stub)]) == 0
    printed = capsys.readouterr().out
    assert str(stub) not in printed
    assert "cache          ~/.cache/auglabel/images: 0 files" in printed
    assert "cifar10        ~/cifar-10-batches-py" in printed


def test_data_sets_are_found_and_missing_files_are_a_problem(stub, facts):
    for name in ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "test_batch"):
        path = stub / "data" / "cifar-10-batches-py" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (stub / "cifar-100-python.tar.gz").touch()
    for part in ("train", "val"):
        (stub / part / "n01440764").mkdir(parents=True)
    facts["data"] = doctor_files.describe_data(None)
    assert facts["data"]["cifar100"]["where"] == "cifar-100-python.tar.gz"
    assert facts["data"]["imagenet"]["where"] == "."
    assert "lacks files of cifar10: data_batch_5." in only_problem(facts).problem
    assert doctor_files.describe_data("elsewhere")["imagenet"] == {"where": None, "sought": "elsewhere"}


def test_a_cache_that_cannot_be_written_is_a_problem(stub, facts, monkeypatch):
    (stub / "file").touch()
    monkeypatch.setenv("AUGLABEL_CACHE", str(stub / "file" / "cache"))
    facts["cache"] = doctor_files.describe_cache() | {"free": 8e9}
    assert only_problem(facts).problem.startswith("The cache directory ~/file/cache/images cannot be written")


def test_the_files_of_the_cache_are_counted(stub):
    (stub / ".cache" / "auglabel" / "images").mkdir(parents=True)
    for name, size in (("a.npy", 1000), ("a.json", 24)):
        (stub / ".cache" / "auglabel" / "images" / name).write_bytes(bytes(size))
    found = doctor_files.describe_cache()
    assert (found["files"], found["bytes"], found["writable"]) == (2, 1024, True)
    assert sorted(path.name for path in stub.rglob("*")) == [
        ".cache", "a.json", "a.npy", "auglabel", "images", "stub.py"
    ]  # fmt: skip


def test_no_home_directory_is_a_problem(facts, monkeypatch):
    def fail(path):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", fail)
    facts["cache"] = doctor_files.describe_cache()
    assert "Set HOME" in only_problem(facts).way_out


@pytest.mark.parametrize(
    ("part", "key", "value", "complaint"),
    [
        ("memory", "available", 1.9e9, "Only 1.9 GB of memory are available."),
        ("cache", "free", 0.5e9, "Only 0.5 GB of disk are free for the cache."),
        ("folder", "free", 0.9e9, "Only 0.9 GB of disk are free for runs in the current folder."),
        ("folder", "writable", False, "The current folder cannot be written, so runs cannot go there."),
        ("torch", "threads", 1, "torch uses 1 of 8 cores."),
        ("torch", "threads", 64, "torch uses 64 threads, but this process may use 8 cores."),
    ],
)
def test_what_is_short_is_a_problem(facts, part, key, value, complaint):
    facts[part][key] = value
    assert only_problem(facts).problem == complaint


def test_a_variable_that_keeps_cores_idle_is_named(facts):
    facts["torch"]["threads"] = 4  # a core each where every core has two threads: nothing is wrong
    assert find_problems(facts, doctor_packages.requirements()) == []
    facts["variables"]["OMP_NUM_THREADS"] = "4"
    assert only_problem(facts).problem == "torch uses 4 of 8 cores because OMP_NUM_THREADS=4."


@pytest.mark.parametrize(
    ("files", "cores", "total"),
    [
        ({}, None, 8 * 1024**3),
        ({"cpu.max": "max 100000", "memory.max": "max"}, None, 8 * 1024**3),
        ({"cpu.max": "50000 100000", "memory.max": "1000000"}, 0.5, 1_000_000),
        ({"box/cpu.max": "25000 50000", "box/memory.max": "2000000"}, 0.5, 2_000_000),
        ({"cpu/cpu.cfs_quota_us": "-1", "memory/memory.limit_in_bytes": "3000000"}, None, 3_000_000),
        ({"cpu/cpu.cfs_quota_us": "5000", "cpu/cpu.cfs_period_us": "10000"}, 0.5, 8 * 1024**3),
    ],
)
def test_the_limits_of_a_container_count(tmp_path, files, cores, total):
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "self" / "cgroup").write_text("1:cpu:/other\n0::/box\n")
    (tmp_path / "proc" / "meminfo").write_text("MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n")
    (tmp_path / "proc" / "cpuinfo").write_text("model name\t: Fast One\n")
    for name, text in files.items():
        path = tmp_path / "sys" / "fs" / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    found = doctor_machine.describe_cpu(tmp_path)
    assert found["name"] == "Fast One"
    assert found["usable_cores"] == (cores or doctor_machine.describe_cpu(tmp_path / "no")["usable_cores"])
    assert doctor_machine.describe_memory(tmp_path) == {"total": total, "available": min(total, 4 * 1024**3)}


@pytest.mark.parametrize(
    ("rates", "sentence"),
    [
        ((500, 1000, 1800, 20), "bf16 channels-last, 1.8 times as fast as float32 channels-last. Use it: "),
        ((500, 1000, 1050, 20), "float32 channels-last, which auglabel train uses unless told otherwise."),
        ((500, None, None, None), "float32. Use it: auglabel train ... --channels_last false"),
        ((None, None, None, None), "not known, since no precision could be tried."),
    ],
)
def test_the_verdict_names_another_precision_only_if_it_is_clearly_faster(rates, sentence):
    tried = {
        name: {"images_per_second": rate} for name, rate in zip(doctor_probe.PRECISIONS, rates, strict=True)
    }
    assert doctor_text.verdict(tried).startswith(f"Fastest here: {sentence}")
