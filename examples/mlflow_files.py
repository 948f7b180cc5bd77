"""Metrics to MLflow, in a local database.

python examples/mlflow_files.py directory
"""

from __future__ import annotations

import sys
from pathlib import Path

import mlflow
import torch

import tensorferry as ferry


def main(directory: str) -> str:
    """Log ten steps of a made-up loss; returns the run's id."""
    mlflow.set_tracking_uri(Path(directory).absolute().as_uri())
    mlflow.set_experiment("tensorferry")
    with mlflow.start_run() as run, ferry.MetricLog(mlflow) as log:
        loss = torch.tensor(1.0)
        for step in range(10):
            loss *= 0.5
            log.log({"train": {"loss": loss}, "lr": 0.1}, step=step)
    return str(run.info.run_id)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "mlruns")
