"""The accidents themselves: each probe does one thing with torch and NumPy, or with tensorferry, and tells what it saw.

``python -m tensorferry._demo._probes NAME`` runs one in an interpreter of its own and prints the outcome as JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import tensorferry as ferry

__all__ = ["PROBES", "Outcome"]


@dataclass(frozen=True)
class Outcome:
    """What a probe saw.

    Attributes
    ----------
    right : bool
        Was the result right, or the mistake refused by an error?
    seen : str
        What happened, with the values.
    """

    right: bool
    seen: str


def _refusal(run: Callable[[], Any]) -> str | None:
    """Return the beginning of the error that `run` raises, or None."""
    try:
        run()
    except (BufferError, OSError, RuntimeError, TypeError, ValueError) as error:
        if isinstance(error, ferry.FerryError):
            return f"{type(error).__name__}: {error.given}: {error.why}"
        return f"{type(error).__name__}: {re.split(r'; |[.] |: .', str(error), maxsplit=1)[0].rstrip('.')}"
    return None


def _gradient(edit: Callable[[Any], None]) -> Outcome:
    import torch

    t = torch.zeros(3, requires_grad=True)
    y = t.exp()
    edit(y)
    refused = _refusal(lambda: torch.autograd.backward(y.sum()))
    if refused is not None:
        return Outcome(True, f"backward raises {refused}")
    assert t.grad is not None
    got = t.grad.tolist()
    return Outcome(got == [1.0, 1.0, 1.0], f"no error; gradient {got}, the true one is [1.0, 1.0, 1.0]")


def gradient_usual() -> Outcome:
    """Write to a detached array of a tensor that the backward pass needs."""

    def edit(y: Any) -> None:
        y.detach().numpy()[:] = 0

    return _gradient(edit)


def gradient_ours() -> Outcome:
    """The same write through ``to_numpy``, then through ``writable``."""
    import torch

    refusals: list[str | None] = []

    def through_to_numpy(y: Any) -> None:
        refusals.append(_refusal(lambda: ferry.to_numpy(y).__setitem__(slice(None), 0)))

    def through_writable(y: Any) -> None:
        with torch.no_grad(), ferry.writable(y) as array:
            array[:] = 0

    plain, edited = _gradient(through_to_numpy), _gradient(through_writable)
    read_only = refusals[0] is not None
    seen = f"to_numpy: {refusals[0] or 'the write went through'}; writable: {edited.seen}"
    return Outcome(read_only and plain.right and edited.right, seen)


def negative_usual() -> Outcome:
    """Hand a view with the negative bit to NumPy."""
    import torch

    imaginary = torch.tensor([1 + 2j]).conj().imag
    refused = _refusal(lambda: np.from_dlpack(imaginary))
    if refused is not None:
        return Outcome(True, refused)
    got = np.from_dlpack(imaginary).tolist()
    return Outcome(got == [-2.0], f"{got}; torch itself prints {imaginary.tolist()}")


def negative_ours() -> Outcome:
    """The same through ``to_numpy`` and ``from_dlpack``."""
    import torch

    imaginary = torch.tensor([1 + 2j]).conj().imag
    got = ferry.to_numpy(imaginary).tolist(), ferry.from_dlpack(imaginary, to="numpy", copy=None).tolist()
    return Outcome(got == ([-2.0], [-2.0]), f"{got[0]} and {got[1]}; torch itself prints {imaginary.tolist()}")


def strides_usual() -> Outcome:
    """Hand a reversed array to torch."""
    from torch.utils.dlpack import from_dlpack

    reversed_array = np.arange(4.0)[::-1]
    refused = _refusal(lambda: from_dlpack(reversed_array))
    if refused is not None:
        return Outcome(True, refused)
    got = from_dlpack(reversed_array).tolist()
    return Outcome(got == [3.0, 2.0, 1.0, 0.0], str(got))


def strides_ours() -> Outcome:
    """The same through ``from_numpy`` and ``from_dlpack``."""
    reversed_array = np.arange(4.0)[::-1]
    got = ferry.from_numpy(reversed_array).tolist()
    refused = _refusal(lambda: ferry.from_dlpack(reversed_array))
    right = got == [3.0, 2.0, 1.0, 0.0] and refused is not None
    return Outcome(right, f"from_numpy copies: {got}; from_dlpack: {refused or 'no error'}")


def mean_usual() -> Outcome:
    """Average ones in the dtype of ml_dtypes, as arrays of bfloat16 tensors get it."""
    import ml_dtypes
    import torch

    bits = torch.ones(1000, dtype=torch.bfloat16).view(torch.uint16).numpy()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mean = float(bits.view(ml_dtypes.bfloat16).mean())
    return Outcome(mean == 1.0, f"mean {mean:.4g}, {_warnings(caught)}")


def mean_ours() -> Outcome:
    """The same through ``to_numpy``, with and without a native dtype."""
    import torch

    ones = torch.ones(1000, dtype=torch.bfloat16)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ferry.to_numpy(ones)
    warned = any(issubclass(warning.category, ferry.ExtensionDTypeWarning) for warning in caught)
    mean = float(ferry.to_numpy(ones, dtype="numpy").mean())
    note = "to_numpy warns (ExtensionDTypeWarning)" if warned else "no warning"
    return Outcome(warned and mean == 1.0, f'{note}; with dtype="numpy" the mean is {mean:.4g}')


def _warnings(caught: list[warnings.WarningMessage]) -> str:
    return "no warning" if not caught else f"{len(caught)} warning{'s' if len(caught) > 1 else ''}"


def _written_through(convert: Callable[[Any], Any]) -> Outcome:
    array = np.arange(3.0)
    array.flags.writeable = False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        refused = _refusal(lambda: convert(array).__setitem__(0, 9))
    seen = refused or f"9 is written to the tensor, and the array is {array.tolist()}"
    return Outcome(array.tolist() == [0.0, 1.0, 2.0], f"{seen}; {_warnings(caught)}")


def readonly_usual() -> Outcome:
    """Write to a tensor over a read-only array."""
    import torch

    return _written_through(torch.from_numpy)


def readonly_ours() -> Outcome:
    """The same through ``from_numpy``."""
    return _written_through(ferry.from_numpy)


@contextlib.contextmanager
def _mapped() -> Iterator[np.ndarray[Any, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "values.npy")
        np.save(path, np.arange(3.0))
        yield np.load(path, mmap_mode="r")


def _write_to_map(convert: Callable[[Any], Any]) -> Outcome:
    with _mapped() as array, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refused = _refusal(lambda: convert(array).__setitem__(0, 9))
        return Outcome(array.tolist() == [0.0, 1.0, 2.0], refused or f"the file's values are {array.tolist()}")


def mapped_usual() -> Outcome:
    """Write to a tensor over a read-only memory map."""
    import torch

    return _write_to_map(torch.from_numpy)


def mapped_ours() -> Outcome:
    """The same through ``from_numpy``."""
    return _write_to_map(ferry.from_numpy)


PROBES: dict[str, Callable[[], Outcome]] = {
    probe.__name__: probe
    for probe in (
        gradient_usual,
        gradient_ours,
        negative_usual,
        negative_ours,
        strides_usual,
        strides_ours,
        mean_usual,
        mean_ours,
        readonly_usual,
        readonly_ours,
        mapped_usual,
        mapped_ours,
    )
}


def _leave_no_core_file() -> None:
    with contextlib.suppress(ImportError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    _leave_no_core_file()
    print(json.dumps(asdict(PROBES[sys.argv[1]]())))
