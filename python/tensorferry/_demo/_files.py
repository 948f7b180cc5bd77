"""Writes weights to files, reads them back, and lets the model that comes of them answer again."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import tensorferry as ferry
from tensorferry._demo import _minilm
from tensorferry._demo._compare import same_arrays
from tensorferry._demo._digits import Trained, network
from tensorferry._demo._report import Check, Section
from tensorferry._units import counted, human_bytes

if TYPE_CHECKING:
    import torch

__all__ = ["digits", "sentences"]

_ENDS = (".safetensors", ".npz", "/")
State = Mapping[str, Any]


def digits(trained: Trained) -> Section:
    """Export the weights of the classifier; the ones that are read back must give the same answers."""
    state = trained.model.state_dict()

    def answers(weights: State) -> torch.Tensor:
        model = network()
        model.load_state_dict(dict(weights))
        answered: torch.Tensor = model(trained.images).detach()
        return answered

    checks = _there_and_back(state, answers, _ENDS)
    names = ", ".join(f"model{end}" for end in _ENDS)
    story = f"the classifier's {counted(len(state), 'tensor', 'tensors')} saved to {names}, verified, loaded back"
    return Section("Files", story, checks=checks)


def sentences() -> Section | None:
    """Export the weights of a sentence encoder, where its package and safetensors are installed; else None."""
    folder = _minilm.model_folder()
    if folder is None or importlib.util.find_spec("safetensors") is None:
        return None
    from safetensors.torch import load_file

    state = load_file(folder / "model.safetensors")

    def answers(weights: State) -> torch.Tensor:
        return _minilm.embed(weights, folder, _minilm.SENTENCES)

    checks = _there_and_back(state, answers, _ENDS[:1])
    embedded = answers(state)
    near, far = (float(embedded[0] @ embedded[other]) for other in (1, 2))
    checks.append(Check("bread is nearer to toast than to the stock market", 1, int(near <= far)))
    size = human_bytes(sum(tensor.nbytes for tensor in state.values()))
    story = f"all-MiniLM-L6-v2, {len(state)} tensors, {size}, saved, verified, loaded back, and asked again"
    return Section("Sentence embeddings", story, checks=checks)


def _there_and_back(state: State, answers: Callable[[State], torch.Tensor], ends: Sequence[str]) -> list[Check]:
    checks = []
    before = answers(state).numpy()
    with tempfile.TemporaryDirectory(prefix="tensorferry-demo-") as folder:
        for end in ends:
            path = f"{folder}/model{end}"
            ferry.save(state, path)
            ferry.verify(path)
            loaded = ferry.load(path, to="torch")
            checks.append(_same_bits(f"the bits in model{end}", loaded, state))
            checks.append(same_arrays(f"what the model of model{end} answers", answers(loaded).numpy(), before))
            del loaded
    return checks


def _same_bits(what: str, got: State, expected: State) -> Check:
    if got.keys() != expected.keys():
        return Check(what, len(expected), len(expected))
    pairs = [(_bits(got[name]), _bits(tensor)) for name, tensor in expected.items()]
    found = [same_arrays(what, *pair) for pair in pairs]
    return Check(what, sum(check.values for check in found), sum(check.wrong for check in found))


def _bits(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    array: np.ndarray[Any, Any] = tensor.detach().numpy().reshape(-1).view(np.uint8)
    return array
