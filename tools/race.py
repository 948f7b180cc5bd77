"""Races reads against copies on the double of the NVIDIA driver, and prints what came of it: one JSON document.

``tensorferry demo race`` runs this and judges it. Everything in it is simulated; no GPU and no torch is needed.

    python tools/race.py [--seeds 1000]
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import tensorferry as ferry
from helpers.device_path import prepared
from helpers.fake_cuda import LEGACY, PENDING, FakeCuda, fake_cuda
from helpers.fake_cuda_arrays import TableArray
from helpers.fake_cuda_driver import Driver

Read = Callable[[list[TableArray], NDArray[np.int32]], list[NDArray[np.int32]]]
POISON = int.from_bytes(bytes([PENDING] * 4), sys.byteorder, signed=True)
STREAMS, NEST = 3, 64


def fresh(preset: str = "") -> FakeCuda:
    """The double as in a new process, its device in use."""
    fake = fake_cuda()
    fake.reset()
    if preset:
        fake.preset(preset)
    fake.use_device(0)
    TableArray.current_stream = None
    return fake


def work_in(stream: int) -> None:
    """Let this be what the arrays' library calls its current stream."""
    TableArray.current_stream = None if stream == LEGACY else stream


def usual(xs: list[TableArray], pinned: NDArray[np.int32]) -> list[NDArray[np.int32]]:
    """What ``host.copy_(x, non_blocking=True)`` asks of the driver, and then reading at once."""
    driver = Driver()
    for host, x in zip(pinned, xs, strict=True):
        driver("cuMemcpyDtoHAsync", host.ctypes.data, x.pointer, host.nbytes, x.stream)
    return list(pinned.copy())


def at_once(xs: list[TableArray], _: NDArray[np.int32]) -> list[NDArray[np.int32]]:
    """Ours, which waits."""
    arrays = []
    for x in xs:
        work_in(x.stream)
        arrays.append(ferry.to_numpy(x))
    return arrays


def later(xs: list[TableArray], _: NDArray[np.int32]) -> list[NDArray[np.int32]]:
    """Ours, which gives the array when asked for the result; meanwhile the device writes something else."""
    transfers = []
    for x in xs:
        work_in(x.stream)
        transfers.append(ferry.to_numpy_async(x, snapshot=True))
        x.write_later(np.full(4, -1))
    return [transfer.result() for transfer in transfers]


def pinned_rows(driver: Driver, count: int) -> NDArray[np.int32]:
    """Pinned memory for `count` arrays; the next reset of the double frees it."""
    address = driver.get_handle_after("cuMemHostAlloc", 16 * count, 0)
    assert address is not None
    return np.ctypeslib.as_array((ctypes.c_int32 * 4 * count).from_address(address))


CODE: dict[Read, str] = {
    usual: "host.copy_(x, non_blocking=True); host.numpy()",
    at_once: "to_numpy(x)",
    later: "to_numpy_async(x).result()",
}


def race(read: Read, schedule: str, seeds: int, preset: str = "", rule: str = "") -> dict[str, Any]:
    """Let the device write, then read, once for each seed; count what was not what the device had written."""
    fake, driver = fresh(preset), Driver()
    streams = [LEGACY, *(driver.stream() for _ in range(STREAMS - 1))]
    xs = [TableArray(np.zeros(4, np.int32), stream=stream) for stream in streams]
    pinned = pinned_rows(driver, STREAMS)
    wrong: list[int] = []
    orders, poisoned = set(), 0
    for seed in range(seeds):
        fake.schedule(schedule, seed)
        written = [np.arange(4, dtype=np.int32) + 10 * seed + i for i in range(STREAMS)]
        for x, values in zip(xs, written, strict=True):
            x.write_later(values)
        arrays = read(xs, pinned)
        if not np.array_equal(arrays, written):
            wrong.append(seed)
            poisoned += all((array == POISON).all() for array in arrays)
        fake.drain()
        orders.add(fake.order())
    return {
        "code": CODE[read],
        "rule": rule,
        "schedule": schedule,
        "seeds": seeds,
        "wrong": len(wrong),
        "poisoned": poisoned,
        "first_wrong_seed": wrong[0] if wrong else None,
        "orders": len(orders),
        "violations": fake.violations()[:10],
    }


def nest() -> dict[str, Any]:
    """Read many tensors in one call, and tell what that asked of the driver."""
    fake = fresh()
    sources = {f"layer{i}": TableArray(np.zeros(16, np.float32)) for i in range(NEST)}
    ferry.to_numpy(sources)  # what is made at first use is there
    for i, x in enumerate(sources.values()):
        x.write_later(np.full(16, i))
    with ferry.options(background=False):  # the internal thread would ask for what was read before
        fake.clear_trace()
        arrays = ferry.to_numpy(sources)
        trace = fake.trace()
    wrong = sum(not (array == i).all() for i, array in enumerate(arrays.values()))
    return {
        "code": "to_numpy(nest)",
        "tensors": NEST,
        "wrong": wrong,
        "trace": trace,
        "violations": fake.violations(),
    }


def main() -> None:
    """Run all races."""
    parser = argparse.ArgumentParser(description="Race reads against copies on a simulated device.")
    parser.add_argument("--seeds", type=int, default=1000, help="orders to try for each race")
    seeds = parser.parse_args().seeds
    prepared()
    host_rule = ("forgets_host_waits", "the host waits for the copy's event")
    stream_rule = ("forgets_stream_waits", "the copy waits for the snapshot's event")
    both = (("lazy", min(seeds, 100)), ("shuffled", seeds))  # in the lazy schedule every seed is the same
    document = {
        "usual": [race(usual, schedule, seeds) for schedule in ("lazy", "eager")],
        "ours": [race(read, *tried) for read in (at_once, later) for tried in both],
        "switched_off": [
            race(read, *tried, *off) for read, off in ((at_once, host_rule), (later, stream_rule)) for tried in both
        ],
        "nest": nest(),
    }
    print(json.dumps(document))


if __name__ == "__main__":
    main()
