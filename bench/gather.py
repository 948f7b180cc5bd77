"""Many small tensors of a CUDA device at once: gathered by a kernel, they cross the link together.

These cases need a GPU: ``tensorferry bench gather --device cuda``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorferry.bench import BEST_PEER, Case, Inputs, at_least, at_most, best, naive, ours
from tensorferry.bench.cases._device import link_inputs
from tensorferry.bench.cases._inputs import as_array, random_tensor
from tensorferry.bench.cases._points import KIB

__all__ = ["CASES"]

_WHOLE = "ferry.to_numpy(t), one contiguous tensor of as many bytes"
_ITEMS = "[x.item() for x in tensors]"
_ONE = "ferry.to_python(one)"
_SMALLEST, _LARGEST = 4 * KIB, 16 * KIB


def _pieces(rng: np.random.Generator, count: int, device: str = "cuda") -> Inputs:
    """Make tensors of their own, of 4 to 16 KiB each."""
    counts = rng.integers(_SMALLEST // 4, _LARGEST // 4 + 1, count).tolist()
    values = random_tensor(rng, (sum(counts),), "float32")
    return _split(values, counts, device)


def _tensors(rng: np.random.Generator, nbytes: int, count: int, device: str = "cuda") -> Inputs:
    values = random_tensor(rng, (nbytes // 4,), "float32")
    return _split(values, [nbytes // 4 // count] * count, device)


def _scalars(rng: np.random.Generator, count: int, device: str = "cuda") -> Inputs:
    values = random_tensor(rng, (count,), "float32")
    made = _split(values, [1] * count, device)
    scalars = [x.reshape(()) for x in made["tensors"]]
    return made | {"tensors": scalars, "one": scalars[0], "numbers": values.tolist()}


def _split(values: Any, counts: list[int], device: str) -> Inputs:
    t = values.to(device)
    tensors = [x.clone() for x in t.split(counts)]
    return link_inputs(t, values, tensors=tensors, counts=counts)


def _parts(array: Any, inputs: Inputs) -> list[Any]:
    return np.split(array, np.cumsum(inputs["counts"])[:-1])


def _joined(inputs: Inputs) -> list[Any]:
    """Join them on the device by torch, copy once, and take the parts out of the array."""
    return _parts(as_array(inputs["torch"].cat(inputs["tensors"]).cpu()), inputs)


def _each_on_side_stream(inputs: Inputs) -> list[Any]:
    """Copy each into its part of pinned memory, asynchronously; wait once."""
    cuda, side, event = inputs["cuda"], inputs["side"], inputs["event"]
    hosts = inputs["host"].split(inputs["counts"])
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        for host, x in zip(hosts, inputs["tensors"], strict=True):
            host.copy_(x, non_blocking=True)
        event.record()
    event.synchronize()
    return [as_array(host) for host in hosts]


def _whole(inputs: Inputs) -> list[Any]:
    return _parts(inputs["ferry"].to_numpy(inputs["t"]), inputs)


def _stacked_with_an_event(inputs: Inputs) -> list[float]:
    host, event = inputs["host"], inputs["event"]
    host.copy_(inputs["torch"].stack(inputs["tensors"]), non_blocking=True)
    event.record()
    event.synchronize()
    numbers: list[float] = host.tolist()
    return numbers


def _numbers(result: Any, expected: list[float]) -> int:
    found = result if isinstance(result, list) else [result]
    assert found == expected[: len(found)], f"{found[:3]} ... instead of {expected[:3]} ..."
    return len(found)


def _nbytes(inputs: Inputs) -> int:
    return int(inputs["t"].numel() * inputs["t"].element_size())


_PEERS = (
    naive("[x.cpu().numpy() for x in tensors]"),
    best("torch.cat(tensors).cpu(), and its parts", _joined),
    best("host.copy_(x, non_blocking=True) for each on a side stream, one event", _each_on_side_stream),
)

CASES = (
    Case(
        name="gather.pieces",
        title="Many tensors of 4 to 16 KiB to arrays",
        setup=_pieces,
        candidates=(ours("ferry.to_numpy(tensors)"), best(_WHOLE, _whole), *_PEERS),
        expected=lambda inputs: _parts(inputs["values"], inputs),
        nbytes=_nbytes,
        limit="d2h",
        goals=(at_least(0.9, _WHOLE),),
        points=({"count": 100}, {"count": 1000}, {"count": 10_000}),
        quick=({"count": 1000},),
        destinations=("out", "host"),
        devices=("cuda",),
    ),
    Case(
        name="gather.tensors",
        title="64 equal tensors, as of a batch or a state, to arrays",
        setup=_tensors,
        candidates=(ours("ferry.to_numpy(tensors)"), best(_WHOLE, _whole), *_PEERS),
        expected=lambda inputs: _parts(inputs["values"], inputs),
        nbytes=_nbytes,
        limit="d2h",
        goals=(at_most(1.0, BEST_PEER),),
        points=tuple({"nbytes": 64 * each, "count": 64} for each in (256, 4 * KIB, 64 * KIB, 1024 * KIB)),
        quick=({"nbytes": 64 * 4 * KIB, "count": 64},),
        destinations=("out", "host"),
        devices=("cuda",),
    ),
    Case(
        name="gather.scalars",
        title="Scalars, each a tensor of its own, to Python numbers",
        setup=_scalars,
        candidates=(
            ours("ferry.to_python(tensors)"),
            naive(_ITEMS),
            best(_ONE),
            best("torch.stack(tensors).cpu().tolist()"),
            best("stacked into pinned memory, one event", _stacked_with_an_event),
        ),
        expected=lambda inputs: inputs["numbers"],
        check=_numbers,
        goals=(at_most(0.02, _ITEMS), at_most(1.5, _ONE)),
        points=({"count": 1000},),
        destinations=("out", "host"),
        devices=("cuda",),
    ),
)
