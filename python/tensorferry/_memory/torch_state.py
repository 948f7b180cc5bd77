"""What torch says of CUDA, asked only where it is loaded and has used a device already."""

from __future__ import annotations

from tensorferry._device.capturing import refuse_in_torchs_capture
from tensorferry._device.streams import torch_cuda
from tensorferry._device.torch_memory import introduce_torch, note_torch
from tensorferry._errors import DeviceError
from tensorferry._native import core

__all__ = ["torch_device"]


def torch_device() -> int | None:
    """Return torch's current CUDA device; None while torch has not initialised CUDA, which this does not do.

    Fences of pinned memory then cover the streams that torch may work in, on all devices in use.

    Raises
    ------
    DeviceError
        While torch's current stream is being captured: it is no time to pin memory.
    """
    cuda = torch_cuda()
    if cuda is None:
        note_torch()
        return None
    refuse_in_torchs_capture("new pinned memory")
    current = int(cuda.current_device())
    try:
        for device in {current, *core.devices_in_use()}:
            introduce_torch(device)
    except DeviceError:  # whoever pins memory is told
        pass
    return current
