"""`auglabel sweep --search`: one study that many processes ask and tell, killed and gone on with."""

import json
import re
import sys

import pytest

pytest.importorskip("optuna", reason="auglabel[sweep] is not installed")

from optuna.trial import TrialState
from sweeps import SLOW, TINY, killed_in_the_middle, results_in, sweep, times, trainings

from auglabel import cli
from auglabel.lab.search import search as searching
from auglabel.lab.search.journal import TrialJournal
from auglabel.lab.search.search import Range, search_at
from auglabel.lab.sweep.grid import Shared
from auglabel.lab.sweep.job import Results

ALPHA = "labels.alpha=0.005..0.5"


def search_in(out, text=ALPHA, words=TINY):
    """The search that `sweep` makes in that folder."""
    out.mkdir(exist_ok=True)
    shared = Shared("embedded", tuple(words))
    results = Results(out / "results", out / "runs")
    return search_at(shared, shared.point({}), text, 0, results, out / "search.journal")


def trials(out, text=ALPHA, words=TINY):
    """Every trial of the study, in whatever state."""
    return search_in(out, text, words).study().study.trials


def finished(out, text=ALPHA, words=TINY):
    return [each for each in trials(out, text, words) if each.state == TrialState.COMPLETE]


def refuse(*arguments):
    raise AssertionError("this was done before")


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A search of four trials that was never stopped, in this process."""
    out = tmp_path_factory.mktemp("sweeps") / "whole"
    assert sweep(out, "--search", ALPHA, "--trials", "4") == 0
    return out


def test_every_trial_is_a_result_and_the_study_knows_its_last_validation_nll(searched):
    found, told = results_in(searched), finished(searched)
    assert len(told) == len(found) == 4
    for trial in told:
        alpha = f"{trial.params['labels.alpha']:.4g}"
        result = found[f"alpha{alpha}-seed0"]
        assert result["recipe"]["labels"]["alpha"] == float(alpha)
        assert 0.005 <= float(alpha) <= 0.5
        assert trial.value == result["validation"]["nll"]
    assert [trial.user_attrs["number"] for trial in told] == [0, 1, 2, 3]


def test_the_summary_begins_with_the_choice(searched):
    summary = json.loads((searched / "summary.json").read_text())
    losses = [point["figures"]["validation_nll"]["mean"] for point in summary["points"]]
    assert losses == sorted(trial.value for trial in finished(searched))
    assert summary["choice"] == summary["points"][0]["name"]
    assert (summary["search"], summary["trials"]) == (ALPHA, 4)
    assert all(point["figures"]["validation_nll"]["spread"] is None for point in summary["points"])


def test_a_trial_is_the_job_that_a_grid_with_its_value_has(searched):
    shared = Shared("embedded", tuple(TINY))
    for result in results_in(searched).values():
        point = shared.point({"labels.alpha": str(result["recipe"]["labels"]["alpha"])})
        assert shared.job(point, shared.recipe_at(point), 0).digest == result["digest"]


def test_a_search_that_is_there_is_only_summed_up_again(searched, monkeypatch, capsys):
    monkeypatch.setattr(searching, "attempt", refuse)
    before = times(searched)
    assert sweep(searched, "--search", ALPHA, "--trials", "4") == 0
    assert "4 runs, 1 point x 4 trials: 4 are there, 0 to do." in capsys.readouterr().out
    assert sweep(searched, "--search", ALPHA, "--trials", "6", "--plan") == 0
    assert "4 are there, 2 to do" in capsys.readouterr().out
    assert times(searched) == before


def test_trials_keep_the_validation_images_that_a_recipe_gives_back(tmp_path):
    assert sweep(tmp_path, "--search", ALPHA, "--trials", "1", "--give_back=0.5") == 0
    (result,) = results_in(tmp_path).values()
    assert result["recipe"]["give_back"] is None
    (trial,) = finished(tmp_path, words=[*TINY, "--give_back=0.5"])
    assert trial.value == result["validation"]["nll"]


def test_more_trials_go_on_from_those_that_are_there(tmp_path):
    assert sweep(tmp_path, "--search", ALPHA, "--trials", "2") == 0
    before = times(tmp_path)
    assert sweep(tmp_path, "--search", ALPHA, "--trials", "5") == 0
    assert before.items() < times(tmp_path).items()
    assert len(finished(tmp_path)) == 5


def test_the_same_search_asks_for_the_same_values(searched, tmp_path):
    assert sweep(tmp_path, "--search", ALPHA, "--trials", "4") == 0
    assert times(tmp_path).keys() == times(searched).keys()


def test_another_range_or_recipe_is_another_study(tmp_path):
    assert sweep(tmp_path, "--search", ALPHA, "--trials", "1") == 0
    assert sweep(tmp_path, "--search", "labels.alpha=0.005..0.4", "--trials", "1") == 0
    assert sweep(tmp_path, "--search", ALPHA, "--trials", "1", "--momentum=0.8") == 0
    assert len(times(tmp_path)) == 3
    assert len(finished(tmp_path)) == 1


def test_two_processes_share_a_study(tmp_path):
    assert sweep(tmp_path, "--search", ALPHA, "--trials", "5", workers=2) == 0
    found = finished(tmp_path)
    assert sorted(trial.user_attrs["number"] for trial in found) == [0, 1, 2, 3, 4]
    assert len(results_in(tmp_path)) == 5


def test_whole_numbers_stay_whole_and_no_value_is_tried_twice(tmp_path):
    words = [word for word in TINY if "epochs" not in word]
    how = [f"--out={tmp_path}", "--workers", "1", "--search", "epochs=1..4", "--trials", "4"]
    assert cli.main(["sweep", "embedded", *words, *how]) == 0
    assert sorted(results_in(tmp_path)) == [f"epochs{number}-seed0" for number in (1, 2, 3, 4)]
    assert len(finished(tmp_path, "epochs=1..4", words)) == 4


def test_each_point_of_a_grid_has_a_search_of_its_own(tmp_path):
    words = ["--over", "regime=augmix_autolabel,mixup_autolabel", "--trials", "2"]
    assert sweep(tmp_path, *words, "--search", f"{ALPHA};augment.levels=1..9") == 0
    names = [re.sub(r"[\d.]+", "", name) for name in results_in(tmp_path)]
    assert names == [
        f"regime_{name}_autolabel-alpha-levels-seed" for name in ("augmix",) * 2 + ("mixup",) * 2
    ]


def test_a_trial_left_running_is_tried_again_with_the_values_it_has(tmp_path):
    search = search_in(tmp_path)
    left = search.study().ask(1, {"labels.alpha": search.ranges[0].distribution()}, search.texts)
    assert sweep(tmp_path, "--search", ALPHA, "--trials", "2") == 0
    found = {trial.user_attrs["number"]: trial for trial in finished(tmp_path)}
    assert found[1].number == left.number
    assert found[1].params == left.params
    assert len(found) == len(trials(tmp_path)) == 2


def test_a_trial_whose_worker_died_while_asking_is_given_up(tmp_path):
    search_in(tmp_path).study().study.ask()
    assert sweep(tmp_path, "--search", ALPHA, "--trials", "2") == 0
    assert [trial.state for trial in trials(tmp_path)] == [TrialState.FAIL, *[TrialState.COMPLETE] * 2]


def test_a_trial_that_was_trained_but_not_told_is_not_trained_again(tmp_path, monkeypatch):
    monkeypatch.setattr(TrialJournal, "tell", lambda *arguments: None)
    assert sweep(tmp_path, "--search", ALPHA, "--trials", "2") == 0
    monkeypatch.undo()
    before = times(tmp_path)
    assert (len(before), len(finished(tmp_path))) == (2, 0)
    assert sweep(tmp_path, "--search", ALPHA, "--trials", "2") == 0
    assert times(tmp_path) == before
    assert len(finished(tmp_path)) == len(trials(tmp_path)) == 2


def test_a_journal_whose_last_line_was_torn_goes_on(tmp_path):
    assert sweep(tmp_path, "--search", ALPHA, "--trials", "1") == 0
    with (tmp_path / "search.journal").open("a") as file:
        file.write('{"op_code":4,"worker_id":"x","stu')
    assert sweep(tmp_path, "--search", ALPHA, "--trials", "3") == 0
    assert len(finished(tmp_path)) == 3


def test_a_damaged_journal_is_named(tmp_path, capsys):
    assert sweep(tmp_path, "--search", ALPHA, "--trials", "1") == 0
    journal = tmp_path / "search.journal"
    journal.write_text("not JSON\n" + journal.read_text())
    assert sweep(tmp_path, "--search", ALPHA, "--trials", "2") == 1
    error = capsys.readouterr().err
    assert f"{journal} is damaged" in error
    assert error.count("\n") == 1


def test_a_killed_search_ends_with_as_many_finished_trials_as_asked_for(tmp_path):
    """SIGKILL for all its processes in the middle; what was done is not done again, nothing is lost."""
    words = ["sweep", "embedded", *SLOW, f"--out={tmp_path}", "--workers", "2"]
    words += ["--search", ALPHA, "--trials", "6"]
    killed_in_the_middle(tmp_path, words)
    before, begun = times(tmp_path), trials(tmp_path, words=SLOW)
    assert 2 <= len(before) < 6
    left = [trial for trial in begun if trial.state == TrialState.RUNNING and trial.params]
    assert left
    assert cli.main(words) == 0
    done = finished(tmp_path, words=SLOW)
    assert len(done) == len(times(tmp_path)) == 6
    assert {trial.params["labels.alpha"] for trial in left} < {trial.params["labels.alpha"] for trial in done}
    assert before.items() < times(tmp_path).items()
    assert list(trainings(tmp_path).values()) == [1] * 6


def test_trials_that_fail_are_named_and_others_are_asked_for_next(tmp_path, capsys):
    words = ["--search", "learning_rate=1e8..1e9", "--trials", "2"]
    assert sweep(tmp_path, *words) == 1
    error = capsys.readouterr().err
    assert re.match(r"auglabel: 2 of 2 runs failed: learning_rate\S+, learning_rate\S+\. ", error)
    assert error.count("\n") == 1
    assert sweep(tmp_path, *words) == 1
    assert capsys.readouterr().err != error
    states = [trial.state for trial in trials(tmp_path, "learning_rate=1e8..1e9")]
    assert set(states) == {TrialState.FAIL}
    assert not (tmp_path / "summary.json").exists()


def test_a_search_without_validation_images_says_so(tmp_path, capsys):
    words = ["--regime=randaug", "--split.validation=0", "--search", "momentum=0.5..0.9", "--trials", "1"]
    assert sweep(tmp_path, *words) == 1
    assert "a search goes by validation images" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0123456, "0.01235"),
        (0.1, "0.1"),
        (0.0050001, "0.005"),
        (0.49999, "0.5"),
        (3e-7, "0.005"),
        (9, "0.5"),
    ],
)
def test_values_have_four_digits_and_stay_between_the_ends(value, text):
    assert Range("alpha", "0.005", "0.5").text(value) == text


def test_an_end_of_more_digits_is_not_rounded_away():
    assert Range("momentum", "0.9", "0.999991").text(0.9999905) == "0.999991"
    assert Range("momentum", "0.12346", "0.9").text(0.123461) == "0.1235"
    assert Range("momentum", "0.12344", "0.9").text(0.123441) == "0.12344"


@pytest.mark.parametrize(
    ("low", "high", "log"),
    [("0.01", "0.1", True), ("0.01", "0.09", False), ("0", "1", False), ("-1", "100", False)],
)
def test_a_range_of_ten_times_is_drawn_by_its_logarithm(low, high, log):
    wanted = Range("alpha", low, high)
    assert wanted.log is log
    assert wanted.distribution().log is log
    assert Range("epochs", "1", "10", whole=True).distribution().log


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--search", ALPHA], r"--search goes with --trials N"),
        (["--trials", "3"], r"--trials goes with --search, such as labels.alpha=0.005..0.5"),
        (["--search", ALPHA, "--trials", "0"], r"--trials must be at least 1"),
        (["--search", ALPHA, "--trials", "2", "--seeds", "3"], r"--seeds goes with --over"),
        (["--search", "alpha=0.1", "--trials", "2"], r"alpha must have a range such as 0.005..0.5, got 0.1"),
        (["--search", "alpha=1..0.1", "--trials", "2"], r"alpha must have a range .* got 1..0.1"),
        (["--search", "alpha=a..b", "--trials", "2"], r"alpha must have a range"),
        (["--search", "alhpa=0.1..1", "--trials", "2"], r'no option "alhpa".*"labels.alpha"'),
        (["--search", "momentum=0.1..2", "--trials", "2"], r"momentum must be in \[0, 1\], got 2"),
        (["--search", "give_back=0.5..0.9", "--trials", "2"], r"images, on which give_back trains"),
        (["--search", "epochs=1..3", "--trials", "4"], r"--trials 4 is more than the 3 values there are"),
        (["--search", "alpha=0.1..1", "--trials", "2", "--labels.alpha=3"], r"by --labels.alpha: leave one"),
        (
            ["--over", "alpha=1,2", "--search", "labels.alpha=0.1..1", "--trials", "2"],
            r"alpha is set in --over and in --search: leave one of them out",
        ),
    ],
)
def test_words_it_cannot_use_end_with_one_sentence(words, complaint, tmp_path, capsys):
    assert cli.main(["sweep", "embedded", f"--out={tmp_path / 'out'}", *words]) == 1
    error = capsys.readouterr().err
    assert re.search(complaint, error)
    assert error.startswith("auglabel: ")
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_missing_optuna_is_one_sentence_that_names_the_extra(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert sweep(tmp_path, "--search", ALPHA, "--trials", "2") == 1
    error = capsys.readouterr().err
    assert "pip install 'auglabel[sweep]'" in error
    assert error.count("\n") == 1
