"""The place of timm's Mixup, in timm's own loop with its own loaders and networks."""

import copy
import runpy
from pathlib import Path

import torch

from auglabel import AugmentAndLabel, AugMix
from auglabel.augment.normalized import OnNormalized
from auglabel.data.embedded import Split, load_embedded
from auglabel.integrations.timm import TimmMixup

EXAMPLE = Path(__file__).parents[2] / "examples" / "with_timm.py"
MEAN, STD = (0.286,), (0.353,)


def test_the_example_runs_to_the_end(capsys):
    table = runpy.run_path(str(EXAMPLE))["main"](epochs=2, rows=640)
    assert table.shape == (15,)
    assert len(capsys.readouterr().out.splitlines()) == 2


def parts(rows=200):
    """timm's network and loaders, for the first images."""
    from timm import create_model
    from timm.data import create_loader

    pictures = runpy.run_path(str(EXAMPLE))["Pictures"]
    train, validation, _ = load_embedded()
    shared = {"input_size": (1, 28, 28), "mean": MEAN, "std": STD, "num_workers": 0, "crop_pct": 1.0}
    shared |= {"device": torch.device("cpu"), "persistent_workers": False, "batch_size": 64}
    first = [Split(split.images[:rows], split.labels[:rows]) for split in (train, validation)]
    torch.manual_seed(0)
    model = create_model("test_resnet", num_classes=10, in_chans=1)
    loaders = [create_loader(pictures(split), use_prefetcher=False, **shared) for split in first]
    return model, *loaders


def test_the_table_is_that_of_a_plain_loop_from_the_same_networks():
    from timm.loss import SoftTargetCrossEntropy

    model, train, validation = parts()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    mixup_fn, kept = TimmMixup(AugMix(), 10, alpha=0.5, mean=MEAN, std=STD), []
    mixup_fn.learned.table.fill_(0.9)
    for _ in range(2):
        model.train()
        for images, labels in train:
            images, targets = mixup_fn(images, labels)
            SoftTargetCrossEntropy()(model(images), targets).backward()
            optimizer.step()
            optimizer.zero_grad()
        mixup_fn.update(model, validation)
        kept.append((copy.deepcopy(model), mixup_fn.learned.table.clone()))
    learned = AugmentAndLabel(OnNormalized(AugMix(), MEAN, STD), 10, alpha=0.5)
    learned.table.fill_(0.9)
    for net, table in kept:
        learned.update(net, list(validation))
        assert torch.equal(learned.table, table)
    assert (table != 0.9).all()


def test_the_loaders_images_are_the_pixels_that_mean_and_std_say():
    _, _, validation = parts(64)
    (images, _), *_ = validation
    pixels = load_embedded().validation.images[:64].float() / 255
    torch.testing.assert_close(images * 0.353 + 0.286, pixels)


def test_it_takes_the_place_of_mixup_where_timm_calls_it():
    from timm.data import Mixup

    _, train, _ = parts(64)
    (images, labels), *_ = train
    ours = TimmMixup(AugMix(), 10, alpha=0.1, mean=MEAN, std=STD)
    theirs = Mixup(num_classes=10)
    for mixup_fn in (ours, theirs):
        assert mixup_fn.mixup_enabled
        moved, targets = mixup_fn(images.clone(), labels)
        assert moved.shape == images.shape
        assert targets.shape == (64, 10)
        torch.testing.assert_close(targets.sum(dim=1), torch.ones(64))
