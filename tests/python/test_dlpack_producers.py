"""Foreign DLPack producers: every dtype and layout they may offer, and everything they may do wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.counting_capsules import CPU, CountingCapsule, Producer
from helpers.memory import address

# Type code and bits of DLPack (dlpack.h, DLDataTypeCode), and the dtype of the array.
DTYPES: dict[str, tuple[int, int, Any]] = {
    **{f"int{bits}": (0, bits, f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (1, bits, f"u{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": (2, bits, f"f{bits // 8}") for bits in (16, 32, 64)},
    "bfloat16": (4, 16, ml_dtypes.bfloat16),
    "complex64": (5, 64, "c8"),
    "complex128": (5, 128, "c16"),
    "bool": (6, 8, "?"),
    "float8_e3m4": (7, 8, ml_dtypes.float8_e3m4),
    "float8_e4m3": (8, 8, ml_dtypes.float8_e4m3),
    "float8_e4m3b11fnuz": (9, 8, ml_dtypes.float8_e4m3b11fnuz),
    "float8_e4m3fn": (10, 8, ml_dtypes.float8_e4m3fn),
    "float8_e4m3fnuz": (11, 8, ml_dtypes.float8_e4m3fnuz),
    "float8_e5m2": (12, 8, ml_dtypes.float8_e5m2),
    "float8_e5m2fnuz": (13, 8, ml_dtypes.float8_e5m2fnuz),
    "float8_e8m0fnu": (14, 8, ml_dtypes.float8_e8m0fnu),
}


def _offer(array: np.ndarray, code: int, bits: int, **claims: Any) -> Producer:
    strides = tuple(step // array.itemsize for step in array.strides)
    claims = {"data": array.ctypes.data, "strides": strides, "code": code, "bits": bits, **claims}
    return Producer(CountingCapsule(array.shape, **claims))


@pytest.mark.parametrize("versioned", [True, False], ids=["versioned", "old form"])
@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_comes_in_bit_for_bit(name, versioned):
    code, bits, dtype = DTYPES[name]
    values = (np.arange(24) % 2 if name == "bool" else np.arange(24)).astype("u1").repeat(bits // 8).view(dtype)
    array = values.reshape(2, 3, 4)
    taken = ferry.to_numpy(_offer(array, code, bits, versioned=versioned))
    assert taken.dtype == np.dtype(dtype)
    assert address(taken) == address(array)
    assert taken.tobytes() == array.tobytes()
    if hasattr(torch, name):
        tensor = ferry.from_numpy(_offer(array, code, bits, versioned=versioned))
        assert tensor.dtype is getattr(torch, name)
        assert tensor.data_ptr() == address(array)
    else:
        with pytest.raises(ferry.DTypeError, match="torch"):
            ferry.from_numpy(_offer(array, code, bits, versioned=versioned))


def test_complex_numbers_of_half_precision_widen():
    halves = np.array([1, -2, 0.5, 3], "f2")
    producer = Producer(CountingCapsule((2,), data=halves.ctypes.data, code=5, bits=32))
    assert ferry.to_numpy(producer).tolist() == [1 - 2j, 0.5 + 3j]


@pytest.mark.parametrize(("code", "dtype"), [(0, ml_dtypes.int4), (1, ml_dtypes.uint4)], ids=["int4", "uint4"])
def test_small_integers_padded_to_bytes_come_in_and_packed_ones_are_refused(code, dtype):
    array = np.arange(6).astype(dtype)
    padded = 1 << 2  # DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED
    np.testing.assert_array_equal(ferry.to_numpy(_offer(array, code, 4, flags=padded)), array)
    with pytest.raises(ferry.DTypeError, match="packed"):
        ferry.to_numpy(_offer(array, code, 4))


def test_packed_float4_unpacks_low_half_first():
    packed = np.array([0x10, 0x32], "u1")
    producer = Producer(CountingCapsule((2,), data=packed.ctypes.data, code=17, bits=4, lanes=2))
    assert ferry.to_numpy(producer).astype("f4").tolist() == [0, 0.5, 1, 1.5]


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "C order": lambda a: a,
    "Fortran order": lambda a: a.T,
    "strided": lambda a: a[::2, 1::2],
    "rows reversed": lambda a: a[::-1],
    "both reversed": lambda a: a[::-1, ::-1],
    "reversed and transposed": lambda a: a[:, ::-2].T,
    "broadcast": lambda a: np.broadcast_to(a[0], (3, 6)),
    "row": lambda a: a[1],
    "scalar": lambda a: a[1, 2, ...],
    "empty": lambda a: a[:0],
}


@pytest.mark.parametrize("offset", [0, 4, 12], ids=lambda offset: f"byte offset {offset}")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_comes_in(layout, offset):
    array = LAYOUTS[layout](np.arange(24, dtype="f4").reshape(4, 6))
    claims = {"data": array.ctypes.data - offset, "byte_offset": offset}
    for copy in (None, False, True):
        taken = ferry.to_numpy(_offer(array, 2, 32, **claims), copy=copy)
        np.testing.assert_array_equal(taken, array)
        assert taken.flags.writeable == (copy is True)
        assert array.size == 0 or (address(taken) == address(array)) == (copy is not True)
    np.testing.assert_array_equal(ferry.from_dlpack(_offer(array, 2, 32, **claims), copy=None).numpy(), array)
    np.testing.assert_array_equal(ferry.stack([_offer(array, 2, 32, **claims)], to="numpy")[0], array)


def test_null_strides_mean_c_order():
    array = np.arange(24, dtype="f4").reshape(2, 3, 4)
    taken = ferry.to_numpy(_offer(array, 2, 32, strides=None))
    np.testing.assert_array_equal(taken, array)
    assert taken.strides == array.strides


def test_a_misaligned_offer_is_read_and_not_shared_with_torch():
    memory = np.zeros(13, "u1")
    memory[1:] = np.arange(3, dtype="f4").view("u1")
    offer = {"data": memory.ctypes.data, "byte_offset": 1}
    taken = ferry.to_numpy(Producer(CountingCapsule((3,), **offer)))
    assert not taken.flags.aligned
    assert taken.tolist() == [0, 1, 2]
    assert ferry.from_numpy(Producer(CountingCapsule((3,), **offer))).tolist() == [0, 1, 2]
    with pytest.raises(ferry.CopyRequiredError, match="multiples"):
        ferry.from_dlpack(Producer(CountingCapsule((3,), **offer)))


@pytest.mark.parametrize("flags", [0, 1, 2, 3], ids=["no flag", "read-only", "copied", "read-only copy"])
def test_flags_of_the_producer_never_make_a_view_writable(flags):
    made = CountingCapsule((3,), flags=flags)
    taken = ferry.to_numpy(Producer(made))
    assert not taken.flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE"):
        taken.setflags(write=True)
    if flags & 1:
        with pytest.raises(ferry.FerryError, match="read-only"):
            ferry.from_dlpack(Producer(CountingCapsule((3,), flags=flags)))
        shared = CountingCapsule((3,), flags=flags)
        tensor = ferry.from_dlpack(Producer(shared), readonly="share")
        copied = ferry.from_dlpack(Producer(CountingCapsule((3,), flags=flags)), readonly="copy")
        shared.values[1] = 5
        assert (tensor.tolist(), copied.tolist()) == ([0, 5, 0], [0, 0, 0])
    else:
        assert ferry.from_dlpack(Producer(CountingCapsule((3,), flags=flags))).tolist() == [0, 0, 0]


BAD: dict[str, dict[str, Any]] = {
    "several lanes": {"lanes": 4},
    "no lanes": {"lanes": 0},
    "unknown type code": {"code": 200},
    "opaque handles": {"code": 3, "bits": 64},
    "float128": {"code": 2, "bits": 128},
    "bool of one bit": {"code": 6, "bits": 1},
    "no bits": {"code": 0, "bits": 0},
    "float6": {"code": 15, "bits": 8},
    "negative extent": {"shape": (-1,)},
    "negative extent beside an empty one": {"shape": (0, -1)},
    "two negative extents": {"shape": (-2, -3)},
    "strides beyond 64 bits": {"shape": (2,), "strides": (1 << 62,)},
    "unknown major version": {"major": 2},
    "major version 0": {"major": 0},
}


@pytest.mark.parametrize("reason", BAD)
def test_what_no_memory_can_be_is_refused_without_being_read(reason):
    for call in (ferry.to_numpy, ferry.from_numpy, ferry.from_dlpack, lambda x: ferry.stack([x])):
        made = CountingCapsule(**{"shape": (3,), "data": 0x10, **BAD[reason]})  # not an address to read
        with pytest.raises(ferry.FerryError) as caught:
            call(Producer(made))
        assert isinstance(caught.value, (ferry.DTypeError, ferry.LayoutError))
        assert made.deletions == 1


@pytest.mark.parametrize("axes", [63, 64])
def test_as_many_axes_as_numpy_has_come_in(axes):
    assert ferry.to_numpy(Producer(CountingCapsule((1,) * axes))).ndim == axes


class _Misbehaving:
    """Raises, or answers, what it is told to."""

    def __init__(self, device: Any, capsule: Any) -> None:
        self._answers = {"device": device, "capsule": capsule}

    def _answer(self, what: str) -> Any:
        answer = self._answers[what]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def __dlpack_device__(self) -> Any:
        return self._answer("device")

    def __dlpack__(self, **_: Any) -> Any:
        return self._answer("capsule")


ERRORS = [KeyError("boom"), AssertionError("boom"), NotImplementedError("boom"), MemoryError("boom"), OSError("boom")]


@pytest.mark.parametrize(
    "error", [*ERRORS, TypeError("boom"), ZeroDivisionError("boom")], ids=lambda e: type(e).__name__
)
@pytest.mark.parametrize("where", ["device", "capsule"])
@pytest.mark.parametrize("call", [ferry.to_numpy, ferry.from_numpy, ferry.from_dlpack], ids=lambda c: c.__name__)
def test_whatever_a_producer_raises_is_quoted(call, where, error):
    producer = _Misbehaving(error, None) if where == "device" else _Misbehaving((CPU, 0), error)
    with pytest.raises(ferry.LayoutError, match="boom") as caught:
        call(producer)
    assert caught.value.__cause__ is error
    with pytest.raises(ferry.LayoutError, match=r"leaf \['k'\].*boom"):
        ferry.to_numpy({"k": producer})


def test_an_interrupt_passes_through():
    with pytest.raises(KeyboardInterrupt):
        ferry.to_numpy(_Misbehaving((CPU, 0), KeyboardInterrupt()))


@pytest.mark.parametrize("device", [None, (), "cpu", ("cpu", 0), 1], ids=repr)
def test_an_answer_that_is_no_device_is_refused(device):
    with pytest.raises(ferry.LayoutError, match="refuses to export"):
        ferry.to_numpy(_Misbehaving(device, None))


SIGNATURES: dict[str, Callable[[np.ndarray], Callable[..., Any]]] = {
    "every argument": lambda a: (
        lambda self, *, stream=None, max_version=None, dl_device=None, copy=None: a.__dlpack__(max_version=max_version)
    ),
    "stream only": lambda a: lambda self, stream=None: a.__dlpack__(),
    "stream required": lambda a: lambda self, stream: a.__dlpack__(),
    "stream by keyword": lambda a: lambda self, *, stream: a.__dlpack__(),
    "nothing": lambda a: lambda self: a.__dlpack__(),
    "anything": lambda a: lambda self, *args, **keywords: a.__dlpack__(),
    "version by keyword": lambda a: lambda self, *, max_version: a.__dlpack__(max_version=max_version),
}


@pytest.mark.parametrize("signature", SIGNATURES)
@pytest.mark.parametrize("has_device", [True, False], ids=["with a device", "without a device"])
def test_every_signature_that_was_ever_in_use_is_understood(signature, has_device):
    array = np.arange(6.0).reshape(2, 3)
    methods: dict[str, Any] = {"__dlpack__": SIGNATURES[signature](array)}
    if has_device:
        methods["__dlpack_device__"] = lambda self: (CPU, 0)
    producer = type("Foreign", (), methods)()
    for taken in (
        ferry.to_numpy(producer),
        ferry.from_numpy(producer),
        ferry.from_dlpack(producer),
        ferry.from_dlpack(producer, to="numpy"),
        ferry.to_numpy([producer])[0],
        ferry.from_dlpack(ferry.to_dlpack(producer), readonly="share"),
    ):
        np.testing.assert_array_equal(np.asarray(taken), array)
        assert address(taken) == address(array)


def test_a_method_on_the_instance_makes_no_producer():
    class Plain:
        pass

    x = Plain()
    x.__dlpack__ = np.ones(2).__dlpack__
    assert ferry.to_numpy([x]) == [x]
    with pytest.raises(ferry.DTypeError, match="Plain"):
        ferry.to_numpy(x)


def test_a_deleter_that_runs_while_an_error_is_on_its_way_does_not_see_it():
    made = CountingCapsule((3,))

    def fail() -> None:
        ferry.to_numpy(Producer(made)).setflags(write=True)  # the array dies with the error set

    with pytest.raises(ValueError, match="WRITEABLE"):
        fail()
    assert made.deletions == 1
