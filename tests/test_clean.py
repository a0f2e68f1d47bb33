import pytest
import torch

from auglabel import Clean


def test_every_image_is_a_crop_of_its_padded_self_perhaps_mirrored():
    images = torch.rand(400, 3, 6, 6) + 0.0
    view = Clean(pad=2)(images, torch.zeros(400).long(), generator=torch.Generator().manual_seed(0))
    padded = torch.nn.functional.pad(images, (2, 2, 2, 2))
    seen = set()
    for i in range(400):
        for top in range(5):
            for left in range(5):
                crop = padded[i, :, top : top + 6, left : left + 6]
                for mirrored in (False, True):
                    if torch.equal(view.images[i], crop.flip(2) if mirrored else crop):
                        seen.add((i, top, left, mirrored))
    assert len({i for i, *_ in seen}) == 400
    assert len({place for _, *place in seen for place in [tuple(place)]}) == 50


def test_the_distance_is_zero():
    view = Clean()(torch.rand(5, 1, 4, 4), torch.zeros(5).long())
    assert (view.strength == 0).all()
    assert (view.bucket == 0).all()


def test_without_padding_and_flip_nothing_happens():
    images = torch.rand(5, 1, 4, 4)
    same = Clean(pad=0, flip=False)(images, torch.zeros(5).long()).images
    assert torch.equal(same, images)
    assert same.data_ptr() != images.data_ptr()


def test_a_negative_pad_is_refused():
    with pytest.raises(ValueError, match="pad must be at least 0, got -1"):
        Clean(pad=-1)
