"""Every network by name: ours, a user's own, and those of timm and torchvision where installed."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from torch import Tensor, nn

from auglabel.errors import UserError, UserTypeError
from auglabel.models.fast import FastNet
from auglabel.models.normalize import Normalize
from auglabel.models.resnet import ResNet
from auglabel.models.small import SmallNet
from auglabel.models.wide_resnet import WideResNet
from auglabel.util.checks import did_you_mean, kind_of, shown

MODELS: dict[str, Callable[..., nn.Module]] = {
    "small": SmallNet,
    "wide_resnet": WideResNet,
    "resnet": ResNet,
    "fast": FastNet,
}

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def model_function(name: str) -> Callable[..., nn.Module]:
    """What builds the network of that name, called with `num_classes`, `mean`, `std` and its options.

    A name is one of MODELS; `timm:NAME` or `torchvision:NAME`, which take `pretrained` and pass other
    options on; or `module:function`, where the module may lie in the current directory.
    """
    module, colon, rest = name.partition(":")
    if not colon:
        if name not in MODELS:
            raise UserError(
                f'there is no model "{shown(name)}". There are: {", ".join(MODELS)}, and timm:NAME, '
                f"torchvision:NAME and module:function.{did_you_mean(name, MODELS)}"
            )
        return MODELS[name]
    if not module or not rest:
        raise UserError(f'a model of your own is named as module:function, got "{shown(name)}".')
    if module in ("timm", "torchvision"):
        return _published(module, rest)
    build: Callable[..., nn.Module] = imported(module, rest)
    return build


class Normalized(nn.Module):
    """A network from elsewhere, with normalisation put first."""

    def __init__(self, mean: Sequence[float], std: Sequence[float], net: nn.Module) -> None:
        super().__init__()
        self.normalize = Normalize(mean, std)
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.net(self.normalize(images))
        return logits


def imported(module: str, function: str) -> Any:
    """An attribute, perhaps of an attribute, of a module; the current directory counts as importable."""
    if not all(part.isidentifier() for part in module.split(".")):
        raise UserError(f'name the module as Python imports it, such as "nets.mine", got "{module}".')
    here = os.getcwd()
    if here not in sys.path:
        sys.path.append(here)  # last: a file here must not hide an installed package
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):
            raise _lacks(module, error) from error
        raise ImportError(
            f'there is no module "{module}" among the installed packages or in {here}.'
        ) from None
    where = getattr(found, "__file__", None) or "a folder without __init__.py"
    for part in function.split("."):
        if not hasattr(found, part):
            near = did_you_mean(part, [each for each in dir(found) if not each.startswith("_")])
            raise UserError(f'the module "{module}" ({where}) has no "{function}".{near}')
        found = getattr(found, part)
    if not callable(found):
        raise UserTypeError(f'"{module}:{function}" must be a function or a class, got {kind_of(found)}.')
    return found


def _lacks(what: str, error: ModuleNotFoundError) -> ImportError:
    return ImportError(f'"{what}" needs the module "{error.name}", which is not installed.')


def _published(package: str, name: str) -> Callable[..., nn.Module]:
    models: Any = _library(package)
    if package == "torchvision":
        models = models.models
    # timm's names may have weights after a dot, or name a hub before a colon.
    if ":" not in name and name.split(".")[0] not in models.list_models():
        raise UserError(f'{package} has no model "{shown(name)}".{did_you_mean(name, models.list_models())}')
    return _timm(models, name) if package == "timm" else _torchvision(models, name)


def _library(package: str) -> ModuleType:
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise _lacks(package, error) from error
        raise ImportError(
            f"{package} is not installed, so its models cannot be built: pip install {package}."
        ) from None
    except Exception as error:  # built for another torch, it fails in ways of its own
        raise ImportError(
            f"{package} is installed but does not load ({error}): install the version made for your torch."
        ) from error


def _timm(timm: Any, name: str) -> Callable[..., nn.Module]:
    def build(
        num_classes: int,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        pretrained: bool = False,
        img_size: int | None = None,
        **options: Any,
    ) -> nn.Module:
        """`mean` and `std` are those of the published weights if None; a ViT is told its `img_size`."""
        if mean is not None:
            options.setdefault("in_chans", len(mean))
        if img_size is not None:
            options["img_size"] = img_size
        net = timm.create_model(name, pretrained=pretrained, num_classes=num_classes, **options)
        mean = net.pretrained_cfg["mean"] if mean is None else mean
        std = net.pretrained_cfg["std"] if std is None else std
        return Normalized(mean, std, net)

    return build


def _torchvision(models: Any, name: str) -> Callable[..., nn.Module]:
    def build(
        num_classes: int,
        mean: Sequence[float] = IMAGENET[0],
        std: Sequence[float] = IMAGENET[1],
        pretrained: bool = False,
        **options: Any,
    ) -> nn.Module:
        """Pretrained weights are taken where their shape fits: for other classes the last layer is new."""
        if len(mean) != 3:
            raise UserError(
                f"torchvision's networks take 3 channels, but mean has {len(mean)}: see timm:NAME."
            )
        net: nn.Module = models.get_model(name, weights=None, num_classes=num_classes, **options)
        if pretrained:
            own, weights = net.state_dict(), models.get_model_weights(name).DEFAULT
            found = weights.get_state_dict(progress=False, check_hash=True)
            fits = {
                key: value for key, value in found.items() if key in own and value.shape == own[key].shape
            }
            net.load_state_dict(fits, strict=False)
        return Normalized(mean, std, net)

    return build
