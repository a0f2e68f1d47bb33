"""`auglabel metrics`: how accurate and how calibrated saved predictions are; needs torch and numpy alone."""

from __future__ import annotations

import json
from pathlib import Path

from auglabel import __version__
from auglabel.errors import UserError
from auglabel.lab.commands.arguments import Parser
from auglabel.lab.predictions.files import READERS, Predictions, read_predictions
from auglabel.lab.predictions.measure import MetricOptions, measure_predictions
from auglabel.lab.predictions.text import screen

ABOUT = f"How accurate and how calibrated predictions of any framework are. Files: {', '.join(READERS)}."


def run(words: list[str]) -> None:
    """Measure what the files hold; print it as a table with a verdict, or as JSON."""
    if (given := _parser().read(words)) is None:
        return
    options = MetricOptions(given.bins, given.resamples, given.top, given.seed)
    predictions = read_predictions(given.logits, given.labels, given.probabilities)
    fit_on = _fit_on(given.fit, given.probabilities, predictions) if given.fit else None
    report = measure_predictions(predictions, fit_on, options)
    if given.diagram:
        from auglabel.lab.report.diagram import write_diagram

        write_diagram(Path(given.diagram), report.bins, Path(report.source).name)
    found = {"auglabel": __version__, **report.as_json()}
    print(json.dumps(found, indent=1) if given.json else screen(report, given.top))


def _fit_on(files: list[str], probabilities: bool, measured: Predictions) -> Predictions:
    if len(files) > 2:
        raise UserError(f"--fit takes a file of scores and perhaps one of labels, got {len(files)} files.")
    found = read_predictions(files[0], files[1] if len(files) == 2 else None, probabilities)
    classes, others = found.logits.shape[1], measured.logits.shape[1]
    if classes != others:
        raise UserError(f"{found.source} has {classes} classes, but {measured.source} has {others}.")
    return found


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
