"""Metrics to Weights & Biases; here offline, into files.

python examples/wandb_offline.py directory
"""

from __future__ import annotations

import sys

import torch
import wandb

import tensorferry as ferry


def main(directory: str) -> None:
    """Log ten steps of a made-up loss."""
    with wandb.init(project="tensorferry", dir=directory, mode="offline") as run, ferry.MetricLog(run) as log:
        loss = torch.tensor(1.0)
        for step in range(10):
            loss *= 0.5
            log.log({"loss": loss, "lr": 0.1}, step=step)
            log.log_histogram("values", torch.arange(10.0) * loss, bins=5, step=step)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
