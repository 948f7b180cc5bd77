"""The public class that logs metrics; loads its implementation when the first log is made."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tensorferry._compiling import is_compiling

if TYPE_CHECKING:
    from tensorferry.types import MetricStats, MetricStep

__all__ = ["MetricLog"]


class MetricLog:
    """Brings the metrics of each training step to where they are kept; the training never waits for a value.

    Each value is that of the call, whatever happens to its tensor later. What is on the host is read at once. What is
    on a device is gathered in stream order, sent in one piece and delivered when it has arrived, in the order of the
    steps.

    Parameters
    ----------
    *sinks
        Where steps go. Each is a function ``sink(step, values)``; an object with ``log(values, step=...)`` (a run of
        W&B or Trackio, a tracker of Accelerate), with ``log_metrics(values, step=...)`` (a logger of Lightning, the
        module mlflow), or with ``add_scalar(name, value, step)`` (a writer of TensorBoard); or a path that ends in
        ``.jsonl`` or ``.csv``, which is appended to. Values are a dict of float, int and bool. The modules mlflow and
        trackio get all steps in the run that is active when the log is made.
    depth : int
        How many complete steps may wait for their values or for a sink.
    every : int
        How many steps are delivered as one, under the number of the last of them.
    agg : {"last", "mean", "sum", "min", "max"} or mapping of str to str
        What becomes of the values that one name has in them; on devices this is done there. A mapping says so by name,
        or by the part of a name before a ``/``; its key ``"*"`` stands for all others, which else get "last".
    on_full : {"wait", "drop", "grow"}
        What happens to one step more than `depth`: the caller of ``log`` waits, the step is dropped and counted, or
        memory grows.
    on_nan : {"keep", "warn", "raise"}
        What happens where a value is NaN, besides that it is delivered. On the host ``log`` itself raises; what comes
        from a device, the next call that can.
    namespace : str, optional
        In front of every name, with a ``/``.
    ranks : "all" or int
        Which of several processes log. With "all", the files of each get ``.rank0`` and so on before their ending.

    Raises
    ------
    ArgumentError
        For what is no sink, or a choice that there is not.

    Notes
    -----
    Sinks are called by the caller of ``log``, as long as every value is on the host and they are quick; else by a
    thread, which ends when it has had nothing to do for two seconds. A sink that took 20 milliseconds once, or 2 again
    and again, is left to the thread. Any thread may log. The log is kept until it is closed; at the end of the process
    what is left gets 5 seconds, and what is lost is counted and told on stderr. A forked child begins with nothing
    to deliver.

    Examples
    --------
    >>> import torch, tensorferry as ferry
    >>> with ferry.MetricLog(lambda step, values: print(step, values)) as log:
    ...     loss = torch.tensor(0.5)
    ...     log.log({"loss": loss, "lr": {"head": 0.1}})
    ...     loss += 1
    0 {'loss': 0.5, 'lr/head': 0.1}
    """

    def __init__(
        self,
        *sinks: Any,
        depth: int = 8,
        every: int = 1,
        agg: str | Mapping[str, str] = "last",
        on_full: str = "wait",
        on_nan: str = "keep",
        namespace: str | None = None,
        ranks: Any = "all",
    ) -> None:
        from tensorferry._metrics.log import Log

        self._log = Log(sinks, depth, every, agg, on_full, on_nan, namespace, ranks)

    def log(self, metrics: Any, step: int | None = None) -> None:
        """Take the values that metrics have now, and return at once.

        Parameters
        ----------
        metrics : dict or other nest
            Tensors of one element, on any device, small ones (each element is a metric: ``name/0``, ``name/1``), Python
            numbers, NumPy scalars. Names are joined by ``/``, in the order of insertion.
        step : int, optional
            Its number; without it one more than the last. Values of the same step are merged until a larger one is
            logged, or :meth:`flush` is called.

        Raises
        ------
        ArgumentError
            A ValueError, for a step that is smaller than the last one.
        DTypeError, LayoutError
            For what is no number and no small tensor of them.
        CheckError
            For NaN, with ``on_nan="raise"``.
        DeviceError
            For a tensor whose stream is being captured into a CUDA graph without :meth:`prepare_capture`; nothing was
            enqueued.

        Notes
        -----
        Never waits for a device that the CUDA driver copies from. It waits when `depth` steps are not delivered yet
        (see `on_full`), and for devices of other kinds, once for all values. Inside ``torch.compile`` it is one
        operation and breaks no graph.
        """
        if is_compiling():
            from tensorferry._metrics.compiled import log_compiled

            log_compiled(self._log, metrics, step)
            return
        self._log.log(metrics, step)

    def prepare_capture(self, metrics: Any, slots: int = 256, captures: int = 1) -> None:
        """Take the memory that :meth:`log` needs inside the capture of a CUDA graph, where nothing may be taken.

        After it, and inside the capture, ``log`` becomes one kernel of the graph. Each replay is delivered as a step:
        the first under the step of the captured call, later ones count up from there. They do not move the count of
        other calls. What is on the host has the number of the capture in each of them.

        Parameters
        ----------
        metrics : dict or other nest
            Like those that will be logged: of the same dtypes and shapes, contiguous, on one CUDA device.
        slots : int
            So many replays are kept until they are read. The device never waits: those that others overwrite first
            are left out, and counted in :attr:`gaps`.
        captures : int
            How many calls of ``log`` will be captured; each has memory of its own, until its graph is destroyed.

        Raises
        ------
        DeviceError
            Where there are no kernels or no pinned memory for it, and inside a capture.

        Notes
        -----
        Waits for the current stream once. One graph must not run twice at the same time.
        """
        self._log.prepare_capture(metrics, slots, captures)

    def log_stats(self, name: str, tensor: Any, step: int | None = None) -> None:
        """Log a large tensor as a few numbers, which are computed where it is.

        They are ``name/count``, ``/min``, ``/max``, ``/mean``, ``/std`` (of the population), ``/norm`` (Euclidean), all
        of finite values, and ``/nan`` and ``/infinite``, which count the others.

        Parameters
        ----------
        name : str
            In front of theirs.
        tensor : torch.Tensor or array
            Any shape; real numbers. It is read in pieces, so that no copy of it in another dtype is made.
        step : int, optional
            As for :meth:`log`.

        Raises
        ------
        DTypeError
            For complex numbers.
        """
        self._log.log_stats(name, tensor, step)

    def log_histogram(self, name: str, tensor: Any, bins: int = 64, step: int | None = None) -> None:
        """Log a large tensor as a histogram of equal bins, which is counted where it is.

        Sinks get a :class:`tensorferry.types.Histogram` under the name. Those that take only numbers (``log_metrics``,
        ``.csv``) get the step without it; TensorBoard and W&B show it as theirs.

        Parameters
        ----------
        name, tensor, step
            As for :meth:`log_stats`.
        bins : int
            Between the smallest finite value and the largest.

        Raises
        ------
        ArgumentError, DTypeError
            For no number of bins, and for complex numbers.
        """
        self._log.log_histogram(name, tensor, bins, step)

    def log_array(self, name: str, tensor: Any, step: int | None = None) -> None:
        """Log all values of a tensor, as an array, by way of :func:`to_numpy_async`.

        Sinks get an ndarray under the name. Those that take only numbers get the step without it.

        Parameters
        ----------
        name, tensor, step
            As for :meth:`log_stats`.

        Raises
        ------
        FerryError
            For what :func:`to_numpy_async` refuses.
        """
        self._log.log_array(name, tensor, step)

    def latest(self) -> MetricStep:
        """Return the newest complete step whose values have arrived, for progress bars. Never waits."""
        return self._log.newest()

    @property
    def stats(self) -> MetricStats:
        """How many steps were delivered, wait, were dropped, and failed."""
        return self._log.stats()

    @property
    def gaps(self) -> int:
        """How many replays of captured calls were overwritten before they were read."""
        return self._log.gaps

    def flush(self, timeout: float | None = None) -> None:
        """Complete the step that is open, and wait until every step is with its sinks.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait at most.

        Raises
        ------
        TransferTimeout
            When the time is up; what waits stays in the queue.
        SinkError, CheckError
            What a sink or a device failed at since the last time, or a NaN. Everything was delivered that could be.
        """
        self._log.flush(timeout)

    def close(self, timeout: float | None = None) -> None:
        """Flush, and close the files that this log opened. Raises as :meth:`flush`; a second time it does nothing."""
        self._log.close(timeout)

    def __enter__(self) -> MetricLog:
        """Return the log itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it; where the block has failed, its error is the one that is raised."""
        try:
            self.close()
        except Exception:
            if error is None:
                raise

    def __repr__(self) -> str:
        """Steps so far; asks nobody."""
        return f"<MetricLog, {self.stats}>"
