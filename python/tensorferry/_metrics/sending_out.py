"""One step to all sinks: what one of them raises is kept for later, and the others go on."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from typing import Any

from tensorferry._errors import CheckError, FerryError, FerryWarning, SinkError
from tensorferry._metrics.sinks import Sink

__all__ = ["SendingOut"]


_MOST_KEPT = 10


class SendingOut:
    """The sinks of one log, and the errors that nobody was told of yet. One thread at a time sends.

    Parameters
    ----------
    sinks : sequence of Sink
        All of them.
    on_nan : {"keep", "warn", "raise"}
        What happens where a value is NaN.

    Attributes
    ----------
    failures : int
        How many steps a sink or a device failed at, all sinks together.
    """

    def __init__(self, sinks: Sequence[Sink], on_nan: str) -> None:
        self._sinks = tuple(sinks)
        self._on_nan = on_nan
        self._untold: list[FerryError] = []
        self._more = 0
        self._lock = threading.Lock()
        self.failures = 0

    def send(self, step: int, values: dict[str, Any]) -> None:
        """Hand one step to every sink."""
        for sink in self._sinks:
            try:
                sink.take(step, dict(values))
            except Exception as error:
                self.failures += 1
                self._note(_error(f"the sink {sink.name}", step, error), error)

    def note_loss(self, step: int, error: Exception) -> None:
        """Keep why some values of a step never came."""
        self.failures += 1
        self._note(error if isinstance(error, FerryError) else _error("a device", step, error), error)

    def check_arrived(self, step: int, values: dict[str, Any]) -> None:
        """Do what :meth:`check` does; a warning that is made an error is kept, too."""
        try:
            self.check(step, values)
        except Exception as error:
            self._note(_error("a check for NaN", step, error), error)

    def check(self, step: int, values: dict[str, Any]) -> None:
        """Look for NaN, and warn, or keep an error for the next call that raises."""
        if self._on_nan == "keep":
            return
        bad = [name for name, value in values.items() if value != value and isinstance(value, float)]
        if not bad:
            return
        named = ", ".join(map(repr, bad[:3])) + (f" and {len(bad) - 3} more" if len(bad) > 3 else "")
        error = CheckError(
            f"metric {named} at step {step}",
            "the value is NaN",
            'look at what made it, or pass on_nan="keep" to log it all the same',
        )
        if self._on_nan == "warn":
            warnings.warn(f"{error.given}: {error.why}", FerryWarning, stacklevel=4)
        else:
            self._note(error, None)

    def raise_untold(self, kinds: type[Exception] | tuple[type[Exception], ...] = Exception) -> None:
        """Raise the first error that nobody was told of, and forget the others; how many there were is in its text."""
        with self._lock:
            found = [error for error in self._untold if isinstance(error, kinds)]
            if not found:
                return
            more = len(self._untold) - 1 + self._more
            self._untold, self._more = [], 0
        if more:
            found[0].why += f" (and {more:,} more error{'s' if more > 1 else ''} like this or of others)"
        raise found[0]

    def forget(self) -> None:
        """Begin anew in a forked child."""
        self._untold, self._more, self._lock = [], 0, threading.Lock()

    def close(self) -> None:
        """Close what the sinks opened."""
        for sink in self._sinks:
            try:
                sink.close()
            except Exception as error:
                self._note(_error(f"the sink {sink.name}", None, error), error)

    def _note(self, error: FerryError, cause: Exception | None) -> None:
        with self._lock:
            if len(self._untold) >= _MOST_KEPT:
                self._more += 1
                return
            if cause is not error:
                error.__cause__ = None if cause is None else cause.with_traceback(None)
            self._untold.append(error)


def _error(who: str, step: int | None, error: Exception) -> SinkError:
    return SinkError(
        who if step is None else f"{who} at step {step}",
        f"it raised {type(error).__name__}: {error}",
        "the step is lost for it, and later ones are still sent: mend it, or leave it out",
    )
