"""Torch's kernels inside of captures: recorded, replayed, and reading refused as on a device."""

from __future__ import annotations

from typing import Any

import pytest
import torch

INVALIDATED = 901


def test_captured_kernels_run_at_each_replay(any_schedule: Any):
    side = torch.cuda.Stream()
    x, y = (any_schedule.settled(torch.zeros(2, 3)) for _ in range(2))
    out = torch.empty(3, 2, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        any_schedule.fake.begin_capture(side.cuda_stream)
        assert torch.cuda.is_current_stream_capturing()
        y.copy_(x)
        out.copy_(y.t())
        x.fill_(-1)
        graph = any_schedule.fake.end_capture(side.cuda_stream)
        assert not torch.cuda.is_current_stream_capturing()
        for start in (0, 10):
            host = torch.arange(start, start + 6.0).reshape(2, 3)
            x.copy_(host)
            any_schedule.fake.launch_graph(graph, side.cuda_stream)
            assert torch.equal(out.cpu(), host.t())
            assert x.cpu().tolist() == [[-1] * 3] * 2


def test_reading_inside_of_a_capture_is_refused_and_ends_it(cuda: Any):
    side = torch.cuda.Stream()
    x = cuda.settled(torch.zeros(2))
    with torch.cuda.stream(side):
        cuda.fake.begin_capture(side.cuda_stream)
        with pytest.raises(RuntimeError, match="CUDA error"):
            x.cpu()
    assert any("invalidated" in line for line in cuda.fake.captures())
    code, graph = cuda.fake.try_end_capture(side.cuda_stream)
    assert (code, graph) == (INVALIDATED, None)
    assert x.cpu().tolist() == [0, 0]
