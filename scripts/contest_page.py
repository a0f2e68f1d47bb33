"""Write docs/contest.md and its chart out of results/contest: what the contest of labels has shown so far.

python scripts/contest_page.py
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from auglabel.lab.compare.candidates import of_file
from auglabel.lab.compare.contest import Contest
from auglabel.lab.methods.verdict import CLEAN, Column, Line, Verdict
from auglabel.lab.paper.claim_verdicts import Part
from auglabel.lab.pictures.vega import COLOURS, load_altair, save_chart
from auglabel.lab.runs.metric_list import DIGITS, METRICS, SCALES
from auglabel.lab.sweep.grid import Shared
from auglabel.lab.sweep.job import Results
from auglabel.lab.sweep.measurement import Measurement
from auglabel.lab.sweep.result import Result, read_result
from auglabel.util.atomic_write import write_text

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "results" / "contest"
PAGE = ROOT / "docs" / "contest.md"
SEEDS = range(20, 24)
MEASURED = (Measurement("clean"), Measurement("corrupted", images=1000))
JUDGED = ("nll", "accuracy", "aurc")  # by the plan's rule
BASELINES = ("one-hot", "label smoothing", "focal loss")
INTRO = """# A contest of labels

{question} Every method has the same {images:,} labelled images of CIFAR-100, network, epochs and augmentation
(RandAug, `wide`); four seeds, where a table does not say otherwise.
[plan.yaml](../results/contest/plan.yaml), written before the runs, has the protocol and the rule that
decides, [methods.yaml](../results/contest/methods.yaml) the methods, and `results/contest/results` a file per
run. `python scripts/contest_page.py` makes this page. What is marked as dropped was run like all others and
has left the code since ([dropped.yaml](../results/contest/dropped.yaml)).

{there} of {methods} methods have their runs{missing}.
"""
SECOND = """
## On a quarter of CIFAR-100

The second round of the plan: 12,500 images, the network of `fast-cifar100`, all methods with 250 images held
out ([second.yaml](../results/contest/second.yaml)); differences are from one-hot labels at T, as above.
"""
ROUNDS = {16: "second", 64: "second-64"}  # epochs, and the folder of the results
ALPHAS = ("AutoLabel", "AutoLabel, paper")  # without and with an alpha
FAMILIES = ("wide crop", "erasing", "mixup")  # each method's name begins with its augmentation
THIRD = """
## Crops, erasing and mixup

The third round of the plan: each of these augmentations alone in the place of RandAug, with 250 of the
{images:,} images held out, all else as in the first round ([third.yaml](../results/contest/third.yaml)).
Differences are from one-hot labels at T with the same augmentation, for mixup from its own labels at T; the
last column is the rule above with that as its baseline.
"""
HOLDOUTS = """
## How many to hold out

12,500 labelled images of CIFAR-100 in all, AutoLabel with `fast-cifar100`
([holdouts.yaml](../results/contest/holdouts.yaml)); then each hold-out less every larger one, as trained.
"""
CHART = """
![NLL of each method less that of one-hot labels with a temperature](../results/contest/contest.svg)

*Mean over seeds and 95 % interval of the difference from one-hot labels with a temperature, seed by seed.
Left of the line is better.*
"""
RULE = """
## Which may become the default?

The plan's rule: each method at T where it has held images out for it, else as trained, against one-hot at T.
Neither NLL certainly higher, one certainly lower, and neither accuracy nor AURC certainly worse, on clean and
on corrupted (c) images. Differences with their 95 % intervals over seeds; certain ones are bold. Each
interval stands by itself, without a correction for their number.
"""


class FirstRound(Contest):
    """The contest with the results of methods that have left the code, in the places that they had."""

    @property
    def reported(self) -> dict[str, list[Result]]:
        found = {name: (name, results) for name, results in super().reported.items()}
        order = list(found)
        for name, was in dropped().items():
            order.insert(order.index(was["after"]) + 1, name)
            files = sorted(self.results.path.glob(f"{name.replace(' ', '_')}-seed*.json"))
            found[name] = f"{name} (dropped)", list(map(read_result, files))
        return dict(found[name] for name in order)


def main() -> None:
    found = contest()
    write_text(PAGE, text(found))
    draw(found)
    print(f"wrote {PAGE.relative_to(ROOT)}")


def contest() -> FirstRound:
    """The contest of the plan, with the results that are there."""
    found = _contest(plan_of()["options"].split(), "methods.yaml", "results")
    return FirstRound(found.shared, found.candidates, found.seeds, found.results)


def second_round(epochs: int) -> Contest:
    """The same on a quarter of CIFAR-100."""
    words = plan_of()["second_options"].split()
    return _contest([*words, f"--epochs={epochs}"], "second.yaml", ROUNDS[epochs])


def third_round(family: str = "") -> Contest:
    """The methods of one augmentation that is not RandAug, or of all of them."""
    return _contest(plan_of()["third_options"].split(), "third.yaml", "third", family)


def holdouts_round() -> Contest:
    """Learned labels with fewer and fewer images held out."""
    return _contest(plan_of()["holdouts_options"].split(), "holdouts.yaml", "holdouts")


def alpha_round(recipe: str) -> Contest:
    """A tuned alpha and "auto", with the augmentation and labels of a recipe."""
    words = plan_of()["alpha_options"][recipe].split()
    shared = Shared(recipe, ("--data.root=.", *words), MEASURED[:1])
    return Contest(shared, of_file(FOLDER / "alpha.yaml"), SEEDS, Results(FOLDER / f"alpha-{recipe}"))


def _contest(words: Sequence[str], methods: str, results: str, family: str = "") -> Contest:
    shared = Shared(plan_of()["recipe"], ("--data.root=.", *words), MEASURED)
    candidates = [each for each in of_file(FOLDER / methods) if each.name.startswith(family)]
    return Contest(shared, candidates, SEEDS, Results(FOLDER / results))


def plan_of() -> dict[str, Any]:
    return _yaml("plan.yaml")


def dropped() -> dict[str, dict[str, str]]:
    """The former options of methods that have left the code, and after which other each is shown."""
    return _yaml("dropped.yaml")


def _yaml(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))
    return found


def text(contest: Contest) -> str:
    """The page, of the methods that have two seeds or more."""
    verdict = complete(contest)
    if verdict is None:
        return f"# A contest of labels\n\n{plan_of()['question']} Not run yet.\n"
    planned = list(contest.reported)
    missing = [name for name in planned if name not in verdict.methods]
    intro = INTRO.format(
        question=plan_of()["question"],
        images=next(iter(labelled(contest, verdict).values())),
        there=len(verdict.methods),
        methods=len(planned),
        missing=f"; not yet: {'; '.join(missing)}" if missing else "",
    )
    parts = [intro, *_chosen(contest), CHART, "\n## Results\n", _table(contest, verdict), RULE]
    parts += [_differences(verdict), _answer(verdict), *_auto_alpha(contest, verdict)]
    parts += _alpha_rounds()
    return "\n".join([*parts, *_second(), *_third(), *_holdouts()])


def _second() -> Iterator[str]:
    """The second round, as far as it is there."""
    rounds = {epochs: second_round(epochs) for epochs in ROUNDS}
    there = {epochs: verdict for epochs, each in rounds.items() if (verdict := complete(each))}
    if there:
        yield SECOND
    for epochs, verdict in there.items():
        yield f"### {epochs} epochs\n"
        yield from (_table(rounds[epochs], verdict), _differences(verdict))
    for epochs in rounds.keys() - there.keys() if there else ():
        yield f"The plan has {epochs} epochs, too. They are not run.\n"


def _third() -> Iterator[str]:
    """The third round, each augmentation of which has its own baseline, as far as it is there."""
    there = {name: (each, verdict) for name in FAMILIES if (verdict := complete(each := third_round(name)))}
    for number, (name, (contest, verdict)) in enumerate(there.items()):
        if number == 0:
            yield THIRD.format(images=next(iter(labelled(contest, verdict).values())))
        yield f"### {name.capitalize()}\n"
        yield from (_table(contest, verdict), _differences(verdict))


def _holdouts() -> Iterator[str]:
    """What each hold-out changes against every larger one, as trained, as far as it is there."""
    contest = holdouts_round()
    if not (verdict := complete(contest)):
        return
    columns = [column for column in verdict.columns if column.metric != "aurc"]
    rows = [
        [f"{one} less {other.partition(', ')[2]}", *(_cell(c, Line(one), Line(other)) for c in columns)]
        for other, one in itertools.combinations(verdict.methods, 2)
    ]
    head = ["labels", *(column.heading for column in columns)]
    yield from (HOLDOUTS, _table(contest, verdict), _markdown([head, *rows]))


def complete(contest: Contest) -> Verdict | None:
    """The verdict of the methods that have at least two seeds; None before the plain one has."""
    found = contest.verdict()
    whole = [name for name in found.methods if len(seeds_of(found, name)) > 1] if found else []
    return Verdict(whole, contest.plain, found.comparisons) if found and contest.plain in whole else None


def seeds_of(verdict: Verdict, method: str) -> list[int]:
    """The seeds that were measured of a method, on clean images."""
    return sorted(verdict.comparisons[0].rows[CLEAN].get(method, {}))


def labelled(contest: Contest, verdict: Verdict) -> dict[str, int]:
    """How many labelled images each method has used in all."""
    there = contest.reported
    return {name: there[name][0].labelled_images for name in verdict.methods}


def judged_lines(verdict: Verdict) -> list[Line]:
    """Each method but the plain one, at T where it has one, else as trained."""
    return [
        line if (line := Line(method, "T")) in verdict.lines else Line(method)
        for method in verdict.methods
        if method != verdict.plain_title
    ]


def may_be_default(verdict: Verdict, line: Line) -> bool:
    """The plan's rule."""
    found = [(c.metric, c.better(line, baseline(verdict))) for c in _judged(verdict)]
    return ("nll", 1) in found and all(better >= 0 for _, better in found)


def baseline(verdict: Verdict) -> Line:
    return Line(verdict.plain_title, "T")


def difference(column: Column, line: Line, other: Line) -> tuple[float, float, float]:
    """Mean and interval of the line's value less the other's, in the metric's unit."""
    part = column.difference(line, other)
    assert part is not None  # every method has two seeds of the same list
    sign = SCALES[column.kind.unit] * (1 if column.kind.higher_is_better else -1)
    low, high = sorted(sign * end for end in part.interval)
    return sign * part.mean, low, high


def draw(contest: Contest) -> None:
    """contest.svg and .png: the difference in NLL from one-hot at T, clean and corrupted."""
    verdict = complete(contest)
    if verdict is None:
        return
    alt = load_altair()
    panels = [_panel(alt, verdict, column) for column in _judged(verdict) if column.metric == "nll"]
    title = "NLL less that of one-hot labels with a temperature; further left is better"
    chart = alt.hconcat(*panels).properties(title=alt.TitleParams(title, fontSize=13, anchor="start"))
    save_chart(chart, FOLDER / "contest")


def _panel(alt: Any, verdict: Verdict, column: Column) -> Any:
    base = baseline(verdict)
    drawn = [verdict.plain, *judged_lines(verdict)]
    values = [
        dict(zip(("mean", "low", "high"), difference(column, line, base), strict=True), method=line.title)
        for line in drawn
    ]
    first = column.place == CLEAN
    axis = alt.Axis(labelLimit=300) if first else None
    y = alt.Y("method:N", sort=[line.title for line in drawn], title=None, axis=axis)
    chart = alt.Chart(alt.Data(values=values))
    x_title = "clean test images" if first else "corrupted test images"
    bars = chart.mark_rule(color=COLOURS[0], strokeWidth=2).encode(
        x=alt.X("low:Q", title=x_title), x2="high:Q", y=y
    )
    dots = chart.mark_point(color=COLOURS[0], filled=True, size=70).encode(x="mean:Q", y=y)
    zero = alt.Chart(alt.Data(values=[{"zero": 0}])).mark_rule(color="#888").encode(x="zero:Q")
    return (zero + bars + dots).properties(width=300, height=26 * len(drawn))


def _judged(verdict: Verdict) -> list[Column]:
    return [column for metric in JUDGED for column in verdict.columns if column.metric == metric]


def _chosen(contest: Contest) -> Iterator[str]:
    for candidate in contest.candidates:
        if value := contest.chosen(candidate):
            end = ", an end of the list" if value[0] in (candidate.values[0], candidate.values[-1]) else ""
            yield (
                f"{candidate.name}: of {candidate.option} {', '.join(candidate.values)}, {value[0]} has the "
                f"lowest NLL on augmented validation images, mean over two unreported seeds{end}.\n"
            )


def _table(contest: Contest, verdict: Verdict) -> str:
    """Every line with its spread; the best of a column is bold."""
    trained_on = labelled(contest, verdict)
    head = ["labels", "seeds", "labelled images", *(column.heading for column in verdict.columns)]
    rows = [
        [
            title,
            str(len(seeds_of(verdict, line.method))),
            f"{trained_on[line.method]:,}",
            *(f"**{cell.text}**" if cell.mark == "best" else cell.text for cell in cells),
        ]
        for line, (title, cells) in zip(verdict.lines, verdict.rows, strict=True)
    ]
    return _markdown([head, *rows])


def _differences(verdict: Verdict) -> str:
    columns, base = _judged(verdict), baseline(verdict)
    head = ["labels", *(column.heading for column in columns), "may be the default"]
    rows = []
    for line in [verdict.plain, *judged_lines(verdict)]:
        cells = []
        for column in columns:
            if line.method == base.method and column.metric == "accuracy":
                cells.append("0")
                continue
            cells.append(_cell(column, line, base))
        answer = "-" if line.method == base.method else "yes" if may_be_default(verdict, line) else "no"
        rows.append([line.title, *cells, answer])
    return _markdown([head, *rows])


def _cell(column: Column, line: Line, other: Line) -> str:
    """The difference with its interval; bold where it is certain."""
    digits = DIGITS[column.kind.unit]
    mean, low, high = (f"{each:+.{digits}f}" for each in difference(column, line, other))
    cell = f"{mean} [{low}, {high}]"
    return f"**{cell}**" if column.better(line, other) else cell


def _answer(verdict: Verdict) -> str:
    able = [line for line in judged_lines(verdict) if may_be_default(verdict, line)]
    if not able:
        return "No method meets the rule: one-hot labels with a temperature stay what we recommend.\n"
    columns = [column for column in _judged(verdict) if column.metric == "nll"]

    def total(line: Line) -> float:
        return sum(difference(column, line, baseline(verdict))[0] for column in columns)

    best, names = min(able, key=total), "; ".join(line.title for line in able)
    found = f"These meet the rule: {names}. The lowest sum of both NLLs has {best.title}.\n"
    rivals = sorted(filter(is_baseline, able), key=total)
    if not rivals or rivals[0] == best:
        return found
    against = [
        f"- {best.title} less {rival.title}: "
        + ", ".join(f"{c.heading} {_cell(c, best, rival)}" for c in _judged(verdict))
        for rival in rivals
    ]
    lines = "\n".join(against)
    return f"{found}\nThe best of them without learned labels is {rivals[0].title}.\n\n{lines}\n"


def is_baseline(line: Line) -> bool:
    """Whether its labels are not learned: one-hot labels, label smoothing or focal loss, however held out."""
    return line.method.startswith(BASELINES)


def _auto_alpha(contest: Contest, verdict: Verdict) -> Iterator[str]:
    """How AutoLabel's own step compares with the tuned alpha."""
    if set(ALPHAS) <= set(verdict.methods):
        yield "\n## No alpha to tune?\n"
        yield _auto_less_tuned(contest)


def _alpha_rounds() -> Iterator[str]:
    """The same with recipes as they come, as far as it is there."""
    for recipe in plan_of()["alpha_options"]:
        alone = alpha_round(recipe)
        if (found := complete(alone)) and set(ALPHAS) <= set(found.methods):
            yield f"### `{recipe}`\n"
            yield from (*_chosen(alone), _auto_less_tuned(alone))


def _auto_less_tuned(contest: Contest) -> str:
    """The NLL of both on augmented validation images, and their difference seed by seed."""
    by_seed = [_augmented_nll(contest, name) for name in ALPHAS]
    seeds = sorted(set.intersection(*map(set, by_seed)))
    auto, tuned = ([each[seed] for seed in seeds] for each in by_seed)
    part = Part("", [], [ours - theirs for ours, theirs in zip(auto, tuned, strict=True)])
    low, high = part.interval
    word = "certainly higher" if low > 0 else "certainly lower" if high < 0 else "not told apart"
    return (
        f'NLL of augmented validation images: {METRICS["nll"].mean_and_spread(auto)} with `alpha="auto"`, '
        f"{METRICS['nll'].mean_and_spread(tuned)} with the chosen alpha; difference {part.mean:+.3f} "
        f"[{low:+.3f}, {high:+.3f}], {word}.\n"
    )


def _augmented_nll(contest: Contest, method: str) -> dict[int, float]:
    candidate = next(each for each in contest.candidates if each.name == method)
    read = (contest.results.read(job) for job in contest.jobs(candidate))
    return {
        each.seed: each.validation_augmented["nll"] for each in read if each and each.validation_augmented
    }


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], f"|{' --- |' * len(rows[0])}", *lines[1:]]) + "\n"


if __name__ == "__main__":
    main()
