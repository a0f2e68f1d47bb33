import pytest

from auglabel.lab.runs.metric_list import METRICS, metric_named


@pytest.mark.parametrize(
    ("name", "heading", "shown"),
    [
        ("accuracy", "accuracy, %", "12.3"),
        ("ece", "ECE, %", "12.3"),
        ("nll", "NLL", "0.123"),
        ("aurc", "AURC, x 1000", "123"),
        ("cece", "cECE, %", "12.3"),
        ("cdebiased_ece", "debiased cECE, %", "12.3"),
        ("nll T", "NLL at T", "0.123"),
        ("cbrier TA", "cBrier at TA", "0.123"),
        ("nll@3 T", "NLL at T", "0.123"),
    ],
)
def test_each_metric_has_a_heading_and_its_unit(name, heading, shown):
    assert metric_named(name).heading == heading
    assert metric_named(name).shown(0.1234) == shown


def test_the_mean_stands_with_its_standard_deviation_over_seeds():
    # by hand: mean 0.82, deviations 0.02, so sqrt(2 x 0.02^2 / 1) = 0.0283
    assert METRICS["accuracy"].mean_and_spread([0.80, 0.84]) == "82.0 ± 2.8"
    assert METRICS["nll"].mean_and_spread([1.0, 2.0]) == "1.500 ± 0.707"
    assert METRICS["accuracy"].mean_and_spread([0.8]) == "80.0"
    assert METRICS["nll"].mean_and_spread([1.0, 2.0], between="±", fewer=1) == "1.50±0.71"
