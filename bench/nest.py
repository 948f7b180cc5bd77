"""Nests of many small tensors: one walk instead of a comprehension. No data moves."""

from __future__ import annotations

import numpy as np

from tensorferry.bench import Case, Inputs, at_most, best, naive, ours
from tensorferry.bench.cases._inputs import named, random_tensor

__all__ = ["CASES"]


def _list(rng: np.random.Generator, count: int) -> Inputs:
    return named(nest=[random_tensor(rng, (8, 8), "float32") for _ in range(count)])


def _state(rng: np.random.Generator, count: int) -> Inputs:
    import torch

    def parameter() -> object:
        return torch.nn.Parameter(random_tensor(rng, (8, 8), "float32"))

    return named(state={f"layers.{number}.weight": parameter() for number in range(count)})


def _arrays(rng: np.random.Generator, count: int) -> Inputs:
    return named(arrays=[rng.random((8, 8), dtype=np.float32) for _ in range(count)])


def _metrics(rng: np.random.Generator, count: int) -> Inputs:
    return named(
        metrics={f"metric {number}": value for number, value in enumerate(random_tensor(rng, (count,), "float32"))}
    )


_POINTS = ({"count": 100}, {"count": 1000})
_QUICK = ({"count": 1000},)

CASES = (
    Case(
        name="nest.tensors",
        title="Views of a list of 8x8 float32 tensors",
        setup=_list,
        candidates=(
            ours("ferry.to_numpy(nest)"),
            naive("[t.detach().numpy() for t in nest]"),
            best("[t.numpy() for t in nest]"),
            best("list(map(torch.Tensor.numpy, nest))"),
            naive("[t.detach().cpu().numpy() for t in nest]"),
        ),
        expected=lambda inputs: [np.array(t.tolist(), np.float32) for t in inputs["nest"]],
        goals=(at_most(0.3, "[t.detach().numpy() for t in nest]", lambda point: point["count"] == 1000),),
        points=_POINTS,
        quick=_QUICK,
        plan="ferry.plan(nest)",
    ),
    Case(
        name="nest.parameters",
        title="Views of a dict of 8x8 float32 parameters",
        setup=_state,
        candidates=(
            ours("ferry.to_numpy(state)"),
            best("{k: p.detach().numpy() for k, p in state.items()}"),
            naive("{k: p.detach().cpu().numpy() for k, p in state.items()}"),
        ),
        expected=lambda inputs: {k: np.array(p.tolist(), np.float32) for k, p in inputs["state"].items()},
        points=_POINTS,
        quick=_QUICK,
        plan="ferry.plan(state)",
    ),
    Case(
        name="nest.arrays",
        title="Tensors over a list of 8x8 float32 arrays",
        setup=_arrays,
        candidates=(
            ours("ferry.from_numpy(arrays)"),
            best("[torch.from_numpy(a) for a in arrays]"),
            best("list(map(torch.from_numpy, arrays))"),
        ),
        expected=lambda inputs: [a.copy() for a in inputs["arrays"]],
        points=_POINTS,
        quick=_QUICK,
        plan='ferry.plan(arrays, to="torch")',
    ),
    Case(
        name="nest.numbers",
        title="Python numbers from a dict of float32 scalars",
        setup=_metrics,
        candidates=(
            ours("ferry.to_python(metrics)"),
            naive("{k: v.item() for k, v in metrics.items()}"),
            best("dict(zip(metrics, torch.stack(list(metrics.values())).tolist()))"),
        ),
        expected=lambda inputs: {k: float(v.numpy()) for k, v in inputs["metrics"].items()},
        points=_POINTS,
        quick=_QUICK,
    ),
)
