"""Kills processes that append rows, at random moments, and goes on behind what is there; run as a program of its own.

Arguments: where the rows go, how many kills, seed. Row number n holds n. Prints JSON: how many rows there were at the
end, how often a file was broken, how often rows were lost that had been flushed, and how often a kill met a writer.
"""

from __future__ import annotations

import json
import mmap
import os
import random
import signal
import sys
import time

import numpy as np

import tensorferry as ferry
from helpers.moments import Moments

_WIDTH = 40


def _rows(path: str) -> np.ndarray | None:
    """Read with NumPy itself, or with zarr."""
    if path.endswith(".zarr"):
        return _rows_of_zarr(path)
    where = os.path.join(path, "rows.npy") if path.endswith("/") else path
    return np.load(where) if os.path.exists(where) else None


def _rows_of_zarr(path: str) -> np.ndarray | None:
    import zarr

    if not os.path.exists(path):
        return None
    array = zarr.open_group(path, mode="r")["rows"]
    found: np.ndarray = array[: array.attrs["tensorferry"]["rows"]]
    return found


def _append_forever(path: str, flushed: np.ndarray, seed: int) -> None:
    chance = random.Random(seed)
    with ferry.Writer(path, mode="append") as writer:
        while True:
            count = chance.choice([1, 7, 300, 5000])
            numbers = np.arange(writer.rows, writer.rows + count, dtype=np.float64)
            writer.append(np.repeat(numbers, _WIDTH).reshape(count, _WIDTH))
            if chance.random() < 0.5:
                writer.flush()
                flushed[0] = writer.rows


def main() -> None:
    """Play."""
    path, kills, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    moments = Moments(random.Random(seed), usual=0.025)
    flushed = np.frombuffer(mmap.mmap(-1, 8), np.int64)  # shared with the children
    counts = {"rows": 0, "broken": 0, "lost": 0, "grew": 0}
    with ferry.Writer(path, mode="append") as writer:  # so that no child spends its life importing
        writer.append(np.zeros((0, _WIDTH)))
    for number in range(kills):
        flushed[0] = 0
        pid = os.fork()
        if pid == 0:
            _append_forever(path, flushed, seed + number)
        time.sleep(moments.next())
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        try:
            rows = _rows(path)
            whole = rows is not None and bool((rows == np.arange(len(rows))[:, None]).all())
        except ValueError:
            whole = False
        counts["broken"] += not whole
        found = 0 if rows is None else len(rows)
        counts["lost"] += found < max(int(flushed[0]), counts["rows"])
        grew = found > counts["rows"]
        moments.learn(grew)
        counts["grew"] += grew
        counts["rows"] = found
        if found > 50_000:
            _begin_again(path)
            counts["rows"] = 0
    print(json.dumps(counts))


def _begin_again(path: str) -> None:
    with ferry.Writer(path, overwrite=True) as writer:
        writer.append(np.zeros((0, _WIDTH)))


if __name__ == "__main__":
    main()
