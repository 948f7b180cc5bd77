"""The arguments of ``check``, read once, and how they are handed down a nest."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tensorferry._check.dtype import parse_dtype
from tensorferry._check.shape import parse_shape
from tensorferry._check.values import parse_range
from tensorferry._errors import ArgumentError

__all__ = ["Requirements", "child_keys", "child_label"]


@dataclass(frozen=True)
class Requirements:
    """The parsed arguments; each is None, a requirement, or a dict of these for the children of a container."""

    shape: Any
    dtype: Any
    device: Any
    finite: Any
    range: Any
    requires_grad: Any

    @classmethod
    def parse(
        cls, shape: object, dtype: object, device: object, finite: object, range: object, requires_grad: object
    ) -> Requirements:
        """Check every argument before anything is looked at."""
        return cls(
            _parsed(shape, parse_shape),
            _parsed(dtype, parse_dtype),
            _parsed(device, _parse_device),
            _parsed(finite, _parse_finite),
            _parsed(range, parse_range),
            _parsed(requires_grad, _parse_flag),
        )

    def _all(self) -> list[Any]:
        return list(vars(self).values())

    def children_named(self) -> list[Any]:
        """The keys that any of the mappings has."""
        return list(dict.fromkeys(key for one in self._all() if isinstance(one, dict) for key in one))

    def of_child(self, key: Any) -> Requirements:
        """What is required of one child; a requirement that is no mapping holds for every child."""
        return Requirements(*(one.get(key) if isinstance(one, dict) else one for one in self._all()))


def _parsed(requirement: Any, parse: Callable[[Any], Any]) -> Any:
    if requirement is None:
        return None
    if isinstance(requirement, Mapping):
        return {key: _parsed(one, parse) for key, one in requirement.items()}
    return parse(requirement)


def _parse_device(device: Any) -> str:
    name = str(device) if type(device).__module__ == "torch" and type(device).__name__ == "device" else device
    if isinstance(name, str) and re.fullmatch(r"[a-z]\w*(:\d+)?", name) and _torch_knows(name):
        return name
    raise ArgumentError(
        f"device={device!r}", "it is no device", 'pass a torch.device or a name such as "cpu" or "cuda:0"'
    )


def _torch_knows(device: str) -> bool:
    torch = sys.modules.get("torch")
    if torch is None:
        return True  # nothing here can tell
    try:
        torch.device(device)
    except RuntimeError:
        return False
    return True


def _parse_finite(finite: Any) -> bool:
    if finite is True:
        return True
    raise ArgumentError(f"finite={finite!r}", "it can only be asked for", "pass finite=True, or leave it out")


def _parse_flag(flag: Any) -> bool:
    if isinstance(flag, bool):
        return flag
    raise ArgumentError(f"requires_grad={flag!r}", "that is no choice for this argument", "pass True or False")


def child_keys(node: Any, count: int) -> list[Any]:
    """Return what names the children of a container: keys, field names or positions."""
    keys: list[Any] = []
    if isinstance(node, Mapping):
        keys = list(node)
    elif _has_fields(node):
        keys = [field.name for field in dataclasses.fields(node)] if dataclasses.is_dataclass(node) else [*node._fields]
    return keys if len(keys) == count else list(range(count))


def child_label(node: Any, key: Any) -> str:
    """Return how a child is written behind its container: ``['x']``, ``[0]`` or ``.x``."""
    return f".{key}" if _has_fields(node) and isinstance(key, str) else f"[{key!r}]"


def _has_fields(node: Any) -> bool:
    return not isinstance(node, Mapping) and (dataclasses.is_dataclass(node) or hasattr(node, "_fields"))
