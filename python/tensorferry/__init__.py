"""tensorferry ferries tensors between PyTorch, or any DLPack producer, and NumPy.

Memory is shared when that is safe and copied exactly when it is not; whatever cannot be converted raises an error that
says what was given, why it cannot be done and what to write instead. ``import tensorferry as ferry`` by custom.
"""

from tensorferry import _native
from tensorferry._api.convert import from_dlpack, register_node, stack, to_dlpack, to_python, writable
from tensorferry._api.images import images_to_tensor, tensor_to_images
from tensorferry._api.inspect import check, describe, explain, plan, shares_memory
from tensorferry._api.memory import options, pool_stats, trim
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

__all__ = [
    "ArgumentError",
    "AutogradError",
    "BufferMismatchError",
    "CheckError",
    "CopyRequiredError",
    "DTypeError",
    "DeviceError",
    "ExtensionDTypeWarning",
    "FerryError",
    "FerryWarning",
    "LayoutError",
    "MissingDependencyError",
    "PrecisionLossError",
    "ReadOnlyError",
    "StreamError",
    "__version__",
    "check",
    "describe",
    "explain",
    "from_dlpack",
    "from_numpy",
    "images_to_tensor",
    "options",
    "plan",
    "pool_stats",
    "register_node",
    "shares_memory",
    "stack",
    "tensor_to_images",
    "to_dlpack",
    "to_numpy",
    "to_python",
    "trim",
    "writable",
]

to_numpy = _native.core.to_numpy
from_numpy = _native.core.from_numpy

__version__ = "0.1.0"
