"""`auglabel compare`: what it trains, how an option is chosen, and what it says at the end."""

import json
from pathlib import Path

import pytest

from auglabel.cli import main
from auglabel.errors import UserError
from auglabel.lab.compare.candidates import of_file, usual
from auglabel.lab.compare.contest import Contest
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.sweep.grid import Shared
from auglabel.lab.sweep.job import Results

TINY = [
    "--epochs=1",
    "--split.train=60",
    "--split.validation=40",
    "--split.test=50",
    "--model.widths=[4,4,4]",
]


def methods_file(path, text):
    path.write_text(text)
    return path


def test_the_usual_candidates_change_nothing_but_labels():
    recipe = read_recipe("embedded", [])
    names = {each.name: read_recipe("embedded", each.words) for each in usual(recipe)}
    assert list(names) == ["one-hot", "label smoothing", "AutoLabel"]
    for name, found in names.items():
        differ = [line.partition(":")[0] for line in recipe.differences(found)]
        assert all(key.startswith("labels.") for key in differ), name


def test_mixup_is_compared_with_its_own_soft_labels():
    candidates = usual(read_recipe("embedded", ["--regime=mixup"]))
    assert [each.name for each in candidates] == ["mixed labels", "AutoLabel"]


def test_a_file_names_methods_and_what_they_choose(tmp_path):
    text = "plain: {labels: one_hot}\nsoft: {labels: label_smoothing, labels.rho: {choose: [0.05, 0.1]}}\n"
    plain, soft = of_file(methods_file(tmp_path / "methods.yaml", text))
    assert (plain.words, plain.option, plain.values) == (("--labels=one_hot",), "", ())
    assert (soft.words, soft.option) == (("--labels=label_smoothing",), "labels.rho")
    assert soft.values == ("0.05", "0.1")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("plain: one_hot\n", "must hold a name and options for each method"),
        ("soft: {labels.rho: {choose: 0.1}}\n", "choose must be a list of values"),
        ("soft: {labels: one_hot, seed: 3}\n", "has a seed of its own"),
        ("soft: {labels.rho: {choose: [1]}, labels.alpha: {choose: [1]}}\n", "It may have one"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_a_sentence(tmp_path, text, said):
    with pytest.raises(UserError, match=said):
        of_file(methods_file(tmp_path / "methods.yaml", text))


def test_two_methods_that_are_the_same_and_seeds_for_choosing_are_refused(tmp_path):
    file = methods_file(tmp_path / "m.yaml", "a: {labels: one_hot}\nb: {labels: one_hot}\n")
    shared, results = Shared("embedded"), Results(tmp_path / "results", tmp_path / "runs")
    with pytest.raises(UserError, match="the same recipe"):
        Contest(shared, of_file(file), range(2), results)
    with pytest.raises(UserError, match="seed 100 is kept for choosing"):
        Contest(shared, usual(read_recipe("embedded", [])), range(99, 102), results)


def test_compare_chooses_on_validation_images_says_so_and_ends_with_a_verdict(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "one-hot: {labels: one_hot}\nsoft: {labels: label_smoothing, labels.rho: {choose: [0.05, 0.4]}}\n"
    methods_file(tmp_path / "m.yaml", text)
    words = [
        "compare",
        "embedded",
        *TINY,
        "--methods=m.yaml",
        "--seeds=2",
        "--corrupted=false",
        "--workers=1",
    ]
    assert main([*words, "--plan"]) == 0
    assert "8 runs, 8 of them to do." in capsys.readouterr().out
    assert main(words) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "has the lowest NLL on augmented validation images, of 0.05, 0.4." in out
    assert "These seeds are too few to say what to use" in out
    results = [
        json.loads(path.read_text()) for path in (tmp_path / "compare/embedded/results").glob("*.json")
    ]
    tried = {}
    for each in results:
        assert bool(each["evaluations"]) == (each["seed"] < 100)  # no test image is looked at to choose
        if each["seed"] >= 100:
            tried.setdefault(each["recipe"]["labels"]["rho"], []).append(each["validation_augmented"]["nll"])
    best = min(tried, key=lambda rho: sum(tried[rho]))
    assert f"labels.rho {best} has the lowest NLL" in out
    page = (tmp_path / "compare/embedded/compare.html").read_text()
    assert "<h3>In short</h3>" in page
    assert main(words) == 0
    assert "8 runs, 0 of them to do." in capsys.readouterr().out


def test_a_method_that_gives_images_back_chooses_while_they_are_held_out(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "one-hot: {labels: one_hot}\n"
    text += "back: {labels: autolabel, give_back: 0.5, labels.alpha: {choose: [0.1, 0.5]}}\n"
    file = methods_file(tmp_path / "m.yaml", text)
    contest = Contest(Shared("embedded"), of_file(file), range(1), Results(Path("r"), Path("runs")))
    assert [job.recipe.training.give_back for job in contest.choosing] == [None] * 4
    assert [job.recipe.training.give_back for job in contest.planned[4:]] == [None, 0.5]
    words = ["compare", "embedded", *TINY, "--methods=m.yaml", "--seeds=2", "--corrupted=false"]
    assert main([*words, "--epochs=2", "--workers=1"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "has the lowest NLL on augmented validation images, of 0.1, 0.5." in out
    assert "back, T" not in out
    assert "These seeds are too few to say what to use" in out


def test_the_plain_method_is_one_hot_wherever_it_stands(tmp_path):
    text = "soft: {labels: {name: label_smoothing, rho: 0.1}}\nplain: {labels: one_hot}\n"
    file = methods_file(tmp_path / "m.yaml", text)
    contest = Contest(Shared("embedded"), of_file(file), range(2), Results(Path("r"), Path("runs")))
    assert contest.plain == "plain"
    assert contest.planned[0].recipe.labels.options == {"rho": 0.1}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--seed=5"], "--seeds and --first_seed say"),
        (["--labels=ccat"], "--methods FILE names those of yours"),
    ],
)
def test_options_that_methods_set_themselves_are_refused(words, said, capsys):
    assert main(["compare", "embedded", "--plan", *words]) == 1
    assert said in capsys.readouterr().err
