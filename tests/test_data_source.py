"""Sources give the rows asked for; a data set's checksum and statistics are those of its content."""

import pytest
import torch

from auglabel.data.source import InMemory, Subset, checksum, in_memory, statistics


def source() -> InMemory:
    images = torch.arange(4 * 2 * 3, dtype=torch.uint8).reshape(4, 1, 2, 3)
    return InMemory(images, torch.tensor([0, 1, 0, 1]))


def test_rows_come_in_the_order_asked_for_whatever_the_draw():
    images = source().fetch(torch.tensor([2, 0]), draw=7)

    assert images[:, 0, 0, 0].tolist() == [12, 0]
    assert source().shape == (1, 2, 3)
    assert len(source()) == 4


def test_a_subset_of_a_subset_finds_its_images_and_labels():
    inner = Subset(source(), torch.tensor([3, 1, 0]))
    outer = Subset(inner, torch.tensor([2, 0]))

    assert outer.labels.tolist() == [0, 1]
    assert outer.fetch(torch.tensor([0, 1]))[:, 0, 0, 0].tolist() == [0, 18]


def test_a_row_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match=r"rows must be in 0\.\.3 for 4 images, got 4"):
        Subset(source(), torch.tensor([4]))


def test_images_must_be_bytes():
    with pytest.raises(TypeError, match="images must be uint8 of shape"):
        InMemory(torch.zeros(1, 1, 2, 2), torch.tensor([0]))


def test_one_pixel_or_one_label_changes_the_checksum():
    plain, pixel, label = source(), source(), source()
    pixel.images[3, 0, 1, 2] += 1
    label.labels[0] = 1

    assert len({checksum([one]) for one in (plain, pixel, label)}) == 3
    assert checksum([plain]) == checksum([source()])


def test_moving_an_image_from_train_to_test_changes_the_checksum():
    whole = source()
    first, rest = (InMemory(whole.images[part], whole.labels[part]) for part in (slice(1), slice(1, None)))

    assert checksum([whole]) != checksum([first, rest])


def test_mean_and_std_are_per_channel_of_pixels_in_the_unit_interval():
    images = torch.tensor([[0, 255], [51, 51]], dtype=torch.uint8).reshape(1, 2, 1, 2)

    mean, std = statistics(images)

    assert mean == pytest.approx((0.5, 0.2))
    assert std == pytest.approx((0.5, 1 / 255))  # one colour: kept away from zero


def test_statistics_look_at_evenly_spaced_images():
    images = torch.tensor([0, 7, 255, 9, 255], dtype=torch.uint8).reshape(5, 1, 1, 1)

    assert statistics(images, most=3)[0] == pytest.approx((2 / 3,))  # rows 0, 2 and 4


def test_given_statistics_are_kept():
    data = in_memory("toy", ["a", "b"], source(), None, mean=[0.1], std=[0.2], notes=["n"])

    assert (data.mean, data.std, data.notes, data.classes) == ((0.1,), (0.2,), ("n",), ("a", "b"))
