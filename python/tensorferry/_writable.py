"""Writing into a tensor's memory through NumPy, with autograd told."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorferry import _torch
from tensorferry._errors import ArgumentError, AutogradError, CopyRequiredError, LayoutError
from tensorferry._native import core
from tensorferry._take import take

if TYPE_CHECKING:
    import torch

__all__ = ["writable"]


@contextmanager
def writable(t: torch.Tensor, /) -> Iterator[np.ndarray[Any, Any]]:
    """Give a writable array over a tensor's memory, and tell autograd that it was written to.

    The version counter of the tensor rises on entry and on exit, an exception inside included, so that a backward pass
    that needs the old values raises as it does after an in-place operation of torch. On exit the array becomes
    read-only. Views that were taken of it inside are NumPy's and stay writable: do not keep them.

    Parameters
    ----------
    t : torch.Tensor
        A tensor in host memory, of any dtype that NumPy or ml_dtypes has. With gradient mode on it must not require
        grad: NumPy's writes cannot be differentiated, so say ``torch.no_grad()`` as for any edit of a parameter.

    Yields
    ------
    numpy.ndarray
        Same dtype, shape and memory as `t`. Never blocks, copies nothing.

    Raises
    ------
    AutogradError
        When `t` requires grad and gradient mode is on.
    LayoutError
        When elements of `t` overlap (``expand``).
    CopyRequiredError
        When memory holds other values than the tensor (conjugate or negative bit, packed dtype), or is elsewhere.

    Examples
    --------
    >>> import torch, tensorferry as ferry
    >>> t = torch.zeros(3)
    >>> with ferry.writable(t) as a:
    ...     a[1] = 5
    >>> t
    tensor([0., 5., 0.])
    """
    array = _open(t)
    raise_version = _version_of(t)
    raise_version()
    try:
        yield array
    finally:
        array.flags.writeable = False
        raise_version()


def _open(t: Any) -> np.ndarray[Any, Any]:
    if not _torch.is_tensor(t):
        raise ArgumentError(
            f"writable() of a {type(t).__name__}",
            "only torch tensors have a version counter to raise",
            "write to arrays directly",
        )
    taken = take(t, move=False)
    source = taken.source
    assert source is not None
    assert taken.tensor is not None
    _refuse_recorded(t, source)
    if taken.moved_from is not None:
        raise CopyRequiredError(
            f"{source.summary()} on device {taken.moved_from}",
            "NumPy cannot write to that device's memory",
            "edit a host copy and write it back: t.copy_(from_numpy(edited))",
        )
    if source.layout_facts()["may_overlap_itself"]:
        raise LayoutError(
            source.summary(), "its elements overlap, so a write to one would change others", "write to t.clone()"
        )
    decision = core.decide(source, copy="never")
    return core.writable_array(_torch.keep_storage(taken.tensor, source), decision)


def _refuse_recorded(t: torch.Tensor, source: core.Source) -> None:
    import torch

    if t.requires_grad and torch.is_grad_enabled():
        raise AutogradError(
            f"{source.summary()} that requires grad",
            "what NumPy writes cannot be recorded for the backward pass",
            "edit it under torch.no_grad(): with torch.no_grad(), ferry.writable(t) as a: ...",
        )


def _version_of(t: torch.Tensor) -> Callable[[], None]:
    """Return what raises the version of `t`: found beforehand, for nothing can be imported at interpreter exit."""
    import torch

    if t.is_inference():  # those have no counter, and autograd never saves them
        return lambda: None
    return functools.partial(torch.autograd.graph.increment_version, t)
