"""A run and its file: strict JSON, written whole or not at all."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorferry._errors import ArgumentError
from tensorferry.bench._result import GoalOutcome, Measurement, Result

__all__ = ["SCHEMA", "SCHEMA_VERSION", "Fact", "Run"]

SCHEMA = "tensorferry bench"
SCHEMA_VERSION = 1

Fact = str | int | float | None


@dataclass(frozen=True)
class Run:
    """All that one run of the benchmark measured.

    Attributes
    ----------
    environment : mapping of str to str, int, float or None
        Versions, processor, caches and so on.
    started : str
        Date and time, UTC, as ISO 8601 has it.
    quick : bool
        Fewer points and fewer rounds than figures worth quoting need.
    device : str
    results : tuple of Result
    complete : bool
        False when it was interrupted.
    seed : int
    """

    environment: Mapping[str, Fact]
    started: str
    quick: bool
    device: str
    results: tuple[Result, ...]
    complete: bool = True
    seed: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return plain values that JSON has: no tuple, no NaN."""
        document = dataclasses.asdict(dataclasses.replace(self, environment=dict(self.environment)))
        return {"schema": SCHEMA, "version": SCHEMA_VERSION, **_lists(document)}

    @classmethod
    def from_json(cls, document: object, name: str = "a JSON document") -> Run:
        """Return the run that :meth:`to_json` gave; `name` is what errors call it.

        Raises
        ------
        ArgumentError
            When it is no results file, one of another version, or a damaged one.
        """
        if not isinstance(document, dict) or document.get("schema") != SCHEMA:
            raise ArgumentError(
                name, "it holds no results of tensorferry bench", "give a results.json that `tensorferry bench` wrote"
            )
        if document.get("version") != SCHEMA_VERSION:
            raise ArgumentError(
                f"{name}, of format version {document.get('version')!r}",
                f"this tensorferry reads version {SCHEMA_VERSION}",
                "run `tensorferry bench` again, or read the file with the tensorferry that wrote it",
            )
        try:
            fields = {key: value for key, value in document.items() if key not in ("schema", "version")}
            return cls(**{**fields, "results": tuple(map(_result, document["results"]))})
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ArgumentError(
                name, f"it is damaged ({type(error).__name__}: {error})", "run `tensorferry bench` again"
            ) from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file in one step: whoever reads it meanwhile finds the old one or the new one."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = _one_result_a_line(self.to_json())
        beside = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            beside.write_text(text + "\n", encoding="utf-8")
            os.replace(beside, target)
        finally:
            beside.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Run:
        """Read a file.

        Raises
        ------
        ArgumentError
            As :meth:`from_json`, and when the file is no JSON.
        OSError
            When it cannot be read.
        """
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ArgumentError(
                str(path), f"it is no JSON ({error})", "give a results.json that `tensorferry bench` wrote"
            ) from error
        return cls.from_json(document, str(path))


def _lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lists(item) for key, item in value.items()}
    return [_lists(item) for item in value] if isinstance(value, (list, tuple)) else value


def _measurement(document: dict[str, Any]) -> Measurement:
    return Measurement(**{**document, "samples_s": tuple(map(float, document["samples_s"]))})


def _result(document: dict[str, Any]) -> Result:
    return Result(
        **{
            **document,
            "measurements": tuple(map(_measurement, document["measurements"])),
            "limit": None if document["limit"] is None else _measurement(document["limit"]),
            "goals": tuple(GoalOutcome(**goal) for goal in document["goals"]),
        }
    )


def _one_result_a_line(document: dict[str, Any]) -> str:
    """Write JSON whose changes are seen result by result."""

    def dumped(value: object) -> str:
        return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))

    head = dumped({**document, "results": []})
    results = ",\n".join(dumped(result) for result in document["results"])
    return head.replace('"results":[]', f'"results":[\n{results}\n]', 1) if results else head
