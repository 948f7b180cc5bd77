"""One value of all processes: all metrics of a step are reduced by one ``all_reduce``, and rank 0 logs.

torchrun --nproc-per-node 2 examples/reduce_over_ranks.py metrics.jsonl
"""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist

import tensorferry as ferry


def means_over_ranks(metrics: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the mean over all processes of each scalar, as 0-dimensional tensors on the same device; no host waits.

    All processes call it with the same names in the same order. One collective carries everything.
    """
    packed = torch.stack([value.detach().to(torch.float64) for value in metrics.values()])
    dist.all_reduce(packed)
    packed /= dist.get_world_size()
    return dict(zip(metrics, packed.unbind(), strict=True))


def main(path: str) -> None:
    """Log ten steps, to which each rank adds another value."""
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    device = f"cuda:{dist.get_rank()}" if torch.cuda.is_available() else "cpu"
    with ferry.MetricLog(path, ranks=0) as log:
        for step in range(10):
            mine = torch.tensor(float(step + 10 * dist.get_rank()), device=device)
            log.log(means_over_ranks({"loss": mine, "double": 2 * mine}), step=step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "metrics.jsonl")
