"""tensorferry ferries tensors between PyTorch, or any DLPack producer, and NumPy.

Memory is shared when that is safe and copied exactly when it is not; whatever cannot be converted raises an error that
says what was given, why it cannot be done and what to write instead. ``import tensorferry as ferry`` by custom.
"""

from tensorferry import _native
from tensorferry import io as io
from tensorferry import metrics as metrics
from tensorferry._api.convert import from_dlpack, register_node, stack, to_dlpack, to_python, writable
from tensorferry._api.images import images_to_tensor, tensor_to_images
from tensorferry._api.inspect import check, describe, explain, plan, shares_memory
from tensorferry._api.io import inspect, load, save, verify
from tensorferry._api.io_writer import Writer, save_async
from tensorferry._api.memory import options, pool_stats, trim
from tensorferry._api.metrics import MetricLog
from tensorferry._api.pinned import empty_like_pinned, empty_pinned, hold, pinned, zeros_pinned
from tensorferry._api.pinned_pool import PinnedPool
from tensorferry._api.transfer import to_device, to_numpy_async
from tensorferry._errors import (
    ArgumentError,
    AutogradError,
    BufferMismatchError,
    CheckError,
    CopyRequiredError,
    DeviceError,
    DTypeError,
    ExportError,
    ExtensionDTypeWarning,
    FerryError,
    FerryWarning,
    LayoutError,
    MissingDependencyError,
    PrecisionLossError,
    ReadOnlyError,
    SinkError,
    StreamError,
    TransferTimeout,
)

__all__ = [
    "ArgumentError",
    "AutogradError",
    "BufferMismatchError",
    "CheckError",
    "CopyRequiredError",
    "DTypeError",
    "DeviceError",
    "ExportError",
    "ExtensionDTypeWarning",
    "FerryError",
    "FerryWarning",
    "LayoutError",
    "MetricLog",
    "MissingDependencyError",
    "PinnedPool",
    "PrecisionLossError",
    "ReadOnlyError",
    "SinkError",
    "StreamError",
    "TransferTimeout",
    "Writer",
    "__version__",
    "check",
    "describe",
    "empty_like_pinned",
    "empty_pinned",
    "explain",
    "from_dlpack",
    "from_numpy",
    "hold",
    "images_to_tensor",
    "inspect",
    "load",
    "options",
    "pinned",
    "plan",
    "pool_stats",
    "register_node",
    "save",
    "save_async",
    "shares_memory",
    "stack",
    "tensor_to_images",
    "to_device",
    "to_dlpack",
    "to_numpy",
    "to_numpy_async",
    "to_python",
    "trim",
    "verify",
    "writable",
    "zeros_pinned",
]

to_numpy = _native.core.to_numpy
from_numpy = _native.core.from_numpy

__version__ = "0.1.0"
