"""Run foolbox's attacks on our models: a second opinion, one that asks for no gradients among them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Generator, Tensor, nn

from auglabel.attack.pgd import box, gradient_of, require_attackable
from auglabel.errors import UserError, UserTypeError
from auglabel.util.checks import require_integers, require_number
from auglabel.util.extras import extra_module
from auglabel.util.inference import eval_mode, unwrapped

ATTACKS = {
    "pgd": "LinfPGD",
    "fgsm": "FGSM",
    "deepfool": "LinfDeepFoolAttack",
    "noise": "LinfRepeatedAdditiveUniformNoiseAttack",
    "hop_skip_jump": "HopSkipJumpAttack",
}
QUERY_ONLY = ("noise", "hop_skip_jump")
# hop_skip_jump makes about 100 sqrt(step) queries an image in each step: foolbox's 64 steps take hours.
DEFAULTS: dict[str, dict[str, Any]] = {"hop_skip_jump": {"steps": 10, "constraint": "linf"}}
CHUNK = 50  # images: hop_skip_jump holds hundreds of copies of each at once


def foolbox_attack(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    epsilon: float,
    name: str,
    *,
    generator: Generator | None = None,
    **options: Any,
) -> Tensor:
    """Images within `epsilon` of `images`, in max norm, from foolbox's attack `name`.

    `name` is one of ATTACKS: pgd, fgsm and deepfool use gradients; noise and hop_skip_jump only ask for
    predictions. `options` are those of foolbox's class. hop_skip_jump starts from the nearest image of
    the batch that the model takes for another class, and leaves alone what the model has wrong already.
    The model is in evaluation mode meanwhile, and its parameters' gradients stay as they are.
    """
    images = require_attackable(model, images, labels, "cross_entropy")
    require_integers("labels", labels)
    require_number("epsilon", epsilon, 0)
    foolbox = extra_module("foolbox", "foolbox_attack needs foolbox", "attack")
    attack = _attack(foolbox, name, options)
    model = unwrapped(model)
    if len(images) == 0:
        return images.clone()
    if name not in QUERY_ONLY:
        with eval_mode(model):
            gradient_of(model, images[:1], labels[:1], "cross_entropy")  # says so if there is none
    run = _from_other_images if name == "hop_skip_jump" else _as_it_is
    with eval_mode(model), _frozen(model), _seeded(images.device, generator), torch.enable_grad():
        wrapped = foolbox.PyTorchModel(model, bounds=(0, 1), device=images.device)
        moved = run(attack, wrapped, images, labels, epsilon)
    return torch.clamp(moved.detach(), *box(images, epsilon))


def _attack(foolbox: Any, name: str, options: dict[str, Any]) -> Any:
    if name not in ATTACKS:
        raise UserError(f'name must be one of {", ".join(ATTACKS)}, got "{name}".')
    kind = getattr(foolbox.attacks, ATTACKS[name])
    try:
        return kind(**DEFAULTS.get(name, {}) | options)
    except TypeError as error:
        raise UserTypeError(
            f"{name} does not take these options: {error}. See foolbox's {kind.__name__}."
        ) from error


def _as_it_is(attack: Any, wrapped: Any, images: Tensor, labels: Tensor, epsilon: float) -> Tensor:
    moved: Tensor = attack(wrapped, images, labels, epsilons=epsilon)[0]
    return moved


def _from_other_images(attack: Any, wrapped: Any, images: Tensor, labels: Tensor, epsilon: float) -> Tensor:
    predicted = wrapped(images).argmax(dim=1)
    other = predicted != labels[:, None]  # (image, possible start)
    right = (predicted == labels).nonzero().squeeze(1)
    if len(right) == 0:
        return images
    if not other[right].any(dim=1).all():
        raise UserError(
            "hop_skip_jump starts from an image that the model takes for another class, but it takes the "
            f"whole batch for class {int(predicted[0])}. Give a batch with several classes."
        )
    far = torch.cdist(images.flatten(1), images.flatten(1)).masked_fill(~other, torch.inf)
    starts, moved = images[far.argmin(dim=1)], images.clone()
    for rows in right.split(CHUNK):
        result = attack(wrapped, images[rows], labels[rows], epsilons=epsilon, starting_points=starts[rows])
        moved[rows] = result[0]
    return moved


@contextmanager
def _frozen(model: nn.Module) -> Iterator[None]:
    """No gradients for the parameters: foolbox would add to theirs."""
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in learning:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in learning:
            parameter.requires_grad_(True)


@contextmanager
def _seeded(device: torch.device, generator: Generator | None) -> Iterator[None]:
    """foolbox draws from torch's own stream; lend it one that starts where `generator` says."""
    if generator is None:
        yield
        return
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        seed = int(torch.randint(2**62, (), device=generator.device, generator=generator))
        if device.type == "cuda":
            torch.cuda.default_generators[device.index or 0].manual_seed(seed)
        else:
            torch.default_generator.manual_seed(seed)
        yield
