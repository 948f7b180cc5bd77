"""``describe``: every fact against what NumPy and torch say of the same object."""

from __future__ import annotations

import array
import mmap
import sys

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given

import tensorferry as ferry
from helpers import layouts
from helpers.numpy_names import byte_bounds
from tensorferry._inspect.describe import describe
from tensorferry._inspect.description import Description, Pitch

OTHER_ORDER = {"little": ">", "big": "<"}[sys.byteorder]


def test_a_slice_of_rows_is_described_completely():
    whole = torch.zeros(3, 8)
    x = whole[:, 2:6]
    d = describe(x)
    first = whole.data_ptr() + 8
    assert (d.kind, d.class_name, d.dtype, d.shape, d.device) == ("torch tensor", "Tensor", "float32", (3, 4), "cpu")
    assert (d.strides, d.strides_in_elements) == ((32, 4), (8, 1))
    assert (d.c_contiguous, d.f_contiguous, d.dense, d.overlapping) == (False, False, False, False)
    assert d.pitch == Pitch(rows=3, row_nbytes=16, step_nbytes=32)
    assert (d.nbytes, d.span_nbytes, d.addresses) == (48, 80, (first, first + 80))
    assert (d.byte_order, d.aligned, d.pinned, d.writable) == (sys.byteorder, True, False, True)
    assert (d.requires_grad, d.is_leaf, d.grad_fn, d.version) == (False, True, None, 0)
    assert (d.conjugated, d.negated) == (False, False)
    assert (d.is_view, d.base, d.storage_offset, d.storage_nbytes) == (True, "view of a (3, 8) float32 tensor", 2, 96)
    assert d.note == ""


def test_the_text_is_aligned_and_leaves_out_what_does_not_apply():
    lines = str(describe(np.zeros((3, 8), np.float32)[:, :4])).splitlines()
    assert lines[0] == "NumPy array (ndarray)"
    facts = {line[2:13].strip(): line[13:] for line in lines[1:]}
    assert list(facts) == ["dtype", "shape", "strides", "layout", "memory", "addresses", "device", "access", "base"]
    assert facts["dtype"] == f"float32, {sys.byteorder}-endian"
    assert facts["strides"] == "(32, 4) bytes, (8, 1) elements"
    assert facts["layout"] == "pitched: 3 rows of 16 bytes, one every 32 bytes"
    assert facts["memory"] == "48 bytes of values in a span of 80"
    assert facts["base"] == "view of a (3, 8) float32 array"


def test_the_text_tells_autograd_marks_and_storage():
    x = torch.ones(2, 3, dtype=torch.complex64, requires_grad=True).conj()
    text = str(describe(x))
    assert "autograd   requires grad, made by ConjBackward0, version 0" in text
    assert "marks      conjugated" in text
    assert "base       view of a (2, 3) complex64 tensor; storage of 48 bytes, first element at 0" in text


def test_the_short_form_is_one_line():
    x = np.zeros((3, 8), np.float32)[:, :4]
    words = "pitched: 3 rows of 16 bytes, one every 32 bytes, 48 bytes"
    assert repr(describe(x)) == f"<NumPy array ndarray: float32 (3, 4) on cpu, {words}>"
    assert repr(describe(torch.eye(2).to_sparse())) == "<torch tensor Tensor: float32 (2, 2) on cpu, does not convert>"


def test_a_description_cannot_be_changed():
    with pytest.raises(AttributeError):
        describe(np.zeros(2)).dtype = "float16"


@given(x=layouts.tensors())
def test_layout_facts_of_tensors_are_those_of_torch(x):
    d = describe(x)
    assert (d.shape, d.strides_in_elements) == (tuple(x.shape), x.stride())
    assert d.strides == tuple(4 * step for step in x.stride())
    assert d.nbytes == x.nbytes
    assert (d.storage_offset, d.storage_nbytes) == (x.storage_offset(), x.untyped_storage().nbytes())
    low, high = byte_bounds(x.numpy()) if x.numel() else (0, 0)
    assert d.addresses == ((low, high) if x.numel() else None)
    assert d.span_nbytes == high - low


@given(x=layouts.arrays())
def test_layout_facts_of_arrays_are_those_of_numpy(x):
    d = describe(x)
    assert (d.shape, d.strides, d.nbytes) == (x.shape, x.strides, x.nbytes)
    assert (d.c_contiguous, d.f_contiguous) == (x.flags.c_contiguous, x.flags.f_contiguous)
    assert (d.writable, d.aligned, d.is_view) == (x.flags.writeable, x.flags.aligned, x.base is not None)
    bounds = byte_bounds(x)
    assert d.addresses == (bounds if x.size else None)


@pytest.mark.parametrize(
    ("x", "words"),
    [
        pytest.param(np.zeros(3), "C and F contiguous", id="one axis"),
        pytest.param(np.zeros((2, 3)), "C contiguous", id="C order"),
        pytest.param(np.zeros((2, 3), order="F"), "F contiguous", id="Fortran order"),
        pytest.param(np.zeros((2, 3, 4)).transpose(1, 0, 2), "dense, axes permuted or reversed", id="permuted"),
        pytest.param(np.zeros(4)[::-1], "dense, axes permuted or reversed", id="reversed"),
        pytest.param(np.broadcast_to(np.zeros(3), (2, 3)), "overlapping: elements share bytes", id="broadcast"),
        pytest.param(np.zeros((4, 4))[:, ::2], "strided", id="every other"),
        pytest.param(np.zeros((0, 4)), "no elements", id="empty"),
    ],
)
def test_the_layout_has_a_name(x, words):
    assert describe(x).layout == words


def test_an_expanded_tensor_overlaps_and_is_not_writable():
    d = describe(torch.zeros(3, 1).expand(3, 4))
    assert (d.overlapping, d.writable, d.strides, d.nbytes, d.span_nbytes) == (True, False, (4, 0), 48, 12)


def test_negative_strides_reach_below_the_first_element():
    x = np.arange(6.0)
    start = x.__array_interface__["data"][0]
    d = describe(x[::-1])
    assert (d.strides, d.strides_in_elements, d.addresses) == ((-8,), (-1,), (start, start + 48))


def test_strides_that_are_no_whole_elements_are_told_in_bytes_only():
    x = np.zeros(4, np.dtype([("flag", "u1"), ("value", "<f4")]))["value"]
    d = describe(x)
    assert (d.strides, d.strides_in_elements, d.aligned) == ((5,), None, False)
    assert "not whole elements" in str(d)


@pytest.mark.parametrize(
    ("x", "byte_order"),
    [
        pytest.param(np.zeros(2, f"{OTHER_ORDER}f8"), {">": "big", "<": "little"}[OTHER_ORDER], id="foreign order"),
        pytest.param(np.zeros(2, "f8"), sys.byteorder, id="native order"),
        pytest.param(np.zeros(2, np.uint8), None, id="one byte"),
        pytest.param(torch.zeros(2, dtype=torch.bool), None, id="torch bool"),
        pytest.param(torch.zeros(2, dtype=torch.bfloat16), sys.byteorder, id="torch bfloat16"),
    ],
)
def test_byte_order(x, byte_order):
    assert describe(x).byte_order == byte_order


@pytest.mark.parametrize("offset", [0, 1], ids=["aligned", "one byte off"])
def test_alignment_of_tensors(offset):
    x = torch.from_numpy(np.frombuffer(bytearray(17), np.uint8)[offset : offset + 16].view(np.float32))
    assert describe(x).aligned is (x.data_ptr() % 4 == 0)


def test_complex_numbers_align_like_their_parts():
    raw = np.zeros(40, np.uint8)
    start = 8 if raw.__array_interface__["data"][0] % 16 == 0 else 0
    x = torch.from_numpy(raw[start : start + 16].view(np.complex128))
    assert x.data_ptr() % 16 == 8
    assert describe(x).aligned is True


def test_arrays_of_ml_dtypes_are_named():
    d = describe(np.zeros(3, ml_dtypes.bfloat16))
    assert (d.dtype, d.nbytes, d.note) == ("bfloat16", 6, "")


@pytest.mark.parametrize(
    ("x", "dtype", "words"),
    [
        pytest.param(np.array(["a", "bc"]), "<U2" if sys.byteorder == "little" else ">U2", "text", id="text"),
        pytest.param(np.zeros(2, "M8[s]"), "datetime64[s]", "dates", id="dates"),
        pytest.param(np.array([[None]]), "object", "Python objects", id="objects"),
        pytest.param(np.zeros((2, 3), "i4,f8"), "[('f0', '<i4'), ('f1', '<f8')]", "records", id="records"),
    ],
)
def test_arrays_that_no_tensor_can_hold_still_have_a_layout(x, dtype, words):
    d = describe(x)
    assert (d.dtype, d.strides, d.nbytes, d.c_contiguous, d.dense) == (dtype, x.strides, x.nbytes, True, True)
    assert d.addresses == byte_bounds(x)
    assert words in d.note


def test_fortran_order_of_text_is_seen():
    x = np.full((3, 2), "abc", order="F")
    d = describe(x)
    assert (d.c_contiguous, d.f_contiguous, d.dense, d.layout) == (False, True, True, "F contiguous")


def test_a_masked_array_says_so():
    assert "masked" in describe(np.ma.array([1.0, 2.0], mask=[0, 1])).note


def test_what_keeps_an_array_alive(tmp_path):
    path = tmp_path / "values.bin"
    np.arange(4.0).tofile(path)
    mapped = np.memmap(path, np.float64, "r")
    owner = np.zeros((2, 3))
    assert describe(owner).base == "owns its memory"
    assert describe(owner[0][1:]).base == "view of a (2, 3) float64 array"
    assert describe(mapped).base == f"memory map of {path}"
    assert describe(mapped[1:]).base == f"memory map of {path}"
    assert describe(mapped).writable is False
    assert describe(np.frombuffer(mmap.mmap(-1, 64), np.uint8)).base == "memory map of a file"
    assert describe(np.frombuffer(bytearray(4), np.uint8)).base == "memory of a bytearray object"
    assert describe(ferry.to_numpy(torch.ones(3))).base == "view of a torch tensor's storage, made by tensorferry"


def test_a_numpy_scalar_holds_its_own_value():
    d = describe(np.float32(2))
    assert (d.kind, d.class_name, d.dtype, d.shape, d.addresses) == ("NumPy scalar", "float32", "float32", (), None)
    assert (d.writable, d.base) == (False, "holds its own value")


@pytest.mark.parametrize(
    ("x", "dtype", "shape", "writable"),
    [
        pytest.param(b"abc", "uint8", (3,), False, id="bytes"),
        pytest.param(bytearray(4), "uint8", (4,), True, id="bytearray"),
        pytest.param(array.array("d", [1, 2]), "float64", (2,), True, id="array.array"),
        pytest.param(memoryview(bytes(8)).cast("i", (2,)), "int32", (2,), False, id="memoryview"),
    ],
)
def test_buffers(x, dtype, shape, writable):
    d = describe(x)
    assert (d.kind, d.class_name, d.dtype) == ("buffer", type(x).__name__, dtype)
    assert (d.shape, d.writable, d.c_contiguous) == (shape, writable, True)
    assert d.addresses == byte_bounds(np.asarray(memoryview(x)))


def test_objects_with_an_array_method_say_that_memory_may_be_new():
    class Offering:
        def __array__(self, dtype=None, copy=None):
            return np.zeros((2, 2))

    d = describe(Offering())
    assert (d.kind, d.class_name, d.dtype, d.shape) == ("array protocol", "Offering", "float64", (2, 2))
    assert "perhaps a new one" in d.note


@pytest.mark.parametrize("x", [3, "text", None, object()], ids=["number", "text", "None", "object"])
def test_what_is_no_tensor_is_refused(x):
    with pytest.raises(ferry.DTypeError, match="no tensor"):
        describe(x)


def test_nests_are_described_leaf_by_leaf():
    weights = torch.zeros(2, 3)
    d = describe({"layers": [weights, weights.to_sparse()], "label": np.arange(4), "name": "small"})
    assert list(d.parts) == ["['layers'][0]", "['layers'][1]", "['label']"]
    assert all(isinstance(part, Description) for part in d.parts.values())
    assert d.parts["['label']"].shape == (4,)
    assert (d.class_name, d.others, d.nbytes) == ("dict", {"['name']": "str"}, 24 + 32)
    assert repr(d) == "<nest dict: 3 tensors, 56 bytes>"
    lines = [line.split() for line in str(d).splitlines()]
    assert lines[1][0] == "['layers'][0]"
    assert lines[2][-3:] == ["does", "not", "convert"]
    assert lines[4] == ["['name']", "str"]


def test_an_empty_nest_has_a_heading_only():
    assert str(describe([])) == "nest (list) of 0 tensors, 0 bytes"


def test_a_nest_that_contains_itself_is_refused():
    nest = [np.zeros(2)]
    nest.append({"again": nest})
    with pytest.raises(ferry.LayoutError, match="contains itself"):
        describe(nest)
