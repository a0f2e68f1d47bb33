import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from auglabel.scaling import IsotonicScaling
from auglabel.util.isotonic import interpolated, rising


def at(places, values, points):
    return interpolated(places[None], values[None], torch.tensor(points).double()[None])[0]


def test_violators_are_pooled_by_hand():
    """1 and 0 pool to 0.5; 1, 0.6 and 0.2 to 0.6."""
    places, values = rising(torch.tensor([1.0, 2, 3]), torch.tensor([1.0, 0, 1]))
    assert places.tolist() == [1, 2, 3, 3]
    assert values.tolist() == [0.5, 0.5, 1, 1]
    places, values = rising(torch.arange(5.0), torch.tensor([1.0, 0, 1, 0.6, 0.2]))
    assert places.tolist() == [0, 1, 2, 4]
    assert values.tolist() == pytest.approx([0.5, 0.5, 0.6, 0.6])


def test_between_knots_the_fit_is_straight_and_beyond_them_constant():
    places, values = rising(torch.tensor([0.2, 0.6]), torch.tensor([0.0, 1.0]))
    assert at(places, values, [0.0, 0.2, 0.3, 0.6, 0.9]).tolist() == pytest.approx([0, 0, 0.25, 1, 1])


@given(st.integers(1, 80), st.integers(1, 40), st.integers(0, 10**6))
def test_the_fit_is_scikit_learns_with_ties_and_weights(count, levels, seed):
    random = np.random.default_rng(seed)
    place = random.integers(0, levels, count) / levels
    value = (random.random(count) < 0.2 + 0.6 * place).astype(float)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(place, value)
    points = np.linspace(-0.1, 1.1, 97)
    found = at(*rising(torch.tensor(place), torch.tensor(value)), points)
    np.testing.assert_allclose(found.numpy(), theirs.predict(points), atol=1e-12)


def some(count=400, classes=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(count, classes, generator=generator)
    return logits, torch.multinomial((logits / 2).softmax(1), 1, generator=generator).squeeze(1)


def test_isotonic_scaling_of_two_classes_by_hand():
    """Of class 1's probabilities 0.2, 0.4, 0.6, 0.8 the middle two are in the wrong order: 0, 1/2, 1/2, 1."""
    probs = torch.tensor([[0.8, 0.2], [0.6, 0.4], [0.4, 0.6], [0.2, 0.8]]).double()
    scaling = IsotonicScaling(2).fit(probs.log(), torch.tensor([0, 1, 0, 1]))
    found = scaling(probs.log()).exp()
    torch.testing.assert_close(found[:, 1], torch.tensor([0, 0.5, 0.5, 1]).double())
    torch.testing.assert_close(found.sum(dim=1), torch.ones(4).double())


def test_isotonic_scaling_gives_the_uniform_guess_where_every_class_got_nothing():
    scaling = IsotonicScaling(2)
    scaling.values.zero_()
    assert scaling(torch.zeros(1, 2)).exp().tolist() == [[0.5, 0.5]]


def test_a_new_isotonic_scaling_changes_nothing():
    logits, _ = some()
    torch.testing.assert_close(IsotonicScaling(4)(logits).softmax(1), logits.softmax(1))


def test_isotonic_scaling_is_saved_and_loaded_with_its_knots():
    logits, labels = some()
    fitted = IsotonicScaling(4).fit(logits, labels)
    again = torch.nn.Sequential(IsotonicScaling(4))
    again.load_state_dict({f"0.{name}": value for name, value in fitted.state_dict().items()})
    torch.testing.assert_close(again(logits), fitted(logits))


def test_isotonic_scaling_takes_numpy_and_refuses_other_classes():
    logits, labels = some()
    fitted = IsotonicScaling(4).fit(logits.numpy(), labels.numpy().astype(np.int32))
    torch.testing.assert_close(fitted(logits), IsotonicScaling(4).fit(logits, labels)(logits))
    with pytest.raises(ValueError, match=r"IsotonicScaling\(3\) takes logits of 3 classes, got a float32"):
        IsotonicScaling(3)(logits)
    with pytest.raises(ValueError, match=r"IsotonicScaling\.fit needs at least one row"):
        IsotonicScaling(3).fit(np.empty((0, 3)), np.empty(0, int))
