"""One step's scalars as Python numbers: a MetricLog beside the ways in which training loops read them.

On the host our time is that of the call and of the sink, which gets a dict of numbers; ``.item()`` for each tensor
makes the numbers alone. On a device the others wait for it in each step, while the log hands over the values of an
earlier one: there its time is that of the call.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorferry.bench import Case, Inputs, at_most, best, naive, ours
from tensorferry.bench.cases._inputs import named, random_tensor

__all__ = ["CASES"]

_ITEMS = "[t.item() for t in metrics.values()]"


class _Logged:
    """A log, and the last step that its sink got."""

    def __init__(self) -> None:
        import tensorferry as ferry

        self.values: dict[str, Any] = {}
        self.log = ferry.MetricLog(self._keep, depth=64)

    def _keep(self, step: int, values: dict[str, Any]) -> None:
        self.values = values

    def __call__(self, metrics: dict[str, Any]) -> dict[str, Any]:
        self.log.log(metrics)
        return self.values


def _setup(rng: np.random.Generator, count: int, device: str = "cpu") -> Inputs:

    # Tensors of their own, as losses are; not views of one.
    values = random_tensor(rng, (count,), "float32")
    metrics = {f"group {i % 10}/metric {i}": value.clone().to(device) for i, value in enumerate(values)}
    logged = _Logged()
    for _ in range(3):
        logged(metrics)  # from here on every call delivers a step
    host = values.flip(0)
    host = host.pin_memory() if device != "cpu" else host
    return named(metrics=metrics, logged=logged, host=host, values=values.tolist())


def _copied_with_an_event(inputs: Inputs) -> list[Any]:
    """Copy the stacked values into pinned memory, and wait for that copy alone."""
    import torch

    host = inputs["host"]
    host.copy_(torch.stack(list(inputs["metrics"].values())), non_blocking=True)
    if host.is_pinned():
        cuda: Any = torch.cuda  # its annotations are incomplete
        event = cuda.Event()
        event.record()
        event.synchronize()
    return list(host.tolist())


def _check(result: Any, expected: Any) -> int:
    numbers = list(result.values()) if isinstance(result, dict) else result
    assert numbers == expected, f"{numbers[:3]} ... instead of {expected[:3]} ..."
    return len(expected)


CASES = (
    Case(
        name="metrics.step",
        title="One step of float32 scalars to Python numbers",
        setup=_setup,
        candidates=(
            ours("log.log(metrics)", lambda inputs: inputs["logged"](inputs["metrics"])),
            naive(_ITEMS),
            naive("[t.tolist() for t in metrics.values()]"),
            naive("[v.item() for v in {k: t.detach().cpu() for k, t in metrics.items()}.values()]"),
            best("torch.stack(list(metrics.values())).cpu().tolist()"),
            best("stacked into pinned memory, one event", _copied_with_an_event),
        ),
        expected=lambda inputs: inputs["values"],
        check=_check,
        goals=(at_most(0.5, _ITEMS, lambda point: point["count"] == 1000 and point.get("device", "cpu") == "cpu"),),
        points=({"count": 10}, {"count": 100}, {"count": 1000}),
        quick=({"count": 1000},),
        devices=("cpu", "cuda"),
    ),
)
