"""A state dict taken apart into tensors with memory, and put together around others: sharded ones stay sharded."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorferry import _torch
from tensorferry._errors import LayoutError

__all__ = ["SplitState"]

_Rebuild = Callable[[list[Any]], Any]


class SplitState:
    """What a state dict is made of.

    Parameters
    ----------
    state : mapping
        Nests of dicts, lists and tuples, as :mod:`torch.distributed.checkpoint` takes them. Other values are copied.

    Attributes
    ----------
    names : list of str
        One for each tensor with memory, for errors.
    tensors : list of torch.Tensor
        Tensors with memory: each once, however often it is in the state; the local parts of those that are spread over
        processes.
    """

    def __init__(self, state: Any) -> None:
        self.names: list[str] = []
        self.tensors: list[Any] = []
        self._memo: dict[int, _Rebuild] = {}
        self._copied: dict[int, Any] = {}
        self._rebuild = self._opened(state, "")
        self._memo.clear()
        self._copied.clear()

    def rebuilt(self, tensors: Sequence[Any]) -> Any:
        """Return the same state around other tensors."""
        return self._rebuild(list(tensors))

    def _opened(self, node: Any, name: str) -> _Rebuild:
        if _torch.is_tensor(node):
            if id(node) not in self._memo:
                self._memo[id(node)] = self._opened_tensor(node, name)
            return self._memo[id(node)]
        if isinstance(node, Mapping):
            begin = f"{name}." if name else ""
            parts = {key: self._opened(value, f"{begin}{key}") for key, value in node.items()}
            return lambda made: {key: part(made) for key, part in parts.items()}
        if type(node) in (list, tuple):
            kind, items = type(node), [self._opened(value, f"{name}[{at}]") for at, value in enumerate(node)]
            return lambda made: kind(item(made) for item in items)
        kept = copy.deepcopy(node, self._copied)
        return lambda made: kept

    def _inside(self, part: Any, name: str) -> _Rebuild:
        """A tensor, or what says where it lies: a mesh of devices, which must not be copied."""
        return self._opened(part, name) if _torch.is_tensor(part) else lambda made: part

    def _opened_tensor(self, x: Any, name: str) -> _Rebuild:
        if type(x).__name__ == "AsyncCollectiveTensor":
            x = x.wait()
        if type(x).__name__ == "ShardedTensor":
            raise LayoutError(
                f"{name!r}, a ShardedTensor",
                "torch has replaced this class by DTensor, and only that one is staged",
                "shard the model with fully_shard, or stage it with torch.distributed.checkpoint.staging.DefaultStager",
            )
        if not hasattr(type(x), "__tensor_flatten__"):
            self.names.append(name)
            self.tensors.append(x.detach())
            at = len(self.tensors) - 1
            return lambda made: made[at]
        # The protocol of subclasses that are made of tensors, of which DTensor is one.
        attributes, context = x.__tensor_flatten__()
        parts = {attribute: self._inside(getattr(x, attribute), name) for attribute in attributes}
        kind, size, stride = type(x), x.size(), x.stride()

        def rebuild(made: list[Any]) -> Any:
            inner = {attribute: part(made) for attribute, part in parts.items()}
            return kind.__tensor_unflatten__(inner, context, size, stride).detach()

        return rebuild
