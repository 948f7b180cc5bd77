"""What ``describe`` returns, and how it reads as text."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Description", "Pitch", "extents_text"]


class Pitch(NamedTuple):
    """Equal contiguous rows at one fixed step."""

    rows: int
    row_nbytes: int
    step_nbytes: int


@dataclass(frozen=True, repr=False)
class Description:
    """Everything about a tensor but its values; ``str()`` makes an aligned text of it.

    A field that does not apply is None. For a tensor that does not convert, the fields about memory (strides to
    addresses, writable, storage) are None and `note` says why.

    Attributes
    ----------
    kind : str
        "torch tensor", "NumPy array", "NumPy scalar", "DLPack producer", "buffer" or "array protocol".
    class_name : str
        Name of the object's class.
    dtype : str or None
        Name of the element type, as its library says it.
    shape : tuple of int or None
        Extents; None where some extent is no plain number (nested and symbolic shapes).
    device : str
        Such as "cpu" or "cuda:0"; "unknown" when the producer does not say.
    strides : tuple of int or None
        In bytes, as NumPy counts them.
    strides_in_elements : tuple of int or None
        In elements, as torch counts them; None also when they are not whole elements.
    c_contiguous, f_contiguous : bool or None
        As NumPy defines the flags.
    dense : bool or None
        The elements fill one block without holes, in some order of the axes.
    pitch : Pitch or None
        Rows, bytes a row and bytes from row to row, when the elements are equal contiguous rows at one step.
    overlapping : bool or None
        Some elements may lie over each other, as in expanded tensors.
    nbytes : int or None
        Bytes of all values.
    span_nbytes : int or None
        Bytes from the lowest to beyond the highest one touched.
    addresses : (int, int) or None
        The lowest address touched and the one beyond the highest; None when no memory is touched.
    byte_order : str or None
        "little" or "big"; None for elements of one byte, and where it has no meaning.
    aligned : bool or None
        Every element starts at a multiple of its natural alignment.
    pinned : bool
        Host memory that is page-locked for a device, as far as can be told without starting one.
    writable : bool or None
        NumPy's flag, DLPack's mark; torch tensors are writable unless elements overlap or there is no memory.
    requires_grad, is_leaf : bool or None
        Of torch tensors.
    grad_fn : str or None
        Name of the autograd node that made the tensor.
    version : int or None
        torch's count of in-place changes; None for inference tensors, which have none.
    conjugated, negated : bool
        A mark says that values are to be conjugated or negated when read.
    is_view : bool or None
        A view of another array, or in torch's sense of another tensor.
    base : str
        What keeps the memory alive, or what the object is a view of.
    storage_offset : int or None
        In elements, of torch tensors.
    storage_nbytes : int or None
        Of the whole storage of a torch tensor.
    note : str
        Why the object does not convert, or what is special about it.
    """

    kind: str
    class_name: str
    dtype: str | None
    shape: tuple[int, ...] | None
    device: str
    strides: tuple[int, ...] | None = None
    strides_in_elements: tuple[int, ...] | None = None
    c_contiguous: bool | None = None
    f_contiguous: bool | None = None
    dense: bool | None = None
    pitch: Pitch | None = None
    overlapping: bool | None = None
    nbytes: int | None = None
    span_nbytes: int | None = None
    addresses: tuple[int, int] | None = None
    byte_order: str | None = None
    aligned: bool | None = None
    pinned: bool = False
    writable: bool | None = None
    requires_grad: bool | None = None
    is_leaf: bool | None = None
    grad_fn: str | None = None
    version: int | None = None
    conjugated: bool = False
    negated: bool = False
    is_view: bool | None = None
    base: str = ""
    storage_offset: int | None = None
    storage_nbytes: int | None = None
    note: str = ""

    @property
    def layout(self) -> str:
        """The layout in words."""
        if self.strides is None:
            return "does not convert"
        if self.nbytes == 0:
            return "no elements"
        contiguous = [name for name, holds in (("C", self.c_contiguous), ("F", self.f_contiguous)) if holds]
        if contiguous:
            return f"{' and '.join(contiguous)} contiguous"
        if self.dense:
            return "dense, axes permuted or reversed"
        if self.pitch is not None:
            rows, row_nbytes, step = self.pitch
            return f"pitched: {rows:,} rows of {row_nbytes:,} bytes, one every {step:,} bytes"
        return "overlapping: elements share bytes" if self.overlapping else "strided"

    def __repr__(self) -> str:
        """One line: what it is, where, and how large."""
        size = f", {self.nbytes:,} bytes" if self.nbytes is not None else ""
        what = f"{self.kind} {self.class_name}: {self.dtype} {extents_text(self.shape)}"
        return f"<{what} on {self.device}, {self.layout}{size}>"

    def __str__(self) -> str:
        """One aligned line for each fact that is known."""
        rows = [(name, text) for name, text in self._facts() if text]
        return "\n".join([f"{self.kind} ({self.class_name})", *(f"  {name:<10} {text}" for name, text in rows)])

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("dtype", _joined(self.dtype, self.byte_order and f"{self.byte_order}-endian")),
            ("shape", extents_text(self.shape) + _count_text(self.shape)),
            ("strides", self._stride_text()),
            ("layout", self.layout if self.strides is not None else ""),
            ("memory", self._memory_text()),
            ("addresses", self._address_text()),
            ("device", _joined(self.device, "pinned" if self.pinned else "not pinned")),
            ("access", {True: "writable", False: "read-only", None: ""}[self.writable]),
            ("autograd", self._autograd_text()),
            ("marks", _joined(self.conjugated and "conjugated", self.negated and "negated")),
            ("base", self._base_text()),
            ("note", self.note),
        ]

    def _stride_text(self) -> str:
        if self.strides is None:
            return ""
        elements = self.strides_in_elements
        return f"{self.strides} bytes, " + (f"{elements} elements" if elements is not None else "not whole elements")

    def _memory_text(self) -> str:
        if self.nbytes is None:
            return ""
        return f"{self.nbytes:,} bytes of values in a span of {self.span_nbytes:,}"

    def _address_text(self) -> str:
        if self.addresses is None:
            return ""
        low, high = self.addresses
        return f"{low:#x} to {high:#x}, {'aligned' if self.aligned else 'not aligned'}"

    def _autograd_text(self) -> str:
        if self.requires_grad is None:
            return ""
        made = f"made by {self.grad_fn}" if self.grad_fn else self.is_leaf and "leaf"
        version = f"version {self.version}" if self.version is not None else "no version counter"
        return _joined("requires grad" if self.requires_grad else "no grad", made, version)

    def _base_text(self) -> str:
        if self.storage_nbytes is None:
            return self.base
        storage = f"storage of {self.storage_nbytes:,} bytes, first element at {self.storage_offset:,}"
        return f"{self.base}; {storage}" if self.base else storage


def extents_text(shape: tuple[int, ...] | None) -> str:
    """The shape as Python writes it."""
    return "of no plain shape" if shape is None else str(shape)


def _count_text(shape: tuple[int, ...] | None) -> str:
    count = math.prod(shape or ())
    return f", {count:,} element{'s' if count != 1 else ''}" if shape else ""


def _joined(*parts: object) -> str:
    return ", ".join(str(part) for part in parts if part)
