"""Trains a small classifier on scikit-learn's digits, and converts what people take out of one."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import tensorferry as ferry
from tensorferry._demo._compare import same_arrays, same_values
from tensorferry._demo._report import Check, Conversion, Section

if TYPE_CHECKING:
    import torch

__all__ = ["Trained", "activations", "metrics", "train", "weights"]

_EPOCHS = 12
_BATCH = 64
_TRAINING = 1400


@dataclass
class Trained:
    """A trained classifier, and what a training loop has at hand.

    Attributes
    ----------
    model : torch.nn.Sequential
        64 pixels to 128 hidden units to 10 classes.
    images : torch.Tensor
        Held-out digits, float32, ``(397, 64)``.
    labels : torch.Tensor
        Their classes, int64, ``(397,)``.
    metrics : dict of str to torch.Tensor
        Of the last epoch, as the loop logs them.
    means : list of float
        The loss of each epoch, as a MetricLog made it of those of all batches.
    losses : list of list of torch.Tensor
        Those losses, epoch by epoch.
    accuracy : float
        On the held-out digits.
    """

    model: torch.nn.Sequential
    images: torch.Tensor
    labels: torch.Tensor
    metrics: dict[str, Any]
    means: list[float]
    losses: list[list[torch.Tensor]]
    accuracy: float


def network() -> torch.nn.Sequential:
    """Return the untrained classifier."""
    from torch import nn

    return nn.Sequential(
        OrderedDict(hidden=nn.Linear(64, 128), activation=nn.ReLU(), output=nn.Linear(128, 10)),
    )


def train(seed: int = 0) -> Trained:
    """Train for a few seconds; same seed, same classifier."""
    import torch
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.target))
    images = ferry.from_numpy(digits.data[order] / 16, dtype="float32")
    labels = ferry.from_numpy(digits.target[order])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = network()
        optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
        loss = torch.zeros(())
        means: list[float] = []
        losses: list[list[torch.Tensor]] = []
        log = ferry.MetricLog(
            lambda step, values: means.append(values["loss"]), every=math.ceil(_TRAINING / _BATCH), agg="mean"
        )
        for _ in range(_EPOCHS):
            losses.append([])
            for rows in torch.split(torch.randperm(_TRAINING), _BATCH):
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(images[rows]), labels[rows])
                torch.autograd.backward(loss)
                optimizer.step()
                log.log({"loss": loss})
                losses[-1].append(loss.detach())
        log.close()
    return _examined(model, images[_TRAINING:], labels[_TRAINING:], means, losses)


def _examined(
    model: torch.nn.Sequential,
    images: torch.Tensor,
    labels: torch.Tensor,
    means: list[float],
    losses: list[list[torch.Tensor]],
) -> Trained:
    import torch

    with torch.no_grad():
        right = model(images).argmax(1) == labels
    found = {
        "loss": losses[-1][-1],
        "accuracy": right.float().mean(),
        "right": right.sum(),
        "per_class": torch.stack([right[labels == digit].float().mean() for digit in range(10)]),
        "grad_norms": {name: p.grad.norm() for name, p in model.named_parameters() if p.grad is not None},
        "epoch": _EPOCHS,
    }
    return Trained(model, images, labels, found, means, losses, float(found["accuracy"]))


def metrics(trained: Trained) -> Section:
    """Turn a nest of logged tensors into numbers."""
    found = trained.metrics
    expected = {name: found[name].item() for name in ("loss", "accuracy", "right")}
    expected["per_class"] = found["per_class"].tolist()
    expected["grad_norms"] = {name: norm.item() for name, norm in found["grad_norms"].items()}
    expected["epoch"] = found["epoch"]
    return Section(
        "Metrics",
        f"{_EPOCHS} epochs on {_TRAINING:,} digits, {trained.accuracy:.1%} of {len(trained.labels)} others right",
        [Conversion("a dict of scalar tensors to numbers", "to_python(metrics)", ferry.plan(found, dtype="numpy"))],
        [
            same_values("every number is what .item() and .tolist() give", ferry.to_python(found), expected),
            same_values(
                f'MetricLog(sink, every={len(trained.losses[0])}, agg="mean"): the losses of {_EPOCHS} epochs',
                trained.means,
                [sum(loss.item() for loss in epoch) / len(epoch) for epoch in trained.losses],
            ),
        ],
    )


def activations(trained: Trained) -> Section:
    """Read the hidden layer in several dtypes and orders."""
    import torch

    hidden = trained.model[:2](trained.images)  # requires grad, as activations do
    plain = hidden.detach().numpy()
    half = hidden.detach().bfloat16()
    section = Section(
        "Activations", f"hidden units of the held-out digits, {tuple(hidden.shape)} float32, in the graph"
    )
    cases: list[tuple[str, str, Any, dict[str, Any], np.ndarray[Any, Any]]] = [
        ("as they are", "to_numpy(hidden)", hidden, {}, plain),
        ("every 4th unit, transposed", "to_numpy(hidden[:, ::4].T)", hidden[:, ::4].T, {}, plain[:, ::4].T),
        (
            "private, in C order",
            'to_numpy(hidden.T, copy=True, order="C")',
            hidden.T,
            {"copy": True, "order": "C"},
            plain.T,
        ),
        ("bfloat16 to float32", 'to_numpy(half, dtype="numpy")', half, {"dtype": "numpy"}, half.float().numpy()),
        (
            "bfloat16 as bits",
            'to_numpy(half, dtype="bits")',
            half,
            {"dtype": "bits"},
            half.view(torch.int16).numpy().view("u2"),
        ),
    ]
    for what, call, x, arguments, expected in cases:
        section.conversions.append(Conversion(what, call, ferry.plan(x, **arguments)))
        section.checks.append(same_arrays(f"{what}: equal to torch's", ferry.to_numpy(x, **arguments), expected))
    return section


def weights(trained: Trained) -> Section:
    """Take the weights to NumPy and back into a second model."""
    import torch

    state = trained.model.state_dict()
    arrays = ferry.to_numpy(state)
    back = ferry.from_numpy(arrays)
    twin = network()
    twin.load_state_dict(back)
    with torch.no_grad():
        expected, got = trained.model(trained.images).numpy(), twin(trained.images).numpy()
    checks = [same_arrays(f"{name}: equal to torch's", arrays[name], t.detach().numpy()) for name, t in state.items()]
    checks += [
        same_arrays(f"{name}: equal after the way back", back[name].numpy(), t.numpy()) for name, t in state.items()
    ]
    shared = [back[name].data_ptr() == t.data_ptr() for name, t in state.items()]
    checks.append(Check("the way back gives the tensors' own memory", len(shared), shared.count(False)))
    checks.append(same_arrays("a second model with these weights computes the same", got, expected))
    return Section(
        "Weights",
        f"state_dict of {sum(t.numel() for t in state.values()):,} parameters, there and back",
        [
            Conversion("state_dict to arrays", "to_numpy(state)", ferry.plan(state)),
            Conversion("arrays to state_dict", "from_numpy(arrays)", ferry.plan(arrays, to="torch")),
        ],
        checks,
    )
