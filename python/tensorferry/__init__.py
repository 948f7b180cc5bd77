"""tensorferry ferries tensors between PyTorch, or any DLPack producer, and NumPy.

Memory is shared when that is safe and copied exactly when it is not; whatever cannot be converted raises an error that
says what was given, why it cannot be done and what to write instead. ``import tensorferry as ferry`` by custom.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tensorferry._errors import (
    ArgumentError,
    AutogradError,
    BufferMismatchError,
    CheckError,
    CopyRequiredError,
    DeviceError,
    DTypeError,
    ExtensionDTypeWarning,
    FerryError,
    FerryWarning,
    LayoutError,
    MissingDependencyError,
    PrecisionLossError,
    ReadOnlyError,
    StreamError,
)
from tensorferry._native import core

if TYPE_CHECKING:
    from tensorferry._check import check
    from tensorferry._describe import describe
    from tensorferry._description import Description, Pitch
    from tensorferry._description_nest import NestDescription
    from tensorferry._dlpack import Producer, from_dlpack, to_dlpack
    from tensorferry._explain import Explanation, Step, explain
    from tensorferry._nest import register_node
    from tensorferry._plan import plan
    from tensorferry._plan_class import Plan
    from tensorferry._shares_memory import shares_memory
    from tensorferry._stack import stack
    from tensorferry._to_python import to_python
    from tensorferry._writable import writable

__all__ = [
    "ArgumentError",
    "AutogradError",
    "BufferMismatchError",
    "CheckError",
    "CopyRequiredError",
    "DTypeError",
    "Description",
    "DeviceError",
    "Explanation",
    "ExtensionDTypeWarning",
    "FerryError",
    "FerryWarning",
    "LayoutError",
    "MissingDependencyError",
    "NestDescription",
    "Pitch",
    "Plan",
    "PrecisionLossError",
    "Producer",
    "ReadOnlyError",
    "Step",
    "StreamError",
    "__version__",
    "check",
    "describe",
    "explain",
    "from_dlpack",
    "from_numpy",
    "plan",
    "register_node",
    "shares_memory",
    "stack",
    "to_dlpack",
    "to_numpy",
    "to_python",
    "writable",
]

to_numpy = core.to_numpy
from_numpy = core.from_numpy

__version__ = "0.1.0"

# Loaded when first asked for: importing the package costs a few milliseconds.
_MODULES = {
    "Description": "_description",
    "Explanation": "_explain",
    "NestDescription": "_description_nest",
    "Pitch": "_description",
    "Plan": "_plan_class",
    "Producer": "_dlpack",
    "Step": "_explain",
    "check": "_check",
    "describe": "_describe",
    "explain": "_explain",
    "from_dlpack": "_dlpack",
    "plan": "_plan",
    "register_node": "_nest",
    "shares_memory": "_shares_memory",
    "stack": "_stack",
    "to_dlpack": "_dlpack",
    "to_python": "_to_python",
    "writable": "_writable",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'tensorferry' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"tensorferry.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
