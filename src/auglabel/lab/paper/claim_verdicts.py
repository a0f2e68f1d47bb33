"""What became of each claim: paired differences over seeds, their t interval, and Holm's correction.

A part of a claim is one number per seed; its interval is Student's, 95 %, two-sided. A claim about several
parts holds if each does, so it counts with the largest p of its parts; it is reversed if one part is, so it
then counts with the smallest p of the parts that point the other way, times the number of its parts. Holm's
correction runs over the claims of a family that rest on the same table or figure and can be tested; one that
has not been run counts with a p of 1, so that a later run changes no other claim's verdict for the worse.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from auglabel.lab.study.claims import LEVEL

Values = Callable[[str, str], Mapping[int, float]]  # row and metric -> by seed


@dataclass(frozen=True)
class Part:
    """One number per seed that the claim says is above `above`."""

    text: str
    seeds: list[int]
    values: list[float]
    above: float = 0.0
    metric: str = ""

    @functools.cached_property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @functools.cached_property
    def interval(self) -> tuple[float, float]:
        """Student's, 95 %."""
        half = float(_student().ppf(1 - LEVEL / 2, len(self.values) - 1)) * self._error
        return self.mean - half, self.mean + half

    @functools.cached_property
    def p(self) -> float:
        """Two-sided: how likely a mean so far from `above` is if the truth lies there."""
        away = abs(self.mean - self.above)
        if self._error == 0:
            return 0.0 if away else 1.0
        return 2 * (1 - float(_student().cdf(away / self._error, len(self.values) - 1)))

    @property
    def agrees(self) -> bool:
        return self.mean > self.above

    @property
    def _error(self) -> float:
        return statistics.stdev(self.values) / math.sqrt(len(self.values))


@dataclass(frozen=True)
class ClaimVerdict:
    """held, reversed, undecided, not run, or not testable (and why)."""

    claim: str
    rests_on: str
    verdict: str
    parts: list[Part]
    p: float | None = None
    adjusted: float | None = None  # p, after Holm
    why: str = ""
    seen: bool = False  # asked when its runs were there already
    hardly: str = ""  # why it can hardly show at this size, said before its runs
    short: str = ""  # the sentence that a summary has for this verdict

    @property
    def leans(self) -> str:
        """Where an undecided claim points by itself, without Holm: "for", "against", or "" if nowhere."""
        if self.verdict != "undecided" or self.p is None or self.p > LEVEL:
            return ""
        return "for" if all(part.agrees for part in self.parts) else "against"


def judge(family: Sequence[Mapping[str, Any]], values: Values) -> list[ClaimVerdict]:
    """A verdict for each claim of a family, in its order."""
    tables = dict.fromkeys(claim.get("rests_on", "") for claim in family)
    found: dict[int, ClaimVerdict] = {}
    for table in tables:
        some = {n: claim for n, claim in enumerate(family) if claim.get("rests_on", "") == table}
        found |= zip(some, _judge(list(some.values()), values), strict=True)
    return [found[n] for n in range(len(family))]


def _judge(family: Sequence[Mapping[str, Any]], values: Values) -> list[ClaimVerdict]:
    """A verdict for each of the claims that rest on one table, corrected for their number."""
    parts = [[_part(part, values) for part in claim.get("parts", [])] for claim in family]
    testable = [place for place, some in enumerate(parts) if some and all(len(p.values) > 1 for p in some)]
    ps = [_p(parts[place]) for place in testable]
    waiting = sum("not_testable" not in claim for claim in family) - len(testable)
    adjusted = holm([*ps, *[1.0] * waiting])[: len(ps)]
    found = dict(zip(testable, zip(ps, adjusted, strict=True), strict=True))
    return [
        _verdict(claim, some, *found.get(place, (None, None)))
        for place, (claim, some) in enumerate(zip(family, parts, strict=True))
    ]


def _verdict(
    claim: Mapping[str, Any], parts: list[Part], p: float | None, adjusted: float | None
) -> ClaimVerdict:
    word = "not testable" if "not_testable" in claim else "not run"
    if adjusted is not None:
        agrees = all(part.agrees for part in parts)
        word = "undecided" if adjusted > LEVEL else "held" if agrees else "reversed"
    return ClaimVerdict(
        claim["claim"],
        claim.get("rests_on", ""),
        word,
        parts,
        p,
        adjusted,
        why=claim.get("not_testable", ""),
        seen=claim.get("seen", False),
        hardly=claim.get("hardly", ""),
        short=claim["short"].get(word, f"Not run yet: {claim['claim']}") if "short" in claim else "",
    )


def _p(parts: Sequence[Part]) -> float:
    """The p value of a whole claim: that it is reversed if a part disagrees, else that it holds."""
    against = [part.p for part in parts if not part.agrees]
    return min(1.0, len(parts) * min(against)) if against else max(part.p for part in parts)


def _part(part: Mapping[str, Any], values: Values) -> Part:
    signs = [(1, each) for each in part.get("plus", [])] + [(-1, each) for each in part.get("minus", [])]
    found = [(sign, values(*each.split(" ", 1))) for sign, each in signs]
    seeds = sorted(set.intersection(*(set(by_seed) for _, by_seed in found)))
    text = " ".join(f"{'+' if sign > 0 else '-'} {each.partition('-')[2]}" for sign, each in signs)
    text = f"{signs[0][1].partition('-')[0]}: {text.removeprefix('+ ')}"
    sums = [sum(sign * by[seed] for sign, by in found) for seed in seeds]
    return Part(text, seeds, sums, part.get("above", 0.0), signs[0][1].partition(" ")[2])


def holm(ps: Sequence[float]) -> list[float]:
    """Each p, adjusted for all: those at most 0.05 may be rejected together."""
    order = sorted(range(len(ps)), key=lambda place: ps[place])
    adjusted, highest = [0.0] * len(ps), 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[place]))
        adjusted[place] = highest
    return adjusted


def require_scipy() -> None:
    """Say now, not when all is trained, that intervals cannot be computed."""
    _student()


def _student() -> Any:
    try:
        from scipy.stats import t
    except ImportError:
        raise ImportError("intervals need scipy: pip install 'auglabel[report]'.") from None
    return t
