"""The demo: converts real data, checks every value against plain torch and NumPy, and times it."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable

from tensorferry import _torch
from tensorferry._demo._report import Report
from tensorferry._doctor import facts as _doctor
from tensorferry._errors import MissingDependencyError

__all__ = ["run"]


def run(progress: Callable[[str], None]) -> Report:
    """Run all of it; under a minute, without a network.

    Parameters
    ----------
    progress : callable
        Takes a line of text that says what begins.

    Raises
    ------
    MissingDependencyError
        When torch, scikit-learn or pillow is not installed.
    """
    _require_packages()
    from tensorferry._demo import _digits, _files, _photographs, _timings

    start = time.perf_counter()
    progress("training a classifier on scikit-learn's digits ...")
    trained = _digits.train()
    progress("converting its metrics, activations and weights ...")
    sections = [_digits.metrics(trained), _digits.activations(trained), _digits.weights(trained)]
    progress("writing weights to files, and reading them back ...")
    sections.append(_files.digits(trained))
    if (embeddings := _files.sentences()) is not None:
        sections.append(embeddings)
    progress("converting two photographs ...")
    photographs = _photographs.load()
    sections.append(_photographs.there_and_back(photographs))
    progress("timing against the usual idioms ...")
    timings = _timings.measure(trained, photographs)
    speed = _timings.memcpy_speed()
    return Report(trained.accuracy, sections, timings, speed, _gpu(), time.perf_counter() - start)


def _require_packages() -> None:
    _torch.require("tensorferry demo")
    for package, module in (("scikit-learn", "sklearn"), ("pillow", "PIL")):
        if importlib.util.find_spec(module) is None:
            raise MissingDependencyError(
                "tensorferry demo", f"{package} is not installed", "run pip install 'tensorferry[demo]'"
            )


def _gpu() -> str:
    torch = _torch.require("tensorferry demo")
    seen = [device for device in _doctor.devices(torch) if device.name != "cpu" and device.built and device.seen]
    return "; ".join(f"{device.name}: {device.seen}" for device in seen)
