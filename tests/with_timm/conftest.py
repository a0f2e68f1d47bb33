"""Tests that need timm and torchvision, which have an environment of their own: `make test-timm`.

torchvision's ordinary build asks for two operators that a CPU build of torch does not have, and then breaks
the imports of other packages; so neither is ever a part of the main environment.
"""

import importlib.util

import pytest
import torch

if importlib.util.find_spec("torchvision") and "+cpu" in torch.__version__:
    library = torch.library.Library("torchvision", "DEF")  # kept: a library's operators go with it
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for package in ("timm", "torchvision"):
        if item.path.parent.name == "with_timm" and not importlib.util.find_spec(package):
            pytest.skip(f"{package} has an environment of its own: make test-timm")
