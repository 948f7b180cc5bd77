"""The error classes, each with a message that the code itself has just given."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from unittest import mock

import numpy as np
import torch
from markdown_text import code, table

import tensorferry as ferry
from tensorferry import _errors
from tensorferry._transfer.stats import TransferStats
from tensorferry._transfer.transfer import Transfer

__all__ = ["EXAMPLES", "errors", "message_of"]


def _read_only() -> np.ndarray:
    array = np.zeros(2, np.float32)
    array.flags.writeable = False
    return array


def _without_torch() -> None:
    real = builtins.__import__

    def refuse(name: str, *arguments: object, **keywords: object) -> object:
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'")
        return real(name, *arguments, **keywords)

    with mock.patch.object(builtins, "__import__", refuse):
        ferry.plan(np.zeros(2), to="torch")


def _graph() -> torch.Tensor:
    return torch.zeros(2, requires_grad=True)


class _NeverDone:
    def done(self) -> bool:
        return False

    def wait(self, timeout: float | None) -> bool:
        return False

    def add_callback(self, call: Callable[[], None]) -> None:
        del call


def _in_flight() -> Transfer[None]:
    return Transfer(_NeverDone(), lambda: None, ferry.plan(np.zeros(2)), TransferStats(4096, 1, False, 0.0))


def _broken_sink(step: int, values: dict[str, object]) -> None:
    raise ConnectionError("the server is gone")


def _log_to_a_broken_sink() -> None:
    with ferry.MetricLog(_broken_sink) as log:
        log.log({"loss": 0.5})


# For each class: the call as a reader would write it, and the call itself.
EXAMPLES: dict[type[ferry.FerryError], tuple[str, Callable[[], object]]] = {
    ferry.ArgumentError: ('to_numpy(t, order="Z")', lambda: ferry.to_numpy(torch.zeros(2), order="Z")),
    ferry.AutogradError: ("to_dlpack(parameter)", lambda: ferry.to_dlpack(_graph())),
    ferry.BufferMismatchError: (
        "to_numpy(t, out=a)",
        lambda: ferry.to_numpy(torch.zeros(2), out=np.zeros(3, np.float32)),
    ),
    ferry.CheckError: ('check(t, shape=("B", 3))', lambda: ferry.check(torch.zeros(8, 4), shape=("B", 3))),
    ferry.CopyRequiredError: (
        'to_numpy(t, dtype="float64", copy=False)',
        lambda: ferry.to_numpy(torch.zeros(2), dtype="float64", copy=False),
    ),
    ferry.DeviceError: ("to_numpy(meta_tensor)", lambda: ferry.to_numpy(torch.zeros(2, device="meta"))),
    ferry.DTypeError: ('to_numpy(t, dtype="int32")', lambda: ferry.to_numpy(torch.zeros(2), dtype="int32")),
    ferry.ExportError: ('save({}, "/none/x.npz")', lambda: ferry.save({}, "/none/x.npz")),
    ferry.LayoutError: ("to_numpy(sparse)", lambda: ferry.to_numpy(torch.zeros(2).to_sparse())),
    ferry.MissingDependencyError: ('plan(a, to="torch")', _without_torch),
    ferry.PrecisionLossError: (
        'to_numpy(t, dtype="int32", casting="same_value")',
        lambda: ferry.to_numpy(torch.tensor([1.0, 1.5]), dtype="int32", casting="same_value"),
    ),
    ferry.ReadOnlyError: (
        'from_numpy(a, readonly="raise")',
        lambda: ferry.from_numpy(_read_only(), readonly="raise"),
    ),
    ferry.SinkError: ("log.close()", _log_to_a_broken_sink),
    ferry.StreamError: ("to_numpy(t, stream=1)", lambda: ferry.to_numpy(torch.zeros(2), stream=1)),
    ferry.TransferTimeout: ("transfer.result(timeout=0)", lambda: _in_flight().result(timeout=0)),
}


def message_of(kind: type[ferry.FerryError]) -> str:
    """Return the message of the example; fail when the call raises no error of exactly that class."""
    try:
        EXAMPLES[kind][1]()
    except ferry.FerryError as error:
        # The DLPack refusals are of a class made on the spot, with the same name.
        if type(error).__name__ == kind.__name__:
            return str(error)
        raise
    raise AssertionError(f"{EXAMPLES[kind][0]} raised nothing")


def _builtin_bases(kind: type[BaseException]) -> list[str]:
    found = [base.__name__ for base in kind.__mro__ if base.__module__ == "builtins"]
    return [name for name in found if name not in ("Exception", "BaseException", "object")]


def _first_paragraph(kind: type[BaseException]) -> str:
    return " ".join((kind.__doc__ or "").strip().split("\n\n")[0].split())


def errors() -> str:
    """One row for each class of error."""
    classes = [getattr(_errors, name) for name in _errors.__all__]
    kinds = [kind for kind in classes if issubclass(kind, ferry.FerryError) and kind is not ferry.FerryError]
    rows = [
        [
            code(kind.__name__),
            ", ".join(code(name) for name in _builtin_bases(kind)),
            _first_paragraph(kind),
            f"{code(EXAMPLES[kind][0])}<br>{message_of(kind)}",
        ]
        for kind in sorted(kinds, key=lambda kind: kind.__name__.lower())
    ]
    return table(["class", "also a", "raised when", "for example"], rows)
