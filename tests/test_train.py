"""Runs as a user has them: in a directory, interrupted, resumed, by several processes, on bad days."""

import fcntl
import itertools
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from auglabel import RandAug, __version__, cli
from auglabel.lab.process.launch import launch, stop_signals
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.runs.checkpoint import load_checkpoint, save_checkpoint
from auglabel.lab.runs.records import TIMES, Resumed
from auglabel.lab.runs.run import Run
from auglabel.lab.train import train as train_module
from auglabel.lab.train import trainer
from auglabel.table_file import load_table

ROOT = Path(__file__).parents[1]
TINY = ["--split.train=120", "--split.validation=60", "--split.test=40", "--batch_size=30", "--tracker=none"]


def train(out, *words, epochs=2):
    """The exit code of `auglabel train` on a tiny part of the embedded images."""
    return cli.main(["train", "embedded", *TINY, f"--epochs={epochs}", f"--out={out}", *words])


def command(out, *words, epochs=2):
    return [
        sys.executable,
        "-m",
        "auglabel.cli",
        "train",
        "embedded",
        *TINY,
        f"--epochs={epochs}",
        f"--out={out}",
        *words,
    ]


def environment(**more):
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}", **more}


def content(out):
    """What two equal runs have in common, to the bit."""
    run = Run(Path(out))
    metrics = [{k: v for k, v in line.as_json().items() if k not in TIMES} for line in run.epochs()]
    last = run.last()
    tensors = {name: tensor.numpy().tobytes() for name, tensor in last.tensors.items()}
    weights = run.model_file.read_bytes() if run.model_file.exists() else None
    return metrics, run.tables_file.read_text(), tensors, weights


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that was never stopped."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    assert train(out, epochs=3) == 0
    return out


def test_a_run_holds_all_that_is_needed_to_understand_and_use_it(whole):
    run = Run(whole)
    facts = json.loads(run.facts_file.read_text())
    assert facts["versions"]["torch"] == torch.__version__
    assert facts["data"]["images"] == {"train": 120, "validation": 60, "test": 40}
    assert len(facts["data"]["checksum"]) == 64
    assert facts["seed"] == 0
    assert [line.epoch for line in run.epochs()] == [1, 2, 3]
    assert run.recipe().training.epochs == 3
    rows = run.split()
    together = torch.cat([rows.train, rows.validation])
    assert len(together.unique()) == 180
    tables = [json.loads(line) for line in run.tables_file.read_text().splitlines()]
    assert [line["epoch"] for line in tables] == [1, 2, 3]
    assert [path.name for path in run.steps()] == ["step-00000008.safetensors", "step-00000012.safetensors"]
    assert run.best_file.exists()
    assert {p.name for p in whole.iterdir()} == {
        *("recipe.yaml", "run.json", "split.safetensors", "metrics.jsonl", "tables.jsonl", "table.json"),
        *("model.safetensors", "checkpoints", ".lock"),
    }


def test_cpu_time_adds_up_over_epochs_and_goes_on_where_a_run_resumes(tmp_path, monkeypatch):
    """A clock that moves by a second each time it is read: four steps and the end of an epoch take five."""
    clock = itertools.count()
    clocks = SimpleNamespace(perf_counter=time.perf_counter, process_time=lambda: float(next(clock)))
    monkeypatch.setattr(trainer, "time", clocks)
    assert train(tmp_path / "run", epochs=2) == 0
    assert [line.cpu_seconds for line in Run(tmp_path / "run").epochs()] == [5.0, 10.0]
    assert train(tmp_path / "stopped", "--max-steps=6", epochs=2) == 0
    assert train(tmp_path / "stopped", "--resume", epochs=2) == 0
    assert [line.cpu_seconds for line in Run(tmp_path / "stopped").epochs()] == [5.0, 10.0]


def test_a_run_says_what_share_of_its_time_calibration_took(tmp_path, capsys):
    assert train(tmp_path / "run", "--calibrate.rule=exact") == 0
    printed = capsys.readouterr().out
    run = Run(tmp_path / "run")
    facts, (_, line) = run.last().facts, run.epochs()
    spent = sum(each.seconds["calibrating"] for each in run.epochs())
    assert spent == pytest.approx(facts["calibrating"])
    assert line.calibration_share == pytest.approx(spent / (spent + facts["training"]))
    assert f"calibration {line.calibration_share:.0%} of the time" in printed
    assert f"{line.calibration_share:.0%} of the time went to calibration" in printed
    assert "all have been seen" not in printed
    assert train(tmp_path / "one-hot", "--regime=randaug", epochs=1) == 0
    assert "calibration" not in capsys.readouterr().out


def test_a_run_with_more_buckets_than_visits_says_when_all_have_been_seen(tmp_path, capsys):
    assert train(tmp_path / "few", "--split.validation=7", "--calibrate.visits=3", epochs=1) == 0
    told = "7 validation images each visit 3 of 82 buckets an epoch: all have been seen after 5 epochs"
    assert f"{told}, and this run has 1." in capsys.readouterr().out
    assert train(tmp_path / "enough", "--split.validation=28", "--calibrate.visits=3", epochs=1) == 0
    assert "all have been seen" not in capsys.readouterr().out
    table = load_table(tmp_path / "few" / "table.json", RandAug().grid)
    assert (table == 1).any()


def test_the_best_checkpoint_is_the_one_of_lowest_validation_nll(whole):
    from auglabel.lab.runs.checkpoint import load_checkpoint

    run = Run(whole)
    nll = {line.epoch: line.validation["nll"] for line in run.epochs()}
    assert load_checkpoint(run.best_file).facts["epoch"] == min(nll, key=nll.get)
    assert load_checkpoint(run.best_file).facts["best"] == min(nll.values())


def test_the_table_of_a_run_trains_another_as_fixed_labels(whole, tmp_path):
    table = load_table(whole / "table.json", RandAug().grid)
    assert table.min() < 1
    assert train(tmp_path / "fixed", "--labels=table", f"--labels.path={whole / 'table.json'}", epochs=1) == 0
    line = json.loads((tmp_path / "fixed" / "tables.jsonl").read_text())
    assert [v for row in line["confidence"].values() for v in row] == table.double().tolist()


def test_stopping_and_resuming_at_any_step_changes_nothing(whole, tmp_path):
    out = tmp_path / "run"
    for stop in (1, 4, 7, 8):
        assert train(out, "--resume", f"--max-steps={stop}", epochs=3) == 0
        assert not (out / "model.safetensors").exists()
    assert train(out, "--resume", epochs=3) == 0
    assert content(out) == content(whole)


def test_resuming_a_finished_run_changes_nothing(whole, tmp_path):
    out = tmp_path / "copy"
    shutil.copytree(whole, out)
    assert cli.main(["train", "--resume", f"--out={out}", "--tracker=none"]) == 0
    assert content(out) == content(whole)


def test_kill_9_at_random_moments_and_resuming_ends_with_the_same_bits(whole, tmp_path):
    """benchmarks/kills.py does this at length."""
    out, draw, kills = tmp_path / "run", random.Random(5), 0
    while kills < 3:
        words = ["--resume", "--save_minutes=0"]  # a write after every step: some are hit
        process = subprocess.Popen(
            command(out, *words, epochs=3), env=environment(), stdout=subprocess.DEVNULL
        )
        until = time.monotonic() + 30
        while not (out / "run.json").exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(draw.uniform(0, 0.6))
        process.kill()
        process.wait()
        kills += 1
    assert train(out, "--resume", epochs=3) == 0
    assert content(out) == content(whole)


def test_a_damaged_last_checkpoint_is_passed_over_for_the_one_before(whole, tmp_path, capsys):
    out = tmp_path / "copy"
    shutil.copytree(whole, out)
    last = Run(out).steps()[-1]
    last.write_bytes(last.read_bytes()[:-100])
    assert train(out, "--resume", epochs=3) == 0
    assert "step-00000012.safetensors is damaged" in capsys.readouterr().out
    assert content(out) == content(whole)
    for path in Run(out).steps():
        path.write_bytes(b"no")
    assert train(out, "--resume", epochs=3) == 1
    said = capsys.readouterr()
    assert "has no checkpoint that can be read" in said.err
    assert said.out.count("The one before it is used.") == 1  # of two


@pytest.mark.parametrize(
    ("part", "change", "complaint"),
    [
        ("facts", {"epoch": "two"}, "epoch must be a whole number, got str 'two'"),
        ("facts", {"processes": None}, "processes must be a whole number, got NoneType None"),
        ("facts", {"colour": 1}, "it has colour"),
        ("facts", {"batch": -4}, "batch cannot be -4"),
        ("facts", {"batch": 1000}, "batch cannot be 1000"),
        ("facts", {"batch": 2, "images": 0}, "images cannot be 0"),
        ("facts", {"epoch": 10**6}, "epoch cannot be 1000000"),
        ("facts", {"processes": 0}, "processes cannot be 0"),
        ("tensors", {"momentum.head.weight": torch.zeros(3)}, "are of another network: 0 missing"),
        ("tensors", {"momentum.tail": torch.zeros(3)}, "1 unknown (tail)"),
    ],
)
def test_a_checkpoint_that_is_sound_but_strange_gets_a_sentence(
    whole, tmp_path, capsys, part, change, complaint
):
    out = tmp_path / "copy"
    shutil.copytree(whole, out)
    last = Run(out).steps()[-1]
    found = load_checkpoint(last)._asdict()
    found[part] = {**found[part], **change}
    save_checkpoint(last, **found)
    assert train(out, "--resume", epochs=3) == 1
    said = capsys.readouterr().err
    assert complaint in said
    assert ("the last checkpoint is of another version: " in said) == (part == "facts")
    assert said.count("\n") == 1


def test_a_run_that_another_process_began_meanwhile_is_not_trained_in(tmp_path, capsys, monkeypatch):
    out, real = tmp_path / "run", Run.locked

    @contextmanager
    def late(run):
        Run(out).begin(read_recipe("embedded", ["--epochs=7"]))  # between the first look and the lock
        with real(run):
            yield

    monkeypatch.setattr(Run, "locked", late)
    assert train(out) == 1
    assert "holds a run already" in capsys.readouterr().err
    assert Run(out).recipe().training.epochs == 7
    assert not Run(out).facts_file.exists()


def until(stream, beginning):
    """Read until a line begins so."""
    for line in stream:
        if line.startswith(beginning):
            return line
    raise AssertionError(f"ended before {beginning}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_saves_the_step_under_way_and_the_run_can_go_on(number, whole, tmp_path):
    out = tmp_path / "run"
    process = subprocess.Popen(
        command(out, epochs=3000),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until(process.stdout, "epoch 1/")
    process.send_signal(number)
    said, complaint = process.communicate(timeout=60)
    assert process.returncode == 130
    assert re.search(r"stopped after step \d+ of 12,000, as you asked; --resume goes on", said)
    assert complaint == "auglabel: stopped.\n"
    step = int(re.search(r"after step (\d+)", said)[1])
    facts = Run(out).last().facts
    assert facts["epoch"] * 4 + facts["batch"] == step
    assert train(out, "--resume", f"--max-steps={step + 2}", epochs=3000) == 0


def on_a_terminal_of_its_own():
    """Its standard input, which hangs up on it even where these tests run under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_a_terminal_that_is_closed_stops_the_run_with_a_checkpoint(tmp_path):
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        command(tmp_path / "run", epochs=3000),
        env=environment(TERM="xterm"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=on_a_terminal_of_its_own,
    )
    os.close(theirs)
    said = b""
    while b"epoch 1/" not in said:
        said += os.read(ours, 1000)
    os.close(ours)
    assert process.wait(timeout=60) == 130
    facts = Run(tmp_path / "run").last().facts
    assert train(tmp_path / "run", "--resume", f"--max-steps={4 * facts['epoch'] + 4}", epochs=3000) == 0


def test_what_nohup_has_it_ignore_does_not_stop_a_run(tmp_path):
    process = subprocess.Popen(
        command(tmp_path / "run", epochs=3000),
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    until(process.stdout, "epoch 1/")
    process.send_signal(signal.SIGHUP)
    until(process.stdout, "epoch 5/")
    process.terminate()
    assert "as you asked" in process.communicate(timeout=60)[0]


def test_a_run_goes_on_when_nobody_reads_what_it_says(whole, tmp_path):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command(tmp_path / "run", epochs=3), env=environment(), **pipes) as process:
        process.stdout.readline()
        process.stdout.close()  # as `| head -1` does
        assert process.wait(timeout=120) == 0
        assert process.stderr.read() == b""
    assert content(tmp_path / "run") == content(whole)


def test_a_second_signal_within_a_second_is_the_same_one_and_a_later_one_stops_at_once(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(train_module.time, "monotonic", lambda: now[0])
    with train_module._signals() as got:
        os.kill(os.getpid(), signal.SIGINT)
        now[0] = 100.9
        os.kill(os.getpid(), signal.SIGINT)
        assert got
        now[0] = 101.1
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_going_on_with_another_version_is_said_and_recorded_once(tmp_path, capsys, monkeypatch):
    out = tmp_path / "run"
    assert train(out, "--max-steps=5", epochs=3) == 0
    begun = Run(out).facts().versions
    monkeypatch.setattr("auglabel.lab.runs.records.__version__", "9.9")
    assert train(out, "--resume", "--max-steps=9", epochs=3) == 0
    said = capsys.readouterr().out
    assert "note: after epoch 1 this run goes on with other versions than before: " in said
    assert f": auglabel {__version__}, now 9.9\n" in said
    facts = Run(out).facts()
    assert facts.versions == begun
    assert facts.resumed == [Resumed(1, {**begun, "auglabel": "9.9"})]
    assert train(out, "--resume", "--max-steps=10", epochs=3) == 0
    assert "other versions" not in capsys.readouterr().out
    monkeypatch.undo()
    assert train(out, "--resume", epochs=3) == 0
    assert f"auglabel 9.9, now {__version__}" in capsys.readouterr().out
    assert [each.epoch for each in Run(out).facts().resumed] == [1, 2]


def test_resuming_with_another_recipe_says_what_differs(whole, capsys):
    assert train(whole, "--resume", "--alpha=0.3", "--seed=4", epochs=3) == 1
    complaint = capsys.readouterr().err
    assert "labels.alpha: 0.3, not auto; seed: 4, not 0" in complaint
    assert complaint.count("\n") == 1


def test_a_directory_with_a_run_or_other_files_is_left_alone(whole, tmp_path, capsys):
    assert train(whole, epochs=3) == 1
    assert "holds a run already: --resume continues it" in capsys.readouterr().err
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "a.txt").write_text("dear")
    assert train(tmp_path / "letters") == 1
    assert "is not an empty directory, nor a run" in capsys.readouterr().err
    assert [p.name for p in (tmp_path / "letters").iterdir()] == ["a.txt"]
    assert train(tmp_path / "letters" / "a.txt") == 1
    assert "is not an empty directory" in capsys.readouterr().err


def test_a_second_process_on_the_same_run_is_refused(whole, capsys):
    with Run(whole).locked():
        assert train(whole, "--resume", epochs=3) == 1
    assert "another process is training in" in capsys.readouterr().err


def test_a_loss_that_is_no_number_keeps_the_last_good_checkpoint(tmp_path, capsys):
    out = tmp_path / "run"
    words = ["--learning_rate=1e15", "--schedule.warmup=0.5", "--regime=randaug"]
    assert train(out, *words, "--max-steps=1", epochs=8) == 0
    assert train(out, *words, "--resume", epochs=8) == 1
    complaint = capsys.readouterr().err
    assert re.search(r"the loss is (nan|inf) at step \d+\. Try a lower --optimizer\.learning_rate", complaint)
    assert f"The last good checkpoint stays in {out / 'checkpoints'}." in complaint
    assert all(tensor.isfinite().all() for tensor in Run(out).last().tensors.values())


def test_a_checkpoint_of_another_network_is_one_sentence(whole, tmp_path, capsys):
    assert train(tmp_path / "wide", "--model.widths=[8,8,8]", epochs=1) == 0
    out = tmp_path / "copy"
    shutil.copytree(whole, out)
    shutil.copy(Run(tmp_path / "wide").steps()[-1], out / "checkpoints" / "step-00000099.safetensors")
    assert train(out, "--resume", epochs=3) == 1
    complaint = capsys.readouterr().err
    assert re.fullmatch(
        r"auglabel: the weights in .* are of another network: .*of another shape.*\n", complaint
    )


def test_a_run_killed_before_its_best_checkpoint_is_in_place_finds_it_again(whole, tmp_path, monkeypatch):
    from auglabel.lab.runs import run as rundir

    out, real = tmp_path / "run", rundir.write_atomically
    assert train(out, "--max-steps=5", epochs=3) == 0

    def killed(path, write):
        if path.name == "step-00000012.safetensors":
            raise KeyboardInterrupt
        real(path, write)

    monkeypatch.setattr(rundir, "write_atomically", killed)
    train(out, "--resume", epochs=3)
    monkeypatch.undo()
    assert train(out, "--resume", epochs=3) == 0
    assert content(out) == content(whole)
    assert best(out) == best(whole)


def best(out):
    from auglabel.lab.runs.checkpoint import load_checkpoint

    return {
        name: t.numpy().tobytes() for name, t in load_checkpoint(Run(Path(out)).best_file).tensors.items()
    }


def test_without_validation_images_nothing_is_called_best(tmp_path, capsys):
    out = tmp_path / "run"
    assert train(out, "--regime=randaug", "--split.validation=0") == 0
    assert not Run(out).best_file.exists()
    assert train(tmp_path / "auto", "--split.validation=0") == 1
    assert "autolabel learns from validation images, but" in capsys.readouterr().err
    assert not (tmp_path / "auto").exists()


def test_a_resumed_run_keeps_its_split(whole, tmp_path, monkeypatch, capsys):
    from auglabel.lab.recipe import build

    out, real = tmp_path / "run", build.generator_for
    assert train(out, "--max-steps=2", epochs=3) == 0
    monkeypatch.setattr(build, "generator_for", lambda seed, purpose: real(seed + 1, purpose))
    assert train(out, "--resume", epochs=3) == 1
    assert "was begun with another split" in capsys.readouterr().err


def test_a_lone_last_image_finds_a_partner(tmp_path):
    words = ["--regime=cutmix_autolabel", "--split.train=61", "--split.validation=31"]
    assert train(tmp_path / "run", *words, "--calibrate.batch_size=30", epochs=1) == 0


def test_a_full_disk_is_one_sentence_and_the_last_checkpoint_stays(whole, tmp_path):
    out = tmp_path / "run"
    assert train(out, "--max-steps=2", epochs=3) == 0

    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))  # a checkpoint has a million

    done = subprocess.run(
        command(out, "--resume", epochs=3),
        env=environment(),
        capture_output=True,
        text=True,
        preexec_fn=small,
        check=False,
    )
    assert done.returncode == 1
    assert re.fullmatch(r"auglabel: .*checkpoints/.*safetensors could not be written.*\n", done.stderr), (
        done.stderr
    )
    assert [p.name for p in Run(out).checkpoints.iterdir()] == ["step-00000002.safetensors"]
    assert train(out, "--resume", epochs=3) == 0
    assert content(out) == content(whole)


def test_a_read_only_place_is_one_sentence(capsys):
    assert train("/proc/auglabel") == 1
    complaint = capsys.readouterr().err
    assert "/proc/auglabel" in complaint
    assert complaint.count("\n") == 1


def test_other_data_under_the_same_name_are_noticed(tmp_path, capsys):
    import numpy as np

    def write(seed):
        draw = np.random.default_rng(seed)
        np.savez(
            tmp_path / "set.npz",
            images=draw.integers(0, 256, (60, 8, 8), dtype=np.uint8),
            labels=np.arange(60) % 3,
        )

    words = [
        "train",
        "embedded",
        "--data=npz",
        f"--data.path={tmp_path / 'set.npz'}",
        "--epochs=2",
        "--batch_size=10",
    ]
    words += ["--split.train=30", "--split.validation=10", f"--out={tmp_path / 'run'}", "--tracker=none"]
    write(0)
    assert cli.main([*words, "--max-steps=2"]) == 0
    write(1)
    assert cli.main([*words, "--resume"]) == 1
    assert "was begun with other images" in capsys.readouterr().err


def test_tensorboard_gets_every_epoch(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    assert train(tmp_path / "run", "--tracker=tensorboard") == 0
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    logged = [event.value for event in events.Scalars("validation/accuracy")]
    assert logged == pytest.approx([line.validation["accuracy"] for line in Run(tmp_path / "run").epochs()])


@pytest.fixture
def two_processes(monkeypatch, capfd):
    """`auglabel train --processes 2` from here: its exit code, what it printed, and its complaint."""
    for name, value in environment().items():
        monkeypatch.setenv(name, value)

    def run(out, *words, **options):
        capfd.readouterr()
        code = train(out, "--processes=2", *words, **options)
        return code, *capfd.readouterr()

    return run


SAME_VIEWS = ["--prepare.flip=false", "--augment.m_max=1", "--augment.operations=[posterize]"]


@pytest.mark.parametrize("alpha", ["0.3", "auto"])
def test_two_processes_train_as_one_does_and_learn_the_same_table(
    alpha, tmp_path, monkeypatch, two_processes
):
    """Without batch norm and with the same views: equal losses on the same batches."""
    monkeypatch.syspath_prepend(str(ROOT))
    words = ["--model=tests.networks:sure", *SAME_VIEWS, "--momentum=0", "--nesterov=false"]
    words += ["--learning_rate=0.05", "--calibrate.rule=exact", f"--alpha={alpha}"]
    words += ["--batch_size=35"]  # of 120 images: an uneven last batch
    assert train(tmp_path / "one", *words, epochs=8) == 0
    code, printed, complaint = two_processes(tmp_path / "two", *words, epochs=8)
    assert code == 0, complaint
    one, two = Run(tmp_path / "one"), Run(tmp_path / "two")
    for ours, theirs in zip(one.epochs(), two.epochs(), strict=True):
        assert ours.loss == pytest.approx(theirs.loss, rel=1e-9)
        assert ours.validation["nll"] == pytest.approx(theirs.validation["nll"], rel=1e-9)
        assert theirs.validation["count"] == ours.validation["count"] == 60
    assert one.epochs()[-1].loss < one.epochs()[0].loss / 2
    assert two.facts().processes == 2
    assert printed.count("epoch 1/8") == 1  # the first rank speaks alone
    ours, theirs = ([float(each["posterize"][0]) for each in tables_of(run)] for run in (one, two))
    assert ours == pytest.approx(theirs, abs=1e-6)
    assert len(ours) == 8
    assert (ours[0] if alpha == "0.3" else min(ours)) < 0.9  # auto begins slowly


def tables_of(run):
    """What was learned, epoch by epoch."""
    lines = (run.path / "tables.jsonl").read_text().splitlines()
    return [json.loads(line)["confidence"] for line in lines]


@pytest.mark.parametrize("labels", ["autolabel", "autolabel_by_class"])
def test_two_processes_stop_save_and_resume_to_the_bit(labels, tmp_path, two_processes):
    """With batch norm, averaged weights and predictions by class, of which each rank has sums of its own.

    Stopped in the second of two epochs, of 12 steps each, with a checkpoint whenever it looks at the clock.
    """
    words = ["--batch_size=10", "--ema=0.9", f"--labels={labels}", "--alpha=0.5"]
    for name, *more in (
        ("whole",),
        ("stopped", "--save_minutes=0", "--max-steps=17"),
        ("stopped", "--save_minutes=0", "--resume"),
    ):
        code, _, complaint = two_processes(tmp_path / name, *words, *more)
        assert code == 0, complaint
    assert content(tmp_path / "stopped") == content(tmp_path / "whole")


def test_two_processes_train_on_the_images_given_back_as_one_does(tmp_path, monkeypatch, two_processes):
    """Without batch norm and with the same views: equal losses; 120 images in two epochs, then all 181."""
    monkeypatch.syspath_prepend(str(ROOT))
    words = ["--model=tests.networks:sure", *SAME_VIEWS, "--momentum=0", "--nesterov=false"]
    words += ["--learning_rate=0.05", "--calibrate.rule=exact", "--alpha=0.3", "--batch_size=35"]
    words += ["--split.validation=61", "--give_back=0.5"]
    assert train(tmp_path / "one", *words, epochs=4) == 0
    for more in (["--max-steps=11"], ["--resume"]):  # 4 + 4 steps, then inside the first of 6
        code, printed, complaint = two_processes(tmp_path / "two", *words, *more, epochs=4)
        assert code == 0, complaint
    assert "auglabel eval fits no temperature." in printed
    one, two = Run(tmp_path / "one"), Run(tmp_path / "two")
    assert [line.images for line in two.epochs()] == [120, 120, 181, 181]
    assert [line.step for line in two.epochs()] == [4, 8, 14, 20]
    for ours, theirs in zip(one.epochs(), two.epochs(), strict=True):
        assert ours.loss == pytest.approx(theirs.loss, rel=1e-9)
        assert dict(ours.validation) == pytest.approx(dict(theirs.validation), rel=1e-9)
    assert [len(line.validation) > 0 for line in two.epochs()] == [True, True, False, False]
    ours, theirs = ([float(each["posterize"][0]) for each in tables_of(run)] for run in (one, two))
    assert ours == pytest.approx(theirs, abs=1e-6)
    assert 1 > theirs[0] > theirs[1] == theirs[2] == theirs[3]


def test_two_processes_stop_at_the_switch_and_after_it_and_resume_to_the_bit(tmp_path, two_processes):
    """4 steps in each of two epochs, then 6."""
    words = ["--ema=0.9", "--alpha=0.5", "--give_back=0.7"]
    for name, *more in (
        ("whole",),
        ("stopped", "--max-steps=8"),
        ("stopped", "--resume", "--max-steps=10"),
        ("stopped", "--resume"),
    ):
        code, _, complaint = two_processes(tmp_path / name, *words, *more, epochs=3)
        assert code == 0, complaint
    assert content(tmp_path / "stopped") == content(tmp_path / "whole")
    assert [line.step for line in Run(tmp_path / "stopped").epochs()] == [4, 8, 14]


@pytest.mark.parametrize(
    ("number", "group"),
    [(signal.SIGTERM, False), (signal.SIGINT, False), (signal.SIGINT, True)],
    ids=["terminated", "interrupted", "interrupted with its processes, as by a terminal"],
)
def test_a_signal_to_the_launcher_stops_all_its_processes(number, group, tmp_path):
    words = command(tmp_path / "two", "--processes=2", epochs=5000)
    process = subprocess.Popen(
        words,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until(process.stdout, "epoch 1/")
    os.killpg(process.pid, number) if group else process.send_signal(number)
    said, complaint = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "as you asked; --resume goes on" in said
    assert "Traceback" not in complaint
    with Run(tmp_path / "two").locked():  # nobody is left in there
        assert Run(tmp_path / "two").last().facts["epoch"] >= 1


def test_a_port_in_use_is_one_sentence(tmp_path, two_processes):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, _, complaint = two_processes(tmp_path / "two", f"--port={port}")
        assert code == 1
        assert re.fullmatch(rf"auglabel: --port {port} cannot be used .*\n", complaint), complaint
        alone = environment(
            RANK="0", LOCAL_RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port)
        )
        done = subprocess.run(command(tmp_path / "x"), env=alone, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    met = rf"auglabel: the training processes could not meet at 127.0.0.1 port {port}: .*\n\Z"
    assert re.search(met, done.stderr), done.stderr
    assert "Traceback" not in done.stderr


def ranks(*ends):
    """A command whose ranks sleep some seconds and exit with a code; by that signal if it is negative."""
    code = (
        f"import os, time; seconds, code = {ends}[int(os.environ['RANK'])]; time.sleep(seconds); "
        "os.kill(os.getpid(), -code) if code < 0 else os._exit(code)"
    )
    return [sys.executable, "-c", code]


@pytest.mark.parametrize(
    ("ends", "named"),
    [
        (((0, -9), (0.5, 1)), "0 of 2"),
        (((0.05, 1), (0, -9)), "1 of 2"),  # the other may have ended by then, since it lost its peer
        (((0, 0), (0.5, -9)), "1 of 2"),
        (((30, 0), (0, -9)), "1 of 2"),  # the other is ended then
    ],
)
def test_a_killed_rank_is_named(ends, named):
    with pytest.raises(OSError, match=rf"process {named} was killed \(SIGKILL\)\."):
        launch(ranks(*ends), 2, None)


@pytest.mark.parametrize(
    ("ends", "code"),
    [
        (((0, 0), (0, 0)), 0),
        (((0, 0), (0, 1)), 1),
        (((0, 3), (1, 1)), 3),
        (((0, 130), (0, 130)), 130),
    ],
)
def test_ranks_that_end_by_themselves_give_the_code_of_one_that_failed(ends, code):
    assert launch(ranks(*ends), 2, None) == code


def test_launching_leaves_no_files_and_no_handlers(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = [signal.getsignal(number) for number in stop_signals()]
    assert launch(ranks((0, 0)), 1, None) == 0
    assert [signal.getsignal(number) for number in stop_signals()] == before
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has no hang-up")
def test_a_hang_up_that_nohup_ignores_stops_nothing():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        hang_up = (
            "import os, signal, time; time.sleep(0.5); os.kill(os.getppid(), signal.SIGHUP); time.sleep(0.5)"
        )
        assert launch([sys.executable, "-c", hang_up], 1, None) == 0
    finally:
        signal.signal(signal.SIGHUP, before)
