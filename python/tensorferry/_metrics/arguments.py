"""What MetricLog's arguments may be."""

from __future__ import annotations

from typing import Any

from tensorferry._errors import ArgumentError, DeviceError

__all__ = ["check_count", "check_word", "closed", "not_captured", "not_larger", "step_number"]


def not_larger(step: int, last: int, is_open: bool) -> ArgumentError:
    """Return the error of a step that comes too late."""
    why = f"step {last} was logged already, and steps are delivered in order"
    if step == last and not is_open:
        why = f"step {last} was delivered by flush() already"
    return ArgumentError(f"step={step}", why, "log with a larger step, or leave step out to count up")


def step_number(step: Any) -> int:
    """Return a step that is given as something like an int."""
    try:
        return int(step.__index__())
    except AttributeError:
        raise ArgumentError(
            f"step={step!r}", "a step is a whole number", "pass an int, or leave it out to count up"
        ) from None


def check_count(name: str, value: Any) -> None:
    """Raise for what is no number of steps."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ArgumentError(f"{name}={value!r}", "that is no number of steps", "pass an int of at least 1")


def check_word(name: str, value: Any, words: tuple[str, ...]) -> None:
    """Raise for what is none of the words."""
    if value not in words:
        raise ArgumentError(f"{name}={value!r}", "that is no choice", f"choose of {', '.join(map(repr, words))}")


def closed() -> ArgumentError:
    """Return the error of a log that was closed."""
    return ArgumentError("log() of a closed MetricLog", "its sinks are closed, too", "make a new one")


def not_captured(name: str) -> DeviceError:
    """Return the error of what only torch's tensors can do."""
    return DeviceError(
        f"metric {name!r} of another library, inside a capture",
        "only torch's tensors are logged by the replays of a graph",
        "make it a torch tensor: torch.from_dlpack(x)",
    )
