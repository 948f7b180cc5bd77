"""tensorferry ferries tensors between PyTorch, or any DLPack producer, and NumPy.

Memory is shared when that is safe and copied exactly when it is not; whatever cannot be converted raises an error that
says what was given, why it cannot be done and what to write instead. ``import tensorferry as ferry`` by custom.
"""

from tensorferry._core import from_numpy, to_numpy
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
from tensorferry._nest import register_node
from tensorferry._plan import Plan, plan

__version__ = "0.1.0"
