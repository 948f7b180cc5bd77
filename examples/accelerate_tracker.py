"""Metrics to a tracker of Accelerate; rank 0 logs.

accelerate launch examples/accelerate_tracker.py directory
"""

from __future__ import annotations

import sys

import torch
from accelerate import Accelerator

import tensorferry as ferry


def main(directory: str) -> None:
    """Log ten steps of a made-up loss."""
    accelerator = Accelerator(log_with="tensorboard", project_dir=directory)
    accelerator.init_trackers("line")
    with ferry.MetricLog(accelerator.get_tracker("tensorboard"), ranks=0) as log:
        loss = torch.tensor(1.0, device=accelerator.device)
        for step in range(10):
            loss *= 0.5
            log.log({"loss": loss}, step=step)
    accelerator.end_training()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "runs")
