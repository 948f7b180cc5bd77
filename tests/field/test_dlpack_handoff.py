"""Field cases: handing tensors to other libraries through DLPack, and taking theirs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.counting_capsules import CPU, CUDA, METAL, CountingCapsule, Producer
from helpers.memory import address


def _offered(values: object) -> dict[str, object]:
    return {"tensor": ferry.to_dlpack(torch.tensor(values)), "array": ferry.to_dlpack(np.array(values))}


# A read-only array cannot be exported in the old form; consumers that do not ask for the new one fail.
@pytest.mark.parametrize("to", ["torch", "numpy"])
def test_f051_read_only_producers_are_asked_in_the_new_form_first(to):
    array = np.arange(3.0)
    array.flags.writeable = False
    with pytest.raises(BufferError):
        array.__dlpack__()
    taken = ferry.from_dlpack(array, to=to, readonly="share")
    assert address(taken) == address(array)
    np.testing.assert_array_equal(np.asarray(taken), [0, 1, 2])


def test_f051_read_only_memory_becomes_a_tensor_only_by_consent():
    array = np.arange(3.0)
    array.flags.writeable = False
    with pytest.raises(ferry.FerryError, match="read-only"):
        ferry.from_dlpack(array)
    copied = ferry.from_dlpack(array, readonly="copy")
    assert copied.zero_().tolist() == [0, 0, 0]
    np.testing.assert_array_equal(array, [0, 1, 2])


class _OldProducer:
    """Knows no arguments but, perhaps, a stream."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class _StreamOnly(_OldProducer):
    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()


class _Bare(_OldProducer):
    def __dlpack__(self):
        return self.array.__dlpack__()


class _NoDevice:
    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()


@pytest.mark.parametrize("kind", [_StreamOnly, _Bare, _NoDevice], ids=["stream only", "no arguments", "no device"])
@pytest.mark.parametrize("to", ["torch", "numpy"])
def test_f051_old_producers_fall_back_to_the_form_they_know(kind, to):
    array = np.arange(6.0).reshape(2, 3)
    for taken in (ferry.from_dlpack(kind(array), to=to), ferry.to_numpy(kind(array))):
        np.testing.assert_array_equal(np.asarray(taken), array)
        assert address(taken) == address(array)


# Consumers take old capsules as read-only for want of a flag; new ones must carry the right flags.
@pytest.mark.parametrize("kind", ["tensor", "array"])
def test_f052_shared_memory_is_offered_read_only_and_copies_writable(kind):
    producer = _offered([1.0, 2.0])[kind]
    assert not np.from_dlpack(producer).flags.writeable
    copied = np.from_dlpack(ferry.to_dlpack(producer, copy=True))
    assert copied.flags.writeable
    assert address(copied) != address(np.from_dlpack(producer))
    with pytest.raises(BufferError, match=r"without a version"):
        producer.__dlpack__()


@pytest.mark.parametrize("make", [torch.ones, np.ones], ids=["tensor", "array"])
def test_f052_consent_makes_the_offer_writable_in_both_forms(make):
    x = make(3)
    producer = ferry.to_dlpack(x, writable=True)
    np.from_dlpack(producer)[0] = 7
    assert float(x[0]) == 7
    assert torch.from_dlpack(producer.__dlpack__()).data_ptr() == np.from_dlpack(producer).ctypes.data


# Bool was refused for years, or passed on as uint8.
def test_f054_bool_stays_bool_both_ways():
    flags = [True, False, True]
    for producer in _offered(flags).values():
        assert np.from_dlpack(producer).dtype == bool
        assert ferry.from_dlpack(producer, to="torch", readonly="share").dtype is torch.bool
    foreign = CountingCapsule((4,), code=6, bits=8)
    foreign.values[0] = float(np.array([0, 1, 1, 0], np.uint8).view(np.float32)[0])
    array = ferry.from_dlpack(Producer(foreign), to="numpy")
    assert array.dtype == bool
    assert array.tolist() == [False, True, True, False]
    assert ferry.to_numpy(torch.tensor(flags), dtype="bits").dtype == np.uint8


def _strides_offered(x: object) -> tuple[int, ...]:
    return torch.from_dlpack(ferry.to_dlpack(x, writable=True).__dlpack__()).stride()


# Strides of axes of one element mean nothing: consumers that compare them fail, producers that tidy them surprise.
@pytest.mark.parametrize(
    ("tensor", "canonical"),
    [
        (torch.rand(16)[::3][:1], (1,)),
        (torch.rand(1, 77).as_strided((1, 77), (5, 1)), (77, 1)),
        (torch.rand(4, 1, 3).as_strided((4, 1, 3), (3, 99, 1)), (3, 3, 1)),
    ],
    ids=["one of a strided row", "one row", "middle axis"],
)
def test_f055_contiguous_data_is_offered_with_canonical_strides(tensor, canonical):
    assert tensor.is_contiguous()
    assert _strides_offered(tensor) == canonical
    assert _strides_offered(tensor.numpy()) == canonical
    np.testing.assert_array_equal(ferry.from_dlpack(ferry.to_dlpack(tensor), to="numpy"), tensor.numpy())


@pytest.mark.parametrize("strides", [(-7, 1), (0, 1), (1 << 40, 1)], ids=["negative", "zero", "huge"])
def test_f055_strides_of_single_elements_are_ignored(strides):
    foreign = CountingCapsule((1, 3), strides=strides)
    foreign.values[2] = 5.0
    assert ferry.from_dlpack(Producer(foreign)).tolist() == [[0.0, 0.0, 5.0]]


# Implementations differ in what they raise; the standard says BufferError for "not without a copy".
@pytest.mark.parametrize(
    "offer",
    [
        lambda: ferry.to_dlpack(torch.ones(2, requires_grad=True)),
        lambda: ferry.to_dlpack(torch.tensor([1j]).conj()),
        lambda: ferry.to_dlpack(torch.tensor([1j]).conj().imag),
        lambda: ferry.to_dlpack(np.arange(3)[::-1]),
        lambda: ferry.to_dlpack(np.ones(2, ">f4" if np.little_endian else "<f4")),
        lambda: ferry.to_dlpack(np.array(["x"])),
        lambda: ferry.to_dlpack(torch.ones(2, device="meta")),
        lambda: ferry.to_dlpack(torch.eye(2).to_sparse()),
        lambda: ferry.to_dlpack(np.ones(2)).__dlpack__(dl_device=(2, 0), max_version=(1, 0)),
        lambda: ferry.to_dlpack(np.ones(2)).__dlpack__(stream=1, max_version=(1, 0)),
    ],
    ids=[
        "requires grad",
        "conjugate",
        "negative",
        "negative stride",
        "byte order",
        "text",
        "meta",
        "sparse",
        "other device",
        "stream",
    ],
)
def test_f065_every_refusal_of_a_producer_is_a_buffer_error_and_ours(offer):
    with pytest.raises(BufferError) as caught:
        offer()
    assert isinstance(caught.value, ferry.FerryError)
    assert caught.value.instead


@pytest.mark.parametrize("error", [BufferError, ValueError, RuntimeError, TypeError], ids=lambda e: e.__name__)
def test_f065_whatever_a_producer_raises_becomes_one_error_that_quotes_it(error):
    class Refusing:
        def __dlpack_device__(self):
            return (CPU, 0)

        def __dlpack__(self, **arguments):
            raise error("not today")

    for call in (ferry.to_numpy, ferry.from_dlpack, ferry.from_numpy):
        with pytest.raises(ferry.FerryError, match="not today"):
            call(Refusing())


# The meaning of stream=None differs between libraries; on the host there is no stream at all.
def test_f062_a_stream_on_host_memory_is_refused_and_none_is_passed_on():
    seen = []

    class Recording(_OldProducer):
        def __dlpack__(self, *, stream="absent", max_version=None, dl_device=None, copy=None):
            seen.append(stream)
            return self.array.__dlpack__(max_version=max_version)

    ferry.to_numpy(Recording(np.ones(2)))
    assert seen
    assert set(seen) <= {"absent", None}
    with pytest.raises(ferry.StreamError, match="host memory"):
        ferry.to_numpy(torch.ones(2), stream=1)
    assert ferry.to_dlpack(np.ones(2), copy=True).__dlpack__(stream=-1) is not None


# NumPy's from_dlpack cannot take device memory; on Apple's devices the data field is not even an address.
@pytest.mark.parametrize("device", [CUDA, METAL, 14], ids=["cuda", "metal", "oneAPI"])
@pytest.mark.parametrize("honest", [True, False], ids=["device method tells", "only the capsule tells"])
def test_f067_f070_device_memory_is_refused_without_being_touched(device, honest):
    foreign = CountingCapsule((3,), device=device, data=0x10)  # reading this address would kill the process
    producer = Producer(foreign, device if honest else CPU)
    for call in (ferry.to_numpy, ferry.from_dlpack, ferry.from_numpy):
        with pytest.raises(ferry.DeviceError, match="host"):
            call(producer)
        foreign = CountingCapsule((3,), device=device, data=0x10)
        producer = Producer(foreign, device if honest else CPU)


@pytest.mark.parametrize("device", [1, 3, 11], ids=["cpu", "pinned by CUDA", "pinned by ROCm"])
def test_f067_host_memory_pinned_by_others_is_read_in_place(device):
    foreign = CountingCapsule((3,), device=device)
    foreign.values[1] = 4.0
    array = ferry.from_dlpack(Producer(foreign, device), to="numpy")
    assert array.tolist() == [0, 4, 0]
    foreign.values[1] = 5.0
    assert array[1] == 5.0


# Parameters cannot be exported, not even under no_grad; people disagree on whether to detach without asking.
@pytest.mark.parametrize("grad_mode", [torch.enable_grad, torch.no_grad])
@pytest.mark.parametrize(
    "call",
    [ferry.to_dlpack, ferry.from_dlpack, lambda x, **consent: ferry.from_dlpack(x, to="numpy", **consent)],
    ids=["to_dlpack", "from_dlpack to torch", "from_dlpack to numpy"],
)
def test_f068_handing_over_a_parameter_needs_detach_and_the_error_names_it(call, grad_mode):
    parameter = torch.nn.Parameter(torch.arange(3.0))
    with grad_mode():
        with pytest.raises(ferry.AutogradError, match="detach=True"):
            call(parameter)
        taken = call(parameter, detach=True)
    array = ferry.to_numpy(taken)
    np.testing.assert_array_equal(array, [0, 1, 2])
    assert address(array) == address(parameter)
    assert parameter.requires_grad


# The Python-level protocol costs a microsecond, the C table tens of nanoseconds.
def test_f069_a_subclass_that_says_itself_how_it_is_read_is_asked():
    class Shifted(torch.Tensor):
        def __dlpack__(self, **arguments):
            return (self.as_subclass(torch.Tensor) + 1).__dlpack__(**arguments)

    tensor = torch.zeros(2).as_subclass(Shifted)
    for array in (ferry.to_numpy(tensor), ferry.from_dlpack(tensor, to="numpy")):
        np.testing.assert_array_equal(array, [1, 1])


def test_f069_a_foreign_type_without_the_table_converts_like_one_that_has_it():
    array = np.arange(6.0).reshape(2, 3).T
    np.testing.assert_array_equal(ferry.to_numpy(_StreamOnly(array)), array)
    np.testing.assert_array_equal(ferry.to_numpy(torch.from_numpy(array)), array)
