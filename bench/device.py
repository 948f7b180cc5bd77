"""Three ways from a device to an array: directly, explicitly through ``.cpu()``, and asynchronously.

Often told with errors. ``t.numpy()`` copies from no device, it raises; the direct call is ``numpy(force=True)``.
And ``t.to("cpu", non_blocking=True).numpy()`` may be read before it is there: an asynchronous copy needs pinned
memory to be one, and a wait for an event before the first look. For host tensors all three are views.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorferry.bench import Case, Inputs, best, naive, ours
from tensorferry.bench.cases._inputs import named, random_tensor
from tensorferry.bench.cases._points import KIB, MIB, sizes

__all__ = ["CASES"]


def _setup(rng: np.random.Generator, nbytes: int, device: str = "cpu") -> Inputs:
    import torch

    cuda: Any = torch.cuda  # its annotations are incomplete
    source = random_tensor(rng, (nbytes // 4,), "float32")
    if device == "cpu":
        return named(t=source, values=source.numpy().copy())
    host = torch.empty_like(source, pin_memory=True)
    return named(t=source.to(device), values=source.numpy(), host=host, event=cuda.Event())


def _asynchronous(inputs: Inputs) -> Any:
    """Copy into pinned memory, have an event mark its end, and wait for that event alone."""
    t = inputs["t"]
    if t.device.type == "cpu":
        return t.to("cpu", non_blocking=True).numpy()
    host, event = inputs["host"], inputs["event"]
    host.copy_(t, non_blocking=True)
    event.record()
    event.synchronize()
    return host.numpy()


CASES = (
    Case(
        name="device.three_ways",
        title="A tensor to the host: directly, by .cpu(), asynchronously. For host tensors all three are views",
        setup=_setup,
        candidates=(
            ours("ferry.to_numpy(t)"),
            best("t.numpy(force=True)"),
            naive("t.detach().cpu().numpy()"),
            best("host.copy_(t, non_blocking=True); event.record(); event.synchronize()", _asynchronous),
        ),
        expected=lambda inputs: inputs["values"],
        points=sizes([4 * KIB, MIB, 64 * MIB]),
        quick=sizes([MIB]),
        devices=("cpu", "cuda"),
        plan="ferry.plan(t)",
    ),
)
