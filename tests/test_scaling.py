import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from scipy.special import logsumexp
from test_calibration import real_predictions
from torch import nn
from torch.nn.functional import cross_entropy

from auglabel import metrics
from auglabel.scaling import TemperatureScaling, VectorScaling


def simulated(n, classes, temperature=1.0, seed=0, spread=1.5):
    """Logits whose softmax at `temperature` is the truth that the labels are drawn from."""
    generator = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(n, classes, generator=generator, dtype=torch.float64)
    labels = torch.multinomial(logits.softmax(dim=1), 1, generator=generator).squeeze(1)
    labels[:classes] = torch.arange(classes)
    return temperature * logits, labels


def real_logits(name):
    probs, labels = real_predictions(name)
    return probs.clamp(min=torch.finfo(torch.float32).tiny).log(), labels


def temperature_of(logits, labels):
    return TemperatureScaling().double().fit(logits, labels).temperature.item()


def numpy_nll(logits, labels):
    return np.mean(logsumexp(logits, axis=1) - logits[np.arange(len(labels)), labels])


both = pytest.mark.parametrize("make", [TemperatureScaling, lambda: VectorScaling(3)], ids=["one", "vector"])


# Temperature.


@pytest.mark.parametrize(
    ("name", "temperature", "ece"),
    [("lenet-5-cifar-100", 1.11816, 0.009784), ("wideresnet-16-4-cifar-10", 2.05255, 0.006152)],
)
def test_real_predictions_to_the_digits_printed(name, temperature, ece):
    logits, labels = real_logits(name)
    fitted = TemperatureScaling().fit(logits, labels)
    assert fitted.temperature.item() == pytest.approx(temperature, abs=5e-6)
    assert metrics.ece(fitted(logits).softmax(dim=1), labels) == pytest.approx(ece, abs=5e-7)


def test_temperature_of_two_rows_by_hand():
    """Right by 2 and wrong by 1: the slope -2/(1 + e^2b) + e^b/(1 + e^b) of the NLL is 0 at its best b."""
    best = 1 / temperature_of(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0]))
    assert 2 / (1 + math.exp(2 * best)) == pytest.approx(1 / (1 + math.exp(-best)), rel=1e-11)


@pytest.mark.parametrize("classes", [2, 10, 1000])
def test_one_row_in_four_wrong_by_the_same_margin_asks_for_three_quarters(classes):
    """With many classes the NLL bends little before it bends a lot: Newton alone would run away."""
    logits = 6 * nn.functional.one_hot(torch.zeros(4, dtype=torch.int64), classes).double()
    best = 6 / math.log(0.75 * (classes - 1) / 0.25)
    assert temperature_of(logits, torch.tensor([0, 0, 0, 1])) == pytest.approx(best, rel=1e-11)


@pytest.mark.parametrize(("right", "wrong"), [(501, 500), (5001, 5000)])
def test_a_trace_of_signal_has_a_high_temperature(right, wrong):
    logits = torch.tensor([[1.0, 0.0]]).repeat(right + wrong, 1)
    labels = (torch.arange(right + wrong) >= right).long()
    assert temperature_of(logits, labels) == pytest.approx(1 / math.log(right / wrong), rel=1e-8)


def test_newton_takes_few_steps(monkeypatch):
    monkeypatch.setattr("auglabel.scaling.STEPS", 10)
    for temperature in (0.2, 1, 5):
        temperature_of(*simulated(1000, 10, temperature))
    temperature_of(torch.eye(1, 21_000).repeat(4, 1), torch.tensor([0, 0, 0, 1]))


@given(st.floats(0.2, 5), st.integers(0, 10**6))
def test_a_known_temperature_is_found_again_within_its_sampling_error(temperature, seed):
    logits, labels = simulated(1000, 5, temperature, seed)
    truth = logits / temperature
    probs = truth.softmax(dim=1)
    variance = (probs * truth.square()).sum(dim=1) - (probs * truth).sum(dim=1).square()
    sampling_error = 1 / math.sqrt(variance.sum().item())  # of temperature / fitted, which is 1 in truth
    assert abs(temperature / temperature_of(logits, labels) - 1) < 5 * sampling_error


@given(st.integers(10, 300), st.integers(2, 8), st.floats(0.05, 50), st.floats(0.2, 4), st.integers(0, 10**6))
def test_nll_is_flat_at_the_fitted_temperature_and_not_above_what_it_was(n, classes, scale, spread, seed):
    logits, labels = simulated(n, classes, scale, seed, spread)
    wrong = logits.argmax(dim=1) != labels
    lead = logits - logits.gather(1, labels[:, None])
    assume(wrong.any() and lead.mean() < -1e-3 * lead.abs().mean())
    scaling = TemperatureScaling().double().fit(logits, labels)
    inverse = (1 / scaling.temperature).requires_grad_()
    nll = cross_entropy(logits * inverse, labels)
    (slope,) = torch.autograd.grad(nll, inverse)
    assert abs(slope.item()) < 1e-10 * lead.abs().mean().item()
    for factor in (0.999, 1.001):
        assert nll.item() <= cross_entropy(scaling(logits) * factor, labels).item() + 1e-14
    assert nll.item() <= cross_entropy(logits, labels).item() + 1e-14
    assert torch.equal(scaling(logits).argmax(dim=1), logits.argmax(dim=1))


def test_temperature_agrees_with_a_fine_grid():
    logits, labels = simulated(500, 4, temperature=2.5)
    grid = np.linspace(1.5, 4, 2501)
    nll = [numpy_nll(logits.numpy() / temperature, labels.numpy()) for temperature in grid]
    assert temperature_of(logits, labels) == pytest.approx(grid[np.argmin(nll)], abs=6e-4)


@given(st.floats(-12, 12).map(lambda power: 10**power), st.floats(-100, 100))
def test_temperature_follows_the_scale_of_the_logits_and_ignores_shifts(factor, shift):
    logits, labels = simulated(100, 4)
    expected = factor * temperature_of(logits, labels)
    assert temperature_of(logits * factor, labels) == pytest.approx(expected, rel=1e-9)
    assert temperature_of(logits + shift, labels) == pytest.approx(expected / factor, rel=1e-9)


def test_a_wild_row_does_not_keep_newton_from_converging():
    logits, labels = simulated(200, 4)
    logits[0, labels[0]] = 1e9  # right, and flat once it is
    logits[1] = 1e-9 * logits[1]
    found = temperature_of(logits, labels)
    assert found == pytest.approx(temperature_of(logits[1:], labels[1:]), rel=1e-9)


def test_a_single_narrow_mistake_among_many_right_rows_has_a_temperature():
    logits = torch.tensor([[1.0, 0.0]], dtype=torch.float64).repeat(1000, 1)
    logits[0] = torch.tensor([0.0, 1e-9])
    best = 1 / temperature_of(logits, torch.zeros(1000, dtype=torch.int64))
    assert 999 / (1 + math.exp(best)) == pytest.approx(1e-9 / 2, rel=1e-6)


# Vector.


def test_vector_scaling_agrees_with_another_optimiser():
    logits, labels = simulated(600, 4)
    logits = logits * torch.tensor([0.3, 1.0, 2.0, 5.0]) + torch.tensor([1.0, 0.0, -2.0, 3.0])
    table, truth = logits.numpy(), labels.numpy()

    def nll(values):
        return numpy_nll(table * values[:4] + values[4:], truth)

    theirs = minimize(nll, np.repeat([1.0, 0.0], 4), method="BFGS", options={"gtol": 1e-7})
    ours = VectorScaling(4).double().fit(logits, labels)
    np.testing.assert_allclose(ours.weight.numpy(), theirs.x[:4], rtol=1e-4)
    np.testing.assert_allclose(ours.bias.numpy(), theirs.x[4:] - theirs.x[4:].mean(), rtol=0, atol=1e-4)
    assert nll(torch.cat([ours.weight, ours.bias]).numpy()) <= theirs.fun + 1e-12


@settings(max_examples=settings.default.max_examples // 4)  # slow
@given(st.integers(80, 300), st.integers(2, 6), st.floats(0.01, 100), st.integers(0, 10**6))
def test_vector_scaling_is_flat_at_its_fit_and_not_worse_than_a_temperature(n, classes, scale, seed):
    logits, labels = simulated(n, classes, scale, seed)
    vector = VectorScaling(classes).double().fit(logits, labels)
    weight, bias = vector.weight.clone().requires_grad_(), vector.bias.clone().requires_grad_()
    nll = cross_entropy(logits * weight + bias, labels)
    slopes = torch.autograd.grad(nll, (weight, bias))
    assert slopes[0].abs().max() < 1e-5 * scale
    assert slopes[1].abs().max() < 1e-5
    assert vector.bias.sum().item() == pytest.approx(0, abs=1e-9)
    tempered = TemperatureScaling().double().fit(logits, labels)
    assert nll.item() <= cross_entropy(tempered(logits), labels).item() + 1e-10
    assert nll.item() <= cross_entropy(logits, labels).item() + 1e-10


@pytest.mark.parametrize(
    ("factor", "shift"),
    [(torch.full((6,), 1e6), 0.0), (torch.full((6,), 1e-6), 1e-5), (torch.logspace(-2, 2, 6), 100.0)],
)
@pytest.mark.parametrize("classes", [3, 6])
def test_vector_scaling_undoes_any_scale_and_shift_of_each_class(factor, shift, classes):
    logits, labels = simulated(200, classes, seed=3, spread=2.5)
    plain = VectorScaling(classes).double().fit(logits, labels)
    other = logits * factor[:classes] + shift * torch.arange(classes)
    moved = VectorScaling(classes).double().fit(other, labels)
    torch.testing.assert_close(moved.weight * factor[:classes], plain.weight, rtol=1e-5, atol=0)
    nll = cross_entropy(plain(logits), labels).item()
    assert cross_entropy(moved(other), labels).item() == pytest.approx(nll, abs=1e-11)


def test_vector_scaling_lowers_the_nll_of_real_predictions_below_that_of_a_temperature():
    logits, labels = real_logits("wideresnet-16-4-cifar-10")
    vector = VectorScaling(10).fit(logits, labels)
    nll = cross_entropy(vector(logits.double()), labels).item()
    assert nll == pytest.approx(0.2382966161, abs=1e-9)  # the same digits from scipy's BFGS
    tempered = TemperatureScaling().fit(logits, labels)
    assert nll < cross_entropy(tempered(logits.double()), labels).item() - 0.01


def test_equal_logits_leave_the_shares_of_the_classes():
    labels = torch.tensor([0, 0, 0, 1, 1, 2])
    logits = torch.full((6, 3), 0.1)
    probs = VectorScaling(3).fit(logits, labels)(logits).softmax(dim=1)
    torch.testing.assert_close(probs[0], torch.tensor([3, 2, 1]) / 6)


def test_a_class_whose_logit_is_constant_keeps_its_weight():
    logits, labels = simulated(300, 3)
    logits[:, 1] = 0.1
    assert VectorScaling(3).fit(logits, labels).weight[1].item() == pytest.approx(1)


def test_vector_scaling_turns_logits_round_where_a_temperature_cannot():
    logits, labels = simulated(400, 3)
    turned = VectorScaling(3).double().fit(-logits, labels)
    torch.testing.assert_close(
        turned.weight, -VectorScaling(3).double().fit(logits, labels).weight, rtol=1e-4, atol=0
    )
    assert (turned.weight < 0).all()


def separable(logits, labels):
    """Whether some direction of weights and biases never costs and somewhere gains, by linear programming."""
    table, truth = logits.numpy(), labels.numpy()
    n, classes = table.shape
    rows = np.zeros((n, classes, 2, classes))
    for row in range(n):
        for other in range(classes):
            rows[row, other, :, truth[row]] += (table[row, truth[row]], 1)
            rows[row, other, :, other] -= (table[row, other], 1)
    margins = rows.reshape(n * classes, 2 * classes)
    best = linprog(-margins.sum(axis=0), A_ub=-margins, b_ub=np.zeros(len(margins)), bounds=(-1, 1))
    return -best.fun > 1e-7


@pytest.mark.parametrize("seed", range(30))
def test_vector_scaling_fails_just_where_linear_programming_separates_the_classes(seed):
    logits, _ = simulated(18, 3, seed=seed)
    noise, _ = simulated(18, 3, seed=100 + seed, spread=0.7)
    labels = (logits * torch.tensor([1.0, 2.0, -1.0]) + noise).argmax(dim=1)
    assert labels.unique().tolist() == [0, 1, 2]
    if separable(logits, labels):
        refused(VectorScaling(3), r"told from the rest without a mistake", logits, labels)
    else:
        VectorScaling(3).fit(logits, labels)


# No best value.


def refused(scaling, message, logits, labels, error=ValueError):
    """The fit fails with `message`, and the module is as a good fit before it left it."""
    good = simulated(50, 3)
    before = {name: value.clone() for name, value in scaling.fit(*good).state_dict().items()}
    with pytest.raises(error, match=message):
        scaling.fit(logits, labels)
    torch.testing.assert_close(scaling.state_dict(), before, rtol=0, atol=0)


@both
def test_predictions_that_are_all_right_are_refused(make):
    logits, _ = simulated(30, 3)
    message = r"highest logit in all 30 rows, so NLL falls for ever.*not trained on.*hold a mistake"
    refused(make(), message, logits, logits.argmax(dim=1))
    tied = torch.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0]])  # right as far as ties allow
    refused(make(), r"highest logit in all 3 rows", tied, torch.tensor([0, 1, 2]))


def test_predictions_worse_than_chance_have_no_temperature():
    logits, labels = simulated(300, 3)
    message = r"true class is on average no higher.*no temperature beats a uniform guess.*labels belong"
    refused(TemperatureScaling(), message, -logits, labels)


@pytest.mark.parametrize("value", [0.0, 0.1, -7.3])
def test_logits_that_say_nothing_have_no_temperature(value):
    refused(
        TemperatureScaling(),
        r"no temperature beats",
        torch.full((5, 3), value),
        torch.tensor([0, 1, 2, 0, 1]),
    )


def test_exact_chance_has_no_temperature():
    logits = torch.tensor([[0.3, 0.1, 0.2]]).repeat(3, 1)
    refused(TemperatureScaling(), r"no temperature beats", logits, torch.tensor([0, 1, 2]))


def test_a_class_told_apart_perfectly_is_refused_by_vector_scaling_alone():
    logits, labels = simulated(200, 3)
    logits[:, 2] = torch.where(labels == 2, logits[:, 2].abs() + 9, -logits[:, 2].abs())
    refused(VectorScaling(3), r"told from the rest without a mistake.*TemperatureScaling", logits, labels)
    TemperatureScaling().fit(logits, labels)


def test_certain_predictions_of_a_class_are_no_sign_of_convergence():
    """Every gradient of class 2 underflows to 0, though NLL still falls."""
    logits, labels = simulated(200, 3)
    logits[:, 2] = torch.where(labels == 2, 1e4, -1e4)
    refused(VectorScaling(3), r"found no lowest NLL in 20 rounds", logits, labels)


def test_a_class_without_rows_is_refused_by_vector_scaling():
    logits, labels = simulated(50, 3)
    kept = labels != 1
    message = r"every class, but 1 of 3 have none, the first being class 1: its bias would fall for ever"
    refused(VectorScaling(3), message, logits[kept], labels[kept])


def test_logits_too_far_apart_for_float64_are_refused():
    logits = torch.tensor([[1e300, 0.0], [0.0, 1e-30]], dtype=torch.float64)
    refused(TemperatureScaling(), r"in 200 steps.*orders of magnitude", logits, torch.tensor([0, 0]))


def test_values_that_the_dtype_of_the_module_cannot_hold_are_refused():
    logits, labels = simulated(50, 3)
    refused(
        TemperatureScaling().half(),
        r"best temperature is .*e\+06, which float16 cannot",
        logits * 1e6,
        labels,
    )
    refused(
        TemperatureScaling(), r"best temperature is .*e-60, which float32 cannot hold", logits * 1e-60, labels
    )
    refused(VectorScaling(3).half(), r"weight or bias is .*e\+06, which float16 cannot", logits / 1e6, labels)


# Bad input.


@both
def test_input_that_does_not_fit_is_refused(make):
    logits, labels = simulated(5, 3)

    def check(message, logits=logits, labels=labels, error=ValueError):
        refused(make(), message, logits, labels, error)

    for value in (math.nan, math.inf):
        check(
            r"logits must be numbers, but 1 of 5 rows hold nan or inf",
            logits.clone().index_fill_(0, labels[:1], value),
        )
    minus = logits.clone()
    minus[2:4, 1] = -math.inf
    check(r"takes finite logits, but 2 of 5 rows hold -infinity.*clip", minus)
    check(r"at least one row of logits, got none", logits[:0], labels[:0])
    check(r"Scaling.fit takes parts of equal length.*logits 5, labels 4", labels=labels[:4])
    check(r"labels must be in 0..2 for 3 classes, got 3", labels=labels + (labels == 2))
    check(r"labels must be in 0..2 for 3 classes, got -1", labels=labels - 1)
    check(
        r"labels must be whole numbers of shape \(N,\), got a float64",
        labels=labels.double(),
        error=TypeError,
    )
    check(r"labels must be whole numbers of shape \(N,\), got list", labels=labels.tolist(), error=TypeError)
    check(r"Scaling.fit's logits must be a tensor, got list", logits.tolist(), error=TypeError)
    check(
        r"Scaling.fit's logits must be a tensor, got a numpy array of <U",
        logits.numpy().astype(str),
        error=TypeError,
    )
    check(r"shape \(B, K\) with K >= 2, got a float64 tensor of shape \(5, 1\)", logits[:, :1], labels * 0)
    check(r"shape \(B, K\) with K >= 2, got a float64 tensor of shape \(5,\)", logits[:, 0])
    check(r"floating point of shape \(B, K\)", logits.long())


def test_vector_scaling_takes_logits_of_its_own_classes():
    refused(
        VectorScaling(3),
        r"VectorScaling\(3\) takes logits of 3 classes, got a float64 .*\(9, 4\)",
        *simulated(9, 4),
    )
    for logits in (torch.zeros(5, 1), torch.zeros(5, 4), torch.tensor(1.0)):
        with pytest.raises(
            ValueError, match=r"takes logits of 3 classes.*number of classes that the model has"
        ):
            VectorScaling(3)(logits)
    with pytest.raises(TypeError, match=r"logits must be a tensor"):
        VectorScaling(3)([[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match=r"num_classes must be at least 2, got 1"):
        VectorScaling(1)


# As modules.


@both
def test_a_new_module_changes_nothing(make):
    logits, _ = simulated(20, 3)
    assert torch.equal(make()(logits), logits)


@both
def test_state_dict_round_trip(make):
    fitted = make().fit(*simulated(100, 3, temperature=2))
    other = make()
    other.load_state_dict(fitted.state_dict())
    logits, _ = simulated(20, 3, seed=1)
    assert torch.equal(other(logits), fitted(logits))
    assert not torch.equal(other(logits), logits)
    assert not list(fitted.parameters())


@both
@pytest.mark.parametrize("kind", [np.int32, np.uint8])
def test_numpy_arrays_and_labels_of_any_integer_type_are_fitted_to(make, kind):
    logits, labels = simulated(100, 3, temperature=2)
    plain, same = make().fit(logits, labels), make().fit(logits.numpy(), labels.numpy().astype(kind))
    assert torch.equal(plain(logits), same(logits))


@both
def test_fit_returns_the_module_and_does_not_depend_on_an_earlier_fit(make):
    data = simulated(100, 3, temperature=2)
    scaling = make()
    assert scaling.fit(*simulated(100, 3, temperature=0.1, seed=1)) is scaling
    torch.testing.assert_close(
        scaling.fit(*data).state_dict(), make().fit(*data).state_dict(), rtol=0, atol=0
    )


@both
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_fit_runs_in_every_gradient_mode(make, mode):
    data = simulated(100, 3, temperature=2)
    scaling = make()
    with mode():
        scaling.fit(*data)
        logits, labels = simulated(100, 3, temperature=2)  # inference tensors, in that mode
        inside = make().fit(logits, labels)
    torch.testing.assert_close(scaling.state_dict(), make().fit(*data).state_dict(), rtol=0, atol=0)
    torch.testing.assert_close(inside.state_dict(), scaling.state_dict(), rtol=0, atol=0)


@both
def test_fitting_leaves_the_logits_and_their_graph_alone(make):
    logits, labels = simulated(100, 3, temperature=2)
    leaf = logits.clone().requires_grad_()
    scaling = make().fit(leaf * 1, labels)
    assert torch.equal(leaf, logits)
    assert leaf.grad is None
    assert not any(value.requires_grad for value in scaling.buffers())
    scaling(leaf).sum().backward()  # but what is scaled may be differentiated
    expected = scaling(torch.ones(100, 3)) - scaling(torch.zeros(100, 3))
    torch.testing.assert_close(leaf.grad.float(), expected)


@both
def test_a_model_and_its_scaling_are_one_model(make):
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    inputs, labels = torch.randn(60, 4), torch.arange(3).repeat(20)
    logits = model(inputs)
    labels = torch.where(torch.arange(60) % 2 == 0, labels, logits.argmax(dim=1))
    scaling = make().fit(logits, labels)
    calibrated = nn.Sequential(model, scaling)
    assert torch.equal(calibrated(inputs), scaling(logits))
    assert {name for name in calibrated.state_dict() if name[0] == "1"} == {
        f"1.{name}" for name in scaling.state_dict()
    }
    assert calibrated.double()(inputs.double()).dtype == torch.float64


@both
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_logits_of_lower_precision_are_taken(make, dtype):
    logits, labels = simulated(200, 3, temperature=2)
    close = make().fit(logits.to(dtype), labels)
    torch.testing.assert_close(
        close.state_dict(), make().fit(logits, labels).state_dict(), rtol=0.01, atol=0.01
    )
    assert torch.isfinite(close(logits.to(dtype))).all()
