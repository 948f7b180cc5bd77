"""Time of one call that shares memory, beside torch's own: ``python bench/view.py [--quick]``.

Both candidates take turns, round by round. A figure is the best time of a call over 10,000 calls (10 for the nest); the
ratio is the median of the rounds' paired ratios, with its 10 % and 90 % points. Such calls move no data, so there is no
bandwidth to compare with: the bare cost of the timing loop stands beside the figures instead.
"""

from __future__ import annotations

import argparse
import platform
import timeit
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import tensorferry as ferry


@dataclass(frozen=True)
class Case:
    """One of our calls, the peer's, the ratio to reach, and how often to call in one timing."""

    ours: str
    peer: str
    goal: float
    calls: int = 10_000


CASES = [
    Case("to_numpy(tensor)", "tensor.numpy()", 0.45),
    Case("to_numpy(parameter)", "parameter.detach().numpy()", 0.45),
    Case("from_numpy(array)", "torch.from_numpy(array)", 0.7),
    Case("to_numpy(nest)", "[t.detach().numpy() for t in nest]", 0.3, calls=10),
]


def make_names() -> dict[str, Any]:
    """Return what the statements above talk about: 8x8 float32, and a list of 1,000 such tensors."""
    names: dict[str, Any] = {
        "torch": torch,
        "to_numpy": ferry.to_numpy,
        "from_numpy": ferry.from_numpy,
        "tensor": torch.randn(8, 8),
        "parameter": torch.nn.Parameter(torch.randn(8, 8)),
        "array": np.random.default_rng(0).standard_normal((8, 8), dtype=np.float32),
        "nest": [torch.randn(8, 8) for _ in range(1000)],
    }
    check_values(names["tensor"], names["array"], names["parameter"], names["nest"])
    return names


def check_values(
    tensor: torch.Tensor, array: np.ndarray, parameter: torch.nn.Parameter, nest: list[torch.Tensor]
) -> None:
    """A fast wrong answer is no answer: every value and every address is compared once."""
    assert np.array_equal(ferry.to_numpy(tensor), tensor.numpy())
    assert ferry.to_numpy(tensor).ctypes.data == tensor.data_ptr()
    assert np.array_equal(ferry.to_numpy(parameter), parameter.detach().numpy())
    assert torch.equal(ferry.from_numpy(array), torch.from_numpy(array))
    assert ferry.from_numpy(array).data_ptr() == array.ctypes.data
    assert all(np.array_equal(a, t.numpy()) for a, t in zip(ferry.to_numpy(nest), nest, strict=True))


def best_ns(statement: str, names: dict[str, Any], calls: int) -> float:
    return min(timeit.repeat(statement, globals=names, number=calls, repeat=2)) / calls * 1e9


def measure(case: Case, names: dict[str, Any], rounds: int) -> tuple[float, float, list[float]]:
    """Return both best times in ns and the paired ratios."""
    ours, peers = [], []
    for _ in range(rounds + 2):  # two rounds of warm-up
        ours.append(best_ns(case.ours, names, case.calls))
        peers.append(best_ns(case.peer, names, case.calls))
    ratios = [a / b for a, b in zip(ours[2:], peers[2:], strict=True)]
    return min(ours[2:]), min(peers[2:]), ratios


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Time of one call that shares memory, beside torch's own.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    rounds = 10 if parser.parse_args().quick else 40
    names = make_names()
    empty = best_ns("pass", names, 100_000)
    print(
        f"torch {torch.__version__}, NumPy {np.__version__}, Python {platform.python_version()}, {platform.machine()}"
    )
    print(f"one thread; {rounds} rounds; the timing loop alone takes {empty:.0f} ns a call")
    print(f"{'tensorferry':22}{'ns':>9}  {'peer':36}{'ns':>9}  {'ratio (10 %, 90 %)':20}{'goal':>5}")
    for case in CASES:
        ours, peer, ratios = measure(case, names, rounds)
        low, median, high = np.quantile(ratios, [0.1, 0.5, 0.9])
        verdict = "met" if median <= case.goal else "NOT MET"
        interval = f"{median:.2f} ({low:.2f}, {high:.2f})"
        print(f"{case.ours:22}{ours:>9,.0f}  {case.peer:36}{peer:>9,.0f}  {interval:20}{case.goal:>5} {verdict}")


if __name__ == "__main__":
    main()
