"""Time copies from a device to the host in pairs: ours, torch's own, and torch's into a buffer that is pinned already.

Run on a machine with a GPU: ``python tools/gpu_copy_times.py``. ``--json FILE`` writes the figures of its table, too.
Every candidate is called in turn within a round, so that all of them meet the same state of the machine; a ratio is the
median over the rounds of ours divided by theirs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import tensorferry as ferry

KIB, MIB = 1 << 10, 1 << 20
SIZES = [4 * KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB, 256 * MIB]
SECONDS_A_SIZE = 1.5
ROUNDS = (7, 400)  # at least, at most
SHORTEST_S = 200e-6  # calls are repeated until one timing is that long

Candidates = dict[str, Callable[[], Any]]


def candidates(t: torch.Tensor) -> Candidates:
    """Ways from ``t`` to an array; the first is ours. Each leaves its array complete."""
    host = torch.empty(t.shape, dtype=t.dtype, pin_memory=t.is_cuda)

    def into_pinned() -> Any:
        host.copy_(t, non_blocking=True)
        if t.is_cuda:
            torch.cuda.current_stream().synchronize()
        return host.numpy()

    ways: Candidates = {
        "ferry.to_numpy(t)": lambda: ferry.to_numpy(t),
        "t.cpu().numpy()": lambda: t.cpu().numpy(),
        "pinned.copy_(t)": into_pinned,
    }
    if hasattr(ferry, "empty_pinned"):
        out = ferry.empty_pinned(tuple(t.shape), np.float32)
        ways["ferry.to_numpy(t, out=pinned)"] = lambda: ferry.to_numpy(t, out=out)
    return ways


def timed(way: Callable[[], Any], repeats: int) -> float:
    """Seconds for one call."""
    start = time.perf_counter()
    for _ in range(repeats):
        way()
    return (time.perf_counter() - start) / repeats


def measure(nbytes: int, device: str) -> dict[str, Any]:
    """Median seconds of every candidate, and the median of ours over theirs."""
    generator = torch.Generator().manual_seed(nbytes)
    values = torch.randint(0, 1 << 20, (nbytes // 4,), generator=generator).to(torch.float32)
    t = values.to(device)
    ways = candidates(t)
    for name, way in ways.items():
        if not np.array_equal(way(), values.numpy()):
            raise SystemExit(f"{name} gave wrong values for {nbytes} bytes")
    repeats = max(1, min(1000, round(SHORTEST_S / max(1e-7, min(timed(way, 3) for way in ways.values())))))
    names = list(ways)
    rounds: list[dict[str, float]] = []
    start = time.perf_counter()
    while len(rounds) < ROUNDS[0] or (len(rounds) < ROUNDS[1] and time.perf_counter() - start < SECONDS_A_SIZE):
        shift = len(rounds) % len(names)
        rounds.append({name: timed(ways[name], repeats) for name in names[shift:] + names[:shift]})
    ours = names[0]
    return {
        "nbytes": nbytes,
        "rounds": len(rounds),
        "seconds": {name: statistics.median(one[name] for one in rounds) for name in names},
        "ours_over": {name: statistics.median(one[ours] / one[name] for one in rounds) for name in names[1:]},
    }


def size_text(nbytes: int) -> str:
    """As in "64 KiB"."""
    return f"{nbytes // MIB} MiB" if nbytes >= MIB else f"{nbytes // KIB} KiB"


def table(results: list[dict[str, Any]]) -> str:
    """One line a size: microseconds and GB/s of each candidate, and how long ours takes beside the others."""
    names = list(results[0]["seconds"])
    lines = ["  ".join(["size".rjust(8), *(f"{name:>30}" for name in names), "ours/theirs"])]
    for result in results:
        cells = [
            f"{seconds * 1e6:11.1f} us {result['nbytes'] / seconds / 1e9:10.2f} GB/s"
            for seconds in result["seconds"].values()
        ]
        ratios = " ".join(f"{ratio:.2f}" for ratio in result["ours_over"].values())
        lines.append("  ".join([size_text(result["nbytes"]).rjust(8), *(f"{cell:>30}" for cell in cells), ratios]))
    return "\n".join(lines)


def main() -> None:
    """Measure all sizes and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="bytes")
    parser.add_argument("--json", help="a file to write the figures to")
    arguments = parser.parse_args()
    results = [measure(nbytes, arguments.device) for nbytes in SIZES if nbytes <= arguments.largest]
    if arguments.json:
        name = torch.cuda.get_device_name() if arguments.device == "cuda" else arguments.device
        with open(arguments.json, "w") as file:
            json.dump({"device": name, "torch": torch.__version__, "results": results}, file, indent=1)
    print(table(results))


if __name__ == "__main__":
    main()
