import math
from types import SimpleNamespace

import pytest
from scipy import stats

from auglabel.lab.paper.charts import _dots
from auglabel.lab.paper.claim_verdicts import Part, holm, judge
from auglabel.lab.paper.page import Page, Record
from auglabel.lab.paper.tables import COLUMNS
from auglabel.lab.study.claims import claims
from auglabel.lab.study.readings import reading
from auglabel.lab.study.rows import MADE


def part(values, above=0.0):
    return Part("", list(range(len(values))), values, above)


def test_a_parts_interval_and_p_are_students():
    values = [0.012, 0.018, 0.009, 0.021, 0.015]
    expected = stats.ttest_1samp(values, 0.002)
    low, high = expected.confidence_interval(0.95)
    assert part(values, 0.002).p == pytest.approx(expected.pvalue, rel=1e-9)
    assert part(values, 0.002).interval == pytest.approx((low, high))


def test_an_interval_by_hand():
    """1, 2, 3: mean 2, standard error 1/sqrt(3), and t of 2 degrees of freedom is 4.303."""
    low, high = part([1.0, 2.0, 3.0]).interval
    assert (low, high) == pytest.approx((2 - 4.3027 / math.sqrt(3), 2 + 4.3027 / math.sqrt(3)), abs=1e-3)


def test_values_that_do_not_vary_are_certain_or_nothing():
    assert part([0.5, 0.5]).p == 0
    assert part([0.5, 0.5], above=0.5).p == 1


def test_holm_by_hand():
    """0.01 x 4, 0.02 x 3, 0.03 x 2 = 0.06, and 0.04 x 1 may not be below the one before."""
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def verdict_of(*parts, more=()):
    """The verdict of one claim whose parts have these values by seed; `more` claims share its family."""
    cells = {f"r{n}": dict(enumerate(values)) for n, values in enumerate([*parts, *more])}
    family = [{"claim": "c", "parts": [{"plus": [f"r{n} ece"]} for n in range(len(parts))]}]
    family += [{"claim": "d", "parts": [{"plus": [f"r{len(parts) + n} ece"]}]} for n in range(len(more))]
    return judge(family, lambda row, metric: cells[row])[0]


SURE = [0.10, 0.11, 0.09, 0.10, 0.105]
UNSURE = [0.10, -0.09, 0.05, 0.01, -0.02]


def test_a_claim_holds_if_all_its_parts_do():
    assert verdict_of(SURE, SURE).verdict == "held"
    assert verdict_of(SURE, UNSURE).verdict == "undecided"


def test_one_part_that_is_reversed_reverses_the_claim():
    assert verdict_of(SURE, [-value for value in SURE]).verdict == "reversed"
    assert verdict_of(UNSURE, [-value for value in SURE]).verdict == "reversed"


def test_a_claim_counts_with_the_largest_p_of_its_parts():
    weaker = [0.10, 0.14, 0.06, 0.12, 0.08]
    assert verdict_of(SURE, weaker).adjusted == pytest.approx(part(weaker).p)


def test_a_reversed_claim_counts_with_its_smallest_p_times_the_parts():
    against = [-value for value in SURE]
    assert verdict_of(SURE, against, UNSURE).adjusted == pytest.approx(3 * part(against).p)


def test_more_claims_make_each_harder_to_hold():
    values = [0.10, 0.16, 0.02, 0.12, 0.06]  # p about 0.02
    assert verdict_of(values).verdict == "held"
    assert verdict_of(values, more=[UNSURE] * 5).verdict == "undecided"


def test_claims_of_another_table_make_it_no_harder():
    """p about 0.02: alone in its table it holds, whatever five claims of another do."""
    cells = {"r": dict(enumerate([0.10, 0.16, 0.02, 0.12, 0.06])), "s": dict(enumerate(UNSURE))}
    family = [{"claim": "c", "rests_on": "table2", "parts": [{"plus": ["r ece"]}]}]
    family += [{"claim": "d", "rests_on": "table3", "parts": [{"plus": ["s ece"]}]}] * 5
    found = judge(family, lambda row, metric: cells[row])
    assert [verdict.verdict for verdict in found] == ["held", *["undecided"] * 5]
    assert [verdict.claim for verdict in found] == ["c", *"ddddd"]
    assert found[0].adjusted == found[0].p


def test_a_claim_says_why_it_can_hardly_show_and_its_sentence_for_the_summary():
    claim = {"claim": "c", "hardly": "too small", "short": {"held": "Yes.", "undecided": "Who knows."}}
    claim["parts"] = [{"plus": ["r ece"]}]
    (found,) = judge([claim], lambda row, metric: dict(enumerate(SURE)))
    assert (found.hardly, found.short) == ("too small", "Yes.")
    (waiting,) = judge([claim], lambda row, metric: {})
    assert waiting.short == "Not run yet: c"


def test_one_seed_or_none_is_not_run():
    assert verdict_of([0.1]).verdict == "not run"
    assert verdict_of([]).verdict == "not run"


def test_seeds_are_paired():
    cells = {"a": {1: 0.5, 2: 0.7, 3: 0.9}, "b": {2: 0.1, 3: 0.2, 4: 0.3}}
    family = [{"claim": "c", "parts": [{"plus": ["x-a ece"], "minus": ["x-b ece"]}]}]
    (found,) = judge(family, lambda row, metric: cells[row.removeprefix("x-")])
    assert found.parts[0].seeds == [2, 3]
    assert found.parts[0].values == pytest.approx([0.6, 0.7])


def test_a_threshold_moves_what_is_asked():
    cells = {0: 0.01, 1: 0.02, 2: 0.015}
    family = [{"claim": "near zero", "parts": [{"minus": ["r accuracy"], "above": -0.05}]}]
    (found,) = judge(family, lambda row, metric: cells)
    assert found.verdict == "held"
    assert found.parts[0].mean == pytest.approx(-0.015)


def test_a_claim_that_cannot_be_tested_says_why_and_counts_for_nothing():
    family = [{"claim": "c", "not_testable": "too large"}]
    (found,) = judge(family, lambda row, metric: {})
    assert (found.verdict, found.why, found.adjusted) == ("not testable", "too large", None)


@pytest.mark.parametrize("scale", MADE)
def test_every_claim_asks_for_rows_and_metrics_that_there_are(scale):
    rows = {row.name: row for some in MADE[scale].values() for row in some}
    nothing = SimpleNamespace(
        **{"evaluations": [], "labels": None, "views": None},
        recipe={"labels": {"name": "ccat"}, "data": {"name": "cifar10"}},
    )
    for family in claims(scale).values():
        for claim in family:
            assert claim["rests_on"] in MADE[scale]
            assert ("not_testable" in claim) != bool(claim.get("parts"))
            for each in claim.get("parts", []):
                for cell in (*each.get("plus", []), *each.get("minus", [])):
                    row, metric = cell.split(" ", 1)
                    assert row in rows
                    assert reading(nothing, metric) is None  # and not an error


def test_claims_that_have_not_been_run_count_too_so_that_running_them_makes_no_other_worse():
    values = [0.10, 0.16, 0.02, 0.12, 0.06]  # p about 0.02
    waiting = verdict_of(values, more=[[]] * 5)
    assert waiting.verdict == "undecided"
    assert waiting.adjusted == pytest.approx(6 * part(values).p)
    for later in (SURE, UNSURE):
        assert verdict_of(values, more=[later, *[[]] * 4]).adjusted <= waiting.adjusted


def test_an_undecided_claim_leans_where_its_own_p_points():
    values = [0.10, 0.16, 0.02, 0.12, 0.06]
    assert verdict_of(values, more=[UNSURE] * 5).leans == "for"
    assert verdict_of([-value for value in values], more=[UNSURE] * 5).leans == "against"
    assert verdict_of(UNSURE).leans == ""
    assert verdict_of(SURE).leans == ""  # held


def records(*values):
    """Of a metric each: what methods a, b and c have of it, or None."""
    return [
        Record("cifar10", method, metric, [1, 2] if value else [], [value, value + 0.1] if value else [])
        for metric, some in zip(COLUMNS["table4"], values, strict=True)
        for method, value in zip("abc", some, strict=True)
    ]


def test_a_method_is_on_the_same_line_in_every_panel():
    alt = pytest.importorskip("altair")
    page = Page("table4", "", [], records((0.1, 0.2, 0.3), (0.1, 0.2, None), (None, 0.2, 0.3)))
    (row,) = _dots(alt, page).to_dict()["vconcat"]
    domains = [
        layer["encoding"]["y"]["scale"]["domain"] for panel in row["hconcat"] for layer in panel["layer"]
    ]
    assert len(row["hconcat"]) == 3
    assert all(domain == ["a", "b", "c"] for domain in domains)


def test_a_metric_that_nothing_has_gets_no_panel():
    alt = pytest.importorskip("altair")
    page = Page("table4", "", [], records((0.1, 0.2, 0.3), (0.1, 0.2, None), (None, None, None)))
    (row,) = _dots(alt, page).to_dict()["vconcat"]
    assert len(row["hconcat"]) == 2
