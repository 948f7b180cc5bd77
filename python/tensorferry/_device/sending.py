"""Host memory into tensors on CUDA devices, through pinned memory of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorferry._device.capturing import refuse_in_capture
from tensorferry._device.on_device import TorchOnDevice
from tensorferry._device.streams import torch_stream, working_in
from tensorferry._device.torch_memory import introduce_torch
from tensorferry._dtypes import TORCH
from tensorferry._native import core
from tensorferry._torch import make as torch_make

if TYPE_CHECKING:
    import torch

__all__ = ["fill", "send_new"]


def send_new(source: core.Source, decision: core.Decision, place: torch.device, stream: Any) -> torch.Tensor:
    """Return a new tensor on the device, ordered in the stream; the source may be changed when this returns."""
    import torch

    refuse_in_capture(f"a copy to {place}", place.index, stream)
    dtype = torch_make.torch_dtype(decision.result_dtype)
    strides = [step // dtype.itemsize for step in decision.strides]
    with working_in(stream, place.index):
        tensor = torch.empty_strided(decision.shape, strides, dtype=dtype, device=place)
        _send(source, decision.value_dtype, tensor)
    return tensor


def fill(out: torch.Tensor, source: core.Source, decision: core.Decision, stream: Any) -> torch.Tensor:
    """Fill a tensor that fits, of any layout; autograd is told that it was written to."""
    import torch

    refuse_in_capture(f"a copy to {out.device}", out.get_device(), stream)
    with working_in(stream, out.get_device()):
        if _send(source, decision.value_dtype, out.detach()):
            torch.autograd.graph.increment_version(out)
        else:
            with torch.inference_mode(out.is_inference()), torch.no_grad():
                out.copy_(send_new(source, decision, out.device, None))
    return out


def _send(source: core.Source, dtype: str, tensor: torch.Tensor) -> bool:
    """Enqueue the copy; False for scattered tensors that torch fills better."""
    if tensor.numel() == 0:
        return True
    name = str(tensor.dtype).removeprefix("torch.")
    reads_as = TORCH[name].reads_as
    assert reads_as is not None
    on_device = TorchOnDevice(tensor, reads_as)
    introduce_torch(on_device.device)
    core.pin_on_first_use(source, on_device.device)
    return core.send(on_device.as_it_is(torch_stream(on_device.device)), dtype, source) is not None
