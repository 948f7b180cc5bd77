"""Metrics of a Lightning module to any of Lightning's loggers, without a wait in each step.

python examples/lightning_logger.py directory
"""

from __future__ import annotations

import sys
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.loggers import CSVLogger

import tensorferry as ferry


class Line(pl.LightningModule):
    """Learns y = 3x."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.metrics: ferry.MetricLog | None = None

    def on_fit_start(self) -> None:
        """Make the log once the logger is there."""
        self.metrics = ferry.MetricLog(self.logger)

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        """Log the loss as it is: no ``.item()``."""
        x, y = batch
        loss = (self.layer(x) - y).square().mean()
        assert self.metrics is not None
        self.metrics.log({"train": {"loss": loss}}, step=self.global_step)
        return loss

    def on_fit_end(self) -> None:
        """Deliver what is left."""
        assert self.metrics is not None
        self.metrics.close()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Plain gradient descent."""
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main(directory: str) -> None:
    """Train for two epochs."""
    x = torch.linspace(-1, 1, 64).reshape(-1, 1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, 3 * x), batch_size=8)
    logger = CSVLogger(directory, name="line")
    trainer = pl.Trainer(
        max_epochs=2,
        logger=logger,
        accelerator="auto",
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
    )
    trainer.fit(Line(), loader)
    logger.save()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "lightning_logs")
