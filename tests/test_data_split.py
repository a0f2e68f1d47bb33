"""Splits are disjoint, seeded, of the sizes asked for and, on request, proportional."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from auglabel.data.source import DataSet, InMemory
from auglabel.data.split import proportional, split


def data_set(train: list[int], test: list[int] | None = None) -> DataSet:
    """As many one-pixel images of each class as the lists say."""

    def source(counts):
        labels = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
        return InMemory(torch.zeros(len(labels), 1, 1, 1, dtype=torch.uint8), labels)

    names = tuple(str(label) for label in range(len(train)))
    return DataSet("toy", names, source(train), None if test is None else source(test), (0.5,), (0.5,), "")


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


counts = st.lists(st.integers(1, 40), min_size=2, max_size=8)


@given(counts, counts | st.none(), st.booleans(), st.sampled_from(["train", "test"]), st.data())
def test_parts_have_the_sizes_asked_for_and_share_no_image(train, test, stratified, validation_from, draw):
    data = data_set(train, test)
    if test is None:
        validation_from = "train"
    pool = sum(test) if validation_from == "test" else sum(train)
    tested = draw.draw(st.integers(0, pool - 1)) if test is None else 0
    validation = draw.draw(st.integers(0, pool - tested - 1))
    left = sum(train) - (0 if validation_from == "test" else validation + tested)
    trained = draw.draw(st.none() | st.integers(1, left))

    parts = split(
        data,
        train=trained,
        validation=validation,
        test=tested if test is None else None,
        validation_from=validation_from,
        stratified=stratified,
        generator=seeded(),
    )

    tests = tested if test is None else sum(test) - (validation if validation_from == "test" else 0)
    assert [len(parts.train), len(parts.validation), len(parts.test)] == [trained or left, validation, tests]
    taken = [(id(part.source), row) for part in vars(parts).values() for row in part.rows.tolist()]
    assert len(set(taken)) == len(taken)


@given(counts, st.data())
def test_stratified_parts_have_each_class_s_share_within_one_image(train, draw):
    total = sum(train)
    tested = draw.draw(st.integers(0, total - 1))
    validation = draw.draw(st.integers(0, total - tested - 1))
    trained = draw.draw(st.integers(1, total - tested - validation))

    parts = split(
        data_set(train),
        train=trained,
        validation=validation,
        test=tested,
        stratified=True,
        generator=seeded(),
    )

    for part in vars(parts).values():
        found = part.labels.bincount(minlength=len(train))
        exact = torch.tensor(train, dtype=torch.float64) * len(part) / total
        assert (found - exact).abs().max() < 1
        assert found[exact >= 1].all()  # a class with an image's worth of a part is in it


@given(counts, st.data())
def test_proportional_keeps_both_sums(rows, draw):
    first = draw.draw(st.integers(0, sum(rows)))
    second = draw.draw(st.integers(0, sum(rows) - first))
    sizes = [first, second, sum(rows) - first - second]

    table = proportional(rows, sizes)

    assert [sum(row) for row in table] == rows
    assert [sum(column) for column in zip(*table, strict=True)] == sizes


def test_stratified_halves_of_small_classes_are_exact():
    parts = split(
        data_set([4, 2], [6, 2]), validation=4, validation_from="test", stratified=True, generator=seeded()
    )

    assert parts.validation.labels.bincount().tolist() == [3, 1]
    assert parts.test.labels.bincount().tolist() == [3, 1]


def test_the_only_image_of_a_class_is_trained_on():
    parts = split(data_set([1, 99]), validation=10, test=30, stratified=True, generator=seeded())

    assert 0 in parts.train.labels


def test_shares_are_of_the_images_they_are_cut_from():
    parts = split(data_set([50, 50], [10, 10]), train=0.5, validation=0.25, test=0.1, generator=seeded())

    assert [len(parts.train), len(parts.validation), len(parts.test)] == [50, 25, 2]


def test_shares_that_add_up_to_one_always_fit():
    parts = split(data_set([2, 3]), train=0.6, validation=0.2, test=0.2, generator=seeded())

    assert [len(parts.train), len(parts.validation), len(parts.test)] == [3, 1, 1]


def test_a_fifth_is_set_aside_as_test_when_the_data_have_none():
    parts = split(data_set([50, 50]), validation=10, generator=seeded())

    assert [len(parts.train), len(parts.validation), len(parts.test)] == [70, 10, 20]


def test_one_seed_gives_one_split_and_another_seed_another():
    data = data_set([50, 50], [10, 10])
    once, again, other = (split(data, validation=20, generator=seeded(seed)) for seed in (1, 1, 2))

    assert once.validation.rows.equal(again.validation.rows)
    assert once.train.rows.equal(again.train.rows)
    assert set(once.validation.rows.tolist()) != set(other.validation.rows.tolist())


def test_validation_rows_do_not_depend_on_how_many_are_trained_on():
    data = data_set([50, 50], [10, 10])
    few, many = (split(data, train=train, validation=20, generator=seeded()) for train in (5, 60))

    assert few.validation.rows.equal(many.validation.rows)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"train": 90, "validation": 20},
            "toy's training 100 images cannot be cut into validation 20, train 90: 10 ",
        ),
        ({"validation": 100}, "toy's training 100 images leave none for train after validation 100"),
        (
            {"validation": 1.5},
            r"validation must be a whole number of images or a share in \(0, 1\), got 1.5",
        ),
        ({"validation": -1}, "validation must be a number of images or a share .* got int -1"),
        ({"validation": True}, "got bool True"),
        ({"validation": "5"}, "got str '5'"),
        ({"validation": float("nan")}, "got float nan"),
        ({"validation": 0.001}, "validation 0.001 of toy's training 100 images is not one image"),
        ({"validation": 5, "train": 0}, "train must be at least 1 image, got 0"),
        ({"validation": 5, "test": 21}, "toy's test 20 images cannot be cut into test 21: 1 are missing"),
        (
            {"validation": 20, "validation_from": "test"},
            "toy's test 20 images leave none for test after validation 20",
        ),
        ({"validation": 5, "validation_from": "both"}, 'validation_from must be "train" or "test"'),
    ],
)
def test_a_cut_that_does_not_fit_says_so_with_its_numbers(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        split(data_set([50, 50], [10, 10]), **options, generator=seeded())


def test_validation_cannot_come_from_test_images_that_are_not_there():
    with pytest.raises(ValueError, match="toy has no test images to cut validation from"):
        split(data_set([5, 5]), validation=2, validation_from="test", generator=seeded())


def test_a_seed_of_its_own_fixes_which_images_validate_and_test_whatever_the_run_draws():
    data = data_set([30, 30], [20, 20])

    def parts(seed, run, train=None):
        options = {"validation": 0.5, "validation_from": "test", "train": train, "seed": seed}
        return split(data, generator=seeded(run), **options)

    one, other = parts(7, run=1), parts(7, run=2, train=10)
    assert one.validation.rows.tolist() == other.validation.rows.tolist()
    assert one.test.rows.tolist() == other.test.rows.tolist()
    assert parts(7, 1, 10).train.rows.tolist() != other.train.rows.tolist()  # which are the run's own
    assert parts(8, run=1).test.rows.tolist() != one.test.rows.tolist()
    assert parts(None, run=1).test.rows.tolist() != parts(None, run=2).test.rows.tolist()


def test_the_seed_of_a_split_is_a_whole_number():
    with pytest.raises(ValueError, match="seed must be at least 0, got -1"):
        split(data_set([5, 5]), seed=-1, generator=seeded())
