"""What MetricLog does: names, what leaves devices, and windows of steps on their way to the delivery."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tensorferry._errors import CheckError, FerryError, TransferTimeout
from tensorferry._metrics import at_exit
from tensorferry._metrics.arguments import check_count, check_word, closed, not_captured, step_number
from tensorferry._metrics.combining import Aggregations
from tensorferry._metrics.delivery import Delivery
from tensorferry._metrics.latest import MetricStep
from tensorferry._metrics.metric_stats import MetricStats
from tensorferry._metrics.names import prefixed
from tensorferry._metrics.on_the_way import OnTheWay
from tensorferry._metrics.open_window import OpenWindow
from tensorferry._metrics.ranks import checked_ranks, rank, rank_suffix
from tensorferry._metrics.reading import Reading, read
from tensorferry._metrics.sending_out import SendingOut
from tensorferry._metrics.sinks import sink_for
from tensorferry._metrics.window import Window

__all__ = ["Log"]

# Sinks that log themselves may go on doing so for ever.
_MOST_ECHOES = 10


class Log:
    """See :class:`tensorferry.MetricLog`, whose arguments these are."""

    def __init__(
        self,
        sinks: Sequence[Any],
        depth: int,
        every: int,
        agg: str | Mapping[str, str],
        on_full: str,
        on_nan: str,
        namespace: str | None,
        ranks: Any,
    ) -> None:
        check_count("depth", depth)
        check_count("every", every)
        check_word("on_full", on_full, ("wait", "drop", "grow"))
        check_word("on_nan", on_nan, ("keep", "warn", "raise"))
        self._every, self._on_nan = every, on_nan
        self._aggregations = Aggregations(agg)
        self._names = prefixed(namespace) if namespace else None
        self._only_rank = checked_ranks(ranks)
        self.out = SendingOut([sink_for(sink, self._suffix) for sink in sinks], on_nan)
        self.delivery = Delivery(self.out, depth, on_full)
        self._open = OpenWindow(self.delivery, self._aggregations, every, self._add_totals)
        self._staged: list[tuple[dict[str, Any], Sequence[OnTheWay]]] = []
        self._devices: Any = None
        self._replays: Any = None  # of captured calls; there once one was prepared
        self.key = id(self)
        self.clock: Any = None  # what the operator in compiled code writes to
        if "torch" in sys.modules:
            from tensorferry._metrics.compiled import make_ready

            self.clock = make_ready(self)
        at_exit.remember(self)

    def _suffix(self) -> str:
        return rank_suffix() if self._only_rank is None else ""

    def is_silent(self) -> bool:
        """Does another rank log for this one?"""
        return self._only_rank is not None and rank()[0] != self._only_rank

    def log(self, metrics: Any, step: int | None) -> None:
        """See :meth:`tensorferry.MetricLog.log`."""
        if self._only_rank is not None and self.is_silent():
            return
        reading = read(metrics, self.delivery.spares)  # what cannot be read is refused before anything changes
        values = self._named(reading)
        if self._replays is not None:
            self._replays.look_without_thread()
            if self._replays.captures(reading.on_devices):
                self._capture(reading, values, step)
                return
        if reading.on_devices:
            self.devices.check(reading.on_devices)
        self._open.enter(step)
        try:
            window, complete = self._open.at(step)
            number = window.step
            if self._staged:
                for staged in self._staged:
                    window.add(*staged)
                self._staged = []
            window.add(values, self._leave(values, reading))
            if complete is not None:  # last: a sink may log itself
                self.delivery.put(complete)
        finally:
            self._open.leave()
        if self._on_nan != "keep":
            self.out.check(number, {name: value for name, value in values.items() if value is not None})
            self.out.raise_untold(CheckError)

    def prepare_capture(self, metrics: Any, slots: int, captures: int) -> None:
        """See :meth:`tensorferry.MetricLog.prepare_capture`."""
        check_count("slots", slots)
        check_count("captures", captures)
        if self._open.is_closed:
            raise closed()
        if self.is_silent():
            return
        reading = read(metrics, [])
        self._named(reading)
        with self._open.lock:
            if self._replays is None:
                from tensorferry._metrics.replays import Replays

                self._replays = Replays(self.delivery, self._aggregations, self._every)
        self._replays.prepare(reading.on_devices, slots, captures)
        at_exit.run_before_others()

    @property
    def gaps(self) -> int:
        """See :attr:`tensorferry.MetricLog.gaps`."""
        return 0 if self._replays is None else self._replays.gaps

    def _capture(self, reading: Reading, values: dict[str, Any], step: int | None) -> None:
        if self._open.is_closed:
            raise closed()
        number = self._open.last_step + 1 if step is None else step_number(step)
        if reading.elsewhere:
            raise not_captured(next(iter(reading.elsewhere)))
        self._replays.capture(reading.on_devices, values, number)

    def stage(self, metrics: Any) -> None:
        """Add the values that metrics have now to the step that is logged next."""
        if self._open.is_closed or self.is_silent():
            return
        reading = read(metrics, [])
        values = self._named(reading)
        with self._open.lock:
            self._staged.append((values, self._leave(values, reading)))

    def log_stats(self, name: str, tensor: Any, step: int | None) -> None:
        """See :meth:`tensorferry.MetricLog.log_stats`."""
        if not self.is_silent():
            from tensorferry._metrics.statistics import statistics

            self.log({name: statistics(tensor)}, step)

    def log_histogram(self, name: str, tensor: Any, bins: int, step: int | None) -> None:
        """See :meth:`tensorferry.MetricLog.log_histogram`."""
        if not self.is_silent():
            from tensorferry._metrics.large import histogram_part

            self._expect(histogram_part(self._name(name), tensor, bins, self.devices), step)

    def log_array(self, name: str, tensor: Any, step: int | None) -> None:
        """See :meth:`tensorferry.MetricLog.log_array`."""
        if not self.is_silent():
            from tensorferry._metrics.large import array_part

            self._expect(array_part(self._name(name), tensor), step)

    def stats(self) -> MetricStats:
        """See :attr:`tensorferry.MetricLog.stats`."""
        known = self.delivery
        return MetricStats(known.delivered, known.waiting, known.dropped, self.out.failures)

    def _expect(self, part: OnTheWay, step: int | None) -> None:
        self._open.enter(step)
        try:
            window, complete = self._open.at(step)
            window.expect(part, are_numbers=False)
            if complete is not None:
                self.delivery.put(complete)
        finally:
            self._open.leave()

    def _name(self, name: str) -> str:
        return name if self._names is None else self._names[name]

    @property
    def devices(self) -> Any:
        """How values leave devices; loaded when the first does."""
        if self._devices is None:
            from tensorferry._metrics.leaving import Leaving

            self._devices = Leaving(self._aggregations)
            at_exit.run_before_others()
        return self._devices

    def flush(self, timeout: float | None) -> None:
        """See :meth:`tensorferry.MetricLog.flush`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        if not self._open.end(deadline) or not self._flush_replays(deadline) or not self.delivery.flush(deadline):
            raise TransferTimeout(
                f"flush(timeout={timeout})",
                f"{self._waiting:,} steps are not with every sink yet",
                "ask again: they stay in the queue",
            )
        self.out.raise_untold()

    def close(self, timeout: float | None) -> None:
        """See :meth:`tensorferry.MetricLog.close`."""
        if self._open.is_closed:
            return
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            for _ in range(_MOST_ECHOES):
                self.flush(None if deadline is None else max(0.0, deadline - time.monotonic()))
                if not self._open.is_there:
                    break
        finally:
            self._open.is_closed = True
            at_exit.forget(self)
            for line in () if self._replays is None else self._replays.close():
                at_exit.tell(line)
            self.out.close()
        self.out.raise_untold()

    def finish(self, deadline: float) -> list[str]:
        """Close it at the end of the process; returns what there is to tell."""
        told = []
        try:
            if not self._open.end(deadline) or not self._flush_replays(deadline) or not self.delivery.flush(deadline):
                told.append(
                    f"MetricLog lost {self._waiting:,} steps at exit, from step {self.delivery.first_waiting} "
                    f"on: a device or a sink was not done in {at_exit.PATIENCE_S:g} s"
                )
            self.out.raise_untold()
        except FerryError as error:
            told.append(f"MetricLog: {error}")
        self._open.is_closed = True
        told += [] if self._replays is None else self._replays.close()
        self.out.close()
        return told

    def newest(self) -> MetricStep:
        """See :meth:`tensorferry.MetricLog.latest`."""
        return self.delivery.newest()

    def forget(self) -> None:
        """Begin anew in a forked child: what was logged before is the parent's."""
        self._open.forget()
        self._staged, self._devices, self._replays = [], None, None
        self.delivery.forget()

    @property
    def _waiting(self) -> int:
        return self.delivery.waiting + self._open.is_there

    def _flush_replays(self, deadline: float | None) -> bool:
        return self._replays is None or bool(self._replays.flush(deadline))

    def _named(self, reading: Reading) -> dict[str, Any]:
        if self._names is None:
            return reading.values
        names = self._names
        reading.on_devices = {names[name]: value for name, value in reading.on_devices.items()}
        reading.elsewhere = {names[name]: value for name, value in reading.elsewhere.items()}
        return {names[name]: value for name, value in reading.values.items()}

    def _leave(self, values: dict[str, Any], reading: Reading) -> Sequence[OnTheWay]:
        if not (reading.on_devices or reading.elsewhere):
            return ()
        parts: list[OnTheWay] = self.devices.leave(reading.on_devices, reading.elsewhere)
        for part in parts:
            for name in part.names:
                values[name] = part
        return parts

    def _add_totals(self, window: Window) -> None:
        if self._devices is not None:
            for part, count in self._devices.leave_totals():
                window.expect(part, count)
