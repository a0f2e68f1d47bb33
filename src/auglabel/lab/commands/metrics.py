"""`auglabel metrics`: how accurate and how calibrated saved predictions are; needs torch and numpy alone."""

from __future__ import annotations

import json
from pathlib import Path

from auglabel import __version__
from auglabel.errors import UserError
from auglabel.lab.commands.arguments import Parser
from auglabel.lab.predictions.files import READERS, read_predictions
from auglabel.lab.predictions.measure import MetricOptions, measure_predictions
from auglabel.lab.predictions.text import screen

ABOUT = f"How accurate and how calibrated predictions of any framework are. Files: {', '.join(READERS)}."


def run(words: list[str]) -> None:
    """Measure what the files hold; print it as a table with a verdict, or as JSON."""
    if (given := _parser().read(words)) is None:
        return
    options = MetricOptions(given.bins, given.resamples, given.top, given.seed)
    predictions = read_predictions(given.logits, given.labels, given.probabilities)
    fit_on = None
    if given.fit:
        if len(given.fit) > 2:
            raise UserError(
                f"--fit takes a file, or one with scores and one with labels, got {len(given.fit)}."
            )
        fit_on = read_predictions(given.fit[0], *given.fit[1:] or [None], given.probabilities)
        if fit_on.logits.shape[1] != predictions.logits.shape[1]:
            raise UserError(
                f"{fit_on.source} has {fit_on.logits.shape[1]} classes, but {predictions.source} has "
                f"{predictions.logits.shape[1]}."
            )
    report = measure_predictions(predictions, fit_on, options)
    if given.diagram:
        from auglabel.lab.report.diagram import write_diagram

        write_diagram(Path(given.diagram), report.bins, Path(report.source).name)
    print(
        json.dumps({"auglabel": __version__, **report.as_json()}, indent=1)
        if given.json
        else screen(report, given.top)
    )


def _parser() -> Parser:
    parser = Parser("metrics", ABOUT, "LOGITS [LABELS]")
    parser.add_argument(
        "logits", metavar="LOGITS", help="file of scores (N, K); FILE:NAME for one of its arrays"
    )
    parser.add_argument(
        "labels", metavar="LABELS", nargs="?", help="file of labels (N,), if not in the first"
    )
    parser.add_argument(
        "--probabilities", action="store_true", help="the scores are probabilities, not logits"
    )
    parser.add_argument(
        "--fit",
        nargs="+",
        metavar="FILE",
        help="scores, and a file of labels if they are not in it, that a temperature, vector and isotonic "
        "scaling are fitted on",
    )
    parser.add_argument("--diagram", metavar="FILE", help="reliability diagram to write: .png or .svg")
    parser.add_argument("--json", action="store_true", help="print one JSON object, for machines")
    for name, default, told in (
        ("bins", 15, "of equal width, for ECE and the diagram"),
        ("top", 5, "of top-k accuracy"),
        ("resamples", 1000, "of the bootstrap; 0 for no intervals"),
        ("seed", 0, "of the bootstrap"),
    ):
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help=f"{told} ({default})")
    return parser
