"""Batches: who gets which rows, and that worker processes change nothing but the time."""

import os

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from auglabel.data.folder import folder
from auglabel.data.source import InMemory, Source, Subset
from auglabel.lab.train.feed import Feed, batches, in_turn, shuffled


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def numbered(count):
    """Images whose pixel, and label, is their row."""
    rows = torch.arange(count)
    return InMemory(rows.byte()[:, None, None, None].clone(), rows)


@given(count=st.integers(0, 60), batch_size=st.integers(1, 9), world=st.integers(1, 7))
def test_shares_are_disjoint_cover_everything_and_differ_by_at_most_one(count, batch_size, world):
    shares = [in_turn(numbered(count), batch_size, rank, world) for rank in range(world)]
    rows = [[row for batch in share for row in batch.tolist()] for share in shares]
    assert sorted(row for share in rows for row in share) == list(range(count))
    assert all(share == sorted(share) for share in rows)
    assert max(map(len, rows)) - min(map(len, rows)) <= 1
    assert all(1 <= len(batch) <= batch_size + 1 for share in shares for batch in share)
    assert all(len(batch) > 1 or batch_size == 1 for share in shares for batch in share[1:])


@given(count=st.integers(1, 60), batch_size=st.integers(4, 70), world=st.integers(1, 4))
def test_the_shuffled_order_is_a_permutation_and_no_rank_is_left_with_one_image(count, batch_size, world):
    if count < world:
        with pytest.raises(ValueError, match="leave some of"):
            shuffled(count, batch_size, seeded(), world)
        return
    parts = shuffled(count, batch_size, seeded(), world)
    assert sorted(row for part in parts for row in part.tolist()) == list(range(count))
    assert all(len(part) == batch_size for part in parts[:-1])
    assert len(parts) == 1 or len(parts[-1]) >= min(2 * world, batch_size)


def test_a_batch_too_small_for_the_processes_is_refused():
    with pytest.raises(ValueError, match="batch_size 2 leaves some of 3 processes without an image"):
        shuffled(50, 2, seeded(), world=3)


def test_the_seed_decides_the_order():
    first, again, other = (torch.cat(shuffled(50, 8, seeded(seed))) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(first, torch.arange(50))


def test_rows_come_with_their_images_and_labels():
    source = Subset(numbered(20), torch.tensor([5, 11, 3]))
    found = list(batches(source, [torch.tensor([2, 0]), torch.tensor([1])], workers=3))
    assert [(images.flatten().tolist(), labels.tolist()) for images, labels in found] == [
        ([3, 5], [3, 5]),
        ([11], [11]),
    ]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Six pictures of 12 x 10 in two classes."""
    root = tmp_path_factory.mktemp("pictures")
    for number in range(6):
        pixels = np.random.default_rng(number).integers(0, 256, (10, 12, 3), dtype=np.uint8)
        path = root / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(pixels).save(path)
    return root


ROWS = [torch.tensor([4, 0]), torch.tensor([1, 5, 2]), torch.tensor([3])]


def test_workers_give_the_same_batches_as_none(pictures):
    source = folder(pictures, memory_gb=0, cache=False).train
    assert source.streams
    alone, helped = (list(batches(source, ROWS, workers=workers)) for workers in (0, 2))
    assert len(alone) == len(helped) == 3
    for one, other in zip(alone, helped, strict=True):
        assert torch.equal(one[0], other[0])
        assert torch.equal(one[1], other[1])
    assert torch.equal(alone[0][0], source.fetch(ROWS[0]))


@pytest.mark.parametrize("decode", ["exact", "fast"])
def test_the_same_draw_gives_the_same_crops_with_any_number_of_workers(pictures, decode):
    source = folder(pictures, size=6, train_crop="random_resized", decode=decode).train
    one, *helped, other = (
        torch.cat([images for images, _ in Feed(source, workers).batches(ROWS, draw)])
        for draw, workers in ((7, 0), (7, 1), (7, 2), (8, 0))
    )
    assert all(torch.equal(one, each) for each in helped)
    assert not torch.equal(one, other)


class Pids(Source):
    """A streaming source whose pixels say which process made them, and in which draw."""

    streams = True

    def __init__(self, count):
        self.labels, self.shape = torch.arange(count), (1, 1, 2)

    def fetch(self, rows, draw=None):
        made = torch.tensor([os.getpid(), -1 if draw is None else draw])
        return made.expand(len(rows), 1, 1, 2).clone()


def test_workers_stay_from_one_pass_to_the_next_even_if_one_was_left_early():
    feed, rows = Feed(Pids(8), workers=2), [torch.tensor([n]) for n in range(8)]
    first = list(feed.batches(rows, draw=1))
    next(feed.batches(rows, draw=2))
    last = list(feed.batches(rows[:4], draw=3))

    pids = [{int(images[0, 0, 0, 0]) for images, _ in each} for each in (first, last)]
    assert pids[0] == pids[1]
    assert len(pids[0]) == 2
    assert os.getpid() not in pids[0]
    assert [(int(images[0, 0, 0, 1]), int(labels)) for images, labels in last] == [(3, n) for n in range(4)]


def test_workers_leave_the_global_random_stream_alone(pictures):
    source = folder(pictures, memory_gb=0, cache=False).train
    before = torch.random.get_rng_state()
    list(batches(source, ROWS, workers=1))
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_broken_picture_is_one_sentence_that_names_it(pictures, workers, tmp_path):
    root = tmp_path / "broken"
    for path in sorted(pictures.rglob("*.png")):
        target = root / path.relative_to(pictures)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    source = folder(root, size=6, memory_gb=0, cache=False).train
    (root / "a" / "4.png").write_bytes(b"no picture")
    with pytest.raises(ValueError, match=r"a/4\.png is broken and cannot be read") as caught:
        list(batches(source, [torch.arange(6)], workers=workers))
    assert "\n" not in str(caught.value)
