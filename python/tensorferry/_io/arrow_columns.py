"""Arrays as columns of a table, through pyarrow: each row is a number, or a list of fixed size."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from tensorferry._io.carriers import carrier_of, restored
from tensorferry._io.failures import refused
from tensorferry._io.growing import RowKind
from tensorferry._io.optional import optional

__all__ = ["KEY", "array_of", "column_of", "field_of", "kind_of", "library"]

_Array = np.ndarray[Any, Any]

KEY = b"tensorferry"
_KINDS = "biuf"


def library(module: str, path: str) -> Any:
    """Import pyarrow, or a part of it, for a path."""
    return optional(module, f"the table {path!r}", "arrow")


def _carried(dtype: np.dtype[Any]) -> tuple[np.dtype[Any], str | None, int] | None:
    """Return the dtype in the column, a tag, and how many values of it make one element."""
    if dtype.kind == "c" and dtype.itemsize <= 16:
        return np.dtype(f"f{dtype.itemsize // 2}"), dtype.name, 2
    found = carrier_of(dtype, kinds=_KINDS)
    return None if found is None else (*found, 1)


def field_of(path: str, name: str, kind: RowKind) -> Any:
    """Return the field of a column.

    Raises
    ------
    ExportError
        For dtypes and shapes that a table cannot hold.
    """
    pa = library("pyarrow", path)
    carried = _carried(kind.dtype)
    if carried is None:
        why = f"column {name!r}: Arrow has no fixed word for {kind.dtype}"
        raise refused(path, why, "save to a folder (a path that ends with /), or convert it")
    dtype, tag, many = carried
    facts: dict[str, Any] = {}
    type_ = pa.bool_() if dtype.kind == "b" else pa.from_numpy_dtype(dtype)
    if kind.shape or many > 1:
        size = math.prod(kind.shape) * many
        if size == 0:
            raise refused(path, f"column {name!r}: its rows are empty", "leave it out, or save to a folder")
        type_ = pa.list_(pa.field("item", type_, nullable=False), size)
        facts["shape"] = list(kind.shape)
    if tag is not None:
        facts["dtype"] = tag
    return pa.field(name, type_, nullable=False, metadata={KEY: json.dumps(facts)} if facts else None)


def array_of(path: str, field: Any, values: _Array) -> Any:
    """Return rows as an Arrow array; shares memory where the values are contiguous and no booleans."""
    pa = library("pyarrow", path)
    carried = _carried(values.dtype)
    assert carried is not None
    flat = np.ascontiguousarray(values).reshape(-1).view(carried[0])
    if not pa.types.is_fixed_size_list(field.type):
        return pa.array(flat, field.type)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat, field.type.value_type), type=field.type)


def kind_of(path: str, field: Any, rows: int) -> RowKind:
    """Return what the rows of a column are.

    Raises
    ------
    ExportError
        For columns of text, of lists of any length, and the like.
    """
    pa = library("pyarrow", path)
    facts = json.loads((field.metadata or {}).get(KEY, b"{}"))
    type_, shape = field.type, []
    if isinstance(type_, pa.FixedShapeTensorType):
        if type_.permutation not in (None, list(range(len(type_.shape)))):
            raise refused(path, f"column {field.name!r} has exchanged axes", "read it with pyarrow")
        type_, shape = type_.value_type, list(type_.shape)
    while pa.types.is_fixed_size_list(type_):
        shape.append(type_.list_size)
        type_ = type_.value_type
    if not (pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_)):
        why = f"column {field.name!r} holds {field.type}, and arrays hold numbers and lists of one size"
        raise refused(path, why, "read it with pyarrow, or drop that column")
    dtype = np.dtype(type_.to_pandas_dtype())
    if "dtype" in facts:
        tag = facts["dtype"]
        dtype = np.dtype(tag) if tag in ("complex64", "complex128") else restored(path, tag)
    return RowKind(dtype, tuple(facts.get("shape", shape)), rows)


def column_of(path: str, name: str, column: Any, kind: RowKind) -> _Array:
    """Return the values of a chunked column; shares memory where it has one chunk, without gaps.

    Raises
    ------
    ExportError
        For missing values.
    """
    parts = [_flat(path, name, chunk) for chunk in column.chunks if len(chunk)]
    if not parts:
        return np.empty((0, *kind.shape), kind.dtype)
    flat = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return flat.view(kind.dtype).reshape(kind.rows, *kind.shape)


def _flat(path: str, name: str, chunk: Any) -> _Array:
    pa = library("pyarrow", path)
    if isinstance(chunk, pa.ExtensionArray):
        chunk = chunk.storage
    while True:
        if chunk.null_count:
            raise refused(path, f"column {name!r} has missing values", "fill them first, with pyarrow")
        if not pa.types.is_fixed_size_list(chunk.type):
            break
        chunk = chunk.flatten()
    values: _Array = chunk.to_numpy(zero_copy_only=False)
    return values
