"""Times conversions of the demo's data against the usual idioms, of which the fastest here counts."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tensorferry as ferry
from tensorferry._demo import _photographs
from tensorferry._demo._digits import Trained
from tensorferry._demo._report import Timing
from tensorferry.bench._clock import Turn, paired_ratios, time_together

__all__ = ["measure", "memcpy_speed"]

_MEMCPY_BYTES = 64 << 20


@dataclass(frozen=True)
class Case:
    """One conversion: our code, and other people's, each with the text that the table shows."""

    what: str
    ours: tuple[str, Callable[[], Any]]
    usual: tuple[tuple[str, Callable[[], Any]], ...]
    copies: bool = False


def measure(trained: Trained, photographs: list[np.ndarray[Any, Any]]) -> list[Timing]:
    """Time every case; a few seconds."""
    import torch

    threads = torch.get_num_threads()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of the read-only photographs that it shares
            cases = (*_views(trained), *_copies(trained), *_pictures(photographs))
            return [_timed(case, threads) for case in cases]
    finally:
        torch.set_num_threads(threads)


def memcpy_speed() -> float:
    """Return bytes per second of one copy between two blocks of 64 MiB."""
    timed = time_together({"memcpy": _memcpy(_MEMCPY_BYTES)})
    return _MEMCPY_BYTES / timed["memcpy"].median_s


def _memcpy(nbytes: int) -> Turn:
    source, target = np.ones(nbytes, np.uint8), np.empty(nbytes, np.uint8)
    return Turn(lambda: np.copyto(target, source))


def _timed(case: Case, threads: int) -> Timing:
    candidates = {"ours": Turn(case.ours[1])}
    nbytes = int(case.ours[1]().nbytes) if case.copies else 0
    if case.copies:
        candidates["memcpy"] = _memcpy(nbytes)
    idioms = _idioms(case, threads)
    timed = time_together({**candidates, **idioms})
    best = min(idioms, key=lambda name: timed[name].median_s)
    low, ratio, high = paired_ratios(timed["ours"], timed[best])
    return Timing(
        what=case.what,
        ours=case.ours[0],
        usual=best.partition("#")[0],
        ours_s=timed["ours"].median_s,
        usual_s=timed[best].median_s,
        ratio=ratio,
        ratio_quartiles=(low, high),
        cpu_share=timed["ours"].cpu_share,
        nbytes=nbytes,
        memcpy_s=timed["memcpy"].median_s if case.copies else 0.0,
    )


def _idioms(case: Case, threads: int) -> dict[str, Turn]:
    """Let torch work on all cores and on one: on a busy machine its threads wait for each other for milliseconds."""
    import torch

    counts = sorted({1, threads}) if case.copies else [threads]
    return {
        f"{code}#{count}": Turn(call, partial(torch.set_num_threads, count))
        for code, call in case.usual
        for count in counts
    }


def _views(trained: Trained) -> list[Case]:
    import torch

    t = trained.images[0].view(8, 8)
    a = t.numpy()
    hidden = trained.model[:2](trained.images)
    state = trained.model.state_dict()
    arrays = {name: value.numpy() for name, value in state.items()}
    norms = trained.metrics["grad_norms"]
    return [
        Case(
            "one digit, 8x8, to an array",
            ("to_numpy(t)", lambda: ferry.to_numpy(t)),
            (("t.numpy()", lambda: t.numpy()),),
        ),
        Case(
            "one digit, 8x8, to a tensor",
            ("from_numpy(a)", lambda: ferry.from_numpy(a)),
            (("torch.from_numpy(a)", lambda: torch.from_numpy(a)), ("torch.as_tensor(a)", lambda: torch.as_tensor(a))),
        ),
        Case(
            "activations in the graph",
            ("to_numpy(hidden)", lambda: ferry.to_numpy(hidden)),
            (
                ("hidden.detach().numpy()", lambda: hidden.detach().numpy()),
                ("hidden.numpy(force=True)", lambda: hidden.numpy(force=True)),
            ),
        ),
        Case(
            "state_dict to arrays",
            ("to_numpy(state)", lambda: ferry.to_numpy(state)),
            (("{k: v.numpy() for k, v in state.items()}", lambda: {k: v.numpy() for k, v in state.items()}),),
        ),
        Case(
            "arrays to state_dict",
            ("from_numpy(arrays)", lambda: ferry.from_numpy(arrays)),
            (
                (
                    "{k: torch.from_numpy(v) for k, v in arrays.items()}",
                    lambda: {k: torch.from_numpy(v) for k, v in arrays.items()},
                ),
            ),
        ),
        Case(
            "four logged scalars to numbers",
            ("to_python(norms)", lambda: ferry.to_python(norms)),
            (("{k: v.item() for k, v in norms.items()}", lambda: {k: v.item() for k, v in norms.items()}),),
        ),
    ]


def _copies(trained: Trained) -> list[Case]:
    hidden = trained.model[:2](trained.images).detach()
    half = hidden.bfloat16()
    doubles = np.ascontiguousarray(trained.images.double().numpy())
    import torch

    return [
        Case(
            "activations, private copy",
            ("to_numpy(hidden, copy=True)", lambda: ferry.to_numpy(hidden, copy=True)),
            (
                ("hidden.numpy().copy()", lambda: hidden.numpy().copy()),
                ("hidden.clone().numpy()", lambda: hidden.clone().numpy()),
            ),
            copies=True,
        ),
        Case(
            "activations, transposed and packed",
            ('to_numpy(hidden.T, copy=True, order="C")', lambda: ferry.to_numpy(hidden.T, copy=True, order="C")),
            (
                ("np.ascontiguousarray(hidden.T.numpy())", lambda: np.ascontiguousarray(hidden.T.numpy())),
                ("hidden.T.contiguous().numpy()", lambda: hidden.T.contiguous().numpy()),
            ),
            copies=True,
        ),
        Case(
            "activations, bfloat16 to float32",
            ('to_numpy(half, dtype="numpy")', lambda: ferry.to_numpy(half, dtype="numpy")),
            (("half.float().numpy()", lambda: half.float().numpy()),),
            copies=True,
        ),
        Case(
            "digits, float64 array to float32 tensor",
            ('from_numpy(a, dtype="float32")', lambda: ferry.from_numpy(doubles, dtype="float32")),
            (
                ("torch.from_numpy(a).float()", lambda: torch.from_numpy(doubles).float()),
                ('torch.from_numpy(a.astype("f4"))', lambda: torch.from_numpy(doubles.astype("f4"))),
            ),
            copies=True,
        ),
    ]


def _pictures(photographs: list[np.ndarray[Any, Any]]) -> list[Case]:
    import torch

    pixels = _photographs.denormalised(_photographs.normalised(ferry.stack(photographs, dtype="float32")))
    return [
        Case(
            "photographs to one float32 tensor",
            ('stack(photos, dtype="float32")', lambda: ferry.stack(photographs, dtype="float32")),
            (
                ("torch.from_numpy(np.stack(photos)).float()", lambda: torch.from_numpy(np.stack(photographs)).float()),
                (
                    'torch.from_numpy(np.stack(photos, dtype="f4"))',
                    lambda: torch.from_numpy(np.stack(photographs, dtype="f4")),
                ),
            ),
            copies=True,
        ),
        Case(
            "pixels back to uint8",
            (
                'to_numpy(pixels, dtype="uint8", casting="unsafe")',
                lambda: ferry.to_numpy(pixels, dtype="uint8", casting="unsafe"),
            ),
            (
                ("pixels.to(torch.uint8).numpy()", lambda: pixels.to(torch.uint8).numpy()),
                ('pixels.numpy().astype("u1")', lambda: pixels.numpy().astype("u1")),
            ),
            copies=True,
        ),
    ]
