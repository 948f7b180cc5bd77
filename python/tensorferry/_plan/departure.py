"""The plan of a copy to a CUDA device, by the choice that the copy itself is made by."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from tensorferry._device.streams import torch_cuda
from tensorferry._dtypes import NATIVE
from tensorferry._native import core
from tensorferry._plan.plan import Plan
from tensorferry._torch import fallback

if TYPE_CHECKING:
    import torch

    from tensorferry._convert.take import Taken

__all__ = ["plan_of_departure"]


def plan_of_departure(made: Plan, device: torch.device, taken: Taken) -> Plan:
    """Return the plan for a device from that of the same conversion on the host: casts join the copy."""
    itemsize = int(NATIVE[made.dtype]["itemsize"])
    in_elements = tuple(step // itemsize for step in made.strides)
    strides = tuple(step * itemsize for step in fallback.copied_strides(made.shape, in_elements))
    nbytes = math.prod(made.shape) * itemsize
    way, launches, over_link, link_nbytes = "ring", 0, made.dtype, nbytes
    if taken.source is not None and taken.on_device is None:
        index = _ordinal(device)
        kernels = core.kernels_there(index, load=False)
        way, launches, over_link, link_nbytes = core.departure(
            taken.source, made.dtype, strides, device=index, kernels=kernels
        )
    directly, unpacks = way.startswith("direct"), way.endswith("unpack")
    return dataclasses.replace(
        made,
        path=("dma" if directly else "ring") + (", unpack" if unpacks else ""),
        reason=f"the result goes to {device}" + (f"; {made.reason}" if made.copies else ""),
        steps=(
            made.steps[0] if made.path in ("view", "copy") else "read the array",
            *_steps(device, over_link, directly=directly),
            *([_unpacking(made, over_link, launches)] if unpacks else []),
        ),
        nbytes_moved=link_nbytes * (1 + int(not directly)) + nbytes * int(unpacks),
        copies=1 + int(not directly) + int(unpacks),
        waits=("the device",) if directly else (),
        shares_memory=False,
        strides=strides,
        launches=launches,
    )


def _steps(device: torch.device, over_link: str, *, directly: bool) -> tuple[str, ...]:
    if directly:
        return (f"copy over the link to {device}, from the pinned memory itself", f"wait for {device} to have read it")
    return (
        f"write {over_link} to the ring of pinned memory, packed",
        f"copy over the link to {device}, in the order of its stream",
    )


def _unpacking(made: Plan, over_link: str, launches: int) -> str:
    what = "unpack it" if made.dtype == over_link else f"unpack it and cast it to {made.dtype}"
    return f"{what} on the device, by a kernel" + (f", in {launches} parts" if launches > 1 else "")


def _ordinal(device: torch.device) -> int:
    if device.index is not None:
        return device.index
    cuda = torch_cuda()
    return 0 if cuda is None else int(cuda.current_device())
