"""What runs show in words: methods compared seed by seed, against hand-worked intervals."""

import pytest
from made_runs import corrupted, figures, make_run, write_evaluation

from auglabel.lab.methods.methods import read_run
from auglabel.lab.methods.verdict import Line
from auglabel.lab.report.page import parts_of


def evaluated(accuracy, ece, nll, scaled_ece, scaled_nll):
    row = {"on": "clean", "severity": None, "count": 10, "figures": figures(accuracy, ece, nll)}
    return {"rows": [row | {"scaled": {"T": figures(accuracy, scaled_ece, scaled_nll)}}], "means": []}


def verdict_of(titles):
    """`titles`: the name of the method of each run, by its path."""
    (part,) = parts_of([read_run(path, title)[0] for path, title in titles.items()])
    return part.verdict


def verdict(tmp_path, methods, seeds=3):
    """`methods`: by name the regime, and accuracy, ECE, NLL, ECE and NLL at T of seed 0; a seed adds 0.01."""
    titles = {}
    for name, (regime, *values) in methods.items():
        for seed in range(seeds):
            shifted = [value + 0.01 * seed for value in values]
            path = tmp_path / f"{name}-{seed}"
            make_run(path, regime, seed, evaluation=evaluated(*shifted))
            titles[path] = name
    return verdict_of(titles)


PLAIN = ("randaug", 0.70, 0.10, 1.20, 0.03, 1.00)


def test_equal_differences_on_every_seed_are_certain_and_told_with_both_means(tmp_path):
    learned = ("randaug_autolabel", 0.70, 0.03, 1.00, 0.03, 1.00)
    found = verdict(tmp_path, {"one-hot": PLAIN, "AutoLabel": learned})
    assert found.sentences[1] == (
        "AutoLabel: ECE 4.0 instead of 11.0, NLL 1.010 instead of 1.210, accuracy equal. "
        "one-hot with a temperature is not told apart from it."
    )
    assert (
        found.sentences[-1]
        == "Use one-hot, T: no other method has a certainly lower NLL at no loss of accuracy."
    )


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (0.30, "over-confident: on average it says 50.0 % and is right on 31.0 %."),
        (0.60, "under-confident: on average it says 50.0 % and is right on 61.0 %."),
        (
            0.49,
            "neither over- nor under-confident: on average it says 50.0 % and is right on 50.0 %; "
            "these 3 seeds do not settle it.",
        ),
        (
            0.47,
            "perhaps over-confident: on average it says 50.0 % and is right on 48.0 %; "
            "these 3 seeds do not settle it.",
        ),
    ],
)
def test_the_plain_method_is_called_over_confident_as_far_as_seeds_show_it(first, told, tmp_path):
    """Confidence is 0.5 in made runs, accuracies are 0.01 apart: the gap has an interval of ± 2.5 points."""
    plain = ("randaug", first, 0.10, 1.20, 0.03, 1.00)
    learned = ("randaug_autolabel", first, 0.03, 1.00, 0.03, 1.00)
    found = verdict(tmp_path, {"one-hot": plain, "AutoLabel": learned})
    assert found.sentences[0] == f"one-hot is {told}"


def test_what_beats_the_temperature_is_recommended(tmp_path):
    learned = ("randaug_autolabel", 0.72, 0.02, 0.90, 0.02, 0.89)
    found = verdict(tmp_path, {"one-hot": PLAIN, "AutoLabel": learned})
    assert (
        "with a temperature does worse: ECE 3.0 against 4.0, NLL 0.910 against 1.010." in found.sentences[1]
    )
    assert found.sentences[-1].startswith("Use AutoLabel, T: its NLL is lower than that of one-hot, T")


def test_a_lower_nll_at_the_price_of_accuracy_is_not_recommended(tmp_path):
    learned = ("randaug_autolabel", 0.68, 0.02, 0.90, 0.02, 0.89)
    found = verdict(tmp_path, {"one-hot": PLAIN, "AutoLabel": learned})
    assert found.sentences[-1].startswith("Use one-hot, T")


def test_two_seeds_give_no_advice(tmp_path):
    better = ("randaug_autolabel", 0.70, 0.03, 0.90, 0.03, 0.90)
    found = verdict(tmp_path, {"one-hot": PLAIN, "AutoLabel": better}, seeds=2)
    assert found.sentences[-1] == "These seeds are too few to say what to use: train at least 3."


def test_a_method_that_shares_two_seeds_with_the_plain_one_is_not_advised(tmp_path):
    titles = {}
    for name, regime, nll, seeds in (
        ("one-hot", "randaug", 1.2, 3),
        ("learned", "randaug_autolabel", 0.8, 2),
    ):
        for seed in range(seeds):
            path = tmp_path / f"{name}{seed}"
            make_run(path, regime, seed, evaluation=evaluated(0.7, 0.1, nll, 0.1, nll))
            titles[path] = name
    assert verdict_of(titles).sentences[-1].startswith("Use one-hot")


def test_one_seed_tells_nothing(tmp_path):
    learned = ("randaug_autolabel", 0.99, 0.01, 0.1, 0.01, 0.1)
    found = verdict(tmp_path, {"one-hot": PLAIN, "AutoLabel": learned}, seeds=1)
    assert found.sentences == ["With one seed of one-hot nothing can be told apart: train at least three."]
    assert {cell.mark for _, cells in found.rows for cell in cells} == {""}


def test_a_single_seed_keeps_the_interval_that_eval_gave_it(tmp_path):
    found = evaluated(0.7, 0.1, 1.2, 0.03, 1.0)
    found["rows"][0]["figures"]["ece"] = {"value": 0.1, "low": 0.084, "high": 0.12}
    found["rows"][0]["scaled"]["T"]["nll"] = {"value": 1.0, "low": 0.9, "high": 1.1}
    path = make_run(tmp_path / "one", evaluation=found)
    rows = dict(verdict_of({path: "one-hot"}).rows)
    assert [cell.text for cell in rows["one-hot"]] == ["70.0", "10.0 [8.4, 12.0]", "1.200"]
    assert [cell.text for cell in rows["one-hot, T"]] == ["70.0", "3.0", "1.000 [0.900, 1.100]"]


def test_intervals_of_single_runs_give_way_to_the_spread_over_seeds(tmp_path):
    titles = {}
    for seed in range(2):
        found = evaluated(0.7, 0.1 + 0.02 * seed, 1.2, 0.03, 1.0)
        found["rows"][0]["figures"]["ece"] |= {"low": 0.0, "high": 1.0}
        titles[make_run(tmp_path / f"{seed}", seed=seed, evaluation=found)] = "one-hot"
    rows = dict(verdict_of(titles).rows)
    assert rows["one-hot"][1].text == "11.0 ± 1.4"


def test_the_advice_names_the_images_where_only_some_show_it(tmp_path):
    titles = {}
    for name, regime, nll in (("one-hot", "randaug", 1.0), ("learned", "randaug_autolabel", 0.8)):
        for seed in range(3):
            path = make_run(
                tmp_path / f"{name}{seed}", regime, seed, evaluation=evaluated(0.7, 0.1, nll, 0.1, nll)
            )
            write_evaluation(path, corrupted({("fog", 1): 0.1}) | {"epoch": 3}, stem="corrupted")
            titles[path] = name
    assert verdict_of(titles).sentences[-1] == (
        "Use learned: its NLL on clean images is lower than that of one-hot, T, its accuracy no lower."
    )


def test_no_difference_is_said_where_the_interval_has_zero(tmp_path):
    """NLL differences of -0.1, 0.0 and 0.1: the interval is 0 ± 4.303 x 0.1 / sqrt(3)."""
    titles = {}
    for seed, change in enumerate((-0.1, 0.0, 0.1)):
        for name, regime, nll in (("one-hot", "randaug", 1.0), ("soft", "randaug_ls", 1.0 + change)):
            path = tmp_path / f"{name}{seed}"
            make_run(path, regime, seed, evaluation=evaluated(0.5, 0.1, nll, 0.1, nll))
            titles[path] = name
    found = verdict_of(titles)
    assert found.sentences[1].startswith("soft: no difference from one-hot that these 3 seeds show.")
    nll = next(column for column in found.columns if column.metric == "nll")
    low, high = nll.difference(Line("soft"), Line("one-hot")).interval
    assert (low, high) == pytest.approx((-0.2484, 0.2484), abs=1e-4)


def test_the_best_is_marked_and_what_cannot_be_told_apart_from_it(tmp_path):
    soft = ("randaug_ls", 0.70, 0.10, 1.20, 0.05, 1.10)
    found = verdict(tmp_path, {"one-hot": PLAIN, "soft": soft})
    marks = {title: [cell.mark for cell in cells] for title, cells in found.rows}
    names = [column.metric for column in found.columns]
    assert names == ["accuracy", "ece", "nll"]  # AURC was not measured
    assert marks["one-hot, T"] == ["best", "best", "best"]
    assert marks["soft, T"] == ["best", "", ""]


def test_corrupted_images_have_columns_and_words_of_their_own(tmp_path):
    titles = {}
    for name, regime, ece in (("one-hot", "randaug", 0.2), ("learned", "randaug_autolabel", 0.1)):
        for seed in range(2):
            path = make_run(tmp_path / f"{name}{seed}", regime, seed, evaluation=evaluated(*PLAIN[1:]))
            write_evaluation(path, corrupted({("fog", 1): ece}) | {"epoch": 3}, stem="corrupted")
            titles[path] = name
    found = verdict_of(titles)
    assert "on corrupted images ECE 10.0 instead of 20.0, accuracy and NLL equal" in found.sentences[1]
    assert any(column.heading == "cECE, %" for column in found.columns)


def made(tmp_path, name, regime, seeds, nll, scaled=None):
    """Runs with these seeds, whose NLL is `nll` plus 0.01 per seed, and at T `scaled`, where given."""
    titles = {}
    for seed in seeds:
        found = evaluated(0.7, 0.1, nll + 0.01 * seed, 0.1, (scaled or 0) + 0.01 * seed)
        if scaled is None:
            found["rows"][0]["scaled"] = {}
        titles[make_run(tmp_path / f"{name}{seed}", regime, seed, evaluation=found)] = name
    return titles


def test_a_temperature_that_harms_is_not_the_one_to_beat(tmp_path):
    plain = made(tmp_path, "one-hot", "randaug", range(3), 0.30, 0.40)
    found = verdict_of(plain | made(tmp_path, "soft", "randaug_ls", range(3), 0.35, 0.36))
    assert found.sentences[-1].startswith("Use one-hot: no other method")


def test_a_temperature_of_some_seeds_only_has_no_line_and_is_not_recommended(tmp_path):
    plain = made(tmp_path, "one-hot", "randaug", [0], 1.0, 0.5) | made(
        tmp_path, "one-hot", "randaug", [1, 2], 1.0
    )
    found = verdict_of(plain | made(tmp_path, "soft", "randaug_ls", range(3), 0.9))
    assert [line.title for line in found.lines] == ["one-hot", "soft"]
    assert found.sentences[-1].startswith("Use soft: its NLL is lower than that of one-hot")
    assert "with a temperature" not in " ".join(found.sentences)


def test_means_are_those_of_the_seeds_that_both_methods_have(tmp_path):
    """Seeds 0 and 1: one-hot 1.00 and 1.01. Its seeds 2 and 3 would bring the mean to 1.015."""
    plain = made(tmp_path, "one-hot", "randaug", range(4), 1.0)
    found = verdict_of(plain | made(tmp_path, "soft", "randaug_ls", range(2), 0.9))
    (told,) = (sentence for sentence in found.sentences if sentence.startswith("soft"))
    assert told.startswith("soft (2 of 4 seeds): NLL 0.905 instead of 1.005, accuracy and ECE equal.")


def test_methods_without_shared_seeds_are_not_compared(tmp_path):
    plain = made(tmp_path, "one-hot", "randaug", range(3), 1.0)
    found = verdict_of(plain | made(tmp_path, "soft", "randaug_ls", range(3, 6), 0.5))
    assert "soft: it shares no two seeds with one-hot, so nothing can be said." in found.sentences
    assert {cell.mark for _, cells in found.rows for cell in cells} == {""}


def test_what_was_not_measured_is_not_called_equal(tmp_path):
    titles = made(tmp_path, "one-hot", "randaug", range(2), 1.0)
    for path in titles:
        write_evaluation(path, corrupted({("fog", 1): 0.2}) | {"epoch": 3}, stem="corrupted")
    found = verdict_of(titles | made(tmp_path, "soft", "randaug_ls", range(2), 0.9))
    assert "corrupted" not in " ".join(found.sentences)
