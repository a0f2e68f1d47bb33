import math
import subprocess
import sys

import pytest
import reference
import torch
from conftest import REFERENCE, random_probs
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from auglabel import AugmentAndLabel, AugMix, Calibration, View, calibrate, measure
from auglabel.data.embedded import load_embedded


def filled(probs, labels, group=None, groups=1, bins=15):
    seen = Calibration(groups, bins)
    seen.update(torch.as_tensor(probs), torch.as_tensor(labels), group)
    return seen


def two_class(p_of_one):
    return torch.tensor([[1 - p, p] for p in p_of_one], dtype=torch.float64)


# Small published cases, worked by other libraries' tests.


def test_three_bins_of_three_classes():
    seen = filled(
        [[0.25, 0.20, 0.55], [0.55, 0.05, 0.40], [0.10, 0.30, 0.60], [0.90, 0.05, 0.05]], [0, 1, 2, 0], bins=3
    )
    curve = seen.reliability
    assert seen.ece.item() == pytest.approx(0.2000, abs=5e-5)
    assert seen.max_ce.item() == pytest.approx(0.2333, abs=5e-5)
    square = (curve.count * (curve.confidence - curve.accuracy) ** 2).nansum() / curve.count.sum()
    assert square.sqrt().item() == pytest.approx(0.2082, abs=5e-5)


def test_eight_binary_predictions_in_ten_bins():
    seen = filled(
        two_class([0.51, 0.45, 0.39, 0.66, 0.68, 0.29, 0.81, 0.85]), [0, 0, 0, 1, 0, 1, 1, 1], bins=10
    )
    assert seen.reliability.count[0, 5:9].tolist() == [2, 3, 1, 2]
    assert seen.sums[2, 0, 5:9].tolist() == [1, 2, 0, 2]
    assert seen.ece.item() == pytest.approx(0.145, abs=1e-9)


def test_averaged_members_and_a_confident_mistake():
    assert filled(two_class([0.55]), [1]).ece.item() == pytest.approx(0.45)
    assert filled(two_class([0.8, 0.7]), [1, 0]).ece.item() == pytest.approx(0.45)


def test_equal_width_bins_of_four():
    assert filled(two_class([0.6, 0.7, 0.8, 0.9]), [0, 0, 1, 1], bins=2).ece.item() == pytest.approx(0.25)


def test_certainty_falls_in_the_last_bin_and_edges_in_the_bin_below():
    seen = filled(two_class([1.0, 0.6, 0.61]), [1, 1, 1], bins=5)
    assert seen.reliability.count[0].tolist() == [0, 0, 1, 1, 1]


# Against the slow reference.

rows = st.lists(st.floats(0.01, 1), min_size=3, max_size=3).map(
    lambda row: [value / sum(row) for value in row]
)
predictions = st.lists(st.tuples(rows, st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=40)


@given(predictions, st.integers(1, 20), st.integers(1, 7), st.randoms(use_true_random=False))
def test_readings_equal_the_reference_in_any_order_and_batch_size(examples, bins, size, random):
    seen = Calibration(4, bins)
    shuffled = random.sample(examples, len(examples))
    for start in range(0, len(shuffled), size):
        probs, labels, group = zip(*shuffled[start : start + size], strict=True)
        seen.update(torch.tensor(probs, dtype=torch.float64), torch.tensor(labels), torch.tensor(group))
    for group in range(4):
        own = [(probs, label) for probs, label, place in examples if place == group]
        assert seen.count[group].item() == len(own)
        if not own:
            assert all(math.isnan(value[group]) for value in (seen.ece, seen.accuracy, seen.nll, seen.max_ce))
            assert math.isnan(seen.debiased_ece[group])
            continue
        confidence = [max(probs) for probs, _ in own]
        correct = [probs[label] == max(probs) and probs.index(max(probs)) == label for probs, label in own]
        assert seen.accuracy[group].item() == pytest.approx(sum(correct) / len(own))
        assert seen.confidence[group].item() == pytest.approx(sum(confidence) / len(own))
        assert seen.nll[group].item() == pytest.approx(reference.nll(*map(list, zip(*own, strict=True))))
        assert seen.brier[group].item() == pytest.approx(reference.brier(*map(list, zip(*own, strict=True))))
        if all(abs(c * bins - round(c * bins)) > 1e-5 for c in confidence):
            assert seen.ece[group].item() == pytest.approx(reference.ece(confidence, correct, bins), abs=1e-9)


def test_ece_agrees_with_torchmetrics():
    from torchmetrics.functional.classification import multiclass_calibration_error

    probs, labels = random_probs(3000, 7)
    for norm, ours in (("l1", "ece"), ("max", "max_ce")):
        theirs = multiclass_calibration_error(probs, labels, num_classes=7, n_bins=15, norm=norm)
        assert getattr(filled(probs, labels), ours).item() == pytest.approx(theirs.item(), abs=1e-6)


def test_pooled_ece_is_at_most_the_mean_of_the_parts():
    probs, labels = random_probs(4000, 5)
    apart = filled(probs, labels, torch.arange(4000) % 8, groups=8)
    assert filled(probs, labels).ece.item() <= apart.ece.mean().item()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "lenet-5-cifar-100",
            {"accuracy": 0.1246, "confidence": 0.136824, "nll": 3.813066, "brier": 0.952010, "ece": 0.014878},
        ),
        (
            "wideresnet-16-4-cifar-10",
            {"accuracy": 0.9109, "confidence": 0.964616, "nll": 0.378170, "brier": 0.143871, "ece": 0.053716},
        ),
    ],
)
def test_real_predictions_to_the_digits_printed(name, expected):
    probs, labels = real_predictions(name)
    seen = filled(probs, labels)
    for reading, value in expected.items():
        assert getattr(seen, reading).item() == pytest.approx(value, abs=5e-7), reading
    tenth = {"lenet-5-cifar-100": 0.014681, "wideresnet-16-4-cifar-10": 0.053716}[name]
    assert filled(probs, labels, bins=10).ece.item() == pytest.approx(tenth, abs=5e-7)


def real_predictions(name):
    file = REFERENCE / f"{name}.npz"
    if not file.exists():
        pytest.skip(f"{file.name} is not at hand")
    import numpy as np

    with np.load(file, allow_pickle=False) as found:
        return torch.from_numpy(found["predictions"]), torch.from_numpy(
            found["ground_truth"]
        ).long().flatten()


# Logits.


def test_logits_and_their_softmax_read_the_same():
    torch.manual_seed(0)
    logits, labels = 4 * torch.randn(500, 6), torch.randint(6, (500,))
    seen = Calibration()
    seen.update_logits(logits, labels)
    torch.testing.assert_close(seen.sums, filled(logits.softmax(dim=1), labels).sums, rtol=1e-5, atol=1e-4)


def test_nll_of_huge_logits_stays_finite():
    seen = Calibration()
    seen.update_logits(torch.tensor([[1e4, 0.0], [0.0, 1e4]]), torch.tensor([1, 1]))
    assert seen.nll.item() == 5000
    assert filled([[1.0, 0.0]], [1]).nll.item() == math.inf


def test_predictions_with_a_graph_leave_none_behind():
    logits = torch.randn(4, 3, requires_grad=True)
    labels = torch.tensor([0, 1, 2, 0])
    seen = Calibration()
    seen.update(logits.softmax(dim=1), labels)
    seen.update_logits(logits, labels)
    assert not seen.sums.requires_grad
    assert (seen + seen).summed_over_ranks().count.item() == 16
    assert sum([seen, seen]).count.item() == 16


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_probabilities_are_taken(dtype):
    probs, labels = random_probs(200, 10)
    assert filled(probs.to(dtype), labels).ece.item() == pytest.approx(
        filled(probs, labels).ece.item(), abs=0.02
    )


# The noise of few examples.


def simulated(n, over_confidence, repeats=400):
    """`repeats` groups of n two-class predictions whose true ECE is `over_confidence`."""
    generator = torch.Generator().manual_seed(n)
    confidence = 0.6 + 0.4 * torch.rand(repeats * n, generator=generator, dtype=torch.float64)
    correct = torch.rand(repeats * n, generator=generator, dtype=torch.float64) < confidence - over_confidence
    group = torch.arange(repeats).repeat_interleave(n)
    probs = torch.stack([confidence, 1 - confidence], dim=1)
    return filled(probs, (~correct).long(), group, groups=repeats)


@pytest.mark.parametrize("n", [80, 500, 5000])
def test_debiasing_takes_off_most_of_what_noise_adds_for_a_perfect_model(n):
    seen = simulated(n, over_confidence=0.0)
    assert seen.ece.mean() > 0.008
    assert seen.debiased_ece.mean().abs() < 0.4 * seen.ece.mean()


def test_debiasing_leaves_a_large_error_on_many_examples_as_it_is():
    seen = simulated(5000, over_confidence=0.1)
    assert seen.debiased_ece.mean().item() == pytest.approx(0.1, abs=0.002)
    assert seen.ece.mean().item() == pytest.approx(0.1, abs=0.002)


@pytest.mark.parametrize(
    ("error", "low", "high"), [(0.0, 0.005, 0.02), (0.02, -0.01, 0.005), (0.05, -0.025, -0.01)]
)
def test_the_bias_of_debiased_ece_is_what_the_design_page_says(error, low, high):
    """500 examples, confidence spread over 0.1 to 1, accuracy lower by the error in every bin."""
    generator = torch.Generator().manual_seed(0)
    seen = Calibration(groups=300)
    shape = torch.tensor([2.5, 1.5], dtype=torch.float64)[:, None].expand(2, 300 * 500)
    one, other = torch._standard_gamma(shape, generator=generator)
    sure = 0.1 + 0.9 * one / (one + other)
    right = torch.rand(300 * 500, generator=generator, dtype=torch.float64) < sure - error
    probs = torch.stack([sure, *[(1 - sure) / 99] * 99], dim=1)
    seen.update(probs, torch.where(right, 0, 1), torch.arange(300).repeat_interleave(500))
    assert low < seen.debiased_ece.mean().item() - error < high


def test_debiased_ece_of_one_bin_is_the_folded_normal_formula():
    seen = filled(two_class([0.9] * 10), [1] * 7 + [0] * 3, bins=1)
    p = (7 + 0.9) / 11
    variance = p * (1 - p) / 10
    true_gap = math.sqrt(max(0.0, 0.2**2 - variance))
    folded = math.sqrt(2 * variance / math.pi) * math.exp(-(true_gap**2) / (2 * variance))
    folded += true_gap * math.erf(true_gap / math.sqrt(2 * variance))
    assert seen.debiased_ece.item() == pytest.approx(0.2 - (folded - true_gap))


# Streaming.


def test_calibrations_of_batches_add_up():
    probs, labels = random_probs(100, 4)
    both = filled(probs[:30], labels[:30]) + filled(probs[30:], labels[30:])
    torch.testing.assert_close(both.sums, filled(probs, labels).sums)
    with pytest.raises(ValueError, match=r"one has 1 groups x 15 bins and the other 2 x 15"):
        Calibration(1) + Calibration(2)


STREAM = """
import resource, torch
from auglabel import Calibration
seen = Calibration(groups=82)
probs = torch.rand(50_000, 10).softmax(dim=1)
labels, group = torch.randint(10, (50_000,)), torch.randint(82, (50_000,))
for step in range(200):
    seen.update(probs, labels, group)
    if step == 4:
        early = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(int(seen.count.sum()), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - early)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads peak memory in KiB, as Linux reports it")
def test_ten_million_predictions_take_no_more_memory_than_the_first_few_batches():
    printed = subprocess.run(
        [sys.executable, "-c", STREAM], capture_output=True, text=True, check=True
    ).stdout
    count, grown = (int(word) for word in printed.split())
    assert count == 10_000_000
    assert grown < 16_384  # KiB; keeping even one float64 per prediction would take 78,125


# Bad input.


def refused(message, probs=((0.5, 0.5),), labels=(0,), group=None, error=ValueError, **options):
    probs = probs if isinstance(probs, torch.Tensor) else torch.tensor(probs)
    seen = Calibration(**options)
    with pytest.raises(error, match=message):
        seen.update(probs, torch.tensor(labels), None if group is None else torch.tensor(group))
    assert not seen.sums.any()


def test_logits_in_the_place_of_probabilities_are_refused():
    refused(r"probabilities.*the value 7.31.*softmax", [[7.31, 0.2]])
    refused(r"probabilities.*the value -2\.", [[-2.0, 3.0]])
    refused(r"a row that sums to 0.7", [[0.4, 0.3]])
    refused(r"probabilities.*the value -0.5\.", [[-0.5, 0.5, 1.0]])


def test_nan_is_refused_by_name():
    refused(r"1 of 2 rows hold nan", [[math.nan, 0.5], [0.5, 0.5]], [0, 0])
    with pytest.raises(ValueError, match=r"logits must be numbers, but 1 of 1 rows hold nan"):
        Calibration().update_logits(torch.tensor([[math.inf, 0.0]]), torch.tensor([0]))
    with pytest.raises(ValueError, match=r"1 of 2 rows hold nan or infinity"):
        Calibration().update_logits(torch.tensor([[-math.inf] * 2, [0.0, -math.inf]]), torch.tensor([0, 0]))
    masked = Calibration()
    masked.update_logits(torch.tensor([[0.0, -math.inf]]), torch.tensor([0]))
    assert masked.nll.item() == 0


def test_labels_and_groups_that_do_not_fit_are_refused():
    refused(r"labels must be in 0..1 for 2 classes, got 2", labels=[2])
    refused(r"labels must be in 0..1 for 2 classes, got -1", labels=[-1])
    refused(r"labels must be an int64 tensor", labels=[0.0], error=TypeError)
    refused(r"equal length.*probs 1, labels 2", labels=[0, 0])
    refused(r"group must be in 0..2 for 3 groups, got 3", group=[3], groups=3)
    refused(r"equal length.*labels 1, group 2", group=[0, 0])
    with pytest.raises(TypeError, match="group must be a tensor, got list"):
        Calibration().update(torch.tensor([[0.5, 0.5]]), torch.tensor([0]), [0])
    with pytest.raises(TypeError, match="probs must be a tensor, got tuple"):
        Calibration().update((torch.zeros(900, 2),), torch.tensor([0]))
    refused(r"shape \(B, K\) with K >= 2, got a float32 tensor of shape \(1, 1\)", [[1.0]])
    refused(r"shape \(B, K\) with K >= 2, got a int64 tensor", torch.tensor([[0, 1]]))


@pytest.mark.parametrize("option", ["groups", "bins"])
def test_a_table_needs_at_least_one_group_and_one_bin(option):
    with pytest.raises(ValueError, match=rf"{option} must be at least 1, got 0"):
        Calibration(**{option: 0})


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("classes", [2, 10, 1000])
def test_probabilities_are_refused_where_logits_are_expected(dtype, classes):
    logits = 4 * torch.randn(32, classes, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    probs, labels = logits.softmax(dim=1).to(dtype), torch.zeros(32).long()
    seen = Calibration()
    with pytest.raises(ValueError, match=r"look like probabilities: all 32 rows .* Drop the softmax"):
        seen.update_logits(probs, labels)
    assert seen.count == 0
    seen.update_logits(logits.to(dtype), labels)
    seen.update_logits(probs.log(), labels)  # logarithms of probabilities are logits


@pytest.mark.parametrize(
    "logits",
    [
        torch.zeros(8, 10),  # of a head that starts at zero
        torch.full((8, 10), 0.2),  # of equal biases
        torch.rand(8, 10),  # in [0, 1]
        torch.cat([torch.full((7, 10), 0.1), torch.full((1, 10), 0.11)]),  # one row that adds up to 1.1
        torch.tensor([[1.5, -0.5], [0.5, 0.5]]),  # adds up to 1
        torch.rand(8, 10).sigmoid(),
        torch.tensor([[0.25, 0.75]]),  # a single row says too little
        torch.eye(4)[torch.arange(8) % 3],  # votes
    ],
)
def test_logits_that_are_no_probabilities_are_taken(logits):
    seen = Calibration()
    seen.update_logits(logits, torch.zeros(len(logits)).long())
    assert seen.count == len(logits)


def test_a_model_that_ends_in_a_softmax_is_refused(linear_model):
    images, labels = load_embedded().validation
    model = nn.Sequential(linear_model, nn.Softmax(dim=1))
    for call in (
        lambda: measure(model, [View(images, labels, torch.zeros_like(labels), torch.zeros(len(labels)))]),
        lambda: calibrate(model, AugMix(), [(images, labels)]),
        lambda: AugmentAndLabel(AugMix(), 10, 0.1).update(model, [(images, labels)]),
    ):
        with pytest.raises(ValueError, match="look like probabilities"):
            call()
