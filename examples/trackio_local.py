"""Metrics to Trackio, in its local database.

python examples/trackio_local.py project
"""

from __future__ import annotations

import sys

import torch
import trackio

import tensorferry as ferry


def main(project: str) -> None:
    """Log ten steps of a made-up loss."""
    trackio.init(project=project, name="ferry")
    with ferry.MetricLog(trackio) as log:
        loss = torch.tensor(1.0)
        for step in range(10):
            loss *= 0.5
            log.log({"loss": loss, "lr": 0.1}, step=step)
    trackio.finish()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "tensorferry")
