"""Files from torch's CUDA tensors: the values at the call, in the order of the caller's stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tensorferry as ferry

NAMES = ("x.npz", "x.safetensors", "x/")


@pytest.mark.parametrize("name", NAMES)
def test_what_was_put_may_be_overwritten_at_once(any_schedule: Any, tmp_path: Path, name: str):
    side = torch.cuda.Stream()
    for stream in (torch.cuda.current_stream(), side):
        with torch.cuda.stream(stream), ferry.Writer(f"{tmp_path}/{name}", overwrite=True) as writer:
            x = torch.zeros(50, 40, device="cuda")
            for step in range(4):
                x.fill_(step)
                writer.put(f"t{step}", x.t())
                x.fill_(-1)
        found = ferry.load(f"{tmp_path}/{name}", mmap=False)
        assert [found[f"t{step}"].shape for step in range(4)] == [(40, 50)] * 4
        assert [np.unique(found[f"t{step}"]).tolist() for step in range(4)] == [[0], [1], [2], [3]]


def test_rows_that_were_appended_may_be_overwritten_at_once(any_schedule: Any, tmp_path: Path):
    x = torch.zeros(3, 5, device="cuda", dtype=torch.bfloat16)
    with ferry.Writer(tmp_path / "x.npy", max_staging_bytes="64KiB") as writer:
        for step in range(20):
            x.fill_(step)
            writer.append(x)
            x.fill_(-1)
    found = ferry.load(tmp_path / "x.npy", to="torch")
    assert found.dtype == torch.bfloat16
    assert found[::3, 0].tolist() == list(range(20))


@pytest.mark.parametrize("staging", ["64KiB", "64MiB"])
def test_sources_may_change_when_they_are_staged(any_schedule: Any, tmp_path: Path, staging: str):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        tree = {f"t{i}": torch.zeros(100, 100, device="cuda") for i in range(4)}
        for number, x in enumerate(tree.values()):
            x.fill_(number)
        handle = ferry.save_async(tree, tmp_path / "x.npz", max_staging_bytes=staging)
        handle.staged.result(60)
        for x in tree.values():
            x.fill_(-1)
    handle.result(60)
    found = ferry.load(tmp_path / "x.npz")
    assert [np.unique(found[f"t{i}"]).tolist() for i in range(4)] == [[0], [1], [2], [3]]


def test_an_iterator_is_read_in_the_callers_stream(any_schedule: Any, tmp_path: Path):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x = torch.zeros(10, device="cuda")

        def items() -> Any:
            for number in range(5):
                x.fill_(number)
                yield f"t{number}", x

        ferry.save_async(items(), tmp_path / "x.npz").result(60)
    found = ferry.load(tmp_path / "x.npz")
    assert [found[f"t{i}"][0] for i in range(5)] == [0, 1, 2, 3, 4]


def test_a_tensor_in_a_capture_is_refused_and_the_capture_goes_on(cuda: Any, tmp_path: Path):
    side = torch.cuda.Stream()
    x = cuda.settled(torch.zeros(1_000_000))
    writer = ferry.Writer(tmp_path / "x.npz")
    with torch.cuda.stream(side):
        cuda.fake.begin_capture(side.cuda_stream)
        with pytest.raises(ferry.DeviceError, match="captured into a graph"):
            writer.put("x", x)
        with pytest.raises(ferry.DeviceError, match="captured into a graph"):
            ferry.save_async({"x": x}, tmp_path / "y.npz")
        cuda.fake.end_capture(side.cuda_stream)
        writer.put("x", x)
    writer.close()
    assert np.load(tmp_path / "x.npz")["x"].shape == (1_000_000,)
