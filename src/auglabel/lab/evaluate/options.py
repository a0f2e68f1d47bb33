"""The flags of `auglabel eval`: what to measure, under which attack and which corruptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from auglabel.corrupt import SEVERITIES, suite
from auglabel.errors import UserError
from auglabel.lab.runs.run import Run
from auglabel.util.checks import require_number, require_whole, shown

FITTED = ("both", "clean", "augmented")


@dataclass(frozen=True)
class EvalOptions:
    """What to measure, and where the results go"""

    on: str = "clean"
    """clean, corrupted, fog (or another corruption), pgd, foolbox:NAME, module:function; commas between"""
    checkpoint: Literal["last", "best"] = "last"
    """which weights of a run; the best had the lowest validation NLL"""
    weights: str | None = None
    """safetensors or .pth file with the weights of --model, for a network that no run here trained"""
    images: int | None = None
    """how many test images to use; all of them if not given"""
    resamples: int = 1000
    """of the bootstrap; 0 for no intervals"""
    temperature: str = "both"
    """which validation images fit it: clean (T), augmented (TA) or both; or a run whose temperatures count"""
    batch_size: int = 250
    """images at a time"""
    workers: int | None = None
    """processes that decode and corrupt images ahead; if not given 2 for images from files, else none"""
    out: str | None = None
    """directory for the results; RUN/eval if not given"""

    def __post_init__(self) -> None:
        require_whole("resamples", self.resamples, 0)
        require_whole("batch_size", self.batch_size, 1)
        if self.workers is not None:
            require_whole("workers", self.workers, 0)
        if self.images is not None:
            require_whole("images", self.images, 1)
        if self.temperature not in FITTED and not Run(Path(self.temperature)).exists():
            raise UserError(
                f"temperature must be {', '.join(FITTED)} or a run whose temperatures to take, "
                f"got {shown(self.temperature)}, which is not a run."
            )

    @cached_property
    def names(self) -> list[str]:
        """What `on` names, each once."""
        return list(dict.fromkeys(name.strip() for name in self.on.split(",")))

    @property
    def temperature_from(self) -> str | None:
        """The run whose temperatures are taken, if another one's are."""
        return None if self.temperature in FITTED else self.temperature


@dataclass(frozen=True)
class Attack:
    """The evaluation attack of the paper: PGD, 50 steps of 2.5 epsilon / steps, 3 restarts"""

    epsilon: float = 0.03
    """largest change of a pixel, pixels being in [0, 1]"""
    steps: int = 50
    """of PGD"""
    restarts: int = 3
    """of PGD, from random starts"""

    def __post_init__(self) -> None:
        require_number("epsilon", self.epsilon, 0, 1)
        require_whole("steps", self.steps, 1)
        require_whole("restarts", self.restarts, 1)


@dataclass(frozen=True)
class Corruptions:
    """What `corrupted` stands for in --on"""

    suite: str = "paper"
    """standard (15), paper (17), extra (4), all (19), or names with commas between"""
    severities: tuple[int, ...] = SEVERITIES
    """of every corruption"""
    parameters: Literal["cifar", "imagenet"] | None = None
    """whose figures to use; cifar below 64 pixels, imagenet from there on, if not given"""
    frost: str | None = None
    """directory of the published frost photographs; a texture of our own if not given"""
    corruption_seed: int = 0
    """of what the corruptions draw: the same pictures for every run"""
    copies: str | None = None
    """directory of CIFAR-10-C, CIFAR-100-C, ImageNet-C or of `auglabel corrupt`, to read instead"""

    def __post_init__(self) -> None:
        suite(self.suite)
        require_severities(self.severities)
        require_whole("corruption_seed", self.corruption_seed, 0)
        given = [name for name in ("parameters", "frost", "corruption_seed") if getattr(self, name)]
        if self.copies is not None and given:
            raise UserError(f"copies are read as they are: --{given[0]} changes nothing in them.")

    @property
    def names(self) -> tuple[str, ...]:
        return suite(self.suite)

    @property
    def file_words(self) -> list[str]:
        """The options that are not the defaults, as parts of a file's name."""
        defaults = asdict(Corruptions())
        given = {key: value for key, value in asdict(self).items() if value != defaults[key]}
        return [f"{key}_{_in_a_name(value)}" for key, value in given.items()]


def require_severities(severities: Sequence[int]) -> None:
    for severity in severities:
        require_whole("severities", severity, 1, 5)
    if not severities or len(set(severities)) < len(severities):
        raise UserError(f"severities must name some of 1..5 once each, got {severities}.")


def _in_a_name(value: object) -> str:
    parts = value if isinstance(value, tuple) else (Path(str(value)).name,)
    return "+".join(str(part).replace(",", "+").replace(" ", "") for part in parts)
