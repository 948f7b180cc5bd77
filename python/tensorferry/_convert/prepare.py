"""What a conversion to NumPy will do, decided before anything is touched. ``plan`` comes through here as well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorferry import _torch
from tensorferry._convert import destination as _destination
from tensorferry._convert.known_dtype import as_known_dtype
from tensorferry._convert.options import ToNumpyOptions
from tensorferry._convert.take import Taken
from tensorferry._dtypes import NATIVE, for_leaf, resolve
from tensorferry._errors import CopyRequiredError, DeviceError, DTypeError, StreamError
from tensorferry._native import core

__all__ = ["Prepared", "prepare"]


@dataclass
class Prepared:
    """A conversion that was decided on and not yet carried out.

    Attributes
    ----------
    taken : Taken
        The source.
    decision : _core.Decision or None
        What the native layer will do; None when the array is kept or NumPy copies it.
    kept : bool
        The caller's own array is returned.
    delivered : bool
        The values are in the destination, or on their way there.
    result : ndarray, optional
        What was made already.
    """

    taken: Taken
    decision: core.Decision | None
    kept: bool = False
    delivered: bool = False
    result: np.ndarray[Any, Any] | None = None


def prepare(taken: Taken, options: ToNumpyOptions, out: Any = None, *, in_nest: bool = False) -> Prepared:
    """Decide what happens to one tensor. ``plan`` and the conversion both come through here."""
    _refuse_device_arguments(taken, options)
    if taken.array is not None:
        kept = _prepare_array(taken, taken.array, options, in_nest=in_nest) if out is None else None
        if kept is not None:
            return kept
        _refuse_mask(taken.array)
    source = taken.source
    if source is None:
        assert taken.array is not None
        source = _through_numpy(taken.array, options)
        taken = Taken(source)
    if taken.moved_from is not None and options.copy == "never":
        raise CopyRequiredError(
            f"{source.summary()} on device {taken.moved_from}, copy=False",
            "the host cannot share that device's memory",
            "pass copy=None, or move the tensor first: x.cpu()",
        )
    wanted = for_leaf(options.dtype, source.dtype, in_nest=in_nest)
    if wanted == "float4_e2m1fn_x2":
        wanted = "float4_e2m1fn"  # arrays hold one value a byte
    if out is not None:
        wanted = _destination.agreed_dtype(out, wanted, options.dtype)
    lazy = options.copy == "lazy" and taken.tensor is not None and _torch.lazy_clone_is_safe(taken.tensor)

    def decided(source: core.Source) -> core.Decision:
        return core.decide(
            source,
            target="numpy",
            copy=options.copy,
            dtype=wanted,
            casting=options.casting,
            order="K" if out is not None else options.order,
            into_destination=out is not None,
            lazy_possible=lazy,
            private_memory=taken.moved_from is not None,
        )

    decision = decided(source)
    made_there = _made_on_device(taken, decision, "K" if out is not None else options.order)
    if made_there is not None:
        taken.source = source = made_there
        decision = decided(source)
    if out is not None:
        _destination.require_fit(out, source, decision)
    return Prepared(taken, decision)


def _made_on_device(taken: Taken, decision: core.Decision, order: str) -> core.Source | None:
    """Let a kernel cast and order the values before the link, where that saves work; return what arrives then."""
    on_device, source = taken.on_device, taken.source
    if on_device is None or decision.checks_values:
        return None
    assert source is not None
    if source.conjugated or source.negated:
        return None
    casts = decision.value_dtype != source.dtype
    if casts and not on_device.can_cast(decision.value_dtype):
        return None  # the host casts, and orders in the same pass
    if not casts and (order not in "CF" or not on_device.has_kernels):
        return None
    return on_device.described_as(decision.value_dtype if casts else "", order)


def _refuse_device_arguments(taken: Taken, options: ToNumpyOptions) -> None:
    """A stream and pinned memory are for what lies on a device."""
    if options.stream is not None and taken.moved_from is None:
        raise StreamError(
            f"stream={options.stream!r} for a tensor in host memory",
            "no stream works on host memory",
            "leave stream out, or wait for the stream before the call",
        )
    if options.pinned is True and taken.on_device is None:
        raise DeviceError(
            f"pinned=True for a tensor {'in host memory' if taken.moved_from is None else 'on ' + taken.moved_from}",
            "no pinned memory is taken for it: only copies from CUDA devices arrive there",
            'pass pinned="auto", or copy it into ferry.empty_pinned(...)',
        )


def _prepare_array(taken: Taken, x: np.ndarray[Any, Any], options: ToNumpyOptions, *, in_nest: bool) -> Prepared | None:
    """Keep the caller's own array when nothing has to change; let NumPy copy what only NumPy knows."""
    if taken.source is None:
        wanted = "keep" if isinstance(options.dtype, Mapping) else resolve(options.dtype)
        counts = wanted == "int64" and x.dtype.kind in "mM"
        same_dtype = wanted in ("keep", "numpy") or (in_nest and x.dtype.kind not in "fc" and not counts)
    else:
        wanted = for_leaf(options.dtype, taken.source.dtype, in_nest=in_nest)
        native = bool(NATIVE[taken.source.dtype]["numpy_native"])
        fits = wanted == taken.source.dtype or (wanted == "numpy" and native)
        same_dtype = wanted == "keep" or (fits and not taken.source.byte_swapped)
    in_order = {"C": x.flags.c_contiguous, "F": x.flags.f_contiguous}.get(options.order, True)
    if same_dtype and in_order and options.copy in ("if_needed", "never"):
        return Prepared(taken, None, kept=True)
    _refuse_mask(x)
    if taken.source is None and same_dtype:
        if options.copy == "never":
            raise CopyRequiredError(
                f"a {x.shape} {x.dtype} array, order={options.order!r}, copy=False",
                "the memory order asked for is not the array's",
                "pass copy=None to copy only when needed",
            )
        return Prepared(taken, None)
    return None


def _refuse_mask(x: np.ndarray[Any, Any]) -> None:
    if isinstance(x, np.ma.MaskedArray):
        raise DTypeError(
            f"a masked {x.shape} {x.dtype} array",
            "a conversion would drop the mask",
            "fill it first: x.filled(value)",
        )


def _through_numpy(x: np.ndarray[Any, Any], options: ToNumpyOptions) -> core.Source:
    """Convert dates (as counts) and extended precision to what was asked for; refuse the rest."""
    wanted = "keep" if isinstance(options.dtype, Mapping) else resolve(options.dtype)
    return as_known_dtype(x, wanted, options.casting, "an array of numbers")
