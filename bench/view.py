"""One call that shares memory: all guards on, the storage held. No data moves, so no bandwidth applies."""

from __future__ import annotations

import numpy as np

from tensorferry.bench import Case, Inputs, at_most, best, naive, ours
from tensorferry.bench.cases._inputs import named, random_tensor

__all__ = ["CASES"]


def _tensor(rng: np.random.Generator) -> Inputs:
    return named(t=random_tensor(rng, (8, 8), "float32"))


def _parameter(rng: np.random.Generator) -> Inputs:
    import torch

    return named(p=torch.nn.Parameter(random_tensor(rng, (8, 8), "float32")))


def _array(rng: np.random.Generator) -> Inputs:
    return named(a=rng.random((8, 8), dtype=np.float32))


CASES = (
    Case(
        name="view.tensor",
        title="A view of an 8x8 float32 tensor",
        setup=_tensor,
        candidates=(
            ours("ferry.to_numpy(t)"),
            best("t.numpy()"),
            best("np.asarray(t)"),
            best("np.from_dlpack(t)"),
            naive("t.detach().cpu().numpy()"),
        ),
        expected=lambda inputs: np.array(inputs["t"].tolist(), np.float32),
        goals=(at_most(0.45, "t.numpy()"),),
        plan="ferry.plan(t)",
    ),
    Case(
        name="view.parameter",
        title="A view of an 8x8 float32 parameter that requires grad",
        setup=_parameter,
        candidates=(
            ours("ferry.to_numpy(p)"),
            best("p.detach().numpy()"),
            best("p.numpy(force=True)"),
            best("np.from_dlpack(p.detach())"),
            naive("p.detach().cpu().numpy()"),
        ),
        expected=lambda inputs: np.array(inputs["p"].tolist(), np.float32),
        goals=(at_most(0.45, "p.detach().numpy()"),),
        plan="ferry.plan(p)",
    ),
    Case(
        name="view.array",
        title="A tensor over an 8x8 float32 array",
        setup=_array,
        candidates=(
            ours("ferry.from_numpy(a)"),
            best("torch.from_numpy(a)"),
            best("torch.as_tensor(a)"),
            best("torch.from_dlpack(a)"),
        ),
        expected=lambda inputs: inputs["a"].copy(),
        goals=(at_most(0.7, "torch.from_numpy(a)"),),
        plan='ferry.plan(a, to="torch")',
    ),
)
