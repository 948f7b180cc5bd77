"""What copies to the host cost a loop of matrix products that runs beside them, over the rate of the copies.

These cases need a GPU: ``tensorferry bench interference --device cuda``. The products are as many as make the copies
take the given share of the loop's time, so that a copy is always under way for that share of it, and ends before the
loop does. The report draws the slow-down of the loop over the rate that the copies reached.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tensorferry as ferry
from tensorferry._device.on_device import TorchOnDevice
from tensorferry._native import core
from tensorferry.bench import ALONE, Case, Inputs, Point, at_most, best, ours
from tensorferry.bench.cases._device import link_inputs, settled
from tensorferry.bench.cases._inputs import as_array, random_tensor
from tensorferry.bench.cases._points import MIB

__all__ = ["CASES"]

_PIECE_NBYTES = 4 * MIB
_FULL = 95
_MOST_PRODUCTS = 2000
_CHECKED_ROWS = 4

Copy = Callable[[Inputs], None]


def _loop(rng: np.random.Generator, nbytes: int, rows: int, copy: Copy, percent: int, device: str) -> Inputs:
    a, b = (random_tensor(rng, (rows, rows), "bfloat16", -1, 1).to(device) for _ in range(2))
    values = random_tensor(rng, (nbytes // 4,), "float32")
    inputs = link_inputs(values.to(device), values, a=a, b=b, c=a.clone(), products=1)
    _products(inputs)
    settled()
    one_product = _seconds(lambda: _products(inputs | {"products": 10})) / 10
    copies = min(_seconds(lambda: copy(inputs)) for _ in range(3))
    wanted = copies * 100 / percent / one_product
    return inputs | {"products": max(1, min(_MOST_PRODUCTS, round(wanted)))}


def _seconds(call: Callable[[], object]) -> float:
    settled()
    start = time.perf_counter()
    call()
    settled()
    return time.perf_counter() - start


def _products(inputs: Inputs) -> None:
    for _ in range(inputs["products"]):
        inputs["torch"].mm(inputs["a"], inputs["b"], out=inputs["c"])


def _by_copy_engine(inputs: Inputs) -> None:
    with inputs["cuda"].stream(inputs["side"]):
        ferry.to_numpy_async(inputs["t"], out=inputs["out"], snapshot=False)


def _by_torch(inputs: Inputs) -> None:
    with inputs["cuda"].stream(inputs["side"]):
        inputs["host"].copy_(inputs["t"], non_blocking=True)


def _by_kernel(inputs: Inputs) -> None:
    """Bounded pieces, as the product stores them, by as many blocks as the point says."""
    t, out, step = inputs["t"], inputs["out"], _PIECE_NBYTES // 4
    stream = inputs["side"].cuda_stream
    for start in range(0, t.numel(), step):
        piece = TorchOnDevice(t[start : start + step], "float32").as_it_is(stream)
        there = core.Source.from_array(out[start : start + step])
        assert core.store_by_kernel(piece, there, inputs["blocks"]), "there are no kernels here"


def _beside(copy: Copy) -> Callable[[Inputs], dict[str, Any]]:
    """Start the copies, run the loop, and wait for both."""

    def run(inputs: Inputs) -> dict[str, Any]:
        inputs["side"].wait_stream(inputs["cuda"].current_stream())
        copy(inputs)
        return _alone(inputs) | {"copied": as_array(inputs["host"]) if copy is _by_torch else inputs["out"]}

    return run


def _alone(inputs: Inputs) -> dict[str, Any]:
    _products(inputs)
    settled()
    return {"product": inputs["c"][:_CHECKED_ROWS]}


def _expected(inputs: Inputs) -> dict[str, Any]:
    product = inputs["a"][:_CHECKED_ROWS].cpu().double() @ inputs["b"].cpu().double()
    return {"product": product.numpy(), "copied": inputs["values"]}


def _check(result: dict[str, Any], expected: dict[str, Any]) -> int:
    product = result["product"].cpu().double().numpy()
    near = np.abs(product - expected["product"]) <= 2.0**-6 * np.sqrt(product.shape[1])  # sums of bfloat16
    assert near.all(), "wrong products"
    copied = result.get("copied", expected["copied"])
    assert np.array_equal(copied, expected["copied"]), "wrong values were copied"
    return int(product.size + copied.size)


def _engine_setup(rng: np.random.Generator, nbytes: int, rows: int, percent: int, device: str = "cuda") -> Inputs:
    return _loop(rng, nbytes, rows, _by_copy_engine, percent, device)


def _kernel_setup(
    rng: np.random.Generator, nbytes: int, rows: int, percent: int, blocks: int, device: str = "cuda"
) -> Inputs:
    def copy(inputs: Inputs) -> None:
        _by_kernel(inputs | {"blocks": blocks})

    return _loop(rng, nbytes, rows, copy, percent, device) | {"blocks": blocks}


def _at_full_rate(point: Point) -> bool:
    return point["percent"] == _FULL and point.get("blocks", 8) == 8


def _points(*blocks: int, quick: bool = False) -> tuple[Point, ...]:
    shares = (_FULL,) if quick else (20, 40, 60, 80, _FULL)
    one: dict[str, int] = {"nbytes": (64 if quick else 256) * MIB, "rows": 4096}
    return tuple({**one, **({"blocks": b} if b else {}), "percent": share} for b in blocks or (0,) for share in shares)


CASES = (
    Case(
        name="interference.copy_engine",
        title="A loop of matrix products beside copies by the copy engine",
        setup=_engine_setup,
        candidates=(
            ours("ferry.to_numpy_async(t, out=out, snapshot=False), the loop", _beside(_by_copy_engine)),
            best("host.copy_(t, non_blocking=True), the loop", _beside(_by_torch)),
            best(ALONE, _alone),
        ),
        expected=_expected,
        check=_check,
        goals=(at_most(1.02, ALONE, _at_full_rate),),
        points=_points(),
        quick=_points(quick=True),
        destinations=("out", "host", "c"),
        devices=("cuda",),
    ),
    Case(
        name="interference.kernel",
        title="A loop of matrix products beside copies by a kernel of a few blocks",
        setup=_kernel_setup,
        candidates=(
            ours("pieces of 4 MiB stored by a kernel, the loop", _beside(_by_kernel)),
            best(ALONE, _alone),
        ),
        expected=_expected,
        check=_check,
        goals=(at_most(1.05, ALONE, _at_full_rate),),
        points=_points(1, 2, 4, 8, 16, 32),
        quick=_points(8, quick=True),
        destinations=("out", "host", "c"),
        devices=("cuda",),
    ),
)
