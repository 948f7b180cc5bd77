"""The plan of a copy to a CUDA device."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from tensorferry._dtypes import NATIVE
from tensorferry._plan.plan import Plan
from tensorferry._torch import fallback

__all__ = ["plan_of_departure"]


def plan_of_departure(made: Plan, device: Any) -> Plan:
    """Return the plan for a device from that of the same conversion on the host: casts join the copy to the ring."""
    itemsize = int(NATIVE[made.dtype]["itemsize"])
    in_elements = tuple(step // itemsize for step in made.strides)
    nbytes = math.prod(made.shape) * itemsize
    return dataclasses.replace(
        made,
        path="ring",
        reason=f"the result goes to {device}" + (f"; {made.reason}" if made.copies else ""),
        steps=(
            made.steps[0] if made.path in ("view", "copy") else "read the array",
            f"write {made.dtype} to the ring of pinned memory, packed",
            f"copy over the link to {device}, in the order of its stream",
        ),
        nbytes_moved=2 * nbytes,
        copies=2,
        waits=(),
        shares_memory=False,
        strides=tuple(step * itemsize for step in fallback.copied_strides(made.shape, in_elements)),
    )
