import pytest
import torch

from auglabel import View


def parts(n=2):
    ids = torch.zeros(n, dtype=torch.int64)
    return {"images": torch.zeros(n, 1, 2, 2), "labels": ids, "bucket": ids, "strength": torch.ones(n)}


def test_a_view_has_a_length_and_moves_between_devices():
    moved = View(**parts()).to("meta")
    assert len(moved) == 2
    assert moved.images.device.type == "meta"
    assert moved.partner is None


def test_mismatched_lengths_are_named():
    with pytest.raises(ValueError, match=r"equal length.*images 2.*labels 3"):
        View(**{**parts(), "labels": torch.zeros(3, dtype=torch.int64)})


def test_a_partner_without_a_share_is_refused():
    with pytest.raises(ValueError, match="partner and share together"):
        View(**parts(), partner=torch.zeros(2, dtype=torch.int64))


@pytest.mark.parametrize(
    ("part", "value", "error", "message"),
    [
        (
            "strength",
            torch.zeros(2, dtype=torch.int64),
            TypeError,
            "strength must be a floating point tensor",
        ),
        (
            "strength",
            torch.zeros(2, 1),
            TypeError,
            r"strength must be a floating point tensor of shape \(B,\)",
        ),
        ("strength", torch.tensor([0.5, 1.5]), ValueError, r"strength must be in \[0, 1\], got 1.5"),
        ("share", torch.tensor([0.5, 0.8]), ValueError, r"share must be in \[0, 0.5\], got 0.800000012"),
    ],
)
def test_strengths_and_shares_that_mean_nothing_are_refused(part, value, error, message):
    given = parts() | {"partner": torch.zeros(2, dtype=torch.int64), "share": torch.zeros(2)} | {part: value}
    with pytest.raises(error, match=message):
        View(**given)


def test_labels_that_are_not_whole_numbers_are_refused():
    with pytest.raises(TypeError, match=r"labels must be an int64 tensor of shape \(B,\), got a float32"):
        View(**{**parts(), "labels": torch.zeros(2)})
    with pytest.raises(TypeError, match="must be a tensor, got list"):
        View(**{**parts(), "bucket": [0, 0]})
