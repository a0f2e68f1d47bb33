"""What `--on` may name: attacks, and a function of the user's, which is called as documented or refused."""

import math
import sys

import pytest
import torch
from torch import nn

from auglabel.data.source import InMemory
from auglabel.lab.evaluate.conditions import conditions
from auglabel.lab.evaluate.evaluate import evaluate
from auglabel.lab.evaluate.mean_over_corruptions import means_over_corruptions
from auglabel.lab.evaluate.options import Attack

CORRUPTIONS = """
import torch

def darker(images, severity, generator):
    return images * (1 - severity / 5)

def grain(images, severity, generator):
    return (images + severity * torch.randn(images.shape, generator=generator)).clamp(0, 1)

def double(images, severity, generator):
    return images.double()

def in_place(images, severity, generator):
    return images.zero_()

def cropped(images, severity, generator):
    return images[:, :, 1:]

def bytes_(images, severity, generator):
    return (255 * images).byte()

def tuple_(images, severity, generator):
    return images, severity

def bright(images, severity, generator):
    return images + severity

def lost(images, severity, generator):
    return images / 0 * 0

def two(images, severity):
    return images

three = 3
"""


@pytest.fixture(autouse=True)
def mine(tmp_path, monkeypatch):
    """A module in the current directory."""
    (tmp_path / "mycorruptions.py").write_text(CORRUPTIONS)
    (tmp_path / "torn.py").write_text("def f(:\n")
    (tmp_path / "failing.py").write_text("raise RuntimeError('no licence\\nfound')\n")
    (tmp_path / "needing.py").write_text("import no_such_package\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name in ("mycorruptions", "torn", "failing", "needing"):
        sys.modules.pop(name, None)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def moved(name, place=0, images=None, seed=0):
    images = torch.rand(6, 1, 3, 3, generator=seeded(9)) if images is None else images
    condition = conditions([f"mycorruptions:{name}"], Attack())[place]
    labels = torch.zeros(len(images), dtype=torch.int64)
    return condition.move(nn.Identity(), images, labels, seeded(seed))


def test_a_function_makes_a_row_for_each_severity():
    found = conditions(["clean", "mycorruptions:darker"], Attack())
    assert [(each.on, each.severity) for each in found] == [
        ("clean", None),
        *(("mycorruptions:darker", severity) for severity in (1, 2, 3, 4, 5)),
    ]
    assert not any(each.attacks for each in found)
    images = torch.rand(2, 1, 3, 3)
    for place, share in enumerate((0.8, 0.6, 0.4, 0.2, 0.0)):
        torch.testing.assert_close(moved("darker", place, images), share * images)


def test_a_function_draws_from_the_generator_it_is_given():
    assert torch.equal(moved("grain", seed=1), moved("grain", seed=1))
    assert not torch.equal(moved("grain", seed=1), moved("grain", seed=2))
    assert moved("double").dtype == torch.float32


def test_corrupted_rows_and_their_means_by_hand():
    """The network says 1 above a pixel of 0.5 and 0 below, both with 0.75; the images are 1, 0.7 and 0.1.

    Times 0.8, 0.6, 0.4, 0.2 and 0, of the two of class 1 it finds: both, one, none, none, none.
    """
    model = nn.Sequential(nn.Flatten(), Above())
    source = InMemory(
        torch.tensor([255, 178, 26]).byte()[:, None, None, None].clone(), torch.tensor([1, 1, 0])
    )
    found = evaluate(model, source, source, conditions(["mycorruptions:darker"], Attack()), resamples=0)
    assert [row.count for row in found.rows] == [3] * 5
    accuracy = [1, 2 / 3, 1 / 3, 1 / 3, 1 / 3]
    assert [row.figures["accuracy"].value for row in found.rows] == pytest.approx(accuracy)
    gaps = [abs(each - 0.75) for each in accuracy]  # 0.25, 0.0833, 0.4167, 0.4167, 0.4167
    assert [row.figures["ece"].value for row in found.rows] == pytest.approx(gaps)
    means = means_over_corruptions(found.rows)
    for mean in means:
        assert mean.pairs == 5
        assert mean.figures["accuracy"] == pytest.approx(8 / 15)
        assert mean.figures["ece"] == pytest.approx(19 / 60)  # pooled it would be 13/60
    assert [mean.on for mean in means] == ["mycorruptions:darker", "corrupted"]


class Above(nn.Module):
    def forward(self, pixels):
        return math.log(3) * torch.cat([pixels <= 0.5, pixels > 0.5], dim=1).float()


def test_a_function_that_works_in_place_spoils_nothing():
    model = nn.Sequential(nn.Flatten(), Above())
    source = InMemory(torch.full((4, 1, 1, 1), 255).byte(), torch.ones(4, dtype=torch.int64))
    asked = conditions(["mycorruptions:in_place", "clean"], Attack())
    assert [row.figures["accuracy"].value for row in evaluate(model, source, source, asked).rows] == [
        *[0] * 5,
        1,
    ]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "cropped",
            r"mycorruptions:cropped must return images .* \(6, 1, 3, 3\), got a .*\(6, 1, 2, 3\)",
        ),
        ("bytes_", "must return images in floating point .* got a uint8 tensor"),
        ("tuple_", "must return images .* got a tuple"),
        ("bright", r"must return pixels in \[0, 1\], got values from 1.*: clamp them"),
        ("lost", "must return pixels .* got nan"),
    ],
)
def test_what_a_function_must_not_return_is_named(name, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        moved(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("mycorruptions:darkr", r'--on mycorruptions:darkr: .* has no "darkr"\. Did you mean "darker"\?'),
        ("mycorruptions:three", "--on mycorruptions:three: .* must be a function or a class, got int 3"),
        ("mycorruptions:two", r"is called with \(images, severity, generator\), but: too many positional"),
        ("nowhere:f", '--on nowhere:f: there is no module "nowhere"'),
        ("torn:f", r"--on torn:f: SyntaxError: .*torn\.py, line 1"),
        ("failing:f", "--on failing:f: RuntimeError: no licence found"),
        ("needing:f", '"needing" needs the module "no_such_package", which is not installed'),
        (":f", "--on :f: name the module as Python imports it"),
        ("mycorruptions:", "--on mycorruptions:: "),
        ("cleam", r'no condition "cleam"\. There are: clean, pgd, corrupted, .* Did you mean "clean"\?'),
        ("", 'no condition ""'),
        ("foolbox:pdg", r'no foolbox attack "pdg"\. There are: pgd, .* Did you mean "pgd"\?'),
    ],
)
def test_a_name_that_means_nothing_is_one_sentence(name, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        conditions([name], Attack())
    assert "\n" not in str(caught.value)


def test_a_missing_foolbox_is_named_before_anything_is_measured(monkeypatch):
    monkeypatch.setitem(sys.modules, "foolbox", None)
    with pytest.raises(ImportError, match=r"pip install 'auglabel\[attack\]'"):
        conditions(["clean", "foolbox:pgd"], Attack())


def test_a_name_given_twice_is_measured_once():
    assert [each.on for each in conditions(["pgd", "clean", "pgd"], Attack())] == ["pgd", "clean"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"epsilon": -0.1}, r"epsilon must be in \[0, 1\]"),
        ({"epsilon": 8}, r"epsilon must be in \[0, 1\], got 8"),
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"restarts": 0}, "restarts must be at least 1"),
    ],
)
def test_an_attack_that_is_none_is_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        Attack(**options)


@pytest.mark.parametrize("name", ["pgd", "foolbox:pgd", "foolbox:hop_skip_jump"])
def test_attacks_stay_in_their_ball_and_say_that_they_ask_the_network(name):
    if name.startswith("foolbox"):
        pytest.importorskip("foolbox")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(9, 3))
    images = torch.rand(12, 1, 3, 3)
    labels = model(images).argmax(dim=1)
    if len(labels.unique()) < 2:
        model[1].bias.data -= model(images).mean(dim=0).detach()
        labels = model(images).argmax(dim=1)
    (condition,) = conditions([name], Attack(epsilon=0.2, steps=5, restarts=2))
    found = condition.move(model, images, labels, seeded())
    assert condition.attacks
    assert (found - images).abs().max() <= 0.2 + 1e-6
    assert (model(found).argmax(dim=1) != labels).any()
