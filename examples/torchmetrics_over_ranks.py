"""A torchmetrics metric over all processes, logged by rank 0 without a wait.

torchrun --nproc-per-node 2 examples/torchmetrics_over_ranks.py metrics.jsonl
"""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from torchmetrics.aggregation import MeanMetric

import tensorferry as ferry


def main(path: str) -> None:
    """Log the running mean of what both ranks see."""
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    device = f"cuda:{dist.get_rank()}" if torch.cuda.is_available() else "cpu"
    mean = MeanMetric().to(device)
    with ferry.MetricLog(path, ranks=0) as log:
        for step in range(5):
            mean.update(torch.tensor(float(step + 10 * dist.get_rank()), device=device))
            log.log({"mean": mean.compute()}, step=step)  # all ranks compute: it is a collective
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "metrics.jsonl")
