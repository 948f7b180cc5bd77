"""The public name for activations; it loads its implementation when first used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from tensorferry._api.io_writer import Writer

__all__ = ["capture"]


class capture:  # noqa: N801 (it reads as a verb, and is used in with statements)
    """Write the outputs of modules as rows, while the model goes on.

    Parameters
    ----------
    model : torch.nn.Module
        Runs as usual; its outputs are not changed.
    names : str or iterable of str
        Names of modules, as ``model.named_modules()`` has them, or patterns such as "layers.*.mlp".
    writer : Writer
        Takes the rows: a folder (a path that ends with ``/``), ``.zarr``, ``.parquet`` or ``.arrow`` has an array for
        each module, named after it; a ``.npy`` file takes those of a single one. Conversion is the writer's ``dtype``.
        It is not closed here.
    row_axes : int
        How many leading axes count rows. With 1, each item of a batch is a row; with 2, each token of an output of
        shape (batch, tokens, features).
    select : callable, optional
        ``select(name, output)`` returns the tensor to write. Without it that is the output itself, or the first tensor
        in it.

    Attributes
    ----------
    names : tuple of str
        The modules that are captured.
    rows : mapping of str to int
        How many rows of each were given to the writer.

    Raises
    ------
    ArgumentError
        For a pattern that means no module.

    Notes
    -----
    Values are those of the moment a module returned: their copy is enqueued behind the work that makes them, or done at
    once in host memory, so later operations in place do not change them. The model waits only when the writer's
    ``max_staging_bytes`` are on their way. A module that runs several times in a forward pass gives rows each time.
    What the writer refuses is raised from the forward pass, and names the module.

    Examples
    --------
    >>> import tempfile, torch, tensorferry as ferry
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> path = f"{tempfile.mkdtemp()}/activations/"
    >>> with ferry.Writer(path) as writer, ferry.io.capture(model, ["0", "2"], writer):
    ...     for _ in range(3):
    ...         _ = model(torch.randn(5, 4))
    >>> {name: array.shape for name, array in ferry.load(path).items()}
    {'0': (15, 8), '2': (15, 2)}
    """

    def __init__(
        self,
        model: torch.nn.Module,
        names: Iterable[str] | str,
        writer: Writer,
        /,
        *,
        row_axes: int = 1,
        select: Callable[[str, Any], Any] | None = None,
    ) -> None:
        from tensorferry._io.capture import Hooks, chosen_modules

        modules = chosen_modules(model, names)
        alone = len(modules) == 1 and writer.path.endswith(".npy")
        self.names = tuple(modules)
        self._hooks = Hooks(
            modules, lambda rows, name: writer.append(rows, name=None if alone else name), row_axes, select
        )

    @property
    def rows(self) -> Mapping[str, int]:
        """How many rows of each module were given to the writer."""
        return MappingProxyType(self._hooks.rows)

    def close(self) -> None:
        """Stop capturing; the model is as it was. The writer stays open."""
        self._hooks.remove()

    def __enter__(self) -> capture:
        """Capturing has begun already."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop capturing."""
        self.close()
