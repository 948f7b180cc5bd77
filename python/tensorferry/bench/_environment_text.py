"""The environment of a run in words."""

from __future__ import annotations

from collections.abc import Mapping

from tensorferry._units import binary_size
from tensorferry.bench._record import Fact, Run

__all__ = ["environment_line", "environment_rows"]


_PRINCIPAL = ("tensorferry", "torch", "numpy", "python", "processor", "cores usable", "GPU", "load average")


def environment_rows(environment: Mapping[str, Fact]) -> list[tuple[str, str]]:
    """Return every fact of the environment as a name and a text."""
    return [(name.removesuffix(" bytes"), _text(name, value)) for name, value in environment.items()]


def _text(name: str, value: Fact) -> str:
    if value is None or value == "":
        return "none"
    return binary_size(value) if name.endswith(" bytes") and isinstance(value, int) else str(value)


def environment_line(run: Run) -> str:
    """Return when, where and with which versions it ran, in one line."""
    told = [f"{name} {_text(name, run.environment[name])}" for name in _PRINCIPAL if run.environment.get(name)]
    threads = " or ".join(map(str, sorted({result.threads for result in run.results})))
    kind = "quick" if run.quick else "full"
    counts = [f"threads {threads}"] if threads else []
    return f"{kind.capitalize()} run of {run.started} on {run.device}; {', '.join(told + counts)}."
