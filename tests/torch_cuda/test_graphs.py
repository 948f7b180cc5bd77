"""Torch's captures: copies to pinned memory that are part of them, and what is refused without harm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.captures import MODES, Captured, capture
from helpers.device_path import seen, settle
from tensorferry._torch import fallback
from tensorferry.types import GraphSlot

TOUCHING = ("cuMem", "cuEvent", "cuStreamWait", "cuStreamCreate", "cuUserObject", "cuGraph")


@pytest.fixture
def side(cuda: Any) -> Iterator[torch.cuda.Stream]:
    """A stream of torch's, current inside."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        yield stream


def captured(cuda: Any, stream: Any, call: Callable[[], Any]) -> tuple[Captured, Any]:
    torch.cuda.synchronize()
    with capture(cuda.fake, stream.cuda_stream) as made:
        answer = call()
    return made, answer


DTYPES = ("float32", "float16", "bfloat16", "int64", "uint8", "bool", "complex64")


@pytest.mark.parametrize("dtype", DTYPES)
def test_each_replay_fills_the_destination_with_the_tensors_values(cuda: Any, side: Any, dtype: str):
    x = cuda.settled(torch.zeros(2, 3, dtype=getattr(torch, dtype)))
    out = ferry.empty_pinned((2, 3), dtype)
    made, slot = captured(cuda, side, lambda: ferry.to_numpy_async(x, out=out))
    assert isinstance(slot, GraphSlot)
    for start in (0, 1):
        values = (torch.arange(start, start + 6).reshape(2, 3) % 5).to(x.dtype)
        x.copy_(values)
        cuda.fake.launch_graph(made.graph, side.cuda_stream)
        x.zero_()
        assert np.array_equal(slot.wait(), ferry.to_numpy(values))
    cuda.fake.destroy_graph(made.graph)


def test_values_that_are_made_inside_the_graph_arrive(cuda: Any, side: Any):
    x = cuda.settled(torch.zeros(4, 6))
    y = cuda.settled(torch.zeros(4))
    out = ferry.empty_pinned(4)

    def work() -> Any:
        y.copy_(x[:, 1])
        return ferry.to_numpy_async({"y": y}, out={"y": out})

    made, slot = captured(cuda, side, work)
    x.copy_(torch.arange(24.0).reshape(4, 6))
    cuda.fake.launch_graph(made.graph, side.cuda_stream)
    assert slot.wait()["y"].tolist() == [1, 7, 13, 19]
    cuda.fake.destroy_graph(made.graph)


def test_the_graph_keeps_a_tensor_that_torch_forgot(cuda: Any, side: Any):
    tensors, out = [cuda.settled(torch.arange(6.0))], ferry.empty_pinned(6)
    made, slot = captured(cuda, side, lambda: ferry.to_numpy_async(tensors.pop(), out=out))
    others = [torch.full((6,), -1.0, device="cuda") for _ in range(10)]
    cuda.fake.launch_graph(made.graph, side.cuda_stream)
    assert slot.wait().tolist() == list(range(6))
    cuda.fake.destroy_graph(made.graph)
    del others


REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "to_numpy": lambda x, _: ferry.to_numpy(x),
    "to_numpy of a strided view, which would be packed": lambda x, _: ferry.to_numpy(x[:, ::2]),
    "to_numpy into pinned memory": lambda x, out: ferry.to_numpy(x, out=out),
    "to_python": lambda x, _: ferry.to_python(x),
    "to_numpy_async without out": lambda x, _: ferry.to_numpy_async(x),
    "to_numpy_async of a conjugate view": lambda x, out: ferry.to_numpy_async(
        torch.view_as_complex(x.view(2, 3, 2)).conj(), out=out.view("complex64")
    ),
    "to_numpy_async with a cast": lambda x, _: ferry.to_numpy_async(x, out=np.zeros((2, 6))),
    "to_device": lambda x, _: ferry.to_device(np.ones(3), x.device),
    "to_device into a tensor": lambda x, _: ferry.to_device(np.ones((2, 6), np.float32), "cuda", out=x),
    "to_device into a strided view": lambda x, _: ferry.to_device(np.ones((2, 3), np.float32), "cuda", out=x[:, ::2]),
    "from_numpy to the device": lambda *_: ferry.from_numpy(np.ones(3), device="cuda"),
    "images_to_tensor": lambda x, _: ferry.images_to_tensor(x.view(2, 2, 3)),
    "images_to_tensor of host images": lambda x, _: ferry.images_to_tensor(np.ones((2, 2), np.uint8), device=x.device),
    "tensor_to_images": lambda x, _: ferry.tensor_to_images(x.view(1, 3, 2, 2)),
    "from_dlpack to an array": lambda x, _: ferry.from_dlpack(x, to="numpy"),
    "check of values": lambda x, _: ferry.check(x, finite=True),
    "stack": lambda x, _: ferry.stack([x, x], to="numpy"),
    "empty_pinned": lambda *_: ferry.empty_pinned(3),
    "zeros_pinned": lambda *_: ferry.zeros_pinned(3),
    "empty_like_pinned": lambda x, _: ferry.empty_like_pinned(x),
    "pinned": lambda *_: ferry.pinned(np.ones(3)),
    "hold": lambda _, out: ferry.hold(out, torch.cuda.current_stream()),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_captured_is_refused_untouched(cuda: Any, side: Any, mode: str, call: Callable[..., Any]):
    x, out = cuda.settled(torch.arange(12.0).reshape(2, 6)), ferry.empty_pinned((2, 6))
    ferry.to_numpy(x)  # from now on plain tensors are converted without Python code
    settle(cuda.fake)
    no_thread = ferry.options(background=False)  # it might still be asking about that copy
    with no_thread, capture(cuda.fake, side.cuda_stream, mode) as made, seen(cuda.fake) as record:
        with pytest.raises(ferry.FerryError) as caught:
            call(x, out)
        assert torch.cuda.is_current_stream_capturing()
    assert all((caught.value.given, caught.value.why, caught.value.instead))
    assert [line for line in record.lines if line.startswith(TOUCHING)] == []
    cuda.fake.destroy_graph(made.graph)
    assert ferry.to_numpy(x).tolist() == np.arange(12.0).reshape(2, 6).tolist()


def test_copies_that_torch_makes_are_refused_in_a_capture(cuda: Any, side: Any):
    x = cuda.settled(torch.arange(6.0))

    def both() -> None:
        with pytest.raises(ferry.DeviceError, match="captured"):
            fallback.to_host(x)
        with pytest.raises(ferry.DeviceError, match="captured"):
            fallback.from_host(torch.ones(3), "cuda")

    made, _ = captured(cuda, side, both)
    cuda.fake.destroy_graph(made.graph)


def test_staging_is_not_taken_from_the_graphs_own_memory(cuda: Any, side: Any):
    other = torch.cuda.Stream()
    x = cuda.settled(torch.arange(6.0))
    made, answer = captured(cuda, side, lambda: ferry.to_numpy_async(x, stream=other).result())
    assert answer.tolist() == list(range(6))
    cuda.fake.destroy_graph(made.graph)
