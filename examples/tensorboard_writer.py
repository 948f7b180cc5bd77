"""Metrics and histograms to TensorBoard, without a wait for the device.

python examples/tensorboard_writer.py runs/digits
"""

from __future__ import annotations

import sys

import torch
from torch.utils.tensorboard import SummaryWriter

import tensorferry as ferry


def main(directory: str) -> None:
    """Train a line for 20 steps and log to `directory`."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.linspace(-1, 1, 64, device=device).reshape(-1, 1)
    model = torch.nn.Linear(1, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with SummaryWriter(directory) as writer, ferry.MetricLog(writer) as log:
        for step in range(20):
            loss = (model(x) - 3 * x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            log.log({"loss": loss, "weight": model.weight}, step=step)
            log.log_histogram("error", model(x) - 3 * x, bins=16, step=step)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "runs")
