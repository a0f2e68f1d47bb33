"""Measuring a network: the numbers against sklearn, scipy and torchmetrics, and what may not change them."""

import copy
import functools
import math

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import torch
from sklearn.metrics import accuracy_score, log_loss
from torch import nn
from torchmetrics.functional.classification import multiclass_calibration_error

from auglabel import RandAug, metrics
from auglabel.attack import adversarial_accuracy, pgd
from auglabel.data.embedded import load_embedded
from auglabel.data.source import InMemory, Source
from auglabel.lab.evaluate.conditions import Condition, conditions
from auglabel.lab.evaluate.evaluate import Row, evaluate
from auglabel.lab.evaluate.mean_over_corruptions import means_over_corruptions
from auglabel.lab.evaluate.options import Attack
from auglabel.lab.evaluate.predict import Predictor, fit_temperatures
from auglabel.lab.predictions.bootstrap import Figure
from auglabel.lab.recipe.seeding import generator_for
from auglabel.scaling import TemperatureScaling

CLEAN = Condition("clean")
QUICK = {"resamples": 0}


@functools.cache
def parts():
    """500 test and 300 validation images."""
    data = load_embedded()
    return (
        InMemory(data.test.images[:500], data.test.labels[:500]),
        InMemory(data.test.images[500:800], data.test.labels[500:800]),
    )


def nearest_mean(sharpness=0.3):
    """Scores every class by its distance from the mean training image: two in three right, too sure."""
    data = load_embedded().train
    pixels = data.images.flatten(1).float() / 255
    mean = torch.stack([pixels[data.labels == label].mean(dim=0) for label in range(10)])
    linear = nn.Linear(784, 10)
    linear.weight.data = sharpness * mean
    linear.bias.data = -sharpness * mean.square().sum(dim=1) / 2
    return nn.Sequential(nn.Flatten(), linear)


def logits_of(model, source, rows=None):
    images = source.images if rows is None else source.images[rows]
    with torch.no_grad():
        return model.eval()(images.float() / 255)


def noisy(model, images, labels, generator):
    return (images + 0.2 * torch.randn(images.shape, generator=generator)).clamp(0, 1)


def values(row):
    return {name: figure.value for name, figure in row.figures.items()}


def test_clean_figures_are_those_of_other_libraries():
    test, validation = parts()
    (row,) = evaluate(nearest_mean(), test, validation, [CLEAN], **QUICK).rows
    logits, labels = logits_of(nearest_mean(), test).double(), test.labels
    probs = logits.softmax(dim=1)
    found = values(row)
    assert (row.on, row.severity, row.count) == ("clean", None, 500)
    assert found["accuracy"] == accuracy_score(labels, probs.argmax(dim=1))
    assert found["nll"] == pytest.approx(log_loss(labels, probs))
    theirs = multiclass_calibration_error(probs, labels, num_classes=10, n_bins=15).item()
    assert found["ece"] == pytest.approx(theirs, abs=1e-6)
    assert found["confidence"] == pytest.approx(probs.max(dim=1).values.mean().item())
    truth = np.eye(10)[labels.numpy()]
    assert found["brier"] == pytest.approx(((probs.numpy() - truth) ** 2).sum(axis=1).mean())
    for name in ("debiased_ece", "max_ce", "equal_mass_ece", "classwise_ece", "aurc"):
        assert found[name] == pytest.approx(getattr(metrics, name)(probs, labels))
    assert all(math.isnan(figure.low) and math.isnan(figure.high) for figure in row.figures.values())


def test_the_number_of_bins_reaches_every_metric_that_has_bins():
    test, validation = parts()
    (row,) = evaluate(nearest_mean(), test, validation, [CLEAN], bins=4, **QUICK).rows
    probs = logits_of(nearest_mean(), test).double().softmax(dim=1)
    for name in ("ece", "debiased_ece", "max_ce", "equal_mass_ece", "classwise_ece"):
        assert values(row)[name] == pytest.approx(getattr(metrics, name)(probs, test.labels, bins=4))


def by_hand(model, augment, validation, seed):
    """TA: 17 draws of each of 300 images make the 5,000 views, with a generator per block of 250 and pass."""
    logits = []
    for turn in range(17):
        for number, block in enumerate(torch.arange(300).split(250)):
            generator = generator_for(seed, "augmented/None", 2 * turn + number)
            images, labels = validation.images[block].float() / 255, validation.labels[block]
            with torch.no_grad():
                logits.append(model(augment(images, labels, model, generator=generator).images))
    return torch.cat(logits).double(), validation.labels.repeat(17)


def test_one_pass_gives_the_figures_as_trained_at_t_and_at_ta():
    test, validation = parts()
    model, augment = nearest_mean(), RandAug()
    found = evaluate(model, test, validation, [CLEAN], seed=4, augment=augment, **QUICK)
    views, labels = by_hand(model, augment, validation, 4)
    best = scipy.optimize.minimize_scalar(
        lambda t: log_loss(labels, (views / t).softmax(dim=1)), bounds=(0.1, 20), method="bounded"
    ).x
    assert found.temperatures["TA"] == pytest.approx(best, rel=1e-3)
    assert abs(found.temperatures["TA"] - found.temperatures["T"]) > 0.1  # or this shows nothing
    logits = logits_of(model, test).double()
    (row,) = found.rows
    for temperature, figures in [
        (1, row.figures),
        *((found.temperatures[at], row.scaled[at]) for at in row.scaled),
    ]:
        probs = (logits / temperature).softmax(dim=1)
        assert figures["nll"].value == pytest.approx(log_loss(test.labels, probs), rel=1e-5)
        theirs = multiclass_calibration_error(probs, test.labels, num_classes=10, n_bins=15).item()
        assert figures["ece"].value == pytest.approx(theirs, abs=1e-6)
        assert figures["aurc"].value == pytest.approx(slow_aurc(probs, test.labels), abs=1e-9)
    assert list(row.scaled) == ["T", "TA"]
    # confidences of many classes change their order with the temperature
    assert row.scaled["TA"]["aurc"].value != row.figures["aurc"].value


def slow_aurc(probs, labels):
    """The error rate among the k most confident, for each k, averaged; no two are equally confident here."""
    confidence, predicted = probs.max(dim=1)
    assert len(confidence.unique()) == len(confidence)
    wrong = [int(predicted[n] != labels[n]) for n in confidence.argsort(descending=True)]
    return sum(sum(wrong[:k]) / k for k in range(1, len(wrong) + 1)) / len(wrong)


def test_aurc_of_four_predictions_worked_out_by_hand():
    """Right, wrong, right, wrong from the surest on: risks 0, 1/2, 1/3, 1/2, whose mean is 1/3."""
    source = InMemory(
        torch.tensor([250, 200, 150, 100]).byte()[:, None, None, None], torch.tensor([1, 0, 1, 0])
    )
    model = nn.Sequential(nn.Flatten(), nn.Linear(1, 2))
    model[1].weight.data, model[1].bias.data = torch.tensor([[0.0], [3.0]]), torch.zeros(2)
    (row,) = evaluate(model, source, source, [CLEAN], **QUICK).rows
    assert row.figures["aurc"].value == pytest.approx(1 / 3)


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.images = nearest_mean(), 0

    def forward(self, images):
        self.images += len(images)
        return self.inner(images)


def test_each_condition_is_predicted_once_whatever_is_fitted():
    test, validation = parts()
    model = Counting()
    asked = [CLEAN, Condition("noise", noisy, 1)]
    both = evaluate(model, test, validation, asked, augment=RandAug(), **QUICK)
    assert model.images == 2 * 500 + 300 + 17 * 300
    apart = evaluate(nearest_mean(), test, validation, asked, **QUICK)
    for one, other in zip(both.rows, apart.rows, strict=True):
        assert repr((one.figures, one.bins)) == repr(
            (other.figures, other.bins)
        )  # nan is not equal to itself
        assert repr(one.scaled["T"]) == repr(other.scaled["T"])
    assert list(apart.rows[0].scaled) == ["T"]


def test_temperatures_fitted_before_are_taken_as_they_are():
    test, validation = parts()
    fitted = fit_temperatures(Predictor(nearest_mean(), 3), validation, RandAug())
    model = Counting()
    found = evaluate(model, test, validation, [CLEAN], seed=3, fitted=fitted, **QUICK)
    assert model.images == 500
    again = evaluate(nearest_mean(), test, validation, [CLEAN], seed=3, augment=RandAug(), **QUICK)
    assert repr(found) == repr(again)


def test_the_augmented_validation_images_are_measured_as_their_views_are():
    validation = parts()[1]
    seen = fit_temperatures(Predictor(nearest_mean(), 4), validation, RandAug()).augmented
    logits, labels = by_hand(nearest_mean(), RandAug(), validation, 4)
    probs = logits.softmax(dim=1)
    assert int(seen.count) == 5100
    assert float(seen.accuracy) == pytest.approx(accuracy_score(labels, probs.argmax(dim=1)))
    true = logits.numpy()[np.arange(5100), labels.numpy()]  # log_loss would clip: some are sure and wrong
    assert float(seen.nll) == pytest.approx((scipy.special.logsumexp(logits.numpy(), axis=1) - true).mean())
    theirs = multiclass_calibration_error(probs, labels, num_classes=10, n_bins=15).item()
    assert float(seen.ece) == pytest.approx(theirs, abs=1e-6)


def test_only_the_temperature_asked_for_is_fitted():
    validation = parts()[1]
    only = fit_temperatures(Predictor(nearest_mean()), validation, RandAug(), clean=False)
    assert list(only.temperatures) == ["TA"]
    plain = fit_temperatures(Predictor(nearest_mean()), validation, None)
    assert (list(plain.temperatures), plain.augmented) == (["T"], None)


def test_the_temperature_of_augmented_images_comes_from_validation_images_alone():
    test, validation = parts()
    half = InMemory(test.images[:250], test.labels[:250])
    whole, less = (
        evaluate(nearest_mean(), some, validation, [CLEAN], augment=RandAug(), **QUICK)
        for some in (test, half)
    )
    assert whole.temperatures == less.temperatures


def test_bins_hold_what_a_reliability_diagram_is_drawn_from():
    test, validation = parts()
    (row,) = evaluate(nearest_mean(), test, validation, [CLEAN], **QUICK).rows
    probs = logits_of(nearest_mean(), test).double().softmax(dim=1)
    confidence, predicted = probs.max(dim=1)
    cell = (confidence * 15).ceil() - 1
    for number in range(15):
        inside = cell == number
        assert row.bins["count"][number] == inside.sum()
        assert row.bins["confidence"][number] == pytest.approx(float(confidence[inside].sum()))
        assert row.bins["correct"][number] == (predicted == test.labels)[inside].sum()


def test_intervals_hold_their_value_and_are_as_wide_as_accuracy_is_uncertain():
    test, validation = parts()
    (row,) = evaluate(nearest_mean(), test, validation, [CLEAN], resamples=400).rows
    for figures in (row.figures, row.scaled["T"]):
        for name in ("accuracy", "confidence", "nll", "brier", "aurc"):  # those without bias
            assert figures[name].low < figures[name].value < figures[name].high
        assert all(math.isfinite(number) for figure in figures.values() for number in figure)
    accuracy = row.figures["accuracy"]
    width = 2 * 1.96 * math.sqrt(accuracy.value * (1 - accuracy.value) / 500)
    assert accuracy.high - accuracy.low == pytest.approx(width, rel=0.2)


def test_every_condition_sees_the_same_images_out_of_all():
    test, validation = parts()
    seen = {}

    def watching(name):
        def move(model, images, labels, generator):
            seen.setdefault(name, []).append((images, labels))
            return images

        return Condition(name, move)

    def pixels(name):
        return torch.cat([images for images, _ in seen.pop(name)])

    asked = [watching("one"), watching("two"), watching("three")]
    found = evaluate(nearest_mean(), test, validation, asked, images=40, **QUICK)
    one = pixels("one")
    assert torch.equal(one, pixels("two"))
    assert torch.equal(one, pixels("three"))
    assert [row.count for row in found.rows] == [40, 40, 40]
    every = {image.numpy().tobytes() for image in test.images.float() / 255}
    chosen = {image.numpy().tobytes() for image in one}
    assert len(chosen) == 40
    assert chosen <= every
    evaluate(nearest_mean(), test, validation, asked[:1], images=40, seed=1, **QUICK)
    assert not torch.equal(one, pixels("one"))
    evaluate(nearest_mean(), test, validation, asked[:1], images=9999, **QUICK)
    assert torch.equal(pixels("one"), test.images.float() / 255)


def test_the_temperature_has_the_lowest_nll_on_the_validation_images():
    test, validation = parts()
    model = nearest_mean()
    temperature = evaluate(model, test, validation, [CLEAN], **QUICK).temperatures["T"]
    logits, labels = logits_of(model, validation), validation.labels
    best = scipy.optimize.minimize_scalar(
        lambda t: log_loss(labels, (logits.double() / t).softmax(dim=1)), bounds=(0.1, 20), method="bounded"
    ).x
    assert temperature == pytest.approx(best, rel=1e-3)
    assert temperature == float(TemperatureScaling().fit(logits, labels).temperature)
    assert abs(temperature - 1) > 0.2  # or this shows nothing


class Watched(Source):
    """Counts what is fetched."""

    def __init__(self, source):
        self.source, self.labels, self.shape, self.fetched = source, source.labels, source.shape, []

    def fetch(self, rows, draw=None):
        assert draw is None  # measured as they are, never cropped at random
        self.fetched += rows.tolist()
        return self.source.fetch(rows)


def test_the_temperature_never_touches_test_images():
    test, validation = map(Watched, parts())
    fitted = evaluate(nearest_mean(), test, validation, [], **QUICK).temperatures["T"]
    assert test.fetched == []
    assert validation.fetched == list(range(300))
    turned = InMemory(255 - parts()[0].images, parts()[0].labels.flip(0))
    assert evaluate(nearest_mean(), turned, validation, [CLEAN], **QUICK).temperatures["T"] == fitted


def test_scaled_figures_are_those_at_the_temperature():
    test, validation = parts()
    found = evaluate(nearest_mean(), test, validation, [CLEAN], **QUICK)
    (row,) = found.rows
    probs = (logits_of(nearest_mean(), test).double() / found.temperatures["T"]).softmax(dim=1)
    assert row.scaled["T"]["accuracy"].value == row.figures["accuracy"].value
    assert row.scaled["T"]["nll"].value == pytest.approx(log_loss(test.labels, probs), rel=1e-6)
    assert row.scaled["T"]["ece"].value == pytest.approx(metrics.ece(probs, test.labels), abs=1e-6)
    assert row.scaled["T"]["classwise_ece"].value == pytest.approx(
        metrics.classwise_ece(probs, test.labels), abs=1e-6
    )


@pytest.mark.parametrize(
    ("validation", "note"),
    [
        (InMemory(torch.zeros(0, 1, 28, 28).byte(), torch.zeros(0).long()), "There are no validation images"),
        (
            InMemory(torch.zeros(10, 1, 28, 28).byte(), torch.arange(10)),
            "no temperature beats a uniform guess",
        ),
    ],
)
def test_without_a_temperature_there_is_a_note_and_no_scaled_figures(validation, note):
    found = evaluate(nearest_mean(), parts()[0], validation, [CLEAN], **QUICK)
    assert found.temperatures == {}
    assert found.rows[0].scaled == {}
    assert len(found.notes) == 1
    assert note in found.notes[0]


ATTACK = Attack(epsilon=0.1, steps=8, restarts=3)


def attacked(model, source, attack=ATTACK, **options):
    options = {**QUICK, **options}
    validation = parts()[1]
    found = evaluate(model, source, validation, conditions(["pgd"], attack), **options)
    return found.rows[0].figures["accuracy"].value


def test_attacked_accuracy_is_right_when_clean_and_fooled_by_no_restart():
    model, test = nearest_mean(), parts()[0]
    images, labels = test.images.float() / 255, test.labels
    standing = logits_of(model, test).argmax(dim=1) == labels
    for block, rows in enumerate(torch.arange(500).split(250)):
        generator = generator_for(0, "pgd/None", block)
        for _ in range(ATTACK.restarts):
            moved = pgd(
                model, images[rows], labels[rows], 0.1, steps=8, step=2.5 * 0.1 / 8, generator=generator
            )
            standing[rows] &= model(moved).argmax(dim=1) == labels[rows]
    expected = standing.double().mean().item()
    assert 0.05 < expected < 0.5
    assert attacked(model, test) == expected


def test_attacked_accuracy_of_a_linear_network_is_what_no_corner_of_the_ball_can_take():
    """Two classes: one corner is the worst for each image, and PGD gets there."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 2))
    generator = torch.Generator().manual_seed(0)
    model[1].weight.data = torch.randn(2, 16, generator=generator)
    model[1].bias.data = -model[1].weight.data.sum(dim=1) / 2
    images = torch.randint(256, (300, 1, 4, 4), generator=generator).byte()
    labels = model(images / 255).argmax(dim=1)
    labels[:60] = 1 - labels[:60]  # wrong when clean
    weight = model[1].weight.data
    worst = (images.flatten(1) / 255 + 0.1 * (weight[1 - labels] - weight[labels]).sign()).clamp(0, 1)
    expected = (model[1](worst).argmax(dim=1) == labels).double().mean().item()
    source = InMemory(images, labels)
    attack = Attack(epsilon=0.1, steps=5, restarts=2)
    found = evaluate(model, source, source, conditions(["pgd"], attack), **QUICK).rows[0]
    assert 0 < expected < 0.7
    assert found.figures["accuracy"].value == pytest.approx(expected)
    assert found.figures["accuracy"].value == pytest.approx(
        adversarial_accuracy(model, images / 255, labels, 0.1, steps=5, restarts=2)
    )


class Notch(nn.Module):
    """Class 1 within 0.002 of a mean of 128/255, class 0 elsewhere."""

    def forward(self, images):
        away = (images.mean(dim=(1, 2, 3)) - 128 / 255).abs()
        return torch.stack([100 * away - 0.2, torch.zeros_like(away)], dim=1)


def test_an_image_wrong_when_clean_stays_wrong_though_the_attack_would_repair_it():
    images, labels = torch.full((4, 1, 2, 2), 128).byte(), torch.zeros(4, dtype=torch.int64)
    moved = pgd(Notch(), images / 255, labels, 0.03, steps=1, step=0.075, generator=generator_for(0, "x"))
    assert (Notch()(moved).argmax(dim=1) == labels).all()  # repaired
    source = InMemory(images, labels)
    assert attacked(Notch(), source, Attack(epsilon=0.03, steps=1, restarts=1)) == 0
    assert adversarial_accuracy(Notch(), images / 255, labels, 0.03, steps=1, restarts=1) == 0


def test_epsilon_zero_is_the_clean_accuracy():
    model, test = nearest_mean(), parts()[0]
    clean = accuracy_score(test.labels, logits_of(model, test).argmax(dim=1))
    assert attacked(model, test, Attack(epsilon=0)) == clean


@pytest.mark.parametrize("on", [["clean"], ["pgd"], ["foolbox:fgsm"]])
def test_the_network_and_the_random_stream_stay_as_they_were(on):
    if on[0].startswith("foolbox"):
        pytest.importorskip("foolbox")
    model = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(784), nn.Dropout(), nearest_mean()[1]).train()
    model[2].eval()
    model[3].bias.requires_grad_(False)
    model[3].weight.grad = torch.ones_like(model[3].weight)
    state, stream = copy.deepcopy(model.state_dict()), torch.random.get_rng_state()
    test, validation = parts()
    evaluate(model, test, validation, conditions(on, Attack(steps=2, restarts=1)), images=20, resamples=5)
    assert [module.training for module in model.modules()] == [True, True, True, False, True]
    assert [parameter.requires_grad for parameter in model.parameters()] == [True, True, True, False]
    assert (model[3].weight.grad == 1).all()
    assert model[1].weight.grad is None
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert torch.equal(torch.random.get_rng_state(), stream)
    assert torch.is_grad_enabled()


def test_the_seed_decides_every_number():
    test, validation = parts()
    asked = [Condition("noise", noisy, 1), *conditions(["pgd"], Attack(steps=2, restarts=1))]
    one, again, other = (
        evaluate(nearest_mean(), test, validation, asked, images=60, resamples=50, seed=seed)
        for seed in (1, 1, 2)
    )
    assert repr(one) == repr(again)  # nan is not equal to itself
    assert values(one.rows[0]) != values(other.rows[0])


@pytest.mark.parametrize("batch_size", [1, 7, 100, 499, 1000])
def test_the_batch_size_changes_no_clean_or_corrupted_figure(batch_size):
    test, validation = parts()
    asked = [CLEAN, Condition("noise", noisy, 3)]
    usual, found = (
        evaluate(nearest_mean(), test, validation, asked, batch_size=size, **QUICK)
        for size in (250, batch_size)
    )
    assert found.temperatures["T"] == pytest.approx(usual.temperatures["T"], rel=1e-5)
    for one, other in zip(found.rows, usual.rows, strict=True):
        assert values(one)["accuracy"] == values(other)["accuracy"]
        assert values(one)["nll"] == pytest.approx(values(other)["nll"], rel=1e-5)


def test_an_attack_gets_a_batch_at_a_time_and_batches_of_250_or_more_change_nothing():
    test, validation = parts()
    seen = []

    def move(model, images, labels, generator):
        seen.append(len(images))
        torch.rand(images.shape, generator=generator)  # a first restart
        return noisy(model, images, labels, generator)

    asked = [Condition("noise", move, attacks=True)]
    usual, large, small = (
        evaluate(nearest_mean(), test, validation, asked, batch_size=size, **QUICK).rows[0]
        for size in (250, 999, 100)
    )
    assert seen == [250, 250, 250, 250, 100, 100, 50, 100, 100, 50]
    assert values(large) == values(usual)
    assert values(small)["nll"] != values(usual)["nll"]
    assert values(small)["nll"] == pytest.approx(values(usual)["nll"], rel=0.1)  # as strong, from elsewhere


def test_attacks_by_smaller_batches_are_as_strong():
    model, test = nearest_mean(), parts()[0]
    assert attacked(model, test, batch_size=60) == pytest.approx(attacked(model, test), abs=0.01)


def test_one_image_of_two_classes_and_one_resample():
    source = InMemory(torch.zeros(1, 1, 2, 2).byte(), torch.tensor([1]))
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    model[1].bias.data = torch.tensor([0.0, math.log(4)])  # 0.2 and 0.8
    for resamples in (0, 1):
        found = evaluate(model, source, source, [CLEAN], resamples=resamples)
        figures = found.rows[0].figures
        assert figures["accuracy"].value == 1
        assert figures["ece"].value == pytest.approx(0.2)
        assert figures["nll"].value == pytest.approx(math.log(1.25))
        assert figures["brier"].value == pytest.approx(0.08)
        assert figures["accuracy"].low == pytest.approx(1 if resamples else math.nan, nan_ok=True)
        assert figures["aurc"].low == pytest.approx(0 if resamples else math.nan, nan_ok=True)
        assert found.temperatures == {}  # the only row is right: NLL falls for ever


def test_huge_logits_stay_numbers():
    test, validation = parts()
    model = nearest_mean(sharpness=1e30)
    found = evaluate(model, test, validation, [CLEAN], resamples=20)
    (row,) = found.rows
    small = evaluate(nearest_mean(), test, validation, [CLEAN], resamples=20).rows[0]
    assert found.temperatures["T"] > 1e25
    assert all(math.isfinite(number) for figure in row.figures.values() for number in figure)
    assert row.scaled["T"]["nll"].value == pytest.approx(small.scaled["T"]["nll"].value, rel=1e-2)


def test_a_class_ruled_out_makes_nll_infinite_and_leaves_the_rest():
    class Never(nn.Module):
        def forward(self, images):
            return nearest_mean()(images).index_fill(1, torch.tensor([3]), -math.inf)

    test, validation = parts()
    found = evaluate(Never(), test, validation, [CLEAN], resamples=30)
    figures = found.rows[0].figures
    assert figures["nll"] == Figure(math.inf, math.inf, math.inf)
    assert all(math.isfinite(n) for name, figure in figures.items() if name != "nll" for n in figure)
    assert "rows hold -infinity" in found.notes[0]


def test_what_cannot_be_measured_is_one_sentence():
    test, validation = parts()
    nothing = InMemory(torch.zeros(0, 1, 28, 28).byte(), torch.zeros(0).long())
    with pytest.raises(ValueError, match="there are no test images"):
        evaluate(nearest_mean(), nothing, validation, [CLEAN])
    with pytest.raises(ValueError, match="images must be at least 1, got 0"):
        evaluate(nearest_mean(), test, validation, [CLEAN], images=0)
    diverged = nearest_mean(math.nan)
    with pytest.raises(ValueError, match=r"500 of 500 rows hold nan or infinity\. The model has diverged"):
        evaluate(diverged, test, validation, [CLEAN])


def row(on, severity, accuracy, ece, scaled=None):
    def figures(ece):
        return {"accuracy": Figure(accuracy, 0.0, 1.0), "ece": Figure(ece, 0.0, 1.0)}

    return Row(on, severity, 100, figures(ece), {} if scaled is None else {"T": figures(scaled)})


def test_means_are_plain_means_over_pairs_of_type_and_severity():
    rows = [
        row("clean", None, 0.99, 0.01, 0.01),
        row("m:blur", 1, 0.8, 0.1, 0.02),
        row("m:blur", 2, 0.6, 0.2, 0.04),
        row("m:snow", 1, 0.1, 0.6, 0.3),
    ]
    blur, snow, every = means_over_corruptions(rows)
    assert (blur.on, blur.pairs) == ("m:blur", 2)
    assert blur.figures == pytest.approx({"accuracy": 0.7, "ece": 0.15})
    assert blur.scaled["T"] == pytest.approx({"accuracy": 0.7, "ece": 0.03})
    assert snow.figures == pytest.approx({"accuracy": 0.1, "ece": 0.6})
    assert (every.on, every.pairs) == ("corrupted", 3)
    assert every.figures == pytest.approx({"accuracy": 0.5, "ece": 0.3})
    assert every.scaled["T"] == pytest.approx({"accuracy": 0.5, "ece": 0.12})
    assert means_over_corruptions(rows[:1]) == []


def test_ece_of_pairs_is_averaged_and_never_pooled():
    """Black images are class 0, as the network says with 0.75; at severity 2 they are white: it says 1."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(1, 2))
    model[1].weight.data = torch.tensor([[-2 * math.log(3)], [0.0]])
    model[1].bias.data = torch.tensor([math.log(3), 0.0])
    source = InMemory(torch.zeros(10, 1, 1, 1).byte(), torch.zeros(10, dtype=torch.int64))
    asked = [
        Condition("m:f", lambda model, images, labels, generator: images, 1),
        Condition("m:f", lambda model, images, labels, generator: images + 1, 2),
    ]
    found = evaluate(model, source, source, asked, resamples=10)
    assert [values(each)["accuracy"] for each in found.rows] == [1, 0]
    assert [values(each)["ece"] for each in found.rows] == pytest.approx([0.25, 0.75])
    mean = means_over_corruptions(found.rows)[-1].figures
    assert mean["accuracy"] == 0.5
    assert mean["ece"] == pytest.approx(0.5)  # all twenty together: |0.5 - 0.75| = 0.25
    assert math.isnan(found.rows[0].figures["aurc"].low)  # too many rows for that
