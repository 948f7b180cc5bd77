"""Keyword arguments of the conversions, checked once and put into the words the native layer uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tensorferry._dtypes import KINDS, resolve
from tensorferry._errors import ArgumentError

__all__ = ["FromNumpyOptions", "ToNumpyOptions", "choose", "choose_snapshot"]

CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe", "same_value")
ORDERS = ("K", "C", "F", "A")
READONLY = ("copy", "share", "raise")
_COPY_WORDS = {None: "if_needed", True: "always", False: "never"}


def choose(name: str, value: object, allowed: tuple[str, ...]) -> str:
    """Return `value` when it is one of the words allowed for the argument `name`."""
    if isinstance(value, str) and value in allowed:
        return value
    words = ", ".join(f'"{word}"' for word in allowed)
    raise ArgumentError(f"{name}={value!r}", "that is no choice for this argument", f"pass one of {words}")


def _copy_word(copy: object, *, lazy: bool) -> str:
    if copy is None or isinstance(copy, bool):
        return _COPY_WORDS[copy]
    if lazy and copy == "lazy":
        return "lazy"
    choices = 'None, True, False or "lazy"' if lazy else "None, True or False"
    raise ArgumentError(f"copy={copy!r}", "that is no choice for this argument", f"pass {choices}")


def _check_dtype(dtype: object) -> object:
    """Fail early for a dtype that no leaf could take."""
    if isinstance(dtype, Mapping):
        for key, wanted in dtype.items():
            if not (isinstance(key, str) and key in KINDS):
                resolve(key)
            resolve(wanted)
    else:
        resolve(dtype)
    return dtype


def _check_pinned(pinned: object) -> Any:
    if isinstance(pinned, bool) or pinned == "auto":
        return pinned
    raise ArgumentError(f"pinned={pinned!r}", "that is no choice for this argument", 'pass "auto", True or False')


def choose_snapshot(snapshot: object) -> str:
    """Return the native word for the argument `snapshot`."""
    words = {"auto": "automatic", True: "always", False: "never"}
    if isinstance(snapshot, (bool, str)) and snapshot in words:
        return words[snapshot]
    raise ArgumentError(f"snapshot={snapshot!r}", "that is no choice for this argument", 'pass "auto", True or False')


@dataclass(frozen=True)
class ToNumpyOptions:
    """The arguments of ``to_numpy`` beside the tensor and the destination."""

    copy: str
    dtype: object
    casting: str
    order: str
    stream: Any
    pinned: Any = "auto"

    @classmethod
    def parse(
        cls, copy: object, dtype: object, casting: object, order: object, out: object, stream: object, pinned: object
    ) -> ToNumpyOptions:
        """Check every argument before anything is touched."""
        if out is not None and copy is False:
            raise ArgumentError(
                "out= with copy=False", "filling a destination is a copy", "leave out one of the two arguments"
            )
        return cls(
            copy=_copy_word(copy, lazy=True),
            dtype=_check_dtype(dtype),
            casting=choose("casting", casting, CASTINGS),
            order=choose("order", order, ORDERS),
            stream=stream,
            pinned=_check_pinned(pinned),
        )


@dataclass(frozen=True)
class FromNumpyOptions:
    """The arguments of ``from_numpy`` beside the array."""

    device: Any
    dtype: object
    casting: str
    copy: str
    readonly: str
    requires_grad: bool

    @classmethod
    def parse(
        cls, device: object, dtype: object, casting: object, copy: object, readonly: object, requires_grad: object
    ) -> FromNumpyOptions:
        """Check every argument before anything is touched."""
        if not isinstance(requires_grad, bool):
            raise ArgumentError(
                f"requires_grad={requires_grad!r}", "that is no choice for this argument", "pass True or False"
            )
        return cls(
            device=device,
            dtype=_check_dtype(dtype),
            casting=choose("casting", casting, CASTINGS),
            copy=_copy_word(copy, lazy=False),
            readonly=choose("readonly", readonly, READONLY),
            requires_grad=requires_grad,
        )
