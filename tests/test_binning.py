from fractions import Fraction

import pytest
import reference
import torch
from hypothesis import given
from hypothesis import strategies as st

from auglabel.util.binning import cell


@pytest.mark.parametrize(
    ("value", "count", "expected"),
    [
        (0.0, 5, 1),
        (0.2, 5, 1),
        (0.2000001, 5, 2),
        (1.0, 5, 5),
        (0.001 / 0.01, 10, 1),
        (0.010001 / 0.1, 10, 2),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_published_edges_fall_where_they_should(value, count, expected, dtype):
    assert cell(torch.tensor([value], dtype=dtype), count).item() + 1 == expected


def test_a_quotient_of_float32_numbers_stays_in_its_cell():
    epsilon = torch.arange(1, 11).float() * 0.001
    assert cell(epsilon / torch.tensor(0.01), 10).tolist() == list(range(10))


def test_seven_hundredths_is_the_seventh_cell():
    assert 0.07 * 100 > 7  # the float error that must not push it to the eighth
    assert cell(torch.tensor([0.07], dtype=torch.float64), 100).item() == 6


@given(st.integers(1, 1000), st.integers(0, 10**6))
def test_cell_is_the_interval_of_the_exact_fraction(count, millionths):
    value = Fraction(millionths, 10**6)
    found = cell(torch.tensor([float(value)], dtype=torch.float64), count).item()
    assert found + 1 == reference.bucket_of(value, count)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_values_are_binned_as_the_numbers_they_are(dtype):
    value = torch.tensor([0.0, 0.25, 0.26, 0.5, 1.0], dtype=dtype)
    assert cell(value, 4).tolist() == [0, 0, 1, 1, 3]
