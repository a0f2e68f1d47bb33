import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from auglabel import DistanceGrid

grids = st.lists(st.integers(1, 1000), min_size=1, max_size=12).map(
    lambda levels: DistanceGrid(tuple(levels))
)


@given(grids, st.integers(0, 2**32 - 1))
def test_a_distance_drawn_in_a_bucket_is_located_there(grid, seed):
    generator = torch.Generator().manual_seed(seed)
    bucket = torch.randint(len(grid), (200,), generator=generator)
    drawn = grid.draw_in(bucket, generator)
    assert torch.equal(drawn.bucket, bucket)
    assert torch.equal(grid.locate(drawn.kind, drawn.strength).bucket, bucket)
    assert ((drawn.strength > 0) & (drawn.strength <= 1)).all()


@given(grids)
def test_every_edge_belongs_to_the_cell_below_it(grid):
    kind = torch.cat([torch.full((levels,), k) for k, levels in enumerate(grid.levels)])
    edge = torch.cat([torch.arange(1, levels + 1) / levels for levels in grid.levels])
    assert torch.equal(grid.locate(kind, edge).bucket, torch.arange(len(grid)))


def test_buckets_are_numbered_kind_by_kind_from_weak_to_strong():
    grid = DistanceGrid((2, 1, 3))
    kind = torch.tensor([0, 0, 1, 2, 2, 2])
    strength = torch.tensor([0.5, 0.6, 0.0, 0.3, 0.4, 1.0])
    assert grid.locate(kind, strength).bucket.tolist() == [0, 1, 2, 3, 4, 5]
    assert len(grid) == 6


def test_draws_are_uniform_over_kinds_and_strengths():
    grid = DistanceGrid((10, 1))
    drawn = grid.draw(20000, generator=torch.Generator().manual_seed(0))
    share = torch.bincount(drawn.bucket, minlength=11) / 20000
    torch.testing.assert_close(share, torch.tensor([0.05] * 10 + [0.5]), atol=0.012, rtol=0)


def test_draws_inside_a_bucket_are_uniform_over_it():
    grid = DistanceGrid((5,))
    strength = grid.draw_in(torch.full((20000,), 2), torch.Generator().manual_seed(0)).strength
    assert strength.min() > 0.4
    assert strength.max() <= 0.6
    quarter = torch.quantile(strength, torch.tensor([0.25, 0.5, 0.75]))
    torch.testing.assert_close(quarter, torch.tensor([0.45, 0.5, 0.55]), atol=0.004, rtol=0)


def test_same_seed_same_draw():
    grid = DistanceGrid((10, 3))
    first, second = (grid.draw(50, generator=torch.Generator().manual_seed(7)) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("levels", [(), (0,), (3, -1), (1001,)])
def test_levels_below_one_or_too_many_are_refused(levels):
    with pytest.raises(ValueError, match=r"levels"):
        DistanceGrid(levels)


def test_kinds_have_names_and_levels_may_come_as_a_list():
    assert DistanceGrid([2, 1]) == DistanceGrid((2, 1))
    assert DistanceGrid((2, 1)).kinds == ("1", "2")
    assert DistanceGrid((2, 1), ("rotate", "equalize")).kinds == ("rotate", "equalize")
    with pytest.raises(ValueError, match="a name of its own for each of 2 kinds"):
        DistanceGrid((2, 1), ("rotate", "rotate"))
    with pytest.raises(ValueError, match=r"levels of each kind, such as \(10, 10, 1\), got int 10"):
        DistanceGrid(10)


def test_bucket_kind_and_strength_out_of_range_are_refused():
    grid = DistanceGrid((2, 1))
    with pytest.raises(ValueError, match=r"bucket must be in 0..2 for 3 buckets, got 3"):
        grid.draw_in(torch.tensor([0, 3]))
    with pytest.raises(ValueError, match=r"bucket must be in 0..2 for 3 buckets, got -1"):
        grid.draw_in(torch.tensor([-1]))
    with pytest.raises(ValueError, match=r"kind must be in 0..1 for 2 kinds, got 2"):
        grid.locate(torch.tensor([2]), torch.tensor([0.5]))
    with pytest.raises(ValueError, match=r"strength must be in \[0, 1\], got 1.5"):
        grid.locate(torch.tensor([0]), torch.tensor([1.5]))
    with pytest.raises(TypeError, match=r"bucket must be an int64 tensor"):
        grid.draw_in(torch.tensor([0.0]))
