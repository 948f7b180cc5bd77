"""The other side of ``tensorferry demo crash``: forks processes that save without end, to be killed.

Lines on standard input: ``KIND PATH`` forks one. It says ``begun PID`` before its first save; after its death this
process says ``ended``. ``time KIND PATH`` says ``took SECONDS`` of one save.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

__all__ = ["SAVERS", "make_state", "serve", "version_of"]

State = dict[str, Any]


def make_state(nbytes: int, tensors: int, version: int) -> State:
    """Return tensors that all hold their version, so that a file of two versions is noticed."""
    import torch

    count = max(1, nbytes // 4 // tensors)
    return {f"layers.{i}.weight": torch.full((count,), float(version)) for i in range(tensors)}


def version_of(state: State, tensors: int) -> int | None:
    """Return the version that every value has; None when tensors are missing, or of different versions."""
    if len(state) != tensors:
        return None
    found = {float(end) for tensor in state.values() for a in [tensor.numpy()] for end in (a.min(), a.max())}
    return int(found.pop()) if len(found) == 1 else None


def _with_torch(state: State, path: str) -> None:
    import torch

    torch.save(state, path)


def _with_torch_renamed(state: State, path: str) -> None:
    import torch

    temporary = f"{path}.tmp-{os.getpid()}"
    torch.save(state, temporary)
    os.replace(temporary, path)


def _with_safetensors(state: State, path: str) -> None:
    from safetensors.torch import save_file

    save_file(state, path)


def _with_us(state: State, path: str) -> None:
    import tensorferry

    tensorferry.save(state, path, overwrite=True)


SAVERS: dict[str, Callable[[State, str], None]] = {
    "torch": _with_torch,
    "torch-renamed": _with_torch_renamed,
    "safetensors": _with_safetensors,
    "ours": _with_us,
    "ours-folder": _with_us,
}


def _save_without_end(kind: str, path: str, nbytes: int, tensors: int) -> None:
    print(f"begun {os.getpid()}", flush=True)
    version = 1
    state = make_state(nbytes, tensors, version)
    while True:
        SAVERS[kind](state, path)
        version += 1
        for tensor in state.values():
            tensor.fill_(version)


def _seconds(kind: str, path: str, state: State) -> float:
    began = time.perf_counter()
    SAVERS[kind](state, path)
    return time.perf_counter() - began


def serve(nbytes: int, tensors: int) -> None:
    """Answer lines until there are no more."""
    import torch

    torch.set_num_threads(1)  # forks must not need threads of their parent
    for line in sys.stdin:
        kind, _, path = line.rstrip("\n").partition(" ")
        if kind == "time":
            kind, _, path = path.partition(" ")
            print(f"took {_seconds(kind, path, make_state(nbytes, tensors, 0))}", flush=True)
            continue
        child = os.fork()
        if child == 0:
            try:
                _save_without_end(kind, path, nbytes, tensors)
            finally:
                os._exit(1)
        os.waitpid(child, 0)
        print("ended", flush=True)


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]))
