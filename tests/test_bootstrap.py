"""Intervals: against drawing the rows one resample at a time, and against the truth they should cover."""

import math

import numpy as np
import pytest
import torch
from conftest import random_probs

from auglabel import Calibration, metrics
from auglabel.lab.predictions import bootstrap
from auglabel.lab.predictions.bootstrap import Figure, bootstrapped, drawn, interval, resampled


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("classes", [2, 7])
def test_resamples_are_those_of_a_loop_that_draws_rows_and_measures_them(classes):
    probs, labels = random_probs(60, classes)
    again = resampled(probs.double().log(), labels, 30, 10, seeded(3))
    generator = seeded(3)
    for place in range(30):
        rows = torch.randint(60, (60,), generator=generator)
        some = probs[rows].double(), labels[rows]
        for name in ("ece", "debiased_ece", "max_ce"):
            assert getattr(again, name)[place] == pytest.approx(getattr(metrics, name)(*some, bins=10))
        for name in ("accuracy", "nll", "brier"):
            assert getattr(again, name)[place] == pytest.approx(getattr(metrics, name)(*some))
        assert again.confidence[place] == pytest.approx(some[0].max(dim=1).values.mean().item())


def test_intervals_cover_the_true_accuracy_about_95_times_in_100():
    """Logits always say class 0; labels agree with probability 0.8."""
    logits, trials = torch.tensor([[1.0, 0.0]]).expand(150, 2), 300
    covered = 0
    for trial in range(trials):
        labels = (torch.rand(150, generator=seeded(trial)) > 0.8).long()
        accuracy = resampled(logits, labels, 200, 1, seeded(1000 + trial)).accuracy
        _, low, high = interval(0.0, accuracy)
        covered += low <= 0.8 <= high
    assert 0.90 < covered / trials < 0.985  # two standard errors are 0.025, the method itself is a bit short


@pytest.mark.parametrize("chunk", [1, 40, 100, 10**9])
def test_the_memory_bound_holds_and_changes_no_number(chunk, monkeypatch):
    probs, labels = random_probs(40, 3)
    whole = resampled(probs.log(), labels, 25, 5, seeded()).sums
    sizes = []

    def watched(resamples, count, generator):
        sizes.append(resamples * count)
        return drawn(resamples, count, generator)

    monkeypatch.setattr(bootstrap, "CHUNK", chunk)
    monkeypatch.setattr(bootstrap, "drawn", watched)
    torch.testing.assert_close(resampled(probs.log(), labels, 25, 5, seeded()).sums, whole)
    assert sum(sizes) == 25 * 40
    assert max(sizes) <= max(chunk, 40)  # one resample at least


def test_draws_count_every_image_as_often_as_it_came():
    generator, again = seeded(5), seeded(5)
    counts = drawn(4, 9, generator)
    for row in counts:
        came = torch.randint(9, (9,), generator=again).tolist()
        assert row.tolist() == [came.count(image) for image in range(9)]


def test_a_class_ruled_out_makes_nll_infinite_only_where_its_image_was_drawn():
    logits = torch.tensor([[0.0, -math.inf], [1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    labels = torch.tensor([1, 0, 0, 1])
    again = resampled(logits, labels, 50, 3, seeded())
    generator, own = seeded(), -logits.log_softmax(dim=1)[torch.arange(4), labels]
    expected = torch.stack([own[torch.randint(4, (4,), generator=generator)].mean() for _ in range(50)])
    assert 0 < expected.isinf().sum() < 50
    torch.testing.assert_close(again.nll.float(), expected)
    assert not again.ece.isnan().any()
    found = interval(math.inf, again.nll)
    assert 0 < found.low < 1
    assert found.high == math.inf


def test_the_interval_is_the_middle_95_percent():
    assert interval(7.0, torch.arange(101.0)) == Figure(7.0, 2.5, 97.5)
    assert interval(7.0, torch.tensor([3.0])) == Figure(7.0, 3.0, 3.0)
    assert interval(1.0, torch.tensor([math.inf, math.inf])) == Figure(1.0, math.inf, math.inf)


def test_one_image_leaves_no_room():
    again = resampled(torch.tensor([[2.0, 0.0]]), torch.tensor([0]), 5, 15, seeded())
    assert again.accuracy.tolist() == [1.0] * 5
    assert interval(1.0, again.accuracy) == Figure(1.0, 1.0, 1.0)


def test_a_metric_that_needs_all_rows_is_computed_for_each_resample():
    probs, labels = random_probs(50, 4)

    def share(probs, labels):
        return (probs.argmax(dim=1) == labels).double().mean().item()

    found = bootstrapped(share, probs, labels, 40, seeded(2))
    generator, right = seeded(2), (probs.argmax(dim=1) == labels).double().numpy()
    samples = [right[torch.randint(50, (50,), generator=generator).numpy()].mean() for _ in range(40)]
    assert found.value == right.mean()
    assert found[1:] == pytest.approx(np.quantile(samples, [0.025, 0.975]))


def test_no_resamples_give_the_value_alone():
    found = bootstrapped(lambda probs, labels: 0.5, *random_probs(3, 2), 0, seeded())
    assert found.value == 0.5
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_an_ece_lies_in_its_interval_and_the_truth_mostly_does():
    """An over-confident model of known error: 200 simulated test sets of 500 images."""

    def simulated(count, generator):
        logits = 2 * torch.randn(count, 10, generator=generator)
        labels = torch.multinomial(logits.softmax(dim=1), 1, generator=generator).squeeze(1)
        return 2 * logits, labels

    seen = Calibration()
    seen.update_logits(*simulated(200_000, torch.Generator().manual_seed(0)))
    inside, covered = 0, 0
    for seed in range(200):
        generator = torch.Generator().manual_seed(1 + seed)
        logits, labels = simulated(500, generator)
        here = Calibration()
        here.update_logits(logits, labels)
        samples = resampled(logits, labels, 100, 15, generator).ece
        value, low, high = interval(float(here.ece), samples, basic=True)
        inside += low <= value <= high
        covered += low <= float(seen.ece) <= high
    assert inside >= 190
    assert covered >= 170
