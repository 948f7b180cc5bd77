"""Field cases: files that are written beside training or inference, and errors and updates that got lost on the way."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry
from helpers.writers import writer_on
from tensorferry._io.system import System


class SlowDisk(System):
    """Holds writes back until it is released, or until it fails."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.fails = False

    def pwritev(self, fd: int, pieces: Any, offset: int) -> int:
        assert self.released.wait(60)
        if self.fails:
            raise OSError(28, "No space left on device")
        return super().pwritev(fd, pieces, offset)


def test_f092_inference_goes_on_while_the_disk_is_slow(tmp_path: Path) -> None:
    disk = SlowDisk()
    writer = writer_on(disk, tmp_path / "outputs.npy", mode="append")
    model = torch.nn.Linear(16, 8)
    outputs = []
    with torch.no_grad():
        for _ in range(20):  # none of these waits for the disk
            outputs.append(model(torch.randn(4, 16)))
            writer.append(outputs[-1])
    disk.released.set()
    writer.close()
    assert np.array_equal(np.load(tmp_path / "outputs.npy"), torch.cat(outputs).numpy())


def test_f092_an_error_of_the_disk_is_raised_by_the_next_call_or_close(tmp_path: Path) -> None:
    disk = SlowDisk()
    writer = writer_on(disk, tmp_path / "outputs.npz")
    writer.put("a", torch.ones(100_000))
    disk.fails = True
    disk.released.set()
    with pytest.raises(ferry.ExportError, match="free some space"):
        writer.flush()
    with pytest.raises(ferry.ExportError, match="free some space"):
        writer.put("b", torch.ones(3))
    with pytest.raises(ferry.ExportError, match="free some space"):
        writer.close()


def test_f093_the_next_update_does_not_get_into_the_file_and_no_old_one_does(tmp_path: Path) -> None:
    weights = {"w": torch.zeros(50_000), "b": torch.zeros(7)}
    handles = []
    for step in range(12):
        for tensor in weights.values():
            tensor.fill_(step)
        handle = ferry.save_async(weights, tmp_path / f"{step}.safetensors", checksum="crc32c")
        handle.staged.result(60)
        handles.append(handle)
    for step, handle in enumerate(handles):
        found = ferry.load(handle.result(60).path)
        assert {name: np.unique(array).tolist() for name, array in found.items()} == {"w": [step], "b": [step]}
        assert ferry.verify(handle.path).checked == 2
