"""How people bring tensors from a CUDA device to arrays, for cases that run there; each result is complete."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

import tensorferry as ferry
from tensorferry.bench import Inputs
from tensorferry.bench.cases._inputs import Array, as_array, named

if TYPE_CHECKING:
    import torch

__all__ = ["CUPY", "SIDE_STREAM", "cupy_array", "cupy_into", "landing", "link_inputs", "on_side_stream", "settled"]

SIDE_STREAM = "host.copy_(t, non_blocking=True) on a side stream, one event"
CUPY = "cupy.asnumpy(cupy.from_dlpack(t), out=out)"


def settled() -> None:
    """Wait for the device, so that what setup made is there for every stream."""
    import torch

    torch.cuda.synchronize()


def landing(t: torch.Tensor) -> dict[str, Any]:
    """Return pinned memory of torch's and of ours for the values of a tensor, with a stream and an event."""
    import torch

    cuda: Any = torch.cuda  # its annotations are incomplete
    host = torch.empty(t.shape, dtype=t.dtype).pin_memory()
    dtype = as_array(torch.empty(0, dtype=t.dtype)).dtype
    out = ferry.empty_pinned(tuple(t.shape), dtype)
    return {"host": host, "out": out, "side": cuda.Stream(), "event": cuda.Event(), "cuda": cuda}


def link_inputs(t: torch.Tensor, values: torch.Tensor, **more: Any) -> Inputs:
    """Return the inputs of a case that copies `t`, on the device, whose values the host knows."""
    made = named(t=t, values=as_array(values), **landing(t), **more)
    settled()
    return made


def on_side_stream(inputs: Inputs) -> Array:
    """Copy into pinned memory on a stream of its own, and wait for that copy alone."""
    cuda, side, host, event = inputs["cuda"], inputs["side"], inputs["host"], inputs["event"]
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        host.copy_(inputs["t"], non_blocking=True)
        event.record()
    event.synchronize()
    return as_array(host)


def cupy_into(inputs: Inputs) -> Any:
    """Let CuPy copy into pinned memory that exists."""
    cupy = importlib.import_module("cupy")
    return cupy.asnumpy(cupy.from_dlpack(inputs["t"]), out=inputs["out"])


def cupy_array(inputs: Inputs) -> Any:
    """Let CuPy copy into a new array, in C order."""
    cupy = importlib.import_module("cupy")
    return np.ascontiguousarray(cupy.asnumpy(cupy.from_dlpack(inputs["t"]), order="C"))
