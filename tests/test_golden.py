"""What a seed decides is the same on every processor: numbers kept here, drawn again.

Training multiplies the last bits of float32 sums, which depend on the processor; what is drawn does not.
These digests, of torch 2.13, must come out on every machine; `make test-isa` tries four instruction sets.
"""

import hashlib

import pytest
import torch

from auglabel import AugMix, Mixup, RandAug
from auglabel.augment import ops
from auglabel.lab.recipe.build import data_for
from auglabel.lab.recipe.read import read_recipe
from auglabel.lab.recipe.seeding import generator_for, seed_for
from auglabel.lab.train.feed import shuffled


def digest(*tensors):
    """Of whole numbers, and of floats by their bits."""
    found = hashlib.sha256()
    for tensor in tensors:
        found.update(f"{tensor.dtype} {tuple(tensor.shape)} ".encode())
        found.update(tensor.numpy().tobytes())
    return found.hexdigest()[:16]


def test_a_seed_of_its_own_for_each_purpose():
    """By hand: the first 8 bytes of BLAKE2b of "7/order/3", big-endian, without the last bit."""
    for words, asked in {"7/order/3": (7, "order", 3), "7/augment/3/2": (7, "augment", 3, 2)}.items():
        bytes_ = hashlib.blake2b(words.encode(), digest_size=8).digest()
        assert seed_for(*asked) == int.from_bytes(bytes_, "big") // 2
    assert seed_for(0, "split") == 5821337142108182820


def test_the_rows_of_a_split():
    _, parts = data_for(read_recipe("embedded", ["--seed=3"]))
    assert digest(parts.train.rows, parts.validation.rows, parts.test.rows) == "4e24a2d51c284203"
    _, parts = data_for(read_recipe("embedded", ["--seed=3", "--split.stratified=true"]))
    assert digest(parts.train.rows, parts.validation.rows, parts.test.rows) == "32ceda742d881c74"


def test_the_order_of_the_images():
    batches = shuffled(1000, 128, generator_for(3, "order", 5))
    assert [len(rows) for rows in batches] == [128] * 7 + [104]
    assert digest(torch.cat(batches)) == "ece88aecde3ff8df"


@pytest.fixture
def distorted(monkeypatch):
    """Operation, magnitude and sign of every image that is given to `ops.distort`."""
    asked, real = [], ops.distort

    def distort(images, operation, magnitude, sign, **options):
        asked.extend((operation, magnitude, sign))
        return real(images, operation, magnitude, sign, **options)

    monkeypatch.setattr(ops, "distort", distort)
    return asked


@pytest.mark.parametrize(
    ("augment", "expected"),
    [
        (RandAug(), "0dd2887fa8fb160e"),
        (RandAug(num_ops=2), "f972399e83bf7d46"),
        (AugMix(), "091ad8fdc43fb39a"),
    ],
    ids=["randaug", "two operations", "augmix"],
)
def test_buckets_strengths_operations_and_signs(augment, expected, grey_images, distorted):
    labels = torch.arange(500) % 10
    view = augment(grey_images, labels, generator=generator_for(3, "augment", 17))
    assert digest(view.bucket, view.strength, *distorted) == expected


def test_partners_of_mixup_and_shares_but_for_their_last_bits(grey_images):
    """Beta numbers are made with logarithms, which processors round in different ways."""
    view = Mixup()(grey_images, torch.arange(500) % 10, generator=generator_for(3, "augment", 17))
    assert digest(view.partner) == "135f1fdd53289ad3"
    assert view.share[:5].tolist() == pytest.approx([0.0718, 0.3515, 0.0624, 0.2213, 0.1579], abs=1e-4)


def test_strengths_inside_a_bucket():
    grid = AugMix().grid
    drawn = grid.draw_in(torch.arange(15).repeat(40), generator_for(3, "calibrate", 2))
    assert digest(drawn.kind, drawn.bucket, drawn.strength) == "c73661b934c0f863"
