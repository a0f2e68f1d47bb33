"""Make what a recipe names: data, network, optimiser."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import nn

from auglabel.data.source import DataSet, InMemory, statistics
from auglabel.data.split import Parts, split
from auglabel.errors import UserError, lacks_memory
from auglabel.lab.parts.catalogue import data_set_for
from auglabel.lab.recipe.recipe import Recipe
from auglabel.lab.recipe.seeding import generator_for
from auglabel.models.by_name import MODELS, model_function
from auglabel.util.checks import shown
from auglabel.util.inference import eval_mode


def data_for(recipe: Recipe) -> tuple[DataSet, Parts]:
    """The data set, and its images as training, validation and test parts."""
    data = data_set_for(recipe.data.name, **recipe.data.options)
    parts = split(data, generator=generator_for(recipe.training.seed, "split"), **recipe.split)
    if data.test is None and isinstance(data.train, InMemory):  # measured before the test images were cut off
        mean, std = statistics(data.train.images[parts.train.rows])
        data = replace(data, mean=mean, std=std)
    if data.test is not None and recipe.split["test"] is not None and len(parts.test) < len(data.test):
        count = f"{len(parts.test):,} of the {len(data.test):,} test images"
        data = replace(data, notes=(*data.notes, f"split.test {recipe.split['test']} uses {count}"))
    return data, parts


def model_for(recipe: Recipe, data: DataSet) -> nn.Module:
    """The network with its first weights, which the seed decides; it has been asked for one prediction."""
    name, function = recipe.model.name, model_function(recipe.model.name)
    given = {"num_classes": len(data.classes), "mean": data.mean, "std": data.std}
    asked = given.keys() & inspect.signature(function).parameters.keys()
    torch.manual_seed(recipe.training.seed)
    try:
        model = function(**{key: given[key] for key in asked}, **recipe.model.options)
    except (RuntimeError, TypeError, ValueError, KeyError, AttributeError, AssertionError) as error:
        if lacks_memory(error) or (name in MODELS and not isinstance(error, UserError)):
            raise  # no mistake of the user's
        raise UserError(f"{name} could not be built: {_first_line(error)}.") from error
    if not isinstance(model, nn.Module):
        raise UserError(f"{name} must return a torch.nn.Module, got a {type(model).__name__}.")
    sizes = {
        "--data.size": "size" in recipe.data.options,
        "--model.img_size": "img_size" in recipe.model.options,
    }
    require_predictions(name, model, data, [option for option, there in sizes.items() if there])
    if recipe.engine.channels_last:
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return model


def require_predictions(name: str, model: nn.Module, data: DataSet, sizes: Sequence[str] = ()) -> None:
    """One picture goes in, one number per class comes out; `sizes` are the options that set sizes."""
    channels, height, width = data.train.shape
    size = f"{channels} x {height} x {width}"
    try:
        with eval_mode(model), torch.no_grad():
            logits = model(torch.zeros(1, channels, height, width))
    except (RuntimeError, ValueError, TypeError, AssertionError) as error:  # the last is that of ViTs
        if lacks_memory(error) or (name in MODELS and not isinstance(error, UserError | RuntimeError)):
            raise  # no mistake of the user's; torch's RuntimeError is that of images too small
        way = f" Set a size that fits with {' or '.join(sizes)}." if sizes else ""
        raise UserError(
            f"{name} does not take the {size} images of {data.name}: {_first_line(error)}.{way}"
        ) from error
    if getattr(logits, "shape", None) != (1, len(data.classes)):
        came = tuple(logits.shape) if hasattr(logits, "shape") else type(logits).__name__
        raise UserError(
            f"{name} must give {len(data.classes)} logits, one per class of {data.name}, got {came}."
        )


def _first_line(error: Exception) -> str:
    return shown(str(error).split("\n", 1)[0]) or type(error).__name__


def optimizer_for(recipe: Recipe, model: nn.Module) -> torch.optim.Optimizer:
    """The recipe's optimiser, whose weight decay may spare normalisation layers and biases."""
    return recipe.optimizer.make(recipe.optimizer.groups(model), highest_rate(recipe))


def highest_rate(recipe: Recipe) -> float:
    """The schedule's highest learning rate, in proportion to the batch if the recipe says so."""
    how = recipe.optimizer
    return how.learning_rate * (recipe.training.batch_size / how.per_batch if how.per_batch else 1)
