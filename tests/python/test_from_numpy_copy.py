"""``from_numpy``: what shares, what must be copied, and the way back to the tensor an array was made from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import tensorferry as ferry
from helpers.plans import convert_as_planned, refused_as_planned


def packed_records() -> np.ndarray[Any, Any]:
    records = np.zeros(3, dtype=[("tag", "i1"), ("x", "f4"), ("big", ">i2"), ("z", "c8")])
    records["x"], records["big"], records["z"] = [1.5, 2, 3], [1, 2, 3], [1j, 2, 3]
    return records


def misaligned() -> np.ndarray[Any, Any]:
    return np.frombuffer(bytearray(1) + bytearray(np.arange(3.0).tobytes()), dtype="f8", offset=1)


def read_only() -> np.ndarray[Any, Any]:
    a = np.arange(3.0)
    a.flags.writeable = False
    return a


SHARED: dict[str, Callable[[], np.ndarray[Any, Any]]] = {
    "a matrix": lambda: np.arange(6.0).reshape(2, 3),
    "a transposed matrix": lambda: np.arange(6.0).reshape(2, 3).T,
    "every other element": lambda: np.arange(6.0)[::2],
    "a scalar": lambda: np.array(2.0),
    "nothing": lambda: np.empty((0, 3)),
    "a negative stride on an axis of size 1": lambda: np.arange(6.0).reshape(2, 3)[1:][::-1],
    "an odd stride on an axis of size 1": lambda: np.lib.stride_tricks.as_strided(np.arange(6.0), (1, 3), (5, 16)),
    "an aligned field": lambda: np.zeros(3, [("x", "f8"), ("y", "f8")])["y"],
    "long long": lambda: np.arange(3, dtype=np.longlong),
    "unsigned long": lambda: np.arange(3, dtype=np.ulonglong),
    "an array subclass": lambda: np.arange(3.0).view(np.recarray),
}
COPIED: dict[str, tuple[Callable[[], np.ndarray[Any, Any]], str]] = {
    "a negative stride": (lambda: np.arange(6.0)[::-1], "negative strides"),
    "the other byte order": (lambda: np.arange(3, dtype=">i4"), "other order"),
    "a misaligned array": (misaligned, "multiples of the element size"),
    "a packed field": (lambda: packed_records()["x"], "multiples of the element size"),
    "a swapped packed field": (lambda: packed_records()["big"], "other order"),
    "a packed complex field": (lambda: packed_records()["z"], "multiples of the element size"),
    "a read-only array": (read_only, "read-only"),
    "a broadcast array": (lambda: np.broadcast_to(np.arange(3.0), (2, 3)), "read-only"),
    "a sliding window": (
        lambda: np.lib.stride_tricks.sliding_window_view(np.arange(4.0), 2, writeable=True),
        "overlap",
    ),
}


@pytest.mark.parametrize("make", SHARED.values(), ids=SHARED)
def test_what_torch_can_describe_is_shared(make: Callable[[], np.ndarray[Any, Any]]) -> None:
    a = make()
    tensor = convert_as_planned(a, to="torch")
    assert ferry.plan(a, to="torch").shares_memory
    assert tensor.tolist() == a.tolist()
    assert a.size == 0 or tensor.data_ptr() == a.ctypes.data
    tensor.fill_(7)
    assert np.all(a == 7)


@pytest.mark.parametrize(("make", "cause"), COPIED.values(), ids=COPIED)
def test_what_torch_cannot_describe_is_copied_and_false_says_why(
    make: Callable[[], np.ndarray[Any, Any]], cause: str
) -> None:
    a = make()
    tensor = convert_as_planned(a, to="torch")
    assert tensor.tolist() == a.tolist()
    assert cause in ferry.plan(a, to="torch").reason
    error = refused_as_planned(a, to="torch", copy=False)
    assert isinstance(error, ferry.CopyRequiredError)
    assert cause in error.why


@pytest.mark.parametrize("make", [*SHARED.values(), *(make for make, _ in COPIED.values())], ids=[*SHARED, *COPIED])
def test_promise_2_a_copy_is_private(make: Callable[[], np.ndarray[Any, Any]]) -> None:
    a = make()
    expected = a.tolist()
    tensor = convert_as_planned(a, to="torch", copy=True)
    tensor.fill_(5)
    assert a.tolist() == expected


def test_bool_bytes_other_than_zero_and_one_are_normalised_by_copies_and_casts() -> None:
    a = np.array([0, 1, 2, 255], np.uint8).view(bool)
    assert ferry.from_numpy(a, copy=True).view(torch.uint8).tolist() == [0, 1, 1, 1]
    assert ferry.from_numpy(a, dtype="int32").tolist() == [0, 1, 1, 1]
    assert ferry.from_numpy(a[::-1]).view(torch.uint8).tolist() == [1, 1, 1, 0]


def test_readonly_share_shares_a_read_only_array() -> None:
    a = read_only()
    tensor = convert_as_planned(a, to="torch", readonly="share")
    assert tensor.data_ptr() == a.ctypes.data
    assert tensor.tolist() == [0, 1, 2]
    window = np.broadcast_to(a, (2, 3))
    assert convert_as_planned(window, to="torch", readonly="share").stride() == (0, 1)


def test_readonly_raise_raises_naming_both_ways_out() -> None:
    error = refused_as_planned(read_only(), to="torch", readonly="raise")
    assert isinstance(error, ferry.ReadOnlyError)
    assert 'readonly="share"' in error.instead
    assert convert_as_planned(np.arange(3.0), to="torch", readonly="raise").tolist() == [0, 1, 2]


def test_a_file_mapped_read_only_is_never_copied_in_silence(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(6.0).reshape(2, 3))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for a in (mapped, mapped[1:], np.asarray(mapped), mapped.T, np.frombuffer(memoryview(mapped).cast("B"))):
        error = refused_as_planned(a, to="torch")
        assert isinstance(error, ferry.ReadOnlyError)
        assert 'mmap_mode="c"' in error.instead
        assert convert_as_planned(a, to="torch", readonly="share").tolist() == a.tolist()
        assert convert_as_planned(a, to="torch", copy=True).tolist() == a.tolist()
    private = np.load(tmp_path / "x.npy", mmap_mode="c")
    convert_as_planned(private, to="torch").fill_(1)
    assert np.all(private == 1)
    assert np.all(np.load(tmp_path / "x.npy") == mapped)


def test_a_writable_map_is_shared_with_the_file(tmp_path: Path) -> None:
    a = np.memmap(tmp_path / "x", dtype="f4", mode="w+", shape=(3,))
    convert_as_planned(a, to="torch").fill_(2)
    a.flush()
    assert np.fromfile(tmp_path / "x", "f4").tolist() == [2, 2, 2]


def test_a_view_of_a_tensor_leads_back_to_the_tensor() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    array = ferry.to_numpy(x)
    for view, expected in (
        (array, x),
        (array[1:, ::2], x[1:, ::2]),
        (array.T, x.T),
        (array[1, 2], None),
        (array[1:2, 2], x[1:2, 2]),
        (ferry.to_numpy(x, dtype="bits"), x.view(torch.uint32)),
    ):
        if expected is None:
            continue
        back = convert_as_planned(view, to="torch")
        assert ferry.plan(view, to="torch").path == "alias"
        assert torch.equal(back, expected)
        assert back.data_ptr() == expected.data_ptr()
        assert back._version == x._version
    x.add_(1)
    assert convert_as_planned(array, to="torch")._version == x._version == 1


def test_the_alias_of_a_tensor_shares_its_version_counter_so_autograd_sees_writes() -> None:
    weight = torch.ones(3, requires_grad=True)
    hidden = weight * 2
    loss = (hidden * hidden).sum()
    ferry.from_numpy(ferry.to_numpy(hidden)).zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_the_view_of_a_tensor_that_is_gone_still_converts() -> None:
    x = torch.arange(3.0)
    array = ferry.to_numpy(x)
    del x
    assert convert_as_planned(array, to="torch").tolist() == [0, 1, 2]
    assert convert_as_planned(ferry.to_numpy(torch.arange(3.0) + 1), to="torch").tolist() == [1, 2, 3]


def test_a_tensor_comes_back_as_it_is() -> None:
    x = torch.arange(3.0)
    assert convert_as_planned(x, to="torch") is x
    for arguments in ({"dtype": "float64"}, {"copy": True}, {"requires_grad": True}):
        assert isinstance(refused_as_planned(x, to="torch", **arguments), ferry.ArgumentError)


def test_requires_grad_marks_a_leaf() -> None:
    a = np.ones(2)
    tensor = convert_as_planned(a, to="torch", requires_grad=True)
    assert tensor.requires_grad
    assert tensor.is_leaf
    error = refused_as_planned(np.arange(3), to="torch", requires_grad=True)
    assert isinstance(error, ferry.AutogradError)
    assert "dtype=" in error.instead
    assert isinstance(refused_as_planned(a, to="torch", requires_grad=1), ferry.ArgumentError)


@pytest.mark.parametrize("device", ["nonsense", "cuda", "cuda:7", 3.5], ids=str)
def test_a_device_that_is_not_there_is_refused(device: Any) -> None:
    if torch.cuda.is_available() and str(device).startswith("cuda"):
        device = "cuda:99"
    error = refused_as_planned(np.ones(2), to="torch", device=device)
    assert isinstance(error, ferry.DeviceError)
    assert "doctor" in error.instead


def test_the_host_can_be_named_and_the_default_device_does_not_matter() -> None:
    a = np.ones(2)
    for device in ("cpu", torch.device("cpu")):
        assert convert_as_planned(a, to="torch", device=device).data_ptr() == a.ctypes.data
    with torch.device("meta"):
        assert ferry.from_numpy(a).device.type == "cpu"
        assert ferry.from_numpy(a, dtype="float32").tolist() == [1, 1]


@pytest.mark.parametrize("arguments", [{"copy": "lazy"}, {"copy": 1}, {"readonly": "yes"}, {"readonly": True}], ids=str)
def test_other_words_are_refused(arguments: Any) -> None:
    assert isinstance(refused_as_planned(np.ones(2), to="torch", **arguments), ferry.ArgumentError)


def test_an_array_becomes_a_real_tensor_under_fake_tensor_mode_and_inside_transforms() -> None:
    a = np.arange(3.0)

    def convert(x: torch.Tensor) -> torch.Tensor:
        for arguments in ({}, {"copy": True}, {"dtype": "float32"}, {"dtype": torch.bfloat16}, {"device": "cpu"}):
            tensor = ferry.from_numpy(a, **arguments)
            assert type(tensor) is torch.Tensor
            assert ferry.to_numpy(tensor).tolist() == [0, 1, 2]
        return x * 2

    torch.func.grad(lambda x: convert(x).sum())(torch.ones(2))
    torch.vmap(convert)(torch.ones(2))
    with FakeTensorMode():
        convert(torch.ones(2))


def test_a_dtype_is_consent_to_read_a_file_that_is_mapped_read_only(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(4.0))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert ferry.from_numpy(mapped, dtype="float32").tolist() == [0.0, 1.0, 2.0, 3.0]
    with pytest.raises(ferry.ReadOnlyError, match="mapped read-only from a file"):
        ferry.from_numpy(mapped)
    with pytest.raises(ferry.ReadOnlyError, match="mapped read-only from a file"):
        ferry.from_numpy(mapped, dtype="float64")
