"""Errors and warnings. Every message has three parts: what was given, why it cannot be done, what to write instead."""

from __future__ import annotations

import functools
from typing import Any

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
    "MissingDependencyError",
    "PrecisionLossError",
    "ReadOnlyError",
    "SinkError",
    "StreamError",
    "TransferTimeout",
]


class FerryError(Exception):
    """Base of all errors raised by tensorferry.

    Parameters
    ----------
    given : str
        What was given.
    why : str
        Why it cannot be done.
    instead : str
        What to write instead.
    """

    def __init__(self, given: str, why: str, instead: str) -> None:
        Exception.__init__(self, given, why, instead)  # not super(): an OSError takes three texts for errno and so on
        self.given = given
        self.why = why
        self.instead = instead

    def __str__(self) -> str:
        return f"{self.given}: {self.why}; {self.instead}"


class CopyRequiredError(FerryError, ValueError, BufferError):
    """Sharing was demanded and is not possible."""


class LayoutError(FerryError, ValueError):
    """A shape, stride pattern or container structure cannot be converted."""


class DTypeError(FerryError, TypeError):
    """An element type cannot be converted, or not under the casting rule asked for."""


class DeviceError(FerryError, RuntimeError):
    """A device, stream or kind of memory cannot be used."""


class BufferMismatchError(FerryError, ValueError):
    """A given destination does not fit the source."""


class ReadOnlyError(FerryError, ValueError):
    """Read-only memory was to be handed out as writable."""


class AutogradError(FerryError, RuntimeError):
    """The conversion would go behind autograd's back."""


class PrecisionLossError(FerryError, ValueError):
    """A value did not survive a cast under ``casting="same_value"``.

    ``index`` is the first offending index, in C order.
    """

    index: tuple[int, ...] = ()


class CheckError(FerryError, ValueError):
    """A tensor does not have the properties it was checked for; ``violations`` lists each."""

    violations: tuple[str, ...] = ()


class ArgumentError(FerryError, TypeError, ValueError):
    """An argument has a value it cannot have, or two arguments contradict each other."""


class StreamError(DeviceError, ValueError):
    """A stream was named for memory that no stream works on."""


class SinkError(FerryError, RuntimeError):
    """Metrics could not be handed to a sink, or never came from a device; its ``__cause__`` is what was raised."""


class MissingDependencyError(FerryError, ImportError):
    """A package that the call needs is not installed."""


class ExportError(FerryError, OSError):
    """Tensors cannot be written to a path, or read from it; ``errno`` and ``filename`` say more where known."""


class TransferTimeout(FerryError, TimeoutError):
    """A result was not there in the time given; the transfer goes on and stays valid."""


class FerryWarning(UserWarning):
    """Base of all warnings of tensorferry."""


class ExtensionDTypeWarning(FerryWarning):
    """An array got a dtype of ml_dtypes, whose arithmetic differs from NumPy's own; given once per process."""


def as_buffer_error(error: FerryError) -> FerryError:
    """Return `error` as an error that is a ``BufferError`` too, as the DLPack protocol asks of a producer."""
    if isinstance(error, BufferError):
        return error
    kind: Any = type(error)
    both: FerryError = _buffer_kind(kind)(error.given, error.why, error.instead)
    return both


@functools.cache
def _buffer_kind(kind: Any) -> Any:
    return type(kind.__name__, (kind, BufferError), {"__module__": kind.__module__, "__doc__": kind.__doc__})


for _name in __all__:
    globals()[_name].__module__ = "tensorferry"
