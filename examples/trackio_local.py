"""Metrics to Trackio, in its local database.

TRACKIO_DIR=metrics HF_HUB_OFFLINE=1 python examples/trackio_local.py project

The database is metrics/project.db; without TRACKIO_DIR it is in ~/.cache/huggingface/trackio. With HF_HUB_OFFLINE=1
nothing goes over the network; else Trackio asks the Hub for the name of a user who is logged in. TRACKIO_SPACE_ID and
TRACKIO_SERVER_URL have to be unset: either of them sends the metrics elsewhere.
"""

from __future__ import annotations

import sys

import torch
import trackio

import tensorferry as ferry


def main(project: str) -> None:
    """Log ten steps of a made-up loss."""
    run = trackio.init(project=project, name="ferry")
    with ferry.MetricLog(run) as log:
        loss = torch.tensor(1.0)
        for step in range(10):
            loss *= 0.5
            log.log({"loss": loss, "lr": 0.1}, step=step)
            log.log_histogram("values", torch.arange(10.0) * loss, bins=5, step=step)
    trackio.finish()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "tensorferry")
