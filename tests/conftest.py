"""What several test files need: real images, random predictions, a tiny model."""

import multiprocessing
import os
from pathlib import Path

import hypothesis
import pytest
import torch
from checkout import watch
from torch import Tensor, nn

from auglabel.data.embedded import load_embedded

hypothesis.settings.register_profile(
    "default", deadline=None, derandomize=True, max_examples=int(os.environ.get("EXAMPLES", "200"))
)
hypothesis.settings.load_profile("default")

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT.parent / "shared" / "reference"


def pytest_configure(config: pytest.Config) -> None:
    watch(config, ROOT)
    multiprocessing.set_forkserver_preload(
        ["auglabel.lab.sweep.executor"]
    )  # before any test starts the server


LONG = ("test_train", "test_faults", "test_ray", "test_search", "test_sweep", "test_docs_code", "test_demo")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first: at the end of a session, no worker then waits for another's long one."""
    items.sort(key=lambda item: item.path.stem not in LONG)


@pytest.fixture(scope="session")
def grey_images() -> Tensor:
    """500 real photographs, (500, 1, 28, 28) uint8."""
    return load_embedded().test.images[:500]


@pytest.fixture(scope="session")
def colour_images() -> Tensor:
    """500 pictures of three photographs each, one per channel, (500, 3, 28, 28) uint8."""
    return load_embedded().test.images[:1500].reshape(500, 3, 28, 28)


@pytest.fixture
def linear_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 10))


def random_probs(n: int, classes: int, seed: int = 0, sharpness: float = 3.0) -> tuple[Tensor, Tensor]:
    """Predictions that are right more often where they are sure, and labels."""
    generator = torch.Generator().manual_seed(seed)
    logits = sharpness * torch.randn(n, classes, generator=generator)
    labels = torch.multinomial((logits / 1.5).softmax(dim=1), 1, generator=generator).squeeze(1)
    return logits.softmax(dim=1), labels


class Waiting(nn.parallel.DistributedDataParallel):
    """A distributed wrapper whose other ranks never come."""

    def __init__(self, module):
        nn.Module.__init__(self)
        self.module = module

    def forward(self, images):
        raise AssertionError("waits for the other ranks")
