"""The general path from any tensor to an array; the native hot path comes here for everything that is not plain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorferry import _torch
from tensorferry._convert import destination as _destination
from tensorferry._convert.options import ToNumpyOptions
from tensorferry._convert.prepare import Prepared, prepare
from tensorferry._convert.take import Taken, is_array_like, take
from tensorferry._device.reception import Reception
from tensorferry._dtypes import NATIVE
from tensorferry._native import core
from tensorferry._nest import is_nest, map_leaves, visit_leaves
from tensorferry._plan.arrival import after_enqueuing
from tensorferry._plan.plan import Plan

__all__ = ["Begun", "Planner", "begin", "carry_out", "convert", "convert_leaf"]


# Tells what will happen to a leaf that was decided on, given its destination.
Planner = Callable[[Prepared, Any], Plan]


@dataclass
class Begun:
    """A conversion whose copies from devices are enqueued.

    Attributes
    ----------
    finish : callable
        Makes the result, once the copies were waited for.
    planned : list of (str, Plan or None)
        The plan of each leaf by its place, where a planner was given; None for what is no array.
    """

    finish: Callable[[], Any]
    planned: list[tuple[str, Plan | None]]


def convert(x: Any, copy: Any, dtype: Any, casting: Any, order: Any, out: Any, stream: Any, pinned: Any) -> Any:
    """``to_numpy`` with every argument given; see there."""
    options = ToNumpyOptions.parse(copy, dtype, casting, order, out, stream, pinned)
    reception = Reception(options.stream, options.pinned)
    begun = begin(x, options, out, reception)
    reception.wait()
    return begun.finish()


def begin(x: Any, options: ToNumpyOptions, out: Any, reception: Reception, planner: Planner | None = None) -> Begun:
    """Check everything, then enqueue what lies on devices.

    With a planner the result is for later: what is in host memory is converted at once, with its values of now.
    """

    def start(prepared: Prepared, destination: Any) -> Plan | None:
        made = None if planner is None else planner(prepared, destination)
        if prepared.taken.on_device is not None:
            before, nbytes = reception.snapshots, prepared.taken.on_device.nbytes
            _receive(prepared, reception, destination)
            made = made and after_enqueuing(made, nbytes, snapshot=reception.snapshots > before)
        elif planner is not None:
            prepared.result = carry_out(prepared, options, destination)
        return made

    if is_nest(x):
        return _begin_nest(x, options, out, start, reception)
    prepared = _prepare_to_read(x, options, out)
    reception.look_for_captures([prepared.taken.on_device])
    made = start(prepared, out)
    return Begun(lambda: carry_out(prepared, options, out), [("", made)])


def _begin_nest(
    x: Any, options: ToNumpyOptions, out: Any, start: Callable[[Prepared, Any], Plan | None], reception: Reception
) -> Begun:
    """Begin with every leaf, after all were checked."""
    others = () if out is None else (out,)
    leaves: list[Prepared | None] = []
    pairs: list[tuple[Any, core.Source | None]] = []

    unread: list[tuple[int, Any, Any]] = []  # what torch copies from a device, once every destination was checked

    def check(node: Any, destination: Any = None) -> None:
        prepared = None
        if is_array_like(node) and out is None:
            prepared = _prepare_to_read(node, options, in_nest=True)
        elif is_array_like(node):
            prepared = prepare(_described(node), options, destination, in_nest=True)
            if prepared.taken.is_described and prepared.taken.on_device is None:
                unread.append((len(leaves), node, destination))
        leaves.append(prepared)
        if prepared is not None:
            pairs.append((destination, prepared.taken.source))

    visit_leaves(check, x, *others)
    if out is not None:
        _destination.require_separate(pairs)
    reception.look_for_captures([prepared.taken.on_device for prepared in leaves if prepared is not None])
    for i, node, destination in unread:
        leaves[i] = prepare(take(node), options, destination, in_nest=True)

    def in_turn(do: Callable[[Prepared, Any], Any], *, keep: bool) -> Callable[..., Any]:
        following = iter(leaves)  # every walk meets the same leaves in the same order

        def leaf(node: Any, destination: Any = None) -> Any:
            prepared = next(following)
            if prepared is None:
                return node if keep else None
            return do(prepared, destination)

        return leaf

    def finish(prepared: Prepared, destination: Any) -> Any:
        return carry_out(prepared, options, destination)

    planned = visit_leaves(in_turn(start, keep=False), x, *others)
    return Begun(lambda: map_leaves(in_turn(finish, keep=True), x, *others), planned)


def _receive(prepared: Prepared, reception: Reception, out: Any) -> None:
    """Enqueue the copy of what lies on a device, into the destination itself where nothing is left to do then."""
    taken, decision = prepared.taken, prepared.decision
    assert taken.on_device is not None
    assert taken.source is not None
    assert decision is not None
    if out is not None:
        core.poison(core.Source.from_array(out))
    if reception.graph is not None:
        reception.graph.add(taken.on_device, out)
        prepared.delivered, prepared.taken = True, Taken(None, moved_from=taken.moved_from)
        return
    marked = taken.source.conjugated or taken.source.negated
    fits = out is not None and not (decision.checks_values or marked)
    arrived = reception.enqueue(taken.on_device, core.Source.from_array(out) if fits else None)
    prepared.delivered = arrived is None
    prepared.taken = Taken(arrived, moved_from=taken.moved_from)  # lets go of the tensor


def _prepare_to_read(x: Any, options: ToNumpyOptions, out: Any = None, *, in_nest: bool = False) -> Prepared:
    """Decide, and only then copy what has to be copied to be read: a refusal never waits for a device."""
    prepared = prepare(_described(x), options, out, in_nest=in_nest)
    if not prepared.taken.is_described or prepared.taken.on_device is not None:
        return prepared
    del prepared  # its alias would count as another holder of the storage
    return prepare(take(x), options, out, in_nest=in_nest)


def _described(x: Any) -> Taken:
    taken = take(x, move=False)
    if taken.on_device is not None:
        taken.on_device.load_kernels()
    return taken


def convert_leaf(x: Any, copy: Any, order: str) -> Any:
    """Convert one leaf of a nest that the native walk does not know; what is no array passes through.

    NotImplemented for what lies on a device: a nest with such leaves is converted as a whole, with one wait.
    """
    if not is_array_like(x):
        return x
    options = ToNumpyOptions.parse(copy, None, "same_kind", order, None, None, "auto")
    prepared = _prepare_to_read(x, options)
    return NotImplemented if prepared.taken.on_device is not None else carry_out(prepared, options, None)


def carry_out(prepared: Prepared, options: ToNumpyOptions, out: Any) -> Any:
    """Do what was decided."""
    if prepared.result is not None:
        return prepared.result
    taken, decision = prepared.taken, prepared.decision
    if decision is None:
        x = taken.array
        assert x is not None
        return x if prepared.kept else _numpy_copy(x, options)
    if prepared.delivered:
        return out
    source = taken.source
    assert source is not None
    if not NATIVE[decision.result_dtype]["numpy_native"] and out is None and options.dtype is None:
        core.warn_about_extension(decision.result_dtype)
    if taken.tensor is not None and taken.moved_from is None and decision.path != "copy":
        keep = _torch.keep_present_values if decision.path == "lazy" else _torch.keep_storage
        source = keep(taken.tensor, source)
    return core.execute(source, decision, out)


def _numpy_copy(x: np.ndarray[Any, Any], options: ToNumpyOptions) -> np.ndarray[Any, Any]:
    copied: np.ndarray[Any, Any] = x.copy(order=options.order)  # type: ignore[arg-type]
    copied.flags.writeable = options.copy == "always"
    return copied
