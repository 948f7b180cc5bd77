"""Field cases: arrays that torch refuses, shares wrongly, or dies of."""

from __future__ import annotations

import signal

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.subprocess import run_python, stdout_of

DTYPES = ["bool", "uint8", "int16", "uint32", "int64", "float16", "float32", "float64", "complex64", "complex128"]


def _grid(dtype: str) -> np.ndarray:
    return np.arange(24).reshape(4, 6).astype(dtype)


# A read-only array came back as a tensor that wrote through it, with a warning given once per process.
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("view", [np.s_[:], np.s_[::2, 1:], np.s_[::-1]], ids=["whole", "strided", "reversed"])
def test_f033_a_tensor_made_of_a_read_only_array_never_writes_to_it(dtype, view):
    array = _grid(dtype)
    before = array.copy()
    array.flags.writeable = False
    tensor = ferry.from_numpy(array[view])
    np.testing.assert_array_equal(tensor.numpy(), before[view])
    tensor.zero_()
    np.testing.assert_array_equal(array, before)


def test_f033_a_map_of_a_read_only_file_is_refused_naming_both_ways_out(tmp_path):
    path = tmp_path / "weights.npy"
    np.save(path, np.arange(1024.0))
    mapped = np.load(path, mmap_mode="r")
    for given in (mapped, mapped[5:10], np.asarray(mapped), mapped.view("i8"), {"leaf": mapped}):
        with pytest.raises(ferry.ReadOnlyError) as caught:
            ferry.from_numpy(given)
        assert 'mmap_mode="c"' in caught.value.instead
        assert 'readonly="share"' in caught.value.instead
    assert ferry.from_numpy(mapped, copy=True)[7].item() == 7.0
    private = ferry.from_numpy(np.load(path, mmap_mode="c"))
    private[7] = -1
    assert np.load(path)[7] == 7.0


# One write, or one indexing operation that writes, to read-only pages: the process dies.
def test_f033_writing_to_a_mapped_file_kills_torch_and_not_us(tmp_path):
    path = tmp_path / "weights.npy"
    np.save(path, np.arange(8.0))
    program = f"""
        import warnings
        warnings.simplefilter("ignore")
        import numpy as np, torch
        import tensorferry as ferry
        mapped = np.load({str(path)!r}, mmap_mode="r")
        for tensor in MAKE:
            tensor[0] = 99
            print(tensor[0].item(), mapped[0])
        """
    died = run_python(program.replace("MAKE", "[torch.from_numpy(mapped)]"))
    assert died.returncode == -signal.SIGSEGV
    ours = "[ferry.from_numpy(mapped, copy=True), ferry.from_numpy(mapped, copy=True, dtype='float32')]"
    assert stdout_of(program.replace("MAKE", ours)).splitlines() == ["99.0 0.0"] * 2


# Users with data that is read-only on purpose want no copy, no warning, and to say so for one call.
@pytest.mark.filterwarnings("error")
def test_f034_sharing_read_only_memory_is_one_silent_argument():
    array = np.arange(4.0)
    array.flags.writeable = False
    shared = ferry.from_numpy(array, readonly="share")
    assert shared.data_ptr() == array.ctypes.data
    copied = ferry.from_numpy(array, readonly="copy")
    assert copied.data_ptr() != array.ctypes.data
    assert copied.tolist() == shared.tolist() == [0, 1, 2, 3]
    with pytest.raises(ferry.ReadOnlyError, match="read-only"):
        ferry.from_numpy(array, readonly="raise")
    with pytest.raises(ferry.CopyRequiredError, match="read-only"):
        ferry.from_numpy(array, copy=False)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("given", [b"\x01\x02\x03", memoryview(b"\x01\x02\x03")], ids=["bytes", "memoryview"])
def test_f034_read_only_buffers_follow_the_same_rule(given):
    assert ferry.from_numpy(given).tolist() == [1, 2, 3]
    assert ferry.from_numpy(given, readonly="share").tolist() == [1, 2, 3]
    with pytest.raises(ferry.ReadOnlyError, match="read-only"):
        ferry.from_numpy(given, readonly="raise")


NEGATIVE = {
    "rows reversed": lambda a: a[::-1],
    "columns reversed": lambda a: a[:, ::-1],
    "both, with steps": lambda a: a[::-2, ::-3],
    "rotated": np.rot90,
    "flipped and transposed": lambda a: a[:, ::-1].T,
    "one axis dropped": lambda a: a[1, ::-1],
}


# Flips and rotations; torch refuses, even where it copies anyway.
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("view", NEGATIVE)
def test_f035_negative_strides_are_packed(dtype, view):
    array = NEGATIVE[view](_grid(dtype))
    for tensor in (ferry.from_numpy(array), ferry.from_numpy(array, copy=True), ferry.from_numpy([array])[0]):
        np.testing.assert_array_equal(tensor.numpy(), array)
    np.testing.assert_array_equal(ferry.to_numpy(array, copy=True, order="C"), array)


@pytest.mark.parametrize("view", NEGATIVE)
def test_f035_sharing_negative_strides_is_refused_by_name(view):
    with pytest.raises(ferry.CopyRequiredError, match="negative"):
        ferry.from_numpy(NEGATIVE[view](_grid("float32")), copy=False)


@pytest.mark.parametrize("shape", [(1, 4), (4, 1), (0, 3)], ids=str)
def test_f035_a_negative_stride_that_is_never_taken_does_not_cost_a_copy(shape):
    array = np.zeros(shape, np.float32)
    odd = array[::-1] if shape[0] <= 1 else array[:, ::-1]
    tensor = ferry.from_numpy(odd, copy=False)
    assert tuple(tensor.shape) == shape
    np.testing.assert_array_equal(tensor.numpy(), odd)


# torch.from_dlpack aborts the whole interpreter on a negative stride.
def test_f037_negative_strides_through_dlpack_do_not_kill_the_interpreter():
    printed = stdout_of(
        """
        import numpy as np, torch
        import tensorferry as ferry
        array = np.arange(12.0).reshape(3, 4)
        for view in (array[:, ::-1], array[::-1], array[::-1, ::-1].T):
            tensor = ferry.from_dlpack(view, copy=None)
            print(np.array_equal(tensor.numpy(), view))
            print(np.array_equal(torch.from_dlpack(ferry.to_dlpack(view, copy=True)).numpy(), view))
            for call in (ferry.from_dlpack, ferry.to_dlpack):
                try:
                    call(view)
                except BufferError as error:
                    print("negative" in str(error))
        """
    )
    assert printed.splitlines() == ["True"] * 12


SWAPPED = ["i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]


# Big-endian files (FITS): once garbage, now an error, in other libraries NaN.
@pytest.mark.parametrize("code", SWAPPED)
@pytest.mark.parametrize("view", [np.s_[:], np.s_[::-1, ::2]], ids=["whole", "reversed and strided"])
def test_f038_bytes_in_the_other_order_are_swapped_while_copying(code, view):
    native = (np.arange(24).reshape(4, 6) * 1.5).astype(code)
    swapped = native.astype(np.dtype(code).newbyteorder())
    assert not swapped.dtype.isnative
    tensor = ferry.from_numpy(swapped[view])
    np.testing.assert_array_equal(tensor.numpy(), native[view])
    wider = "complex128" if native.dtype.kind == "c" else "float64"
    np.testing.assert_array_equal(ferry.from_numpy(swapped[view], dtype=wider).numpy(), native[view].astype(wider))
    np.testing.assert_array_equal(ferry.to_numpy(swapped[view], copy=True, dtype=code), native[view])
    with pytest.raises(ferry.CopyRequiredError, match="order"):
        ferry.from_numpy(swapped[view], copy=False)


def test_f038_an_explicit_native_order_is_shared():
    array = np.arange(3, dtype=np.dtype("f8").newbyteorder("="))
    little = np.arange(3, dtype="<f8" if np.little_endian else ">f8")
    for given in (array, little):
        assert ferry.from_numpy(given, copy=False).data_ptr() == given.ctypes.data


# A misaligned buffer is accepted by torch, and a vector instruction dies of it later.
@pytest.mark.parametrize("dtype", ["int16", "float16", "float32", "int64", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shift", [1, 2, 4])
def test_f040_misaligned_memory_is_copied_and_never_shared(dtype, shift):
    values = np.arange(5).astype(dtype)
    buffer = bytearray(shift) + bytearray(values.tobytes())
    array = np.frombuffer(buffer, np.uint8)[shift:].view(dtype)
    component = values.real.dtype.itemsize
    aligned = array.ctypes.data % component == 0
    tensor = ferry.from_numpy(array)
    assert tensor.data_ptr() % component == 0
    assert (tensor.data_ptr() == array.ctypes.data) is aligned
    np.testing.assert_array_equal(tensor.numpy(), values)
    if not aligned:
        with pytest.raises(ferry.CopyRequiredError, match="multiples"):
            ferry.from_numpy(array, copy=False)


@pytest.mark.parametrize("align", [False, True], ids=["packed", "aligned"])
def test_f040_fields_of_records_convert(align):
    records = np.zeros(4, np.dtype([("flag", "u1"), ("x", "f4"), ("z", "c16"), ("n", "i2")], align=align))
    records["x"], records["z"], records["n"] = [0.5, 1, 2, 3], [1j, 2, 3j, 4], [-1, 0, 1, 2]
    for field in ("flag", "x", "z", "n"):
        np.testing.assert_array_equal(ferry.from_numpy(records[field]).numpy(), records[field])
        np.testing.assert_array_equal(ferry.to_numpy(records[field], copy=True, order="C"), records[field])
    with pytest.raises(ferry.DTypeError, match="fields"):
        ferry.from_numpy(records)


# Bytes other than 0 and 1 in a bool array came out as 255.0, or as both true and false.
@pytest.mark.parametrize("target", ["float16", "float32", "float64", "uint8", "int64", "complex64"])
def test_f041_any_byte_but_zero_is_true(target):
    odd = np.array([0, 1, 2, 128, 255, 0], np.uint8).view(bool)
    expected = np.array([0, 1, 1, 1, 1, 0], target)
    np.testing.assert_array_equal(ferry.from_numpy(odd, dtype=target).numpy(), expected)
    tensor = ferry.from_numpy(odd)
    np.testing.assert_array_equal(tensor.to(torch.float32).numpy(), expected.real.astype(np.float32))
    np.testing.assert_array_equal(ferry.to_numpy(tensor, dtype=target), expected)
    np.testing.assert_array_equal(ferry.to_numpy(tensor[1::2], dtype=target), expected[1::2])


def test_f041_a_bool_copy_holds_only_zeros_and_ones():
    odd = np.array([[0, 2], [255, 1]], np.uint8).view(bool)
    for copied in (ferry.from_numpy(odd, copy=True).numpy(), ferry.to_numpy(ferry.from_numpy(odd.T), copy=True).T):
        assert copied.dtype == bool
        np.testing.assert_array_equal(copied.view(np.uint8), [[0, 1], [1, 1]])
