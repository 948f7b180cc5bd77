"""Metrics from inside the model of a Hugging Face Trainer, without a wait in each step.

python examples/hugging_face_trainer.py directory
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments

import tensorferry as ferry


class Line(torch.nn.Module):
    """Learns y = 3x, and logs what the Trainer does not know of."""

    def __init__(self, log: ferry.MetricLog) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.log = log

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the loss as the Trainer wants it."""
        error = self.layer(x) - labels
        self.log.log({"error": {"mean": error.mean(), "largest": error.abs().max()}})
        return {"loss": error.square().mean()}


class LogsOfTrainer(TrainerCallback):
    """What the Trainer itself logs goes the same way."""

    def __init__(self, log: ferry.MetricLog) -> None:
        self.log = log

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Take its numbers."""
        self.log.log({"trainer": {name: value for name, value in logs.items() if isinstance(value, (int, float))}})


class Points(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """Sixty-four points of a line."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        x = torch.tensor([index / 32 - 1])
        return {"x": x, "labels": 3 * x}


def main(directory: str) -> None:
    """Train for eight steps."""
    path = Path(directory) / "metrics.jsonl"
    with ferry.MetricLog(path) as log:
        arguments = TrainingArguments(
            output_dir=directory,
            max_steps=8,
            per_device_train_batch_size=8,
            logging_steps=4,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            remove_unused_columns=False,
        )
        trainer = Trainer(model=Line(log), args=arguments, train_dataset=Points(), callbacks=[LogsOfTrainer(log)])
        trainer.train()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
