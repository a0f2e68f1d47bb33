import runpy
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

from auglabel import Adversarial, AugMix, AutoLabel, Erasing, Mixup, RandAug, SoftAugmentation
from auglabel.data.embedded import load_embedded
from auglabel.integrations.loader import MovedSet, views

EXAMPLE = Path(__file__).parents[1] / "examples" / "with_loader_workers.py"


@pytest.fixture(scope="module")
def rows():
    images, labels = load_embedded().train
    return TensorDataset(images[:60], labels[:60])


def drawn(rows, epochs=(0, 1), seed=0, **options):
    order = RandomSampler(rows, generator=torch.Generator().manual_seed(3))
    loader = DataLoader(MovedSet(rows, RandAug(), seed), 25, sampler=order, **options)
    return [view for epoch in epochs for view in views(loader, epoch)]


@pytest.mark.parametrize("options", [{"num_workers": 2}, {"num_workers": 2, "persistent_workers": True}])
def test_views_are_the_same_with_any_number_of_workers(rows, options):
    for one, other in zip(drawn(rows), drawn(rows, **options), strict=True):
        assert torch.equal(one.images, other.images)
        assert torch.equal(one.labels, other.labels)
        assert torch.equal(one.bucket, other.bucket)
        assert torch.equal(one.strength, other.strength)


def test_seeds_and_epochs_draw_anew(rows):
    moved = MovedSet(rows, AugMix())
    first, again = moved[5], moved[5]
    assert torch.equal(first[0], again[0])
    moved.set_epoch(1)
    assert not torch.equal(moved[5][0], first[0])
    assert not torch.equal(MovedSet(rows, AugMix(), seed=1)[5][0], first[0])


def test_an_example_is_what_the_augmentation_makes_of_it(rows):
    moved = MovedSet(rows, AugMix())
    image, label, bucket, strength = moved[7]
    assert image.shape == (1, 28, 28)
    assert label == rows[7][1]
    kind = bucket // 5
    assert AugMix().grid.locate(kind[None], strength[None]).bucket == bucket
    assert len(moved) == 60


def test_labels_of_erased_images_know_how_much_is_visible():
    images = torch.ones(40, 1, 28, 28)
    pictures = TensorDataset(images, torch.zeros(40, dtype=torch.int64))
    (view,) = views(DataLoader(MovedSet(pictures, Erasing()), 40), 0)
    hidden = (view.images != 1).double().mean(dim=(1, 2, 3))  # of white pictures: counted, not asked for
    assert len(set(hidden.tolist())) > 5
    expected = 1 - 0.9 * hidden**2
    torch.testing.assert_close(SoftAugmentation(10).confidence(view).double(), expected, atol=1e-6, rtol=0)


def test_targets_come_from_the_newest_table(rows):
    policy = AutoLabel(10, 15, alpha=0.1)
    for number, view in enumerate(views(DataLoader(MovedSet(rows, AugMix()), 20, num_workers=1), 0)):
        policy.table.fill_(1 - number / 10)
        assert policy(view).amax(dim=1).tolist() == pytest.approx([1 - number / 10] * 20)


def test_what_cannot_be_done_image_by_image_gets_a_sentence(rows):
    with pytest.raises(ValueError, match="Mixup mixes images of one batch"):
        MovedSet(rows, Mixup())[0]
    with pytest.raises((TypeError, ValueError), match="model"):
        MovedSet(rows, Adversarial())[0]
    with pytest.raises(TypeError, match="takes images as tensors"):
        MovedSet([("picture", 0)], AugMix())[0]
    with pytest.raises(TypeError, match="views takes a loader of a MovedSet"):
        list(views(DataLoader(rows), 0))


def test_the_example_gives_the_same_table_with_and_without_workers(capsys):
    main = runpy.run_path(str(EXAMPLE))["main"]
    tables = [main(epochs=1, workers=workers, rows=300) for workers in (0, 2)]
    assert torch.equal(*tables)
    assert "label confidence" in capsys.readouterr().out
