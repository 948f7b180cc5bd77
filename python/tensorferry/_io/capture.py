"""Outputs of modules, written as rows while the model goes on."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tensorferry import _torch
from tensorferry._convert.take import is_array_like
from tensorferry._errors import ArgumentError, DTypeError, FerryError, LayoutError
from tensorferry._nest import is_nest, labelled_leaves

__all__ = ["Hooks", "chosen_modules"]


def chosen_modules(model: Any, patterns: Iterable[str] | str) -> dict[str, Any]:
    """Return the modules that patterns mean, by name, in the model's order.

    Raises
    ------
    ArgumentError
        For a pattern that means no module.
    """
    wanted = [patterns] if isinstance(patterns, str) else list(patterns)
    modules = {name: module for name, module in model.named_modules() if name}
    for pattern in wanted:
        if not any(fnmatch.fnmatchcase(name, pattern) for name in modules):
            some = ", ".join(map(repr, list(modules)[:5])) + (", ..." if len(modules) > 5 else "")
            raise ArgumentError(f"names={pattern!r}", "no module of the model has such a name", f"it has {some}")
    if not wanted:
        raise ArgumentError("names=[]", "nothing would be captured", "name modules, such as 'layers.*.mlp'")
    return {
        name: module
        for name, module in modules.items()
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in wanted)
    }


class Hooks:
    """The forward hooks of one capture.

    Parameters
    ----------
    modules : mapping of str to torch.nn.Module
        By name.
    append : callable
        Takes rows and the name of their array.
    row_axes : int
        How many leading axes count rows.
    select : callable, optional
        Takes name and output, returns the tensor to write.
    """

    def __init__(
        self,
        modules: Mapping[str, Any],
        append: Callable[[Any, str], object],
        row_axes: int,
        select: Callable[[str, Any], Any] | None,
    ) -> None:
        if isinstance(row_axes, bool) or not isinstance(row_axes, int) or row_axes < 1:
            raise ArgumentError(f"row_axes={row_axes!r}", "rows are counted by leading axes", "pass 1 or more")
        self._append = append
        self._row_axes = row_axes
        self._select = select or _first_tensor
        self.rows = dict.fromkeys(modules, 0)
        self._handles = [module.register_forward_hook(self._hook(name)) for name, module in modules.items()]

    def _hook(self, name: str) -> Callable[[Any, Any, Any], None]:
        def written(module: Any, arguments: Any, output: Any) -> None:
            del module, arguments
            try:
                rows = self._as_rows(self._select(name, output))
                self._append(rows, name)
            except FerryError as error:
                error.given = f"the output of {name!r}: {error.given}"
                raise
            self.rows[name] += int(rows.shape[0])

        return written

    def _as_rows(self, x: Any) -> Any:
        if not is_array_like(x):
            raise DTypeError(f"a {type(x).__name__}", "only tensors have rows", "pass select=lambda name, output: ...")
        if x.ndim < self._row_axes:
            shape = tuple(x.shape)
            why = f"row_axes={self._row_axes} needs as many axes"
            raise LayoutError(f"a tensor of shape {shape}", why, "pass a smaller row_axes, or select=")
        if _torch.is_tensor(x):
            x = x.detach()
        return x if self._row_axes == 1 else x.reshape(-1, *x.shape[self._row_axes :])

    def remove(self) -> None:
        """Leave the model as it was."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()


def _first_tensor(name: str, output: Any) -> Any:
    """Return the output, or the first tensor in it: what attention and the like return besides is not meant."""
    if is_array_like(output) or not is_nest(output):
        return output
    return next(_tensors(output), output)


def _tensors(output: Any) -> Iterator[Any]:
    return (leaf for _, leaf in labelled_leaves(output) if is_array_like(leaf))
