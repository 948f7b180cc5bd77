"""``check``: states what a tensor must be; one error lists everything that is not so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from tensorferry import _torch
from tensorferry._check.dtype import DType, array_dtype, dtype_text, satisfies, wanted_text
from tensorferry._check.requirements import Requirements, child_keys, child_label
from tensorferry._check.shape import Names, shape_violations
from tensorferry._check.values import value_violations
from tensorferry._convert.take import Taken, is_array_like, take
from tensorferry._errors import CheckError, FerryError
from tensorferry._inspect.describe import refuse_cycles
from tensorferry._inspect.describe_producers import dlpack_device
from tensorferry._native import core
from tensorferry._nest import open_node
from tensorferry._torch import facts as torch_facts

__all__ = ["check"]

T = TypeVar("T")


def check(
    x: T,
    /,
    *,
    shape: Any = None,
    dtype: Any = None,
    device: Any = None,
    finite: Any = None,
    range: Any = None,
    requires_grad: Any = None,
) -> T:
    """See :func:`tensorferry.check`."""
    only_values = shape is None and dtype is None and device is None and requires_grad is None
    asks = finite is True or (finite is None and range is not None)
    if only_values and asks and core.values_pass(x, finite is True, range):
        return x
    wanted = Requirements.parse(shape, dtype, device, finite, range, requires_grad)
    refuse_cycles(x)
    violations = _violations(x, wanted, {}, "", named=False)
    if violations:
        raise _error(x, violations)
    return x


def _violations(node: Any, wanted: Requirements, names: Names, place: str, *, named: bool) -> list[str]:
    opened = open_node(node)
    if opened is None:
        if not place or is_array_like(node):
            prefix = f"{place}: " if place else ""
            return [prefix + found for found in _leaf_violations(node, wanted, names, place)]
        return [f"{place}: it is no tensor and no array, but of class {type(node).__name__}"] if named else []
    children = dict(zip(child_keys(node, len(opened[0])), opened[0], strict=True))
    mentioned = wanted.children_named()
    missing = [key for key in mentioned if key not in children]
    found = [f"{place}{child_label(node, key)}: it is missing" for key in missing]
    for key, child in children.items():
        inner = wanted.of_child(key)
        found += _violations(child, inner, names, place + child_label(node, key), named=key in mentioned)
    return found


@dataclass(frozen=True)
class _Seen:
    """What a leaf is, as far as it tells without its values being read."""

    shape: tuple[int, ...] | None
    dtype: DType
    device: str
    requires_grad: bool
    read: Callable[[], Taken]


def _read_tensor(x: Any) -> Taken:
    source = core.plain_source(x)
    return take(x) if source is None else Taken(source)


def _is_readable(x: Any) -> bool:
    try:
        take(x, move=False)
    except FerryError:
        return False
    return True


def _look_at(x: Any) -> _Seen:
    if _torch.is_tensor(x):
        return _Seen(*torch_facts.metadata(x), read=lambda: _read_tensor(x))
    if isinstance(x, (np.ndarray, np.generic)):
        return _Seen(x.shape, array_dtype(x), "cpu", False, lambda: take(x))
    if not is_array_like(x) and not isinstance(x, bytes):
        take(x)  # raises: it is no tensor
    device = dlpack_device(x)[0]
    try:
        taken = take(x, move=False)
    except FerryError:  # memory that cannot be read from here: what the object says of itself must do
        return _Seen(getattr(x, "shape", None), str(getattr(x, "dtype", "unknown")), device, False, lambda: take(x))
    if taken.source is None:
        values = np.asarray(x)
        return _Seen(values.shape, array_dtype(values), device, False, lambda: Taken(None, array=values))
    read = (lambda: taken) if taken.on_device is None else (lambda: take(x))
    return _Seen(tuple(taken.source.shape), str(taken.source.dtype), device, False, read)


def _leaf_violations(x: Any, wanted: Requirements, names: Names, place: str) -> list[str]:
    seen = _look_at(x)
    found = []
    if wanted.shape is not None:
        found += shape_violations(seen.shape, wanted.shape, names, place)
    if wanted.dtype is not None and not satisfies(seen.dtype, wanted.dtype):
        found.append(f"dtype is {dtype_text(seen.dtype)}, wanted {wanted_text(wanted.dtype)}")
    if wanted.device is not None and wanted.device not in (seen.device, seen.device.partition(":")[0]):
        found.append(f"device is {seen.device}, wanted {wanted.device}")
    if wanted.requires_grad is not None and seen.requires_grad != wanted.requires_grad:
        found.append(f"requires_grad is {seen.requires_grad}, wanted {wanted.requires_grad}")
    if wanted.finite or wanted.range is not None:
        found += value_violations(seen.read, lambda: _is_readable(x), bool(wanted.finite), wanted.range)
    return found


def _error(x: Any, violations: list[str]) -> CheckError:
    many = len(violations) > 1
    listed = "".join(f"\n  - {one}" for one in violations) if many else f" {violations[0]}"
    error = CheckError(
        _given(x),
        f"it misses {f'{len(violations)} requirements' if many else 'a requirement'}:{listed}",
        "correct the data, or the requirement (describe(x) tells more)",
    )
    error.violations = tuple(violations)
    return error


def _given(x: Any) -> str:
    if open_node(x) is not None:
        return f"a nest ({type(x).__name__})"
    seen = _look_at(x)
    return f"a {seen.shape} {dtype_text(seen.dtype)} {type(x).__name__}"
