"""What label should an augmented image carry? AutoLabel learns it, per transformation distance."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from auglabel.util import cpu

__version__ = "0.1.0"

cpu.guard()  # before the first layer is computed

if TYPE_CHECKING:
    from auglabel.public_names import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        """A public name or a module; torch is loaded with the first, which takes a second or two."""
        if name == "__all__" or not name.startswith("__"):
            names = vars(importlib.import_module("auglabel.public_names"))
            for place in (names, globals()):  # modules that were imported on the way are in the second
                if name in place:
                    return place[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *importlib.import_module("auglabel.public_names").__all__})

    class _Package(ModuleType):
        def __setattr__(self, name: str, value: Any) -> None:
            """Importing the module `auglabel.measure` leaves the name to the function `measure`."""
            if name != "measure" or not isinstance(value, ModuleType):
                super().__setattr__(name, value)

    sys.modules[__name__].__class__ = _Package
