"""Which augmentations keep their label, for any network: by hand, and as a user runs it."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console
from torch import nn

from auglabel import Calibration, Mixup
from auglabel.cli import main
from auglabel.data.embedded import load_embedded
from auglabel.distance import DistanceGrid
from auglabel.lab.audit import audit_network as command
from auglabel.lab.audit import audit_sheet
from auglabel.lab.audit.audit import Bucket, as_json, audit_of, wilson
from auglabel.lab.pictures.contact_sheet import Heading, Note, annotated_sheet
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.recipe.seeding import generator_for
from auglabel.table_file import load_table

SMALL = ["--split.train=200", "--split.validation=100", "--epochs=3", "--model.widths=[8,8,8]"]


def bucket(accuracy, confidence, count=1000, kind="rotate", level=1):
    return Bucket(kind, level, count, accuracy, confidence, abs(confidence - accuracy), 0.0)


def audited(clean, *buckets, grid=None, classes=10):
    """An audit of predictions with these accuracies and confidences, 1,000 each."""
    grid = grid or DistanceGrid((len(buckets),), ("rotate",))
    seen, plain = Calibration(len(buckets)), Calibration()
    for place, (accuracy, confidence) in enumerate(buckets):
        fill(seen, accuracy, confidence, place, classes)
    fill(plain, *clean, 0, classes)
    return audit_of(plain, seen, grid, classes)


def fill(seen, accuracy, confidence, place, classes):
    probs = torch.full((1000, classes), (1 - confidence) / (classes - 1), dtype=torch.float64)
    probs[:, 0] = confidence
    labels = torch.ones(1000, dtype=torch.int64)
    labels[: round(1000 * accuracy)] = 0
    seen.update(probs, labels, torch.full((1000,), place))


def test_wilson_by_hand():
    """Of 8 of 10: z = 1.96, so (0.8 + 0.19207) / 1.38415 = 0.71675, and 0.22658 to either side."""
    low, high = wilson(0.8, 10)
    assert (low, high) == pytest.approx((0.49016, 0.94333), abs=1e-4)
    assert wilson(0.0, 50)[0] == 0
    assert wilson(1.0, 50)[1] == pytest.approx(1)


@pytest.mark.parametrize(
    ("accuracy", "confidence", "label"),
    [
        (0.7, 0.9, 0.8),  # over-confident by 0.2
        (0.9, 0.7, 1.0),  # under-confident: as sure as can be
        (0.6, 1.0, 0.6),  # 1 - 0.4: at the accuracy itself
        (0.2, 0.9, 0.3),
    ],
)
def test_the_label_is_one_less_the_gap_but_at_least_the_accuracy(accuracy, confidence, label):
    audit = audited((0.25, 0.25), (0.25, 0.25))  # a poor network: even 20 % is half of what it knows
    assert audit.label(bucket(accuracy, confidence)) == pytest.approx(label)


def test_where_the_class_is_no_longer_seen_words_and_labels_agree_on_the_accuracy():
    """Confidence and accuracy of 0.29 leave no gap, and a label of 1 would be what the words deny."""
    audit = audited((0.9, 0.9), (0.9, 0.9), (0.35, 0.35), (0.29, 0.24), (0.05, 0.3))
    found = as_json(audit, {})
    assert found["confidence"]["rotate"] == [1.0, 0.35, 0.29, 0.1]  # not below chance, a tenth
    assert [each["label"] for each in found["buckets"]] == [1.0, 0.35, 0.29, 0.1]
    assert [each["verdict"] for each in found["buckets"]] == ["keep", *3 * ["destroyed"]]
    assert found["sentences"] == audit.sentences()
    assert audit.sentences() == [
        "rotate: level 1 keeps the label as it is; at levels 2 to 4 this network no longer sees the class "
        "(accuracy 35 to 5 %): a label of 0.35 to 0.10."
    ]


def test_the_printed_map_has_the_labels_of_the_table(monkeypatch, capsys):
    drawn = []

    def spy(kinds, levels, values, title):
        drawn.append((title, values))
        return title

    monkeypatch.setattr(command, "heat_map", spy)
    command._show(audited((0.9, 0.9), (0.9, 0.9), (0.29, 0.29)), Console())
    assert [values for title, values in drawn if title.startswith("Label confidence")] == [[1.0, 0.29]]


def test_words_say_which_levels_keep_want_less_and_are_no_longer_seen():
    audit = audited((0.9, 0.9), (0.9, 0.9), (0.9, 0.905), (0.7, 0.9), (0.6, 0.9), (0.3, 0.8))
    assert audit.sentences() == [
        "rotate: levels 1 to 2 keep the label as it is; levels 3 to 4 want a label of 0.80 to 0.70 "
        "(over-confident by 30.0 points); at level 5 this network no longer sees the class (accuracy 30 %): "
        "a label of 0.30; from level 3 on it hurts: accuracy 70 to 30 %, not 90 %."
    ]


def test_destroyed_is_less_than_half_of_what_is_known_beyond_chance():
    """Clean 0.9 of 10 classes: half way to chance, 0.1, is 0.5."""
    audit = audited((0.9, 0.9), (0.49, 0.49), (0.51, 0.51))
    assert [audit.verdict(each) for each in audit.buckets] == ["destroyed", "keep"]


def test_few_images_are_no_proof():
    audit = audited((0.9, 0.9), (0.8, 0.83))
    assert audit.verdict(bucket(0.8, 0.83, count=10_000)) == "soften"
    assert audit.verdict(bucket(0.8, 0.83, count=100)) == "keep"


@pytest.mark.parametrize(
    ("clean", "accuracy", "count", "hurts"),
    [
        (0.9, 0.860, 1000, True),  # Wilson's ends: 0.8798 and 0.8801; 0.040 - hypot(0.0202, 0.0201) = 0.0115
        (0.9, 0.862, 1000, False),  # 0.8798 and 0.8820; 0.038 - hypot(0.0202, 0.0200) = 0.0096: not a point
        (1.0, 0.7, 10, False),  # 0.7225 and 0.8922; hypot(0.2775, 0.1922) = 0.3376 is more than 0.3
        (0.9, 0.95, 1000, False),
    ],
)
def test_it_hurts_where_accuracy_is_a_point_below_that_of_the_images_as_they_are_beyond_noise(
    clean, accuracy, count, hurts
):
    audit = replace(audited((0.9, 0.9), (0.9, 0.9)), clean=bucket(clean, clean, count))
    for confidence in (0.3, accuracy, 1.0):  # whatever it claims
        assert audit.hurts(bucket(accuracy, confidence, count)) == hurts


@pytest.mark.parametrize(
    ("accuracies", "levels", "words"),
    [
        ((0.73, 0.72, 0.65, 0.47), [3, 4], "from level 3 on it hurts: accuracy 65 to 47 %, not 73 %"),
        ((0.73, 0.65, 0.73, 0.47), [4, 4], "at level 4 it hurts: accuracy 47 %, not 73 %"),  # 2 may be noise
        ((0.60, 0.60, 0.61, 0.73), [1, 3], "at levels 1 to 3 it hurts: accuracy 60 to 61 %, not 73 %"),
    ],
)
def test_levels_that_hurt_an_under_confident_network_are_named(accuracies, levels, words):
    audit = audited((0.73, 0.6), *((accuracy, 0.4) for accuracy in accuracies))
    assert audit.sentences() == [f"rotate: levels 1 to 4 keep the label as it is; {words}."]
    found = json.loads(json.dumps(as_json(audit, {})))
    assert found["hurting_levels"] == {"rotate": levels}
    assert [each["hurts"] for each in found["buckets"]] == [accuracy < 0.7 for accuracy in accuracies]


def test_a_label_that_is_kept_for_want_of_proof_is_named():
    """0.5 to either side of 1,000 times 0.5: 1.96 * 0.0158 = 0.031, so 4 points are not one beyond that."""
    audit = audited((0.6, 0.6), (0.5, 0.5), (0.5, 0.54))
    assert audit.sentences() == [
        "rotate: levels 1 to 2 keep the label as it is (the table's 0.96 is within noise of 1); "
        "from level 1 on it hurts: accuracy 50 %, not 60 %."
    ]


def test_a_kind_without_levels_speaks_of_itself():
    grid = DistanceGrid((1, 2), ("equalize", "rotate"))
    first, _ = audited((0.9, 0.9), (0.7, 0.9), (0.9, 0.9), (0.9, 0.9), grid=grid).sentences()
    told = "wants a label of 0.80 (over-confident by 20.0 points); it hurts: accuracy 70 %, not 90 %."
    assert first == f"equalize: {told}"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("audit") / "run"
    assert main(["train", "embedded", *SMALL, "--regime=vanilla", f"--out={path}", "--tracker=none"]) == 0
    return path


def test_a_run_is_audited_on_its_validation_images_and_training_takes_the_labels(run, tmp_path, capsys):
    assert main(["audit", str(run)]) == 0
    said = capsys.readouterr().out
    assert "rotate: " in said
    found = json.loads((run / "audit.json").read_text())
    assert (found["data"]["part"], found["data"]["images"]) == ("validation", 100)
    assert len(found["buckets"]) == 82  # trained without augmentation: RandAug
    assert all(each["count"] == 100 for each in found["buckets"])
    first = found["buckets"][0]
    expected = min(1, max(first["accuracy"], 1 - first["confidence"] + first["accuracy"]))
    assert found["confidence"]["rotate"][0] == pytest.approx(expected, abs=1e-5)
    assert [first["accuracy_low"], first["accuracy_high"]] == pytest.approx(
        list(wilson(first["accuracy"], 100)), abs=1e-6
    )
    for labels in (
        ["--labels=table", f"--labels.path={run / 'audit.json'}"],
        ["--labels=autolabel", "--labels.alpha=0", f"--labels.start_table={run / 'audit.json'}"],
    ):
        out = tmp_path / labels[0].removeprefix("--labels=")
        words = [*SMALL, "--regime=randaug", *labels, f"--out={out}", "--tracker=none", "--max_steps=2"]
        assert main(["train", "embedded", *words]) == 0
        assert main(["train", "--resume", f"--out={out}", "--tracker=none"]) == 0
        grid = DistanceGrid(*zip(*((len(v), k) for k, v in found["confidence"].items()), strict=True))
        kept = load_table(out / "table.json", grid)
        wanted = torch.tensor([v for row in found["confidence"].values() for v in row])
        torch.testing.assert_close(kept, wanted)


def test_the_numbers_are_those_of_the_network(run, tmp_path):
    """One bucket's accuracy, by asking the network about the very views."""
    from auglabel import RandAug
    from auglabel.lab.evaluate.network import load_into
    from auglabel.lab.recipe.build import data_for, model_for
    from auglabel.lab.recipe.seeding import generator_for
    from auglabel.lab.runs.run import Run
    from auglabel.measure import every_bucket

    words = ["--augment=randaug", "--augment.operations=[rotate]", "--part=test", "--images=40"]
    assert main(["audit", str(run), *words, f"--out={tmp_path / 'a.json'}"]) == 0
    found = json.loads((tmp_path / "a.json").read_text())
    recipe = read_recipe(str(run / "recipe.yaml"))
    data, parts = data_for(recipe)
    model = model_for(recipe, data)
    load_into(model, Run(run).weights().tensors, "")
    model.eval()
    rows = torch.randperm(len(parts.test), generator=generator_for(0, "images"))[:40].sort().values
    loader = [(parts.test.fetch(rows), parts.test.labels[rows])]
    views = every_bucket(model, RandAug(operations=["rotate"]), loader, generator=generator_for(0, "audit"))
    right, count = torch.zeros(10), torch.zeros(10)
    for view in views:
        correct = model(view.images.float() / 255).argmax(dim=1) == view.labels
        right.index_add_(0, view.bucket, correct.float())
        count.index_add_(0, view.bucket, torch.ones(len(correct)))
    assert [each["accuracy"] for each in found["buckets"]] == pytest.approx(
        (right / count).tolist(), abs=1e-6
    )


def test_programs_give_what_the_network_gives(run, tmp_path):
    from auglabel.lab.evaluate.network import load_into
    from auglabel.lab.recipe.build import data_for, model_for
    from auglabel.lab.runs.run import Run

    recipe = read_recipe(str(run / "recipe.yaml"))
    model = model_for(recipe, data_for(recipe)[0])
    load_into(model, Run(run).weights().tensors, "")
    model.eval()
    example = torch.zeros(2, 1, 28, 28)
    torch.jit.trace(model, example).save(tmp_path / "net.ts")
    batch = torch.export.Dim("batch", min=1, max=1024)
    exported = torch.export.export(model, (example,), dynamic_shapes=({0: batch},))
    torch.export.save(exported, tmp_path / "net.pt2")
    common = [*SMALL[:2], "--part=test", "--images=30", "--augment=randaug", "--augment.operations=[rotate]"]
    assert main(["audit", str(run), *common[2:], f"--out={tmp_path / 'run.json'}"]) == 0
    expected = json.loads((tmp_path / "run.json").read_text())
    for name in ("net.ts", "net.pt2"):
        words = ["--data=embedded", *common, f"--program={tmp_path / name}", f"--out={tmp_path / 'p.json'}"]
        assert main(["audit", *words]) == 0
        found = json.loads((tmp_path / "p.json").read_text())
        assert found["data"]["checksum"] == expected["data"]["checksum"]
        for mine, theirs in zip(found["buckets"], expected["buckets"], strict=True):
            assert mine["confidence"] == pytest.approx(theirs["confidence"], abs=1e-4)


@pytest.mark.parametrize("fixed", [1, 7, 64])
def test_a_program_for_a_fixed_number_of_images_gives_what_the_network_gives(fixed, tmp_path):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    program = torch.export.export(net, (torch.zeros(fixed, 1, 28, 28),))
    torch.export.save(program, tmp_path / "net.pt2")
    out = tmp_path / "audit.json"
    words = ["--data=embedded", f"--program={tmp_path / 'net.pt2'}", "--augment=mixup", "--augment.levels=1"]
    assert main(["audit", *words, "--part=test", "--images=30", "--batch_size=12", f"--out={out}"]) == 0
    rows = torch.randperm(2000, generator=generator_for(0, "images"))[:30]
    images, labels = (part[rows] for part in load_embedded().test)
    probs = net(images.float() / 255).softmax(dim=1)
    found = json.loads(out.read_text())["clean"]
    assert found["count"] == 30
    assert found["accuracy"] == pytest.approx(
        (probs.argmax(dim=1) == labels).double().mean().item(), abs=1e-6
    )
    assert found["confidence"] == pytest.approx(probs.amax(dim=1).mean().item(), abs=1e-5)


@pytest.mark.parametrize(
    ("shape", "most", "told"),
    [
        ((8, 1, 28, 28), 64, "does not take images of shape (100, 1, 28, 28)"),  # 64 at a time at most
        ((8, 1, 24, 24), 1024, "does not take the 1 x 28 x 28 images of embedded Fashion-MNIST"),
    ],
)
def test_a_program_for_other_batches_or_images_gets_one_sentence(shape, most, told, tmp_path, capsys):
    net = nn.Sequential(nn.AdaptiveAvgPool2d(5), nn.Flatten(), nn.Linear(25, 10))
    batch = torch.export.Dim("batch", min=1, max=most)
    program = torch.export.export(net, (torch.zeros(shape),), dynamic_shapes=({0: batch},))
    torch.export.save(program, tmp_path / "net.pt2")
    words = ["--data=embedded", f"--program={tmp_path / 'net.pt2'}", "--images=100"]
    assert main(["audit", *words, f"--out={tmp_path / 'x.json'}"]) == 1
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1


class Nine(nn.Module):
    def forward(self, images):
        return images.flatten(1)[:, :9]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["/nowhere"], "is not a run"),
        (["--data=embedded"], "which network?"),
        (["--data=embedded", "--program=/nowhere.ts"], "there is no file /nowhere.ts"),
        (["--data=embedded", "--program=BAD"], "is neither TorchScript nor an exported program"),
        (["--data=embedded", "--program=NINE"], "must give 10 logits, one per class of"),
        (["--data=embedded", "--program=x", "--weights=y"], "weights go with --model"),
        (["--data=embedded", "--part=training"], "part must be one of"),
        (["--data=embedded", "--images=0"], "images must be at least 1"),
    ],
)
def test_bad_input_gets_one_sentence(words, told, tmp_path, capsys):
    (tmp_path / "bad.ts").write_bytes(b"nothing of the kind")
    torch.jit.script(Nine()).save(tmp_path / "nine.ts")
    files = {"BAD": str(tmp_path / "bad.ts"), "NINE": str(tmp_path / "nine.ts")}
    words = [word.replace("BAD", files["BAD"]).replace("NINE", files["NINE"]) for word in words]
    assert main(["audit", *words, f"--out={tmp_path / 'x.json'}"]) != 0
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1
    assert not (tmp_path / "x.json").exists()


def test_a_table_for_other_buckets_is_refused_as_a_start(tmp_path, capsys):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"format": "auglabel audit, version 1", "confidence": {"rotate": [1.0]}}))
    words = [*SMALL, "--regime=randaug_autolabel", f"--labels.start_table={path}", f"--out={tmp_path / 'r'}"]
    assert main(["train", "embedded", *words]) == 1
    assert "is a table for other distances" in capsys.readouterr().err


def test_few_images_do_not_make_a_label_of_1_where_the_class_is_no_longer_seen():
    """With 60 images the interval of 0.40 reaches beyond half of 0.90."""
    lost = replace(bucket(0.4, 0.4), count=60)
    audit = audited((0.9, 0.9), (0.9, 0.9))
    assert (audit.verdict(lost), audit.label(lost)) == ("destroyed", 0.4)


def marks(audit):
    """Per kind what stands beside it, and the colours of the bar at each level."""
    rows = [buckets for _, buckets in audit.kinds()]
    remarks = [audit_sheet._remarks(audit, row) for row in rows]
    return remarks, [[note.begins for note in audit_sheet._notes(audit, row)] for row in rows]


KEEP, SURE, UNSURE, SOFTEN, LOST = (0.9, 0.9), (0.9, 0.95), (0.7, 0.5), (0.7, 0.9), (0.3, 0.5)
BOTH, ALL = ["hurts", "soften"], ["hurts", "soften", "destroyed"]


@pytest.mark.parametrize(
    ("buckets", "remark", "bars"),
    [
        (
            [SURE, UNSURE, SOFTEN, LOST],
            ("hurts from 2", "softer from 3", "lost from 4"),
            {2: ["hurts"], 3: ["soften"], 4: ["destroyed"]},
        ),
        ([KEEP, UNSURE, UNSURE, UNSURE], ("hurts from 2",), {2: ["hurts"]}),
        ([SURE, SURE, SOFTEN], ("hurts from 3", "softer from 1"), {1: ["soften"], 3: ["hurts"]}),
        ([KEEP, SOFTEN, KEEP, SOFTEN], ("hurts from 4", "softer from 4"), {4: BOTH}),  # 2 may be noise
        ([KEEP, KEEP, KEEP], (), {}),
        ([KEEP, LOST, LOST], ("lost from 2",), {2: ["destroyed"]}),
        ([LOST, LOST, SOFTEN, KEEP], ("hurts 1 to 3", "softer 1 to 3", "lost 1 to 2"), {1: ALL}),
        ([SOFTEN], ("hurts", "softer"), {1: BOTH}),
    ],
)
def test_bars_stand_where_it_hurts_labels_must_soften_and_the_class_is_lost(buckets, remark, bars):
    remarks, drawn = marks(audited((0.9, 0.9), *buckets))
    expected = [bars.get(level, []) for level in range(1, len(buckets) + 1)]
    assert remarks == [remark]
    assert drawn == [[tuple(audit_sheet.COLOURS[name] for name in names) for names in expected]]


def test_a_bar_of_two_colours_has_both_one_above_the_other():
    note = Note("", (255, 255, 255), begins=(audit_sheet.BLUE, audit_sheet.ORANGE))
    images = torch.zeros(2, 1, 28, 28, dtype=torch.uint8)
    sheet = annotated_sheet(Mixup(levels=1), images, torch.zeros(2).long(), ["a"], [note], Heading("", ""))
    pixels = torch.from_numpy(np.array(sheet)).int()
    upper, lower = (
        (pixels == torch.tensor(colour)).all(dim=2).nonzero()[:, 0]
        for colour in (audit_sheet.BLUE, audit_sheet.ORANGE)
    )
    assert abs(len(upper) - len(lower)) <= 8  # two rows of 4 pixels
    assert upper.max() < lower.min()


def test_the_picture_has_each_label_and_accuracy_on_the_ground_of_its_verdict():
    notes = audit_sheet._notes(audit := audited((0.9, 0.9), SURE, UNSURE, SOFTEN, LOST), audit.buckets)
    assert [note.text for note in notes] == ["label 0.95", "label 1.00", "label 0.80", "label 0.30"]
    assert [note.lines for note in notes] == [(f"{right} % right",) for right in (90, 70, 70, 30)]
    orange, dark = audit_sheet.ORANGE, audit_sheet.DARK
    assert [note.fill for note in notes] == [orange, (255, 255, 255), orange, dark]
    assert [note.lines_ink == audit_sheet.BLUE for note in notes] == [False, True, True, True]


def test_the_picture_lies_beside_the_json_and_shows_the_marks(run, tmp_path, capsys):
    words = ["--augment=randaug", "--augment.operations=[translate_x]", "--augment.magnitudes=wide"]
    assert main(["audit", str(run), *words, "--images=60", f"--out={tmp_path / 'a.json'}"]) == 0
    assert f"wrote {tmp_path / 'a.json'}\nwrote {tmp_path / 'a.png'}\n" in capsys.readouterr().out
    colours = {colour for _, colour in Image.open(tmp_path / "a.png").getcolors(2**20)}
    assert audit_sheet.DARK in colours  # from 4 on nothing of the image is left
    assert main(["audit", str(run), *words, f"--out={tmp_path / 'a.png'}"]) == 1
    assert "--out must be a JSON file" in capsys.readouterr().err


TWO_CHANNELS = """
import torch
from auglabel.data.source import InMemory, in_memory


def two_channels():
    images = torch.zeros(60, 2, 8, 8, dtype=torch.uint8)
    return in_memory("two", ["a", "b", "c"], InMemory(images, torch.arange(60) % 3), None)
"""


def test_images_that_no_picture_can_show_are_audited_all_the_same(tmp_path, monkeypatch, capsys):
    (tmp_path / "channels.py").write_text(TWO_CHANNELS)
    monkeypatch.syspath_prepend(tmp_path)
    torch.jit.script(nn.Sequential(nn.Flatten(), nn.Linear(128, 3))).save(tmp_path / "net.ts")
    words = ["--data=channels:two_channels", f"--program={tmp_path / 'net.ts'}", "--augment=mixup"]
    words += ["--split.train=30", "--split.validation=10", "--part=all", f"--out={tmp_path / 'a.json'}"]
    assert main(["audit", *words]) == 0, capsys.readouterr().err
    assert (tmp_path / "a.json").exists()
    assert not (tmp_path / "a.png").exists()


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_sees_how_many_predictions_are_made_and_a_file_does_not(terminal, run, tmp_path):
    said = io.StringIO()
    console = Console(file=said, force_terminal=terminal, width=120)
    options = command.AuditOptions(images=30, out=str(tmp_path / "a.json"))
    words = ["--augment=randaug", "--augment.operations=[rotate]"]
    command.audit_network(str(run), options, words, console)
    assert ("330/330 predictions" in said.getvalue()) == terminal  # 30 images as they are and in 10 buckets
