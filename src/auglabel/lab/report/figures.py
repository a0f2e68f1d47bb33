"""All figures of a report."""

from __future__ import annotations

from collections.abc import Sequence

from auglabel.lab.methods.comparisons import Comparison
from auglabel.lab.methods.methods import Method
from auglabel.lab.pictures.vega import load_altair
from auglabel.lab.report.curves import cost, severity, training
from auglabel.lab.report.figure import ReportFigure
from auglabel.lab.report.heat_maps import corruptions, labels
from auglabel.lab.report.reliability import reliability


def figures_of(methods: Sequence[Method], comparisons: Sequence[Comparison]) -> list[ReportFigure]:
    """Every figure that there are data for."""
    alt = load_altair()
    drawn = [
        reliability(alt, methods, comparisons),
        severity(alt, methods, comparisons),
        corruptions(alt, methods, comparisons),
        labels(alt, methods),
        training(alt, methods),
        cost(alt, methods),
    ]
    return [figure for figure in drawn if figure is not None]
