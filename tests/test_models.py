import importlib
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch import nn

from auglabel.models.by_name import model_function
from auglabel.models.fast import FastNet
from auglabel.models.normalize import Normalize
from auglabel.models.small import SmallNet


def test_normalize_by_hand_and_bytes_are_255ths():
    layer = Normalize(mean=[0.5, 0.2], std=[0.25, 0.1])
    pixels = torch.tensor([0.0, 1.0]).view(1, 2, 1, 1)
    torch.testing.assert_close(layer(pixels).flatten(), torch.tensor([-2.0, 8.0]))
    as_bytes = torch.tensor([0, 255], dtype=torch.uint8).view(1, 2, 1, 1)
    torch.testing.assert_close(layer(as_bytes), layer(pixels))


def test_the_small_network_has_the_published_size():
    assert sum(parameter.numel() for parameter in SmallNet(10).parameters()) == 137_434


@pytest.mark.parametrize("size", [8, 28, 32, 50])
def test_the_small_network_takes_any_size_and_learns(size):
    torch.manual_seed(0)
    model = SmallNet(5)
    images = torch.rand(6, 3, size, size)
    logits = model(images)
    assert logits.shape == (6, 5)
    logits.square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in model.parameters())
    model.eval()
    assert torch.equal(model(images), model(images))


def test_the_fast_network_has_the_size_that_its_widths_give():
    convolutions = 9 * (24 * 48 + 48 * 48 + 48 * 128 + 128 * 128 + 128 * 256 + 256 * 256)
    norms = 2 * 2 * (48 + 128 + 256)
    expected = (4 * 3 * 24 + 24) + convolutions + norms + 256 * 100
    assert sum(parameter.numel() for parameter in FastNet(100).parameters()) == expected == 1_146_232


@pytest.mark.parametrize("size", [9, 32, 50])
def test_the_fast_network_takes_any_size_and_learns(size):
    torch.manual_seed(0)
    model = FastNet(5, (8, 16, 16), 8)
    logits = model(torch.rand(6, 3, size, size))
    assert logits.shape == (6, 5)
    logits.square().sum().backward()
    assert all(p.grad.abs().sum() > 0 for p in model.parameters() if p.requires_grad)


def test_the_convolutions_of_the_fast_network_begin_as_the_identity():
    first, *_ = FastNet(5, (8, 16, 16), 4).stages[0]
    images = torch.rand(2, 4, 6, 6)
    torch.testing.assert_close(first(images)[:, :4], images)


def test_the_last_block_is_residual():
    model = SmallNet(5).eval()
    images = torch.rand(2, 3, 32, 32)
    model.residual[0].weight.data.zero_()  # the branch gives nothing: the rest must go through
    assert not torch.equal(model(images[:1]), model(images[1:]))


def test_our_own_networks_go_by_name_and_take_the_same_arguments():
    for name, options in (
        ("small", {}),
        ("fast", {"widths": (8, 16, 16), "stem": 8}),
        ("wide_resnet", {"depth": 10, "width": 1}),
        ("resnet", {"depth": 18}),
    ):
        model = model_function(name)(7, mean=(0.5,), std=(0.25,), **options).eval()
        assert model(torch.rand(2, 1, 32, 32)).shape == (2, 7)
        assert next(iter(dict(model.named_children()))) == "normalize"


def test_an_unknown_name_is_answered_with_the_list_and_the_nearest():
    with pytest.raises(ValueError, match=r"small, wide_resnet, resnet.*Did you mean \"wide_resnet\"\?"):
        model_function("wideresnet")
    with pytest.raises(ValueError, match=r"module:function\.$"):
        model_function("quux")


@pytest.fixture
def nets(tmp_path, monkeypatch):
    """A user's directory with a module of networks in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "mynets.py").write_text(
        "from torch import nn\n"
        "size = 3\n"
        "class Nets:\n"
        "    @staticmethod\n"
        "    def flat(num_classes, mean, std):\n"
        "        return nn.Sequential(nn.Flatten(), nn.LazyLinear(num_classes))\n"
        "build = Nets.flat\n"
    )
    (tmp_path / "needy.py").write_text("import nowhere.to_be_found\n")
    yield tmp_path
    for name in ("mynets", "needy"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", ["mynets:build", "mynets:Nets.flat"])
def test_a_function_in_the_current_directory_is_found(nets, name):
    model = model_function(name)(4, mean=(0.5,), std=(0.5,))
    assert model(torch.rand(2, 1, 5, 5)).shape == (2, 4)


def test_a_directory_of_ones_own_does_not_hide_installed_modules(nets, monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    (nets / "colorsys.py").write_text("raise AssertionError('the wrong one')")
    assert model_function("colorsys:rgb_to_hsv")(1, 1, 1) == (0, 0, 1)


@pytest.mark.parametrize(
    ("name", "kind", "sentence"),
    [
        ("mynet:build", ImportError, r'^there is no module "mynet" among the installed packages or in .*\.$'),
        ("mynets.inner:build", ImportError, r'^there is no module "mynets\.inner"'),
        ("needy:build", ImportError, r'^"needy" needs the module "nowhere", which is not installed\.$'),
        ("mynets:bild", ValueError, r'has no "bild"\. Did you mean "build"\?$'),
        ("mynets:Nets.flt", ValueError, r'has no "Nets\.flt"\. Did you mean "flat"\?$'),
        ("mynets:size", TypeError, r'^"mynets:size" must be a function or a class, got int 3\.$'),
        ("mynets:", ValueError, r'^a model of your own is named as module:function, got "mynets:"\.$'),
        (":build", ValueError, r"^a model of your own is named as module:function"),
        ("nets/mynets.py:build", ValueError, r"^name the module as Python imports it"),
        (".mynets:build", ValueError, r"^name the module as Python imports it"),
    ],
)
def test_a_mistaken_function_is_told_in_one_sentence(nets, name, kind, sentence):
    with pytest.raises(kind, match=sentence):
        model_function(name)


class Doubler(nn.Module):
    """Stands in for a library's network: its logits are the mean of each channel, twice."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.last = nn.Parameter(torch.zeros(7))
        self.pretrained_cfg = {"mean": (0.5, 0.5, 0.5), "std": (0.25, 0.25, 0.25)}

    def forward(self, images):
        return self.scale * images.mean(dim=(2, 3))


@pytest.fixture
def fakes(monkeypatch):
    """timm and torchvision as modules of one function, which note how they were called."""
    calls = []

    def create(name, **options):
        calls.append((name, options))
        return Doubler()

    weights = SimpleNamespace(
        get_state_dict=lambda progress, check_hash: {
            "scale": torch.tensor(3.0),
            "last": torch.ones(1000),
            "extra": torch.ones(1),
        }
    )
    timm = ModuleType("timm")
    timm.create_model, timm.list_models = create, lambda: ["resnet50", "vit"]
    torchvision = ModuleType("torchvision")
    torchvision.models = SimpleNamespace(
        get_model=create,
        list_models=timm.list_models,
        get_model_weights=lambda name: SimpleNamespace(DEFAULT=weights),
    )
    monkeypatch.setitem(sys.modules, "timm", timm)
    monkeypatch.setitem(sys.modules, "torchvision", torchvision)
    return calls


@pytest.mark.parametrize("package", ["timm", "torchvision"])
def test_a_library_network_has_normalisation_put_first(fakes, package):
    model = model_function(f"{package}:vit")(7, mean=(0.5, 0.2, 0.0), std=(0.5, 0.1, 1.0), drop_rate=0.1)
    assert list(dict(model.named_children())) == ["normalize", "net"]
    ones = torch.ones(1, 3, 2, 2)  # (1 - .5)/.5, (1 - .2)/.1, 1, and twice that
    torch.testing.assert_close(model(ones), torch.tensor([[2.0, 16.0, 2.0]]))
    name, options = fakes[0]
    assert name == "vit"
    assert options["num_classes"] == 7
    assert options["drop_rate"] == 0.1


def test_timm_gets_the_channels_and_gives_its_own_mean_when_none_is_named(fakes):
    build = model_function("timm:resnet50.a1_in1k")
    build(7, mean=(0.5,), std=(0.5,), pretrained=True)
    assert fakes[0] == ("resnet50.a1_in1k", {"num_classes": 7, "in_chans": 1, "pretrained": True})
    assert build(7).normalize.std.flatten().tolist() == [0.25] * 3
    assert "in_chans" not in fakes[1][1]


def test_torchvisions_published_weights_are_taken_where_they_fit(fakes):
    model = model_function("torchvision:vit")(7, pretrained=True)
    assert fakes[0][1] == {"weights": None, "num_classes": 7}
    assert model.net.scale == 3
    assert model.net.last.tolist() == [0] * 7  # 1,000 published ones: of another shape
    assert model_function("torchvision:vit")(7).net.scale == 2


@pytest.mark.parametrize("package", ["timm", "torchvision"])
def test_a_library_without_the_network_says_so_with_the_nearest(fakes, package):
    with pytest.raises(ValueError, match=rf'^{package} has no model "resnet5O"\. Did you mean "resnet50"\?$'):
        model_function(f"{package}:resnet5O")


def test_torchvision_with_another_number_of_channels_is_refused(fakes):
    with pytest.raises(ValueError, match=r"take 3 channels, but mean has 1"):
        model_function("torchvision:vit")(7, mean=(0.5,), std=(0.5,))


@pytest.mark.parametrize("package", ["timm", "torchvision"])
def test_a_library_that_is_not_installed_or_broken_is_named_with_the_way_out(package, monkeypatch, tmp_path):
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "meta_path", [importlib.machinery.PathFinder])
    with pytest.raises(ImportError, match=rf"^{package} is not installed.*: pip install {package}\.$"):
        model_function(f"{package}:resnet50")
    (tmp_path / f"{package}.py").write_text("raise RuntimeError('operator nms does not exist')")
    importlib.invalidate_caches()
    with pytest.raises(
        ImportError, match=rf"^{package} is installed but does not load \(operator nms.*torch\.$"
    ):
        model_function(f"{package}:resnet50")
    (tmp_path / f"{package}.py").write_text("import absent_friend")
    with pytest.raises(ImportError, match=rf'^"{package}" needs the module "absent_friend"'):
        model_function(f"{package}:resnet50")


@pytest.mark.parametrize("package", ["timm", "torchvision"])
def test_the_real_library_builds_and_learns(package):
    pytest.importorskip(package, exc_type=Exception)
    model = model_function(f"{package}:resnet18")(7)
    assert list(dict(model.named_children())) == ["normalize", "net"]
    images = torch.randint(256, (2, 3, 64, 64), dtype=torch.uint8)
    model(images).square().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    model.eval()
    torch.testing.assert_close(model(images), model.net(model.normalize(images / 255)))
