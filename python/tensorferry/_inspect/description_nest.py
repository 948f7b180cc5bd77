"""What ``describe`` returns for a nest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tensorferry._inspect.description import Description, extents_text

__all__ = ["NestDescription"]


@dataclass(frozen=True, repr=False)
class NestDescription:
    """What is in a nest; ``str()`` makes a table with a line for each leaf.

    Attributes
    ----------
    class_name : str
        Name of the outermost container's class.
    parts : mapping of str to Description
        The tensors and arrays, by their place in the nest, such as ``"['layers'][0].weight"``.
    others : mapping of str to str
        The class names of the other leaves, by their place.
    """

    class_name: str
    parts: Mapping[str, Description]
    others: Mapping[str, str] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes of all values, as often as they occur in the nest."""
        return sum(part.nbytes or 0 for part in self.parts.values())

    def __repr__(self) -> str:
        """One line: how many leaves, and how large."""
        return f"<nest {self.class_name}: {len(self.parts)} tensors, {self.nbytes:,} bytes>"

    def __str__(self) -> str:
        """A table with a line for each leaf."""
        table = [
            (place, part.kind, f"{part.dtype} {extents_text(part.shape)}", part.device, part.layout)
            for place, part in self.parts.items()
        ]
        table += [(place, name, "", "", "") for place, name in self.others.items()]
        widths = [max(len(row[column]) for row in table) for column in range(4)] if table else []
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, [*widths, 0], strict=True)).rstrip() for row in table]
        head = f"nest ({self.class_name}) of {len(self.parts)} tensors, {self.nbytes:,} bytes"
        return "\n".join([head, *(f"  {line}" for line in lines)])
