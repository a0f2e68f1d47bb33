import copy
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from auglabel import (
    Adversarial,
    AugmentAndLabel,
    AugMix,
    AutoLabel,
    Calibration,
    FixedTable,
    LabelSmoothing,
    Mixup,
    OneHot,
    Pool,
    RandAug,
    calibrate,
)
from auglabel.data.embedded import load_embedded


@pytest.fixture
def loader():
    images, labels = load_embedded().validation
    return list(zip(images.float().div(255).split(150), labels.split(150), strict=True))


def learned(**options):
    return AugmentAndLabel(AugMix(), num_classes=10, alpha=0.5, **options)


def plain(model, loader, epochs, generators, visits=2):
    """The same with the parts, by hand."""
    augment = AugMix()
    policy, pool = AutoLabel(10, len(augment.grid), alpha=0.5), Pool(augment.grid)
    for epoch in range(epochs):
        how = {"visits": visits, "turn": epoch, "generator": generators[epoch]}
        policy.update(pool(calibrate(model, augment, loader, **how), policy.table))
    return policy.table


def seeded(*seeds):
    return [torch.Generator().manual_seed(seed) for seed in seeds]


def test_batches_come_back_moved_with_the_targets_of_their_buckets(linear_model, loader):
    together, (images, labels) = learned(), loader[0]
    together.table.copy_(torch.linspace(0.5, 1, 15))
    view = AugMix()(images, labels, generator=seeded(1)[0])
    moved, targets = together(images, labels, linear_model, generator=seeded(1)[0])
    assert torch.equal(moved, view.images)
    policy = FixedTable(10, torch.linspace(0.5, 1, 15))
    assert torch.equal(targets, policy(view))
    F.cross_entropy(linear_model(moved), targets).backward()


def test_updates_are_the_parts_by_hand(linear_model, loader):
    together = learned()
    for generator in seeded(5, 6, 7):
        together.update(linear_model, loader, generator=generator)
    assert torch.equal(together.table, plain(linear_model, loader, 3, seeded(5, 6, 7)))
    assert together.table.min() < 1
    assert together.updates == 3


def test_the_papers_rule_measures_every_image_in_every_bucket(linear_model, loader):
    together, policy = learned(rule="exact"), AutoLabel(10, 15, alpha=0.5)
    seen = together.update(linear_model, loader, generator=seeded(5)[0])
    assert (seen.count == 1000).all()
    policy.update(calibrate(linear_model, AugMix(), loader, generator=seeded(5)[0]))
    assert torch.equal(together.table, policy.table)


def test_more_visits_than_buckets_are_all(linear_model, loader):
    together = AugmentAndLabel(Mixup(), num_classes=10, alpha=0.1, visits=100)
    assert (together.update(linear_model, loader).count == 1000).all()


def test_a_resumed_one_goes_on_as_if_it_had_not_stopped(linear_model, loader, tmp_path):
    unbroken, first, second = learned(), learned(), learned()
    for _ in range(3):
        unbroken.update(linear_model, loader)
    first.update(linear_model, loader)
    torch.save(first.state_dict(), tmp_path / "state.pt")
    second.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    for _ in range(2):
        second.update(linear_model, loader)
    assert torch.equal(second.table, unbroken.table)
    assert torch.equal(second.pool.sums, unbroken.pool.sums)


def test_updating_does_not_shift_the_training_stream(linear_model, loader):
    before = torch.get_rng_state()
    learned().update(linear_model, loader)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_copy_is_its_own(linear_model, loader):
    one = learned()
    one.update(linear_model, loader)
    other = copy.deepcopy(one)
    other.update(linear_model, loader)
    assert one.updates == 1
    assert other.updates == 2
    assert not torch.equal(one.table, other.table)


def test_state_moves_with_the_module_and_sums_stay_where_they_are():
    moved = learned().to("meta")
    assert moved.table.device.type == "meta"
    assert moved.pool.sums.device.type == "cpu"


@pytest.mark.parametrize("policy", [OneHot(10), LabelSmoothing(10, rho=0.1), FixedTable(10, [0.9] * 15)])
def test_labels_that_do_not_learn_make_the_update_do_nothing(policy, linear_model, loader):
    together = AugmentAndLabel(AugMix(), policy=policy)
    _, targets = together(*loader[0])
    torch.testing.assert_close(targets.sum(dim=1), torch.ones(150))
    assert together.update(linear_model, loader) is None
    assert together.updates == 0


def test_frozen_labels_stay_and_the_loader_is_left_alone(linear_model, loader):
    together, untouched = learned(), learned()
    for each in (together, untouched):
        each.update(linear_model, loader)
    together.freeze()
    table = together.table.clone()
    assert table.min() < 1
    assert together.update(linear_model, iter(int, 1)) is None  # a loader without an end
    assert torch.equal(together.table, table)
    assert int(together.updates) == 1
    together.freeze(False)
    assert together.update(linear_model, loader) is not None
    untouched.update(linear_model, loader)
    assert not torch.equal(untouched.table, table)


def test_a_state_says_whether_labels_are_frozen_and_older_ones_are_not(linear_model, loader):
    together, again = learned(), learned()
    together.update(linear_model, loader)
    together.freeze()
    state = together.state_dict()
    again.load_state_dict(state)
    assert again.update(linear_model, loader) is None
    del state["frozen"]
    kept = dict(state)
    again.load_state_dict(state)
    assert state.keys() == kept.keys()  # the caller's is left as it was
    assert again.update(linear_model, loader) is not None


def test_another_policy_that_learns_may_come_with_its_own_start(linear_model, loader):
    policy = AutoLabel(10, 15, alpha=0.5)
    policy.table.fill_(0.7)
    together = AugmentAndLabel(AugMix(), policy=policy)
    together.update(linear_model, loader)
    assert together.table is policy.table
    assert not torch.equal(policy.table, torch.full((15,), 0.7))


def test_attacks_get_the_model(loader):
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    together = AugmentAndLabel(Adversarial(epsilon_max=0.1, steps=2), num_classes=10, alpha=0.1)
    images, _ = together(*loader[0], model)
    assert 0 < (images - loader[0][0]).abs().max() <= 0.1001


def test_one_hot_labels_have_no_table():
    with pytest.raises(TypeError, match="OneHot has no table"):
        AugmentAndLabel(AugMix(), policy=OneHot(10)).table  # noqa: B018


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        (("augmix", 10, 0.1), {}, "AugmentAndLabel takes an Augmentation, such as AugMix"),
        ((AugMix(),), {}, "AugmentAndLabel takes num_classes, or a policy"),
        ((AugMix(),), {"policy": OneHot(10), "epochs": 5}, "got both"),
        ((AugMix(), 10), {"policy": OneHot(10)}, "got both"),
        ((AugMix(),), {"policy": "one_hot"}, "policy must be a LabelPolicy"),
        ((RandAug(),), {"policy": FixedTable(10, [1.0])}, "a table of 1 buckets, but RandAug has 82"),
        ((AugMix(), 10, 0.1), {"rule": "paper"}, 'rule must be "pooled" or "exact"'),
        ((AugMix(), 10, 0.1), {"visits": 0}, "visits must be at least 1"),
        ((AugMix(), 10, 0.1), {"mean": [0.5]}, "mean and std come together, got only one"),
        ((AugMix(), 10, 0.1), {"mean": [0.5], "std": [0.0]}, "std above 0"),
    ],
)
def test_mistakes_get_a_sentence(arguments, options, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        AugmentAndLabel(*arguments, **options)


@pytest.mark.parametrize(
    ("saved", "loading"),
    [
        (AugMix(3, 5), AugMix(5, 3)),
        (RandAug(operations=["rotate", "shear_x"]), RandAug(operations=["shear_x", "rotate"])),
    ],
    ids=["levels", "order"],
)
def test_the_state_of_another_grid_of_equal_size_is_refused_and_changes_nothing(saved, loading):
    one, other = AugmentAndLabel(saved, 10, 0.1), AugmentAndLabel(loading, 10, 0.1)
    one.table.fill_(0.5)
    state = one.state_dict()
    with pytest.raises(ValueError, match="saved for other distances"):
        other.load_state_dict(state)
    with pytest.raises(ValueError, match="saved for other distances"):
        other.pool.load_state_dict(one.pool.state_dict())
    assert (other.table == 1).all()
    again = AugmentAndLabel(saved, 10, 0.1)
    again.load_state_dict(state)
    assert (again.table == 0.5).all()


def test_normalised_images_stay_so_and_labels_are_those_of_a_model_that_normalises(linear_model, loader):
    class Inside(nn.Module):
        def forward(self, images):
            return linear_model((images - 0.286) / 0.353)

    pixels, outside = learned(), learned(mean=[0.286], std=[0.353])
    normalised = [((images - 0.286) / 0.353, labels) for images, labels in loader]
    for _ in range(2):
        pixels.update(Inside(), loader)
        outside.update(linear_model, normalised)
    torch.testing.assert_close(
        outside.table, pixels.table, atol=1e-3, rtol=0
    )  # a pixel may move by one level
    assert pixels.table.min() < 0.95
    moved, targets = outside(*normalised[0], generator=seeded(1)[0])
    expected, same = pixels(*loader[0], generator=seeded(1)[0])
    assert (moved * 0.353 + 0.286 - expected).abs().mean() < 1e-4
    torch.testing.assert_close(targets, same, atol=1e-3, rtol=0)


def test_normalised_images_without_mean_and_std_are_named(loader):
    images, labels = loader[0]
    with pytest.raises(ValueError, match="pass the mean= and std= that they were normalised with to"):
        learned()((images - 0.286) / 0.353, labels)


@pytest.mark.parametrize("augment", [AugMix(), Mixup()])
def test_ignored_labels_get_no_target_and_change_none_of_the_others(augment, loader):
    images, labels = loader[0]
    together = AugmentAndLabel(augment, policy=FixedTable(10, [0.8] * len(augment.grid)), ignore_index=-1)
    some = labels.where(torch.arange(150) % 5 > 0, -1)
    moved, targets = together(images, some, generator=seeded(1)[0])
    view = augment(images, some, generator=seeded(1)[0])
    ignored = view.labels == -1
    if view.partner is not None:
        ignored |= view.partner == -1
        assert ignored.sum() > 30
    assert (targets[ignored] == 0).all()
    expected = together.policy(augment(images, labels, generator=seeded(1)[0]))
    assert torch.equal(targets[~ignored], expected[~ignored])
    assert torch.equal(moved, view.images)


def test_ignored_labels_are_not_measured(linear_model, loader):
    together, plain = learned(ignore_index=-1), learned()
    first = loader[0][0][:100], loader[0][1][:100]
    seen = together.update(linear_model, [(loader[0][0], loader[0][1].where(torch.arange(150) < 100, -1))])
    assert seen.count.sum() == 200  # two visits
    assert torch.equal(seen.sums, plain.update(linear_model, [first]).sums)
    with pytest.raises(ValueError, match="labels"):
        learned().update(linear_model, [(loader[0][0], torch.full((150,), -1))])


@pytest.mark.parametrize("kind", [torch.uint8, torch.int16, torch.int32])
def test_labels_of_any_integer_type_are_those_of_int64(kind, linear_model, loader):
    (images, labels), *_ = loader
    plain, other = (AugmentAndLabel(AugMix(), policy=AutoLabel(10, 15, alpha=0.5)) for _ in range(2))
    assert torch.equal(
        plain(images, labels, generator=seeded(1)[0])[1],
        other(images, labels.to(kind), generator=seeded(1)[0])[1],
    )
    plain.update(linear_model, [(images, labels)])
    other.update(linear_model, [(images, labels.to(kind))])
    assert torch.equal(plain.table, other.table)
    with pytest.raises(TypeError, match=r"labels must be whole numbers of shape \(N,\), got a float32"):
        plain(images, labels.float())


def test_several_crops_of_each_image_are_told_how_to_come(loader):
    (images, labels), *_ = loader
    with pytest.raises(ValueError, match=r"flatten\(0, 1\), and repeat_interleave the labels"):
        learned()(torch.stack([images, images], dim=1), labels)


def test_it_shows_the_table_with_names(capsys):
    together = AugmentAndLabel(RandAug(m_max=3, operations=["rotate", "equalize"]), num_classes=10, alpha=0.1)
    together.table.copy_(torch.tensor([0.995, 0.9, 0.75, 0.625]))
    together.show()
    assert capsys.readouterr().out.splitlines() == [
        "Label confidence in %, after 0 updates",
        "magnitude     1     2     3",
        "   rotate  99.5  90.0  75.0",
        " equalize  62.5",
    ]


def test_what_they_are_can_be_read_off_them():
    together = AugmentAndLabel(RandAug(m_max=3, operations=["rotate", "color"]), num_classes=10, alpha=0.1)
    together.table[1] = 0.75
    assert repr(together).splitlines() == [
        "AugmentAndLabel(",
        "  RandAug(m_max=3, operations=['rotate', 'color']), rule=pooled, visits=2, updates=0",
        "  (policy): AutoLabel(num_classes=10, alpha=0.1, 6 buckets from 0.750 to 1.000)",
        "  (pool): Pool(buckets=6, memory=0.5, images=0)",
        ")",
    ]
    assert repr(LabelSmoothing(10, rho=0.1)) == "LabelSmoothing(num_classes=10, rho=0.1)"
    assert [repr(each) for each in (AugMix(), AugMix(2), Mixup(beta=0.4))] == [
        "AugMix()",
        "AugMix(2)",
        "Mixup(beta=0.4)",
    ]
    for again in (copy.deepcopy(AugMix(2)), pickle.loads(pickle.dumps(AugMix(2)))):
        assert repr(again) == "AugMix(2)"
        assert len(again.grid) == 10


def test_what_was_measured_can_be_read_off_it():
    seen = Calibration(groups=2, bins=10)
    assert repr(seen) == "Calibration(groups=2, bins=10, count=0)"
    seen.update(torch.tensor([[0.9, 0.1], [0.3, 0.7]]), torch.tensor([1, 1]), torch.tensor([0, 1]))
    assert repr(seen) == "Calibration(groups=2, bins=10, count=2, accuracy=0.500, confidence=0.800)"
    view = Mixup()(torch.zeros(2, 1, 4, 4), torch.tensor([0, 1]))
    assert repr(view).startswith("View(images=a float32 tensor of shape (2, 1, 4, 4), labels=a int64 tensor")
