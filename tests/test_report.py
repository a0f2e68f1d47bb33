import json
import re
import sys
from html.parser import HTMLParser

import pytest
from made_runs import CHECKSUM, corrupted, evaluation, make_run, row, write_evaluation

from auglabel.cli import main
from auglabel.corrupt import SUITES
from auglabel.lab.methods.comparisons import OVERALL, comparisons_of
from auglabel.lab.methods.methods import methods_of, read_run
from auglabel.lab.report.figure import ends_of
from auglabel.lab.report.figures import figures_of
from auglabel.lab.report.page import parts_of
from auglabel.lab.report.report import LARGEST

NASTY = '<img src=x onerror="window.hacked=1">\'&</script><script>window.hacked=1</script>'


def part_of(*paths):
    (part,) = parts_of([read_run(path)[0] for path in paths])
    return part


def figure(part, name):
    return next(figure for figure in part.figures if figure.name == name)


def test_the_table_has_mean_and_spread_over_seeds(tmp_path):
    runs = [
        make_run(tmp_path / "a", seed=0, evaluation=evaluation(0.80, 0.04)),
        make_run(tmp_path / "b", seed=1, evaluation=evaluation(0.84, 0.08)),
        make_run(tmp_path / "c", "randaug_autolabel", evaluation=evaluation(0.9, 0.01)),
    ]
    table = part_of(*runs).table
    first, second = (dict(zip(table.head, line, strict=True)) for line in table.body)
    assert (first["labels"], first["seeds"]) == ("RandAug + one-hot", "2")
    assert first["accuracy, %"] == "82.0 ± 2.8"  # by hand: sqrt(2 x 2^2) = 2.83
    assert first["ECE, %"] == "6.0 ± 2.8"
    assert first["ECE at T, %"] == "3.0 ± 1.4"
    assert (second["labels"], second["seeds"]) == ("RandAug + AutoLabel", "1")
    assert second["accuracy, %"] == "90.0"


def test_aurc_and_the_second_temperature_have_columns_where_they_were_measured(tmp_path):
    run = make_run(tmp_path / "a", evaluation=evaluation(0.8, 0.04))
    assert not {"AURC, x 1000", "ECE at TA, %"} & set(part_of(run).table.head)
    again = row(0.8, 0.04)
    again["figures"]["aurc"] = {"value": 0.3414, "low": None, "high": None}
    again["scaled"] = {"TA": again["scaled"]["T"]}
    measured = {"rows": [again], "means": [], "epoch": 3}
    other = make_run(tmp_path / "b", "randaug_autolabel")
    write_evaluation(other, measured, stem="augmented")
    table = part_of(run, other).table
    first, second = (dict(zip(table.head, line, strict=True)) for line in table.body)
    assert (first["AURC, x 1000"], first["ECE at T, %"], first["ECE at TA, %"]) == ("-", "2.0", "-")
    assert (second["AURC, x 1000"], second["ECE at T, %"], second["ECE at TA, %"]) == ("341", "-", "2.0")


def test_runs_that_differ_in_an_option_are_methods_of_their_own_named_after_it(tmp_path):
    runs = [
        make_run(tmp_path / str(alpha), "randaug_autolabel", words=[f"--labels.alpha={alpha}"])
        for alpha in (0.02, 0.05)
    ]
    titles = [method.title for method in methods_of(read_run(run)[0] for run in runs)]
    assert titles == ["RandAug + AutoLabel (labels.alpha 0.02)", "RandAug + AutoLabel (labels.alpha 0.05)"]


def test_a_method_is_named_after_its_loss_if_that_is_not_cross_entropy(tmp_path):
    runs = [
        make_run(tmp_path / "a", words=["--loss=focal"]),
        make_run(tmp_path / "b", "wide_crop_soft"),
        make_run(tmp_path / "c"),
    ]
    titles = [method.title for method in methods_of(read_run(run)[0] for run in runs)]
    assert titles == [
        "RandAug + one-hot, focal loss",
        "wide crop + Soft Augmentation, weighted",
        "RandAug + one-hot",
    ]


def test_where_the_data_lie_does_not_make_another_method(tmp_path):
    runs = [make_run(tmp_path / "a", seed=0), make_run(tmp_path / "b", seed=1)]
    for place, run in enumerate(runs):
        recipe = (run / "recipe.yaml").read_text()
        (run / "recipe.yaml").write_text(recipe.replace("data: {", f"data: {{root: /somewhere/{place}, "))
    (method,) = methods_of(read_run(run)[0] for run in runs)
    assert len(method.runs) == 2


def test_bins_of_a_reliability_diagram_add_up_over_seeds(tmp_path):
    other = {"count": [2.0, 0.0], "confidence": [0.8, 0.0], "correct": [2.0, 0.0]}
    runs = [
        make_run(tmp_path / "a", evaluation=evaluation(0.6, 0.1)),
        make_run(tmp_path / "b", seed=1, evaluation={"rows": [row(0.9, 0.2, bins=other)], "means": []}),
    ]
    drawn = figure(part_of(*runs), "reliability")
    found = [dict(zip(drawn.columns, record, strict=True)) for record in drawn.records]
    low, high = found
    assert (low["count"], low["confidence"], low["accuracy"]) == (8, 0.4, 0.625)  # 3.2 / 8 and 5 / 8
    assert (high["count"], high["confidence"], high["accuracy"]) == (4, 0.9, 0.75)
    assert (low["share"], high["share"]) == (0.66667, 0.33333)
    assert (high["low"], high["high"]) == (0.5, 1.0)


def test_against_severity_stands_the_mean_over_corruptions_with_its_spread_over_seeds(tmp_path):
    eces = [{("fog", 1): 0.1, ("fog", 2): 0.3, ("frost", 1): 0.2, ("frost", 2): 0.5}]
    eces.append({key: value + 0.1 for key, value in eces[0].items()})
    runs = [
        make_run(tmp_path / str(seed), seed=seed, evaluation=corrupted(some))
        for seed, some in enumerate(eces)
    ]
    drawn = figure(part_of(*runs), "severity")
    found = [dict(zip(drawn.columns, record, strict=True)) for record in drawn.records]
    first, second = (line for line in found if line["metric"] == "ECE")
    assert (first["severity"], first["mean"]) == (1, 0.2)  # (0.15 + 0.25) / 2
    assert (second["severity"], second["mean"]) == (2, 0.45)
    assert first["high"] - first["mean"] == pytest.approx(0.0707, abs=1e-4)
    cells = figure(part_of(*runs), "corruptions").records
    assert ["10 images", "RandAug + one-hot", "ECE", "frost", 2, 0.55, "55"] in cells


def test_labels_are_the_mean_over_seeds_at_every_epoch(tmp_path):
    runs = [make_run(tmp_path / str(seed), "randaug_autolabel", seed) for seed in (0, 1)]
    drawn = figure(part_of(*runs), "labels")
    assert len(drawn.records) == 3 * 82
    assert ["RandAug + AutoLabel", "rotate", 10, 3, 0.97, "97.0"] in drawn.records
    (slider,) = drawn.controls
    assert (slider.values, slider.start) == ([1, 2, 3], 3)


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ([1.0, 2.0, 3.0], (None, None)),  # too few to call one of them far
        ([*range(10), 100], (None, 13.0)),  # the middle 80 % are 1 to 9: 9 + 8 / 2
        ([*range(10), 30], (None, None)),  # within 9 + 3 x 8
        ([-100, *range(1, 11)], (-3.0, None)),  # the middle 80 % are 1 to 9: 1 - 8 / 2
        ([5.0] * 20, (None, None)),
    ],
)
def test_an_axis_leaves_out_values_that_would_flatten_the_rest(values, ends):
    assert ends_of([values]) == ends


def test_an_axis_shows_every_method():
    around = [[0.9 + 0.001 * epoch for epoch in range(20)] for _ in range(11)]
    assert ends_of([*around, [3.0] * 20]) == (None, None)
    assert ends_of([*around, [*[3.0] * 19, 1000.0]]) == (None, pytest.approx(3 + (3 - 0.902) / 2, abs=0.01))


def test_a_spike_is_cut_off_and_the_page_says_so(tmp_path):
    run = make_run(tmp_path / "a", epochs=20)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    lines[10]["validation"]["nll"] = 1000.0
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    drawn = figure(part_of(run), "training")
    scale = drawn.panels[0][1]["layer"][0]["encoding"]["y"]["scale"]
    # of 1, 1/2, ..., 1/20 the middle 80 % are 1/18 to 1/2: 1/2 + 8/18 / 2
    assert scale["domainMax"]["expr"] == "metric === 'validation NLL' ? 0.72222 : null"
    assert drawn.note.endswith("The axis leaves out a few far values of validation NLL, to show the rest.")
    assert "leaves out" not in figure(part_of(make_run(tmp_path / "b")), "training").note


@pytest.mark.parametrize("seeds", [1, 3])
def test_marks_in_the_table_have_their_legend_for_one_method_too(seeds, tmp_path):
    runs = [
        make_run(tmp_path / str(seed), seed=seed, evaluation=evaluation(0.8, 0.2 + 0.01 * seed))
        for seed in range(seeds)
    ]
    assert main(["report", *map(str, runs), "--out", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    marked = 'class="number best"' in page or 'class="number equal"' in page
    assert marked == (seeds == 3)
    assert ("Bold: the best" in page) == marked


def test_the_page_says_which_images_these_are(tmp_path):
    data = {"name": "digits", "checksum": CHECKSUM, "images": {"train": 9}, "shape": [3, 16, 20]}
    run = make_run(tmp_path / "a", data=data | {"classes": list("abcdefgh")})
    assert part_of(run).about == "8 classes: a, b, c, d, e, f, ...; colour, 20 x 16 pixels"
    assert part_of(make_run(tmp_path / "older")).about == ""


def test_time_is_told_apart_into_training_calibrating_and_validating(tmp_path):
    records = figure(part_of(make_run(tmp_path / "a", epochs=4)), "cost").records
    assert [record[1:] for record in records] == [
        ["training", 8.0],
        ["calibrating", 2.0],
        ["validating", 1.0],
    ]
    assert part_of(tmp_path / "a").costs.body == [
        ["RandAug + one-hot", "1,234", "1,000", "4", "11", "20", "500", "18.2%"]
    ]


def test_runs_on_other_images_are_shown_apart(tmp_path, capsys):
    runs = [
        make_run(tmp_path / "a", evaluation=evaluation(0.8, 0.1)),
        make_run(tmp_path / "b", checksum="f" * 64, name="other", evaluation=evaluation(0.9, 0.2)),
    ]
    parts = parts_of([read_run(run)[0] for run in runs])
    assert [(part.name, len(part.table.body)) for part in parts] == [("embedded", 1), ("other", 1)]
    assert main(["report", *map(str, runs), "--out", str(tmp_path / "page.html")]) == 0
    assert "on 2 different sets of images" in (tmp_path / "page.html").read_text()


def test_measurements_made_in_another_way_are_not_averaged(tmp_path):
    some = {("fog", 1): 0.1}
    other = corrupted(some)
    other["corruptions"]["from"] = "the official files"
    runs = [
        make_run(tmp_path / "a", seed=0, evaluation=corrupted(some)),
        make_run(tmp_path / "b", seed=1, evaluation=other),
    ]
    comparisons = comparisons_of(methods_of(read_run(run)[0] for run in runs))
    assert [comparison.title for comparison in comparisons] == [
        "10 images, made here, fog at severities [1]",
        "10 images, the official files, fog at severities [1]",
    ]
    assert all(len(comparison.values(OVERALL, "RandAug + one-hot", "ece")) == 1 for comparison in comparisons)


def test_the_same_images_are_compared_whichever_call_of_eval_measured_them(tmp_path):
    one = make_run(tmp_path / "a", seed=0, evaluation=evaluation(0.8, 0.1))
    other = make_run(tmp_path / "b", "randaug_autolabel")
    both = corrupted({("fog", 1): 0.3})
    write_evaluation(other, both | {"rows": [row(0.6, 0.2), *both["rows"]], "epoch": 3}, stem="clean-fog")
    write_evaluation(
        other, evaluation(0.9, 0.9) | {"epoch": 3}, stem="later"
    )  # measured twice: once is enough
    table = part_of(one, other).table
    assert [line[:3] for line in table.body if line[0].startswith("clean")] == [
        ["clean, 10 images", "RandAug + one-hot", "1"],
        ["clean, 10 images", "RandAug + AutoLabel", "1"],
    ]


def test_attacks_of_different_strength_are_not_compared(tmp_path):
    runs = []
    for seed, epsilon in enumerate((0.03, 0.1)):
        found = {"rows": [row(0.5, 0.1), row(0.2, 0.3, on="pgd")], "means": []}
        runs.append(
            make_run(tmp_path / str(seed), seed=seed, evaluation=found | {"attack": {"epsilon": epsilon}})
        )
    comparisons = comparisons_of(methods_of(read_run(run)[0] for run in runs))
    assert [(c.title, [place[0] for place in c.rows]) for c in comparisons] == [
        ("10 images", ["clean"]),
        ("10 images, epsilon 0.03", ["pgd"]),
        ("10 images, epsilon 0.1", ["pgd"]),
    ]
    assert comparisons[0].values(("clean", None), "RandAug + one-hot", "ece") == [0.1, 0.1]


def test_an_unfinished_run_is_said_to_be_and_not_averaged_with_finished_ones(tmp_path):
    done, begun = make_run(tmp_path / "a"), make_run(tmp_path / "b", seed=1, epochs=2, of=3)
    subject, notes = read_run(begun)
    assert f"{begun} is unfinished: epoch 2 of 3." in notes
    titles = [method.title for method in methods_of([read_run(done)[0], subject])]
    assert titles == ["RandAug + one-hot", "RandAug + one-hot, epoch 2 of 3"]
    short, cut = make_run(tmp_path / "c"), make_run(tmp_path / "d", seed=1, epochs=3, of=10)
    assert len(methods_of([read_run(short)[0], read_run(cut)[0]])) == 2


def test_what_was_measured_before_training_went_on_is_left_out(tmp_path):
    run = make_run(tmp_path / "a", evaluation=evaluation(0.8, 0.1) | {"epoch": 2})
    subject, notes = read_run(run)
    assert not subject.evaluations
    assert "it was measured after epoch 2, but the run is at 3" in notes[0]
    assert "has not been measured on test images: auglabel eval" in notes[1]


def test_what_was_measured_on_other_images_is_left_out(tmp_path):
    run = make_run(tmp_path / "a")
    write_evaluation(run, evaluation(0.8, 0.1) | {"epoch": 3}, checksum="0" * 64)
    subject, notes = read_run(run)
    assert not subject.evaluations
    assert "on other images than the run's" in notes[0]


def test_the_papers_numbers_stand_beside_those_on_its_data(tmp_path):
    run = make_run(tmp_path / "a", name="CIFAR-100", evaluation=evaluation(0.5, 0.02))
    part = part_of(run)
    line = dict(zip(part.table.head, part.table.body[0], strict=True))
    assert line["accuracy, %"] == "50.0 (82.0)"  # Table 2, RandAug
    assert line["ECE, %"] == "2.0 (4.1)"
    assert line["NLL"] == "1.000"
    assert part.from_paper


@pytest.mark.parametrize(
    ("words", "metric"),
    [(["--augment.m_max=2"], "accuracy, %"), (["--augment.operations=[rotate,color]"], "ECE, %")],
)
def test_the_papers_numbers_do_not_stand_beside_another_augmentation(tmp_path, words, metric):
    run = make_run(tmp_path / "a", name="CIFAR-100", evaluation=evaluation(0.5, 0.02), words=words)
    part = part_of(run)
    assert "(" not in dict(zip(part.table.head, part.table.body[0], strict=True))[metric]
    assert not part.from_paper


@pytest.mark.parametrize(("names", "shown"), [(SUITES["paper"], True), (("fog", "frost"), False)])
def test_the_papers_numbers_stand_beside_the_mean_over_its_own_corruptions_alone(tmp_path, names, shown):
    found = corrupted({(name, severity): 0.1 for name in names for severity in range(1, 6)})
    part = part_of(make_run(tmp_path / "a", name="CIFAR-100", evaluation=found))
    line = dict(zip(part.table.head, part.table.body[0], strict=True))
    assert line["images"] == f"corrupted, mean of {5 * len(names)}, 10 images"
    assert line["accuracy, %"] == ("50.0 (63.0)" if shown else "50.0")


def test_means_over_other_corruptions_are_not_averaged(tmp_path):
    runs = [
        make_run(tmp_path / name, seed=seed, evaluation=corrupted({(name, 1): ece}))
        for seed, (name, ece) in enumerate((("fog", 0.1), ("frost", 0.5)))
    ]
    means = [line for line in part_of(*runs).table.body if line[0].startswith("corrupted")]
    assert [line[2] for line in means] == ["1", "1"]


def test_seeds_measured_on_some_corruptions_only_are_not_mixed_with_others(tmp_path):
    one, other = make_run(tmp_path / "a"), make_run(tmp_path / "b", seed=1)
    write_evaluation(one, corrupted({("fog", 1): 0.1, ("fog", 2): 0.2}) | {"epoch": 3}, stem="fog")
    write_evaluation(one, corrupted({("frost", 1): 0.3, ("frost", 2): 0.4}) | {"epoch": 3}, stem="frost")
    write_evaluation(other, corrupted({("fog", 1): 0.5, ("fog", 2): 0.6}) | {"epoch": 3}, stem="fog")
    drawn = figure(part_of(one, other), "severity")
    found = [dict(zip(drawn.columns, record, strict=True)) for record in drawn.records]
    assert [line["mean"] for line in found if line["metric"] == "ECE"] == [0.3, 0.4, 0.3, 0.4]


def test_a_table_written_just_before_a_run_was_killed_does_not_count(tmp_path):
    run = make_run(tmp_path / "a", "randaug_autolabel")
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(lines[:2]))
    assert [table.epoch for table in read_run(run)[0].history] == [1, 2]
    assert figure(part_of(run), "labels").controls[0].values == [1, 2]


def test_an_epoch_without_a_validation_figure_is_left_out_of_its_curve(tmp_path):
    run = make_run(tmp_path / "a")
    text = (run / "metrics.jsonl").read_text()
    (run / "metrics.jsonl").write_text(text.replace('"ece": 0.1', '"ece": null', 1))
    drawn = figure(part_of(run), "training")
    assert len([record for record in drawn.records if record[1] == "validation ECE"]) == 2


def test_labels_for_other_distances_leave_out_the_picture(tmp_path, capsys):
    run = make_run(tmp_path / "a", "randaug_autolabel", words=["--augment.operations=[rotate,color]"])
    assert main(["report", str(run), "--out", str(tmp_path / "page.html")]) == 0
    assert "its labels are for other distances than its augmentation has now" in capsys.readouterr().out


def test_figures_and_tables_for_a_paper(tmp_path):
    runs = [
        make_run(tmp_path / "a", name="CIFAR-100", evaluation=evaluation(0.5, 0.02)),
        make_run(tmp_path / "b", "randaug_autolabel", name="CIFAR-100", evaluation=evaluation(0.6, 0.01)),
    ]
    out, folder = tmp_path / "page.html", tmp_path / "pdf"
    assert main(["report", *map(str, runs), "--out", str(out), "--pdf", str(folder)]) == 0
    names = {path.name for path in folder.iterdir()}
    assert names == {"reliability.pdf", "labels.pdf", "training.pdf", "cost.pdf", "table.tex", "cost.tex"}
    assert all((folder / name).read_bytes().startswith(b"%PDF") for name in names if name.endswith("pdf"))
    tex = (folder / "table.tex").read_text()
    assert r"\begin{tabular}" in tex
    assert "RandAug + AutoLabel & 1 & 60.0 (82.7)" in tex


class Elements(HTMLParser):
    """What a page loads, and the attributes that run code."""

    def __init__(self, text):
        super().__init__()
        self.loaded, self.handlers, self.tags = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.loaded += [value for name, value in attrs if name in ("src", "href", "srcset", "action")]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def test_names_with_html_in_them_stay_text_and_nothing_is_loaded(tmp_path):
    run = make_run(tmp_path / "a<b>&\"c'", "randaug_autolabel", name=NASTY, evaluation=evaluation(0.8, 0.1))
    facts = json.loads((run / "run.json").read_text())
    facts["data"]["notes"] = [NASTY]
    (run / "run.json").write_text(json.dumps(facts))
    write_evaluation(run, corrupted({(NASTY, 1): 0.1, (NASTY, 2): 0.2}) | {"epoch": 3}, stem="corrupted")
    out = tmp_path / "page.html"
    assert main(["report", str(run), "--out", str(out), "--title", NASTY]) == 0
    text = out.read_text()
    found = Elements(text)
    assert found.handlers == []
    assert found.tags.count("script") == 3
    assert all(url.startswith("data:image/webp") for url in found.loaded)
    assert "default-src 'none'" in text
    assert NASTY not in text


def test_a_page_stays_small_however_long_the_runs(tmp_path):
    runs = [
        make_run(tmp_path / f"{regime}{seed}", regime, seed, epochs=300, evaluation=evaluation(0.5, 0.1))
        for regime in ("randaug", "randaug_autolabel")
        for seed in range(2)
    ]
    out = tmp_path / "page.html"
    assert main(["report", *map(str, runs), "--out", str(out)]) == 0
    assert out.stat().st_size < LARGEST
    labels = figure(part_of(*runs), "labels")
    epochs = labels.controls[0].values
    assert (epochs[0], epochs[-1]) == (1, 300)
    assert len(labels.records) <= 12_000


def test_data_that_are_gone_leave_out_the_pictures_alone(tmp_path, capsys):
    run = make_run(tmp_path / "a", "randaug_autolabel", evaluation=evaluation(0.5, 0.1))
    recipe = (run / "recipe.yaml").read_text()
    assert "data: {name: embedded" in recipe
    recipe = re.sub(r"data: \{name: embedded[^}]*\}", "data: {name: npz, path: /nowhere.npz}", recipe)
    (run / "recipe.yaml").write_text(recipe)
    out = tmp_path / "page.html"
    assert main(["report", str(run), "--out", str(out)]) == 0
    assert "There are no pictures of" in out.read_text()
    assert '<figure class="sheet">' not in out.read_text()


def damaged(run, file, text):
    (run / file).parent.mkdir(exist_ok=True)
    (run / file).write_text(text)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda run: (run / "recipe.yaml").unlink(), "is not a run: it has no recipe.yaml."),
        (lambda run: damaged(run, "metrics.jsonl", ""), "has no epoch yet: auglabel train --resume --out"),
        (lambda run: (run / "run.json").unlink(), "has no epoch yet"),
        (lambda run: damaged(run, "run.json", '{"format": "auglabel run, version 9"}'), "of another version"),
        (
            lambda run: damaged(run, "run.json", "{"),
            "run.json is damaged, or not what a run was begun with: it is not JSON",
        ),
        (lambda run: damaged(run, "recipe.yaml", "seed: 0"), "it does not say epochs"),
        (
            lambda run: damaged(run, "eval/clean.json", "{"),
            "clean.json is damaged, or not an evaluation: it is not JSON",
        ),
        (lambda run: damaged(run, "eval/clean.json", '{"format": 1}'), "Measure it again"),
        (lambda run: damaged(run, "tables.jsonl", "nonsense\n\n"), "tables.jsonl, line 1"),
    ],
)
def test_a_run_that_cannot_be_read_gets_one_sentence_and_no_page(tmp_path, capsys, spoil, sentence):
    run, out = make_run(tmp_path / "a", "randaug_autolabel"), tmp_path / "page.html"
    out.write_text("the page before")
    spoil(run)
    assert main(["report", str(run), "--out", str(out)]) == 1
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert out.read_text() == "the page before"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "which runs? They come first"),
        (["RUN", "--out", "folder.html"], "--out must be an .html file, got folder.html."),
        (["RUN", "--pdf"], "--pdf must be a folder for the figures"),
        (["RUN", "--pdf", "RUN/run.json"], "--pdf must be a folder for the figures, got RUN/run.json."),
        (["RUN", "--out", "page.pdf"], "--out must be an .html file, got page.pdf."),
        (["RUN", "RUN/../copy"], "are the same run, with the same seed."),
        (["RUN", "--epochs", "1"], 'a report has no option "epochs"'),
    ],
)
def test_words_that_make_no_report(tmp_path, capsys, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.html").mkdir()
    make_run(tmp_path / "RUN", "randaug_autolabel")
    make_run(tmp_path / "copy", "randaug_autolabel")
    code = main(["report", *words])
    said = capsys.readouterr()
    assert code == 1, said.out
    assert sentence in said.err


def test_without_the_extra_it_is_named(tmp_path, capsys, monkeypatch):
    run = make_run(tmp_path / "a")
    monkeypatch.setitem(sys.modules, "altair", None)
    assert main(["report", str(run)]) == 1
    assert "pip install 'auglabel[report]'" in capsys.readouterr().err


def test_charts_are_valid_vega_lite(tmp_path):
    run = make_run(
        tmp_path / "a", "randaug_autolabel", evaluation=corrupted({("fog", 1): 0.1, ("fog", 2): 0.2})
    )
    methods = methods_of([read_run(run)[0]])
    drawn = figures_of(methods, comparisons_of(methods))  # altair checks each as it is made
    assert [one.name for one in drawn] == [
        "reliability",
        "severity",
        "corruptions",
        "labels",
        "training",
        "cost",
    ]
