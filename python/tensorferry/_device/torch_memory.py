"""What torch tells the device path once: device memory for snapshots, and the streams that torch may work in."""

from __future__ import annotations

import sys
from typing import Any

from tensorferry._device.streams import torch_cuda, torch_stream
from tensorferry._native import core

__all__ = ["introduce_torch", "note_torch"]

_POOL_STREAMS_PER_PRIORITY = 32
_PRIORITIES = (0, -1)

_introduced: set[int] = set()


def introduce_torch(device: int) -> None:
    """Let snapshots lie in memory of torch's allocator, and let fences cover torch's pool streams; once per device."""
    if device in _introduced:
        return
    core.set_staging_source(_device_memory)
    if core.add_foreign_streams(device, _pool_streams(device)):
        core.note_known_device(device)
        _introduced.add(device)


def note_torch() -> None:
    """Let fences know torch's pool streams on all devices in use, or that torch uses none yet.

    Without knowing, a fence does not pass; so this belongs before every call that may need memory of a pool.
    """
    tick = core.foreign_tick()  # before torch is asked: what it begins meanwhile is not overlooked
    if torch_cuda() is None:
        core.foreign_had_not_begun(tick)
    elif core.foreign_streams_wanted() and not sys.modules["torch"].cuda.is_current_stream_capturing():
        for device in core.devices_in_use():
            introduce_torch(device)


def _device_memory(device: int, nbytes: int) -> tuple[int, int, Any] | None:
    torch = sys.modules["torch"]
    if torch.cuda.is_current_stream_capturing():
        return None  # it would be memory of the graph's own pool, which a replay uses again
    try:
        memory = torch.empty(nbytes, dtype=torch.uint8, device=f"cuda:{device}")
    except RuntimeError:  # out of memory: then there are no snapshots
        return None
    # What others still do with memory that torch gives out anew ends in the stream that it was asked in.
    return memory.data_ptr(), torch_stream(device), memory


def _pool_streams(device: int) -> list[int]:
    # Torch hands them out in turn and never destroys them: asking for so many lists them all.
    torch = sys.modules["torch"]
    handles = {
        torch.cuda.Stream(device, priority=priority).cuda_stream
        for priority in _PRIORITIES
        for _ in range(_POOL_STREAMS_PER_PRIORITY)
    }
    return sorted(handles)
