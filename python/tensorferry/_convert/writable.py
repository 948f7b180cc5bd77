"""Writing into a tensor's memory through NumPy, with autograd told."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from tensorferry import _torch
from tensorferry._convert.take import take
from tensorferry._errors import ArgumentError, AutogradError, CopyRequiredError, LayoutError
from tensorferry._native import core
from tensorferry._torch.autograd import has_tangent
from tensorferry._untraced import untraced

if TYPE_CHECKING:
    import torch

__all__ = ["writable"]


@contextmanager
def writable(t: torch.Tensor, /) -> Iterator[np.ndarray[Any, Any]]:
    """See :func:`tensorferry.writable`."""
    array = untraced(_open)(t)
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
    if _torch.exports_itself(t):
        raise LayoutError(
            f"writable() of a {type(t).__name__}",
            "this subclass says itself how it is read (__dlpack__), so its memory may not be its values",
            "write to t.as_subclass(torch.Tensor)",
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
    if has_tangent(t):
        raise AutogradError(
            f"{source.summary()} that carries a tangent",
            "what NumPy writes cannot be differentiated forward either",
            "edit it outside of forward_ad.dual_level(), or with torch's own in-place operations",
        )


def _version_of(t: torch.Tensor) -> Callable[[], None]:
    """Return what raises the version of `t`: found beforehand, for nothing can be imported at interpreter exit."""
    import torch

    if t.is_inference():  # those have no counter, and autograd never saves them
        return lambda: None
    return functools.partial(torch.autograd.graph.increment_version, t)
