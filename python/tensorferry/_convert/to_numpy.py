"""The general path from any tensor to an array; the native hot path comes here for everything that is not plain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorferry import _torch
from tensorferry._convert import destination as _destination
from tensorferry._convert.options import ToNumpyOptions
from tensorferry._convert.take import Taken, is_array_like, refuse_array, take
from tensorferry._dtypes import CHOICES, NATIVE, for_leaf, resolve
from tensorferry._errors import CopyRequiredError, DTypeError, PrecisionLossError, StreamError
from tensorferry._native import core
from tensorferry._nest import is_nest, map_leaves, visit_leaves

__all__ = ["Prepared", "carry_out", "convert", "convert_leaf", "prepare"]


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
    """

    taken: Taken
    decision: core.Decision | None
    kept: bool = False


def convert(x: Any, copy: Any, dtype: Any, casting: Any, order: Any, out: Any, stream: Any, pinned: Any) -> Any:
    """``to_numpy`` with every argument given; see there."""
    options = ToNumpyOptions.parse(copy, dtype, casting, order, out, stream, pinned)
    if not is_nest(x):
        return carry_out(_prepare_to_read(x, options, out), options, out)

    if out is not None:
        return _fill(x, options, out)

    def leaf(node: Any) -> Any:
        if not is_array_like(node):
            return node
        return carry_out(_prepare_to_read(node, options, in_nest=True), options, None)

    return map_leaves(leaf, x)


def _prepare_to_read(x: Any, options: ToNumpyOptions, out: Any = None, *, in_nest: bool = False) -> Prepared:
    """Decide, and only then copy what has to be copied to be read: a refusal never waits for a device."""
    prepared = prepare(take(x, move=False), options, out, in_nest=in_nest)
    if not prepared.taken.is_described:
        return prepared
    del prepared  # its alias would count as another holder of the storage
    return prepare(take(x), options, out, in_nest=in_nest)


def _fill(x: Any, options: ToNumpyOptions, out: Any) -> Any:
    """Fill a nest of destinations; every leaf is checked before the first is written."""
    pairs: list[tuple[Any, core.Source | None]] = []

    def check(node: Any, destination: Any) -> Prepared | None:
        if not is_array_like(node):
            return None
        prepared = _prepare_to_read(node, options, destination, in_nest=True)
        pairs.append((destination, prepared.taken.source))
        return prepared

    checked = iter(visit_leaves(check, x, out))
    _destination.require_separate(pairs)

    def leaf(node: Any, destination: Any) -> Any:
        _, prepared = next(checked)
        return node if prepared is None else carry_out(prepared, options, destination)

    return map_leaves(leaf, x, out)


def convert_leaf(x: Any, copy: Any, order: str) -> Any:
    """Convert one leaf of a nest that the native walk does not know; what is no array passes through."""
    if not is_array_like(x):
        return x
    options = ToNumpyOptions.parse(copy, None, "same_kind", order, None, None, "auto")
    return carry_out(_prepare_to_read(x, options, in_nest=True), options, None)


def prepare(taken: Taken, options: ToNumpyOptions, out: Any = None, *, in_nest: bool = False) -> Prepared:
    """Decide what happens to one tensor. ``plan`` and the conversion both come through here."""
    _refuse_stream(taken, options)
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
    decision = core.decide(
        source,
        target="numpy",
        copy=options.copy,
        dtype=wanted,
        casting=options.casting,
        order="K" if out is not None else options.order,
        into_destination=out is not None,
        lazy_possible=options.copy == "lazy" and taken.tensor is not None and _torch.lazy_clone_is_safe(taken.tensor),
        private_memory=taken.moved_from is not None,
    )
    if out is not None:
        _destination.require_fit(out, source, decision)
    return Prepared(taken, decision)


def _refuse_stream(taken: Taken, options: ToNumpyOptions) -> None:
    if options.stream is None or taken.moved_from is not None:
        return
    raise StreamError(
        f"stream={options.stream!r} for a tensor in host memory",
        "no stream works on host memory",
        "leave stream out, or wait for the stream before the call",
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


def as_known_dtype(x: np.ndarray[Any, Any], wanted: str, casting: str, what: str) -> core.Source:
    """Read an array whose dtype only NumPy has, given consent by a ``dtype=``.

    Raises
    ------
    DTypeError
        Without that consent, and for what `what` can never hold.
    PrecisionLossError
        Under "same_value", when extended precision does not survive.
    """
    if x.dtype.kind in "mM" and wanted == "int64":
        return core.Source.from_array(x.view(np.dtype("i8").newbyteorder(x.dtype.byteorder)))
    if x.dtype.kind in "fc" and wanted not in CHOICES and casting in ("same_value", "unsafe", "same_kind"):
        return _narrowed(x, wanted, casting, what)
    raise refuse_array(x, what)


def _narrowed(x: np.ndarray[Any, Any], wanted: str, casting: str, what: str) -> core.Source:
    """Round extended precision once: straight to what was asked for, or to double where that loses nothing."""
    kind = x.dtype.kind
    direct = wanted in (("complex64", "complex128") if kind == "c" else ("float16", "float32", "float64"))
    target = np.dtype(wanted if direct else "complex128" if kind == "c" else "float64")
    with np.errstate(all="ignore"):
        narrowed = x.astype(target)
    survived = (narrowed == x) | ((narrowed != narrowed) & (x != x))
    if casting == "same_value" and not np.all(survived):
        index = tuple(int(i) for i in np.argwhere(~survived)[0])
        error = PrecisionLossError(
            f'a {x.shape} {x.dtype} array, casting="same_value"',
            f"the value at index {index} is not a value of {target}",
            'choose a wider dtype, or pass casting="unsafe" to accept the change',
        )
        error.index = index
        raise error
    if not direct and not np.all(survived):
        raise DTypeError(
            f"a {x.shape} {x.dtype} array, dtype={wanted}",
            f"it would be rounded twice, through {target}, since {what} has no extended precision",
            f"round it yourself: x.astype({target})",
        )
    return core.Source.from_array(narrowed)


def carry_out(prepared: Prepared, options: ToNumpyOptions, out: Any) -> Any:
    """Do what was decided."""
    taken, decision = prepared.taken, prepared.decision
    if decision is None:
        x = taken.array
        assert x is not None
        return x if prepared.kept else _numpy_copy(x, options)
    source = taken.source
    assert source is not None
    if not NATIVE[decision.result_dtype]["numpy_native"] and out is None and options.dtype is None:
        core.warn_about_extension(decision.result_dtype)
    if taken.tensor is not None and decision.path != "copy":
        keep = _torch.keep_present_values if decision.path == "lazy" else _torch.keep_storage
        source = keep(taken.tensor, source)
    return core.execute(source, decision, out)


def _numpy_copy(x: np.ndarray[Any, Any], options: ToNumpyOptions) -> np.ndarray[Any, Any]:
    copied: np.ndarray[Any, Any] = x.copy(order=options.order)  # type: ignore[arg-type]
    copied.flags.writeable = options.copy == "always"
    return copied
