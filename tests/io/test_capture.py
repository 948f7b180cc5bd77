"""``capture``: outputs of modules as rows of a writer, against what the modules returned."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

import tensorferry as ferry


class Block(torch.nn.Module):
    """Attention-like: returns a tuple, and changes its output in place later."""

    def __init__(self):
        super().__init__()
        self.mlp = torch.nn.Linear(8, 8)

    def forward(self, x):
        return self.mlp(x), None


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([Block(), Block()])
        self.head = torch.nn.Linear(8, 3)

    def forward(self, x):
        for layer in self.layers:
            x, _ = layer(x)
            x = x.relu_()  # in place: what was captured must not change
        return self.head(x)


def outputs(model, batches):
    """What each module returned, by plain hooks that clone."""
    found = {}
    handles = [
        module.register_forward_hook(
            lambda module, given, output, name=name: found.setdefault(name, []).append(
                (output[0] if isinstance(output, tuple) else output).detach().clone()
            )
        )
        for name, module in model.named_modules()
        if name
    ]
    for batch in batches:
        model(batch)
    for handle in handles:
        handle.remove()
    return {name: torch.cat(parts) for name, parts in found.items() if parts}


@pytest.fixture
def model():
    """Two blocks and a head, from a seed."""
    torch.manual_seed(11)
    return Model()


BATCHES = [torch.randn(4, 5, 8, generator=torch.Generator().manual_seed(seed)) for seed in range(3)]


def test_rows_are_what_the_modules_returned_before_later_work_in_place(tmp_path, model):
    expected = outputs(model, BATCHES)
    names = ["layers.*.mlp", "layers.1", "head"]
    with ferry.Writer(f"{tmp_path}/out/") as writer, ferry.io.capture(model, names, writer) as capture:
        for batch in BATCHES:
            model(batch)
        assert capture.names == ("layers.0.mlp", "layers.1", "layers.1.mlp", "head")
        assert capture.rows == dict.fromkeys(capture.names, 12)
    found = ferry.load(f"{tmp_path}/out", to="torch")
    assert set(found) == set(capture.names)
    for name in found:
        assert torch.equal(found[name], expected[name]), name


def test_tokens_are_rows_with_two_row_axes_whatever_their_number(tmp_path, model):
    batches = [torch.randn(2, tokens, 8) for tokens in (3, 7, 1)]
    with ferry.Writer(tmp_path / "x.npy", dtype="float16") as writer:
        with ferry.io.capture(model, "head", writer, row_axes=2) as capture:
            expected = [model(batch).detach().reshape(-1, 3) for batch in batches]
        assert capture.rows == {"head": 22}
    assert np.array_equal(np.load(tmp_path / "x.npy"), torch.cat(expected).half().numpy())


def test_select_chooses_what_is_written(tmp_path, model):
    path = f"{tmp_path}/out/"
    last = {"select": lambda name, output: output[0][:, -1]}
    with ferry.Writer(path) as writer, ferry.io.capture(model, "layers.0", writer, **last):
        model(BATCHES[0])
    (found,) = ferry.load(f"{tmp_path}/out").values()
    assert np.array_equal(found, model.layers[0](BATCHES[0])[0][:, -1].detach().numpy())


def test_the_model_is_as_it_was_afterwards_and_the_writer_open(tmp_path, model):
    before = [len(module._forward_hooks) for module in model.modules()]
    with ferry.Writer(f"{tmp_path}/out/") as writer:
        with pytest.raises(ZeroDivisionError), ferry.io.capture(model, "*", writer):
            raise ZeroDivisionError
        assert [len(module._forward_hooks) for module in model.modules()] == before
        model(BATCHES[0])
        writer.put("labels", torch.arange(4))
    assert set(ferry.load(f"{tmp_path}/out")) == {"labels"}


def test_a_pattern_that_means_no_module_is_refused_before_anything_is_hooked(tmp_path, model):
    with ferry.Writer(f"{tmp_path}/out/") as writer:
        with pytest.raises(ferry.ArgumentError, match=r"layers\.7.*it has 'layers', 'layers.0'"):
            ferry.io.capture(model, ["head", "layers.7"], writer)
        with pytest.raises(ferry.ArgumentError, match="nothing would be captured"):
            ferry.io.capture(model, [], writer)
        with pytest.raises(ferry.ArgumentError, match="row_axes=0"):
            ferry.io.capture(model, "head", writer, row_axes=0)
    assert not any(module._forward_hooks for module in model.modules())


def test_rows_that_do_not_fit_are_raised_from_the_forward_pass_and_name_the_module(tmp_path, model):
    with ferry.Writer(f"{tmp_path}/out/") as writer, ferry.io.capture(model, "head", writer):
        model(BATCHES[0])
        with pytest.raises(ferry.LayoutError, match="the output of 'head'"):
            model(torch.randn(2, 9, 8))
    assert ferry.load(f"{tmp_path}/out")["head"].shape == (4, 5, 3)


def test_an_output_without_tensors_is_refused_with_a_remedy(tmp_path):
    class Words(torch.nn.Module):
        def forward(self, x):
            return "text"

    model = torch.nn.Sequential(Words())
    writer = ferry.Writer(f"{tmp_path}/out/")
    with writer, ferry.io.capture(model, "0", writer), pytest.raises(ferry.DTypeError, match="select=lambda"):
        model(torch.ones(2))


def test_memory_is_bounded_a_model_that_is_faster_than_the_disk_waits(tmp_path, model, monkeypatch):
    from tensorferry._io.staging import StagingPool

    pools = []
    original = StagingPool.__init__

    def remembered(self, nbytes):
        original(self, nbytes)
        pools.append(self)

    monkeypatch.setattr(StagingPool, "__init__", remembered)
    limit = 1 << 20
    with ferry.Writer(tmp_path / "x.npy", max_staging_bytes=limit) as writer, ferry.io.capture(model, "head", writer):
        for _ in range(40):
            model(torch.randn(1000, 32, 8))  # 384 kB of rows each, 15 MB in all
    assert np.load(tmp_path / "x.npy", mmap_mode="r").shape == (40_000, 32, 3)
    assert 0 < max(pool.most_in_use for pool in pools) <= limit


def test_two_threads_may_run_the_model(tmp_path, model):
    with ferry.Writer(tmp_path / "x.npy") as writer, ferry.io.capture(model, "head", writer):
        threads = [
            threading.Thread(target=lambda value=value: [model(torch.full((2, 3, 8), value)) for _ in range(20)])
            for value in (0.5, 2.0)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    rows = torch.from_numpy(np.load(tmp_path / "x.npy"))
    wanted = [model(torch.full((1, 3, 8), value)).detach() for value in (0.5, 2.0)]
    counts = [sum(bool(torch.allclose(row, one[0])) for row in rows) for one in wanted]
    assert counts == [40, 40]
