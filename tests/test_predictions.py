"""`auglabel metrics` as a user has it: every kind of file, what cannot be measured, and the verdict."""

import builtins
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from peer_metrics import predictions, softmax
from PIL import Image
from safetensors.torch import save_file

from auglabel import cli, metrics
from auglabel.decomposition import decompose
from auglabel.lab.predictions.files import read_arrays, read_predictions
from auglabel.scaling import IsotonicScaling, TemperatureScaling, VectorScaling

QUICK = "--resamples=20"


@pytest.fixture(autouse=True)
def room(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def given():
    """Logits and labels of 400 rows, in test.npz too."""
    logits, labels = (part[:400] for part in predictions("over-confident"))
    np.savez("test.npz", logits=logits, labels=labels.astype(np.int32))
    return logits, labels


def measured(capsys, *words):
    """What `auglabel metrics --json` says."""
    capsys.readouterr()
    assert cli.main(["metrics", *words, "--json", QUICK]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


def complaint(capsys, *words):
    """The one sentence that the command ends with."""
    capsys.readouterr()
    assert cli.main(["metrics", *words]) == 1
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.startswith("auglabel: ")
    assert found.err.count("\n") == 1
    return found.err


def test_the_numbers_are_those_of_the_metrics(given, capsys):
    logits, labels = given
    found = measured(capsys, "test.npz")
    values = {name: figure["value"] for name, figure in found["figures"].items()}
    probs = torch.tensor(logits).softmax(dim=1)
    for name in (
        "accuracy",
        "ece",
        "debiased_ece",
        "smooth_ece",
        "classwise_ece",
        "nll",
        "brier",
        "aurc",
        "auroc",
    ):
        assert values[name] == pytest.approx(getattr(metrics, name)(probs, labels)), name
    assert values["top_k_accuracy"] == metrics.top_k_accuracy(probs, labels, 5)
    assert values["over_confidence"] == pytest.approx(values["confidence"] - values["accuracy"])
    low, high = (found["figures"]["ece"][end] for end in ("low", "high"))
    assert low < values["ece"] < high
    assert (found["predictions"], found["classes"]) == (400, 10)
    assert sum(found["bins"]["count"]) == 400
    parts = decompose(logits, labels)
    assert found["decomposition"]["nll"] == pytest.approx(parts.nll._asdict())
    assert found["best_temperature"] == found["temperature"] == pytest.approx(parts.temperature)


def write(kind, logits, labels):
    """The same predictions in another kind of file; the words that name it."""
    if kind == "npy":
        np.save("logits.npy", logits.astype(np.float32))
        np.save("labels.npy", labels.astype(np.uint8)[:, None])
        return ["logits.npy", "labels.npy"]
    if kind == "npz":
        np.savez("other.npz", outputs=logits.astype(np.float32), extra=labels, truth=labels.astype(np.int16))
        return ["other.npz:outputs", "other.npz:truth"]
    if kind == "csv":
        names = ",".join([*(f"class {k}" for k in range(logits.shape[1])), "Label"])
        table = np.column_stack([logits.astype(np.float32), labels])
        np.savetxt("all.csv", table, delimiter=",", header=names, comments="", fmt="%.9g")
        return ["all.csv"]
    if kind == "plain csv":
        np.savetxt("logits.csv", logits.astype(np.float32), delimiter=",", fmt="%.9g")
        np.savetxt("labels.csv", labels, fmt="%d")
        return ["logits.csv", "labels.csv"]
    tensors = {"logits": torch.tensor(logits.astype(np.float32)), "targets": torch.tensor(labels).int()}
    save_file(tensors, "all.safetensors")
    return ["all.safetensors"]


@pytest.mark.parametrize("kind", ["npy", "npz", "csv", "plain csv", "safetensors"])
def test_every_kind_of_file_and_of_label_reads_the_same(given, kind):
    logits, labels = given
    words = write(kind, logits, labels)
    found = read_predictions(words[0], words[1] if len(words) == 2 else None, probabilities=False)
    np.testing.assert_allclose(found.logits.numpy(), logits.astype(np.float32), rtol=1e-8)
    np.testing.assert_array_equal(found.labels.numpy(), labels)


@pytest.mark.parametrize("lists", [True, False])
def test_parquet_reads_the_same(given, lists):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    logits, labels = given
    columns = (
        {"logits": list(logits)} if lists else {f"class {k}": column for k, column in enumerate(logits.T)}
    )
    parquet.write_table(pyarrow.table({**columns, "label": labels.astype(np.int8)}), "all.parquet")
    found = read_predictions("all.parquet", None, probabilities=False)
    np.testing.assert_array_equal(found.logits.numpy(), logits)
    np.testing.assert_array_equal(found.labels.numpy(), labels)
    parquet.write_table(pyarrow.table({**columns, "label": labels, "file": ["x"] * 400}), "all.parquet")
    with pytest.raises(ValueError, match='column "file" must hold numbers'):
        read_predictions("all.parquet", None, probabilities=False)


@pytest.mark.parametrize(
    ("module", "words", "told"),
    [
        ("pyarrow", ["a.parquet"], r"parquet files need pyarrow: pip install 'auglabel\[parquet\]'"),
        ("safetensors", ["a.safetensors"], r"metrics needs safetensors.*pip install 'auglabel\[train\]'"),
        (
            "altair",
            ["test.npz", "--diagram", "d.svg"],
            r"charts need altair: pip install 'auglabel\[report\]'",
        ),
    ],
)
def test_a_missing_extra_is_named(given, module, words, told, capsys, monkeypatch, room):
    for name in ("a.parquet", "a.safetensors"):
        (room / name).write_bytes(b"")
    real = builtins.__import__

    def without(name, *rest, **options):
        if name.partition(".")[0] == module:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.delitem(sys.modules, "auglabel.lab.runs.checkpoint", raising=False)
    assert re.search(told, complaint(capsys, *words))


def test_torch_and_numpy_are_enough(given):
    code = (
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        top = name.partition('.')[0]\n"
        "        if top in ('yaml', 'rich', 'accelerate', 'safetensors', 'PIL', 'altair', 'pyarrow'):\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Without())\n"
        "from auglabel import cli\n"
        "sys.exit(cli.main(['metrics', '--help']) or cli.main(['metrics', 'test.npz', '--fit', 'test.npz']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "usage: auglabel metrics LOGITS [LABELS]" in done.stdout
    assert "over-confident: says" in done.stdout.splitlines()[-1]


def test_probabilities_are_said_and_measure_as_their_logits_do(given, capsys):
    logits, labels = given
    np.savez("probs.npz", probs=softmax(logits), labels=labels)
    plain, said = measured(capsys, "test.npz"), measured(capsys, "probs.npz", "--probabilities")
    assert said["temperature"] == pytest.approx(plain["temperature"])
    for name, figure in plain["figures"].items():
        assert said["figures"][name] == pytest.approx(figure, abs=1e-9), name
    told = complaint(capsys, "probs.npz")
    assert "probs.npz: logits must be given, but these look like probabilities: all 400 rows" in told
    assert told.endswith("If they are, say --probabilities.\n")
    assert "Are these logits? Then leave out --probabilities" in complaint(
        capsys, "test.npz", "--probabilities"
    )


def test_a_true_class_of_probability_0_makes_nll_infinite_and_is_noted(capsys):
    probs = np.array([[1.0, 0.0], [0.6, 0.4], [0.7, 0.3], [0.2, 0.8]])
    np.savez("probs.npz", probs=probs, labels=[1, 0, 0, 1])
    found = measured(capsys, "probs.npz", "--probabilities")
    assert found["figures"]["nll"]["value"] is None
    assert found["decomposition"]["nll"]["total"] is None
    assert math.isfinite(found["decomposition"]["nll"]["refinement"])
    assert "NLL is infinite: the true class of some rows was given a probability of 0." in found["notes"]


def test_scalings_fitted_on_a_second_file_are_measured_on_the_first(given, capsys):
    logits, labels = given
    more, truth = (part[400:2000] for part in predictions("over-confident"))
    np.save("val.npy", more)
    np.save("val-labels.npy", truth.astype(np.int32))
    found = measured(capsys, "test.npz", "--fit", "val.npy", "val-labels.npy")
    scalings = {
        "temperature": TemperatureScaling(),
        "vector": VectorScaling(10),
        "isotonic": IsotonicScaling(10),
    }
    assert found["scaled"].keys() == scalings.keys()
    for name, scaling in scalings.items():
        probs = scaling.fit(more, truth)(torch.tensor(logits)).softmax(dim=1)
        figures = found["scaled"][name]
        assert figures["ece"]["value"] == pytest.approx(metrics.ece(probs, labels), abs=1e-5)
        assert figures["brier"]["value"] == pytest.approx(metrics.brier(probs, labels), abs=1e-5)
    assert found["temperature"] == pytest.approx(scalings["temperature"].temperature.item())
    assert found["fitted_on"] == "val.npy"
    assert "fitted on val.npy, would bring ECE from" in found["verdict"]


def test_a_scaling_that_cannot_be_fitted_is_noted_and_the_others_are_shown(given, capsys):
    logits, labels = given
    keep = labels != 3
    np.savez("val.npz", logits=logits[keep], labels=labels[keep])
    found = measured(capsys, "test.npz", "--fit", "val.npz")
    assert found["scaled"].keys() == {"temperature", "isotonic"}
    assert any(
        note.startswith("No vector scaling: VectorScaling.fit needs rows of") for note in found["notes"]
    )


def test_the_table_ends_with_the_verdict(given, capsys):
    assert cli.main(["metrics", "test.npz", QUICK]) == 0
    lines = capsys.readouterr().out.splitlines()
    best = f"{TemperatureScaling().fit(*given).temperature.item():.3g}"
    assert lines[0] == "test.npz: 400 predictions of 10 classes"
    assert lines[2].split() == ["as", "given", "95", "%", "interval", "T", "=", best]
    titles = [line[:33].strip() for line in lines]
    for title in ("top-5 accuracy, %", "over-confidence, %", "smooth ECE, %", "AUROC of errors, %"):
        assert title in titles
    nll = titles.index("NLL")
    assert titles[nll + 1 : nll + 4] == [
        "the best temperature mends",
        "isotonic confidence mends more",
        "refinement: what is left",
    ]
    assert lines[-1].startswith("over-confident: says 59.9 %, right 37.2 %; a temperature of")


def rows(confidence, right, count):
    """`count` rows of two classes, that sure, and that share of them right."""
    logits = np.tile([math.log(confidence / (1 - confidence)), 0.0], (count, 1))
    return logits, (np.arange(count) >= round(right * count)).astype(np.int64)


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        (
            [(0.9, 0.7, 1000)],  # log 9 / log (7 / 3) is the temperature
            "over-confident: says 90.0 %, right 70.0 %; a temperature of 2.59, fitted on these rows, would "
            "bring ECE from 20.0 to 0.0 %.",
        ),
        (
            [(0.7, 0.9, 1000)],
            "under-confident: says 70.0 %, right 90.0 %; a temperature of 0.386, fitted on these rows, would "
            "bring ECE from 20.0 to 0.0 %.",
        ),
        (
            [(0.8, 0.8, 1000)],
            "calibrated, as far as 1,000 predictions show: says 80.0 %, right 80.0 %; ECE 0.0 %.",
        ),
        (
            [(0.9, 0.8, 20)],
            "perhaps over-confident, which 20 predictions do not settle: says 90.0 %, right 80.0 %; ",
        ),
        (
            [(0.9, 1.0, 500)],
            "under-confident: says 90.0 %, right 100.0 %; ECE 10.0 %, and no temperature could be fitted.",
        ),
        (
            [(0.9, 0.7, 500), (0.6, 0.8, 500)],
            "neither over- nor under-confident on the whole, yet miscalibrated: says 75.0 %, right 75.0 %; ",
        ),
    ],
)
def test_the_verdict_in_words(parts, verdict, capsys):
    made = [rows(*part) for part in parts]
    np.savez(
        "made.npz", logits=np.concatenate([m[0] for m in made]), labels=np.concatenate([m[1] for m in made])
    )
    assert measured(capsys, "made.npz")["verdict"].startswith(verdict)


TWO = np.zeros((2, 2))
BAD = {
    "one dimension": (np.zeros(2), [0, 1], "of shape (B, K) with K >= 2, got a float64 tensor"),
    "whole logits": (np.eye(2, dtype=int), [0, 1], "logits must be floating point of shape (B, K)"),
    "nan": (np.full((2, 2), np.nan), [0, 1], "2 of 2 rows hold nan or infinity"),
    "a label too high": (TWO, [0, 2], "labels must be in 0..1 for 2 classes, got 2"),
    "a label below 0": (TWO, [0, -1], "labels must be in 0..1 for 2 classes, got -1"),
    "float labels": (TWO, [0.0, 1.0], "labels must be whole numbers of shape (N,), got a float64"),
    "one-hot labels": (TWO, np.eye(2, dtype=int), "labels must be whole numbers of shape (N,)"),
    "too few labels": (TWO, [0], "their lengths are: logits 2, labels 1"),
    "nothing": (TWO[:0], np.zeros(0, int), "bad.npz holds no predictions: it is empty"),
    "pickled": (np.array([None, 1]), [0, 1], "holds pickled objects"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_measured_is_said_in_one_sentence(case, capsys):
    logits, labels, told = BAD[case]
    np.savez("bad.npz", logits=logits, labels=labels)
    assert told in complaint(capsys, "bad.npz")


def test_arrays_that_are_not_there_are_said_in_one_sentence(capsys):
    assert "there is no file bad.npz" in complaint(capsys, "bad.npz")
    np.savez("bad.npz", logits=TWO)
    np.save("float.npy", [0.0, 1.0])
    assert "bad.npz with float.npy: labels must be whole" in complaint(capsys, "bad.npz", "float.npy")
    assert "bad.npz holds no labels (logits float64 (2, 2)): call them" in complaint(capsys, "bad.npz")
    np.savez("bad.npz", a=TWO, b=TWO, labels=[0, 1])
    assert "which scores of bad.npz? It holds a float64 (2, 2); b" in complaint(capsys, "bad.npz")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "bad.csv holds no labels"),
        ("a,b,label\n", "bad.csv holds no labels"),
        ("a,b,label\n1,2,0\n1,2\n", "must hold numbers with commas between, but"),
        ("a,b,label\n1,x,0\n", "could not convert string 'x' to float64"),
        ("a,b,label\n1,2,0.5\n", "labels must be whole numbers, got 0.5 in row 1"),
        ("a,b,label\n1,2,nan\n", "labels must be whole numbers, got nan in row 1"),
        ("1,2,0\n", "bad.csv holds no labels"),
        ("a,label\n1,0\n", "of shape (B, K) with K >= 2"),
        ("\xff\xfe", "must hold numbers"),
    ],
)
def test_a_csv_that_cannot_be_read_is_said_in_one_sentence(text, told, capsys, room):
    (room / "bad.csv").write_bytes(text.encode("latin-1"))
    assert told in complaint(capsys, "bad.csv")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["test.npz:nope"], 'no array in test.npz "nope". There are: logits, labels'),
        (["test.txt"], "test.txt is of no kind that is read: .npy, .npz, .csv"),
        (["test.npz", "--bins", "0"], "--bins must be at least 1, got 0"),
        (["test.npz", "--top", "x"], "argument --top: invalid int value: 'x'; --help lists the options"),
        (["test.npz", "--diagram", "d.pdf"], "a diagram is written as .png or .svg, got d.pdf"),
        (
            ["test.npz", "--fit", "a", "b", "c"],
            "--fit takes a file of scores and perhaps one of labels, got 3",
        ),
        (["test.npz", "--fit", "two.npz"], "two.npz has 2 classes, but test.npz has 10"),
        (["test.npz", "--nope"], 'there is no option "--nope"'),
        ([], "required: LOGITS"),
    ],
)
def test_words_that_do_not_fit_are_said_in_one_sentence(given, words, told, capsys, room):
    (room / "test.txt").write_text("")
    np.savez("two.npz", logits=np.zeros((2, 2)), labels=[0, 1])
    assert told in complaint(capsys, *words)


def test_the_diagram_shows_every_bin_its_gap_and_its_share(given, capsys, room):
    pytest.importorskip("vl_convert")
    found = measured(capsys, "test.npz", "--diagram", "d.svg", "--bins", "10")
    assert cli.main(["metrics", "test.npz", QUICK, "--diagram", "d.png"]) == 0
    filled = sum(count > 0 for count in found["bins"]["count"])
    drawn = (room / "d.svg").read_text()
    assert drawn.count('aria-roledescription="bar"') == 2 * filled  # accuracy, and share of images
    assert drawn.count('stroke="#D62728"') == filled  # gaps
    assert "test.npz" in drawn
    with Image.open("d.png") as picture:
        assert min(picture.size) > 400


@pytest.mark.parametrize("name", ["", "index", "Prediction", "confidence"])
def test_what_stands_beside_the_scores_is_not_taken_for_a_class(name, capsys, room):
    (room / "x.csv").write_text(f"{name},0,1,label\n0,0.2,0.7,1\n1,0.9,0.2,0\n")
    said = complaint(capsys, "x.csv")
    assert f'has a column "{name}", which is no class: leave it out' in said
    assert ("to_csv(index=False)" in said) == (name == "")


@pytest.mark.parametrize(
    "text",
    [
        "predicted_class,a,b,label\n1,0.2,1.7,1\n0,2.5,0.3,0\n",
        "image_id,a,b,label\n17,0.2,1.7,1\n18,2.5,0.3,0\n",
    ],
)
def test_whole_numbers_beside_scores_with_fractions_are_not_taken_for_a_class(text, capsys, room):
    (room / "x.csv").write_text(text)
    told = f'has a column "{text.partition(",")[0]}" of whole numbers beside fractions, as no class has'
    assert told in complaint(capsys, "x.csv")


@pytest.mark.parametrize(
    ("text", "probabilities"),
    [
        ("a,b,c,label\n3,5,1,1\n-2,0,7,2\n", False),  # logits that are counts
        ("a,b,c,label\n0,1,0,1\n0,0,1,2\n", True),  # votes
        ("a,b,c,label\n0.3,0.7,0,1\n0,0,1,2\n", True),  # a class that was sure or ruled out each time
        ("a,b,label\n0,0.7,1\n0,-1.5,0\n", False),  # a class that the others are measured from
    ],
)
def test_a_class_may_have_whole_numbers(text, probabilities, room):
    (room / "x.csv").write_text(text)
    assert len(read_predictions("x.csv", None, probabilities).labels) == 2


def test_an_id_in_a_parquet_file_is_no_class_and_no_obstacle_to_a_column_of_lists(given, capsys):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    logits, labels = given
    around = {"id": np.arange(len(labels)), "label": labels}
    columns = {f"class {k}": column for k, column in enumerate(logits.T)}
    parquet.write_table(pyarrow.table({**columns, **around}), "columns.parquet")
    assert 'has a column "id", which is no class' in complaint(capsys, "columns.parquet")
    parquet.write_table(pyarrow.table({"logits": list(logits), **around}), "lists.parquet")
    found = read_predictions("lists.parquet", None, probabilities=False)
    np.testing.assert_array_equal(found.logits.numpy(), logits)


@pytest.mark.parametrize("rows", ["0.5,1.5,0\n2.5,0,1\n", "5,1,0\n2,0,1\n"])
def test_a_first_line_that_may_be_the_numbers_of_columns_is_refused(rows, capsys, room):
    (room / "x.csv").write_text("0,1,2\n" + rows)
    (room / "y.csv").write_text("0\n1\n0\n")
    said = complaint(capsys, "x.csv", "y.csv")
    assert "x.csv begins with 0,1,2: scores, or the numbers of columns?" in said
    assert 'add_prefix("class ")' in said
    assert "write 0.0,1.0,... if" in said


def test_the_ways_out_of_a_first_line_that_may_be_the_numbers_of_columns(room):
    (room / "votes.csv").write_text("0.0,1.0\n1,0\n0,1\n")
    (room / "named.csv").write_text("class 0,class 1\n1,0\n0,1\n")
    (room / "y.csv").write_text("0\n1\n1\n")
    assert len(read_predictions("votes.csv", "y.csv", probabilities=True).labels) == 3
    assert len(read_arrays(Path("named.csv"))[""]) == 2
