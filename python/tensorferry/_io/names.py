"""Names of tensors as names of files, and the names that a format cannot hold."""

from __future__ import annotations

import hashlib
import re

from tensorferry._errors import ExportError
from tensorferry._io.failures import refused

__all__ = ["FileNames", "as_export_error", "escaped", "require_safetensors_name", "require_zip_name", "unescaped"]

_PLAIN = re.compile(r"[A-Za-z0-9_.,=+@()\[\]{} -]")
_ALL_PLAIN = re.compile(rf"(?:{_PLAIN.pattern})*")
_LONGEST = 180  # bytes before ".npy": within the 255 of usual file systems, and within what encrypting ones leave
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)", re.IGNORECASE)  # devices, on Windows


def _code(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def escaped(name: str) -> str:
    """Return `name` as part of a file's name on any system: what is not plain ASCII as ``%XX``, byte by byte.

    Unlike a name of :class:`FileNames` it is reversible for every name, and may be too long.
    """
    text = name
    if not _ALL_PLAIN.fullmatch(name):
        text = "".join(character if _PLAIN.match(character) else _code(character) for character in name)
    if text[:1] in (".", " ", "") or _RESERVED.match(text):
        text = _code(text[0]) + text[1:] if text else "%"
    if text[-1] in ". ":
        text = text[:-1] + _code(text[-1])
    return text


def unescaped(text: str) -> str:
    """Return the name that :func:`escaped` was given."""
    if text == "%":
        return ""
    parts = re.split(r"((?:%[0-9A-F]{2})+)", text)
    return "".join(
        bytes.fromhex(part.replace("%", "")).decode("utf-8", "surrogatepass") if part.startswith("%") else part
        for part in parts
    )


class FileNames:
    """Gives each tensor of a folder a file of its own, also where capitals make no difference."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def keep(self, file_name: str) -> None:
        """Let no other tensor get the name of a file that is there."""
        self._taken.add(file_name.removesuffix(".npy").lower())

    def add(self, name: str) -> str:
        """Return the name of the file for the tensor `name`."""
        text = escaped(name)
        if text.lower() in self._taken:
            text = "".join(_code(character) if character.isupper() else character for character in text)
        if len(text) > _LONGEST or text.lower() in self._taken:
            digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
            text = f"{text[: _LONGEST - 40]}~{digest}"  # no name is escaped to one with a tilde
        self._taken.add(text.lower())
        return f"{text}.npy"


def _require_text(path: str, name: str) -> None:
    """Refuse a name that is no text.

    Raises
    ------
    ExportError
        For lone surrogates.
    """
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise refused(path, f"the name {name!r} is no valid text", "rename the tensor") from None


def require_zip_name(path: str, name: str) -> None:
    """Refuse a name that an archive cannot hold, or that would lead outside of the folder it is unpacked to.

    Raises
    ------
    ExportError
        Says which rule the name breaks.
    """
    _require_text(path, name)
    why = _zip_objection(name)
    if why:
        raise refused(path, f"a .npz archive cannot hold the name {name!r}: {why}", f"rename it, or {_ELSEWHERE}")


_ELSEWHERE = "save to a folder (a path that ends with /) or to .safetensors, which hold any name"


def _zip_objection(name: str) -> str | None:
    if not name:
        return "it is empty"
    if "\0" in name:
        return "it contains a NUL"
    if "\\" in name or name.startswith("/") or re.match(r"[A-Za-z]:", name):
        return "unpacked, it would be an absolute path, or one on another system"
    if ".." in name.split("/"):
        return "unpacked, it would lead outside of the folder"
    if name.endswith(".npy") or name == "__metadata__":
        return "NumPy would take it for another member"
    if len(name.encode()) > 65_000:
        return "it is longer than 65,000 bytes"
    return None


def require_safetensors_name(path: str, name: str) -> None:
    """Refuse a name that a .safetensors file cannot hold.

    Raises
    ------
    ExportError
        For the format's own word, and for what is no text.
    """
    _require_text(path, name)
    if name == "__metadata__":
        raise refused(path, f"{name!r} is a word of the format's own", "rename the tensor")


def as_export_error(path: str, name: str, why: str, instead: str) -> ExportError:
    """Return the error for a tensor that a format cannot hold."""
    return refused(path, f"tensor {name!r}: {why}", instead)
