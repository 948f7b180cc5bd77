"""tensorferry ferries tensors between PyTorch, or any DLPack producer, and NumPy.

Memory is shared when that is safe and copied exactly when it is not; whatever cannot be converted raises an error that
says what was given, why it cannot be done and what to write instead. ``import tensorferry as ferry`` by custom.
"""

from tensorferry._dlpack import Producer, from_dlpack, to_dlpack
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
from tensorferry._explain import Explanation, explain
from tensorferry._native import core as _native
from tensorferry._nest import register_node
from tensorferry._plan import Plan, plan
from tensorferry._stack import stack
from tensorferry._to_python import to_python
from tensorferry._writable import writable

to_numpy = _native.to_numpy
from_numpy = _native.from_numpy

__version__ = "0.1.0"
