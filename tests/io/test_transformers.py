"""transformers makes models of our .safetensors files, whole and in shards: the same bits, ties, and output."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest
import safetensors
import torch

import tensorferry as ferry
from helpers.saved_trees import bits

os.environ.setdefault("HF_HUB_OFFLINE", "1")
transformers: Any = pytest.importorskip("transformers", reason="transformers not installed")

SMALL = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
BERT = transformers.BertConfig(**SMALL, intermediate_size=64, max_position_embeddings=64)
GPT2 = transformers.GPT2Config(vocab_size=100, n_embd=32, n_layer=2, n_head=4, n_positions=64)
LLAMA = transformers.LlamaConfig(**SMALL, intermediate_size=64, max_position_embeddings=64, tie_word_embeddings=False)

MODELS = {
    "encoder": (transformers.AutoModel, BERT, None),
    "masked language model, tied": (
        transformers.AutoModelForMaskedLM,
        BERT,
        ("bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"),
    ),
    "decoder, tied": (transformers.AutoModelForCausalLM, GPT2, ("transformer.wte.weight", "lm_head.weight")),
    "decoder": (transformers.AutoModelForCausalLM, LLAMA, None),
}

every_model = pytest.mark.parametrize(("kind", "config", "tie"), MODELS.values(), ids=MODELS)
every_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])


def made(kind: Any, config: Any, dtype: torch.dtype, folder: Path) -> Any:
    torch.manual_seed(0)
    model = kind.from_config(copy.deepcopy(config), dtype=dtype).eval()
    model.config.save_pretrained(folder)
    return model


def require_the_same(kind: Any, folder: Path, model: Any, tie: tuple[str, str] | None) -> None:
    again, said = kind.from_pretrained(folder, local_files_only=True, output_loading_info=True)
    assert {name: list(said[name]) for name in ("missing_keys", "unexpected_keys", "mismatched_keys")} == {
        "missing_keys": [],
        "unexpected_keys": [],
        "mismatched_keys": [],
    }
    expected, found = model.state_dict(), again.state_dict()
    assert list(found) == list(expected)
    for name, tensor in expected.items():
        assert (found[name].dtype, found[name].shape) == (tensor.dtype, tensor.shape), name
        assert bits(found[name]) == bits(tensor), name
    if tie is not None:
        assert again.get_parameter(tie[0]) is again.get_parameter(tie[1])
    tokens = torch.arange(24).reshape(2, 12)
    with torch.no_grad():
        assert torch.equal(again.eval()(tokens)[0], model(tokens)[0])


@every_model
@every_dtype
def test_a_model_in_one_file(
    tmp_path: Path, kind: Any, config: Any, tie: tuple[str, str] | None, dtype: torch.dtype
) -> None:
    model = made(kind, config, dtype, tmp_path)
    report = ferry.save(model.state_dict(), tmp_path / "model.safetensors")
    assert (tie is None) == (report.aliases == 0)
    with safetensors.safe_open(tmp_path / "model.safetensors", framework="pt") as file:
        assert file.metadata()["format"] == "pt"
    require_the_same(kind, tmp_path, model, tie)


@every_model
@every_dtype
def test_a_model_in_shards(
    tmp_path: Path, kind: Any, config: Any, tie: tuple[str, str] | None, dtype: torch.dtype
) -> None:
    model = made(kind, config, dtype, tmp_path)
    ferry.save(model.state_dict(), tmp_path / "model.safetensors", max_shard_size="20KB")
    shards = sorted(path.name for path in tmp_path.glob("*.safetensors"))
    assert len(shards) >= 3
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    assert sorted(set(index["weight_map"].values())) == shards
    require_the_same(kind, tmp_path, model, tie)
