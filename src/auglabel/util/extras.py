"""Modules that an extra of ours brings, imported when they are first needed."""

import importlib
from typing import Any


def extra_module(name: str, needs: str, extra: str) -> Any:
    """The module `name`; the error for a missing one says what `needs` it, and how to install the extra."""
    try:
        importlib.import_module(name.partition(".")[0])
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{needs}, which could not be imported ({error}). Install it: pip install 'auglabel[{extra}]'."
        ) from error
