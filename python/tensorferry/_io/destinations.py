"""Where files go: to a path of this machine, or by fsspec to anywhere else, whole, after they were written here."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import is_dataclass, replace
from functools import wraps
from types import TracebackType
from typing import Any, TypeVar

from tensorferry._errors import ExportError, MissingDependencyError
from tensorferry._io.atomic import absolute
from tensorferry._io.failures import refused
from tensorferry._io.optional import optional
from tensorferry._io.options import SaveOptions
from tensorferry._io.report import SaveReport

__all__ = ["Destination", "destination_of", "from_anywhere"]

F = TypeVar("F", bound=Callable[..., Any])

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:(//|:)")
_INDEX = ".index.json"
_READ_FIRST = ("index.json", "zarr.json")  # of a folder, what a reader opens: uploaded last


class Destination:
    """A place that is written to as usual, and what is to be done then. A context manager.

    Attributes
    ----------
    path : str
        Absolute path to write to.
    options : SaveOptions
        How to write there.
    is_local : bool
        Is it the place itself?
    url : str
        The place, where it is not.
    """

    is_local = True
    url = ""

    def __init__(self, path: str, options: SaveOptions) -> None:
        self.path = path
        self.options = options

    def deliver(self, report: SaveReport) -> SaveReport:
        """Bring what was written to where it belongs; return the report of that."""
        return report

    def close(self) -> None:
        """Remove what was needed on the way. Never raises."""

    def __enter__(self) -> Destination:
        """The destination itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Clean up."""
        self.close()


class _Remote(Destination):
    is_local = False

    def __init__(self, url: str, options: SaveOptions, *, resume: bool) -> None:
        self.url = url
        self._files, self._target = _opened(url)
        self._overwrites = options.overwrite or resume
        self._durable = options.durable
        self._was_there = self._exists()
        is_folder = url.endswith(("/", ".zarr"))
        if self._was_there and not self._overwrites:
            raise refused(url, "something is there, and it was left as it is", "pass overwrite=True, or another URL")
        if self._was_there and is_folder and not resume:
            raise refused(url, "folders are not replaced there, as that takes many steps", "remove it first")
        self._folder = tempfile.mkdtemp(prefix="tensorferry-")
        name = os.path.basename(url.rstrip("/")) or "tensors"
        super().__init__(os.path.join(self._folder, name), replace(options, durable=False, overwrite=False))
        if resume and self._was_there:
            try:
                _download(self._files, self._target, self.path, url)
            except BaseException:
                self.close()
                raise

    def _exists(self) -> bool:
        try:
            there = self._files.exists(self._target.rstrip("/"))
            return bool(there or self._files.exists(self._target.rstrip("/") + _INDEX))
        except Exception as error:
            raise _failed(self.url, "asked for", error) from error

    def deliver(self, report: SaveReport) -> SaveReport:
        """Upload each file as a whole, what a reader opens first at the end.

        Raises
        ------
        ExportError
            When that fails; new files that were uploaded are removed then.
        """
        base = os.path.dirname(self.path)
        relative = sorted(
            (os.path.relpath(os.path.join(folder, name), base) for folder, _, names in os.walk(base) for name in names),
            key=lambda name: (name.endswith((*_READ_FIRST, _INDEX)), -name.count(os.sep), name),
        )
        parent = self._target.rstrip("/").rpartition("/")[0]
        done: list[str] = []
        try:
            for name in relative:
                remote = f"{parent}/{name}" if parent else name
                self._files.makedirs(remote.rpartition("/")[0], exist_ok=True)
                self._files.put_file(os.path.join(base, name), remote)
                done.append(remote)
        except Exception as error:
            if not self._was_there:
                with contextlib.suppress(Exception):
                    self._files.rm(done)
            raise _failed(self.url, "uploaded", error) from error
        urls = tuple(self._files.unstrip_protocol(remote) for remote in reversed(done))
        is_folder = os.path.isdir(self.path)
        return replace(report, path=self.url, paths=(self.url,) if is_folder else urls, durable=self._durable)

    def close(self) -> None:
        """Remove the local files. Never raises."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Clean up, and let an error speak of the URL."""
        self.close()
        if isinstance(error, ExportError) and self.path in error.given:
            error.given, error.filename = self.url, self.url
            error.args = (error.given, error.why, error.instead)


def _opened(url: str) -> tuple[Any, str]:
    if "\0" in url:
        raise refused(url, "a URL cannot contain a NUL", "give another one")
    core = optional("fsspec.core", f"the URL {url!r}", "fsspec")
    try:
        files, path = core.url_to_fs(url)
        return files, str(path)
    except ImportError as error:
        raise MissingDependencyError(
            f"the URL {url!r}", f"fsspec lacks a package for it ({error})", "install the package that it names"
        ) from error
    except Exception as error:
        raise _failed(url, "opened", error) from error


def _failed(url: str, done: str, error: Exception) -> ExportError:
    said = str(error) or type(error).__name__
    made = refused(url, f"it could not be {done} ({said})", "check the URL, your rights and the connection")
    made.errno = getattr(error, "errno", None)
    return made


def _local_path(path: Any) -> str | None:
    """Return the path of this machine; None for what fsspec has to open."""
    if not isinstance(path, str) or not _URL.match(path):
        return absolute(path)
    if path.startswith(("file://", "local://")):
        return absolute(path.partition("://")[2])
    return None


def destination_of(path: Any, options: SaveOptions, *, resume: bool = False) -> Destination:
    """Return where to write for a path or URL.

    Parameters
    ----------
    path : path or URL
        As the caller gave it.
    options : SaveOptions
        As the caller gave them.
    resume : bool
        Is what is there to be gone on with? Then it is fetched first.

    Raises
    ------
    ExportError
        When something is there that may not be replaced.
    MissingDependencyError
        For URLs without fsspec, or without what it needs for them.
    """
    local = _local_path(path)
    return Destination(local, options) if local is not None else _Remote(path, options, resume=resume)


def _download(files: Any, target: str, local: str, url: str) -> None:
    try:
        target = target.rstrip("/")
        if files.isdir(target):
            files.get(target + "/", local + "/", recursive=True)
        elif files.exists(target):
            files.get_file(target, local)
            if target.endswith(_INDEX):
                _download_shards(files, target, local)
        elif not files.exists(target + _INDEX):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        else:
            files.get_file(target + _INDEX, local + _INDEX)
            _download_shards(files, target, local)
    except Exception as error:
        raise _failed(url, "read", error) from error


def _download_shards(files: Any, target: str, local: str) -> None:
    from tensorferry._io.safetensors import index_path, weight_map

    for name in sorted(set(weight_map(index_path(local)).values())):
        files.get_file(f"{target.rpartition('/')[0]}/{name}", os.path.join(os.path.dirname(local), name))


def from_anywhere(function: F) -> F:
    """Let a function that reads a path read a URL as well: everything is fetched first, and removed afterwards."""

    @wraps(function)
    def reads(path: Any, /, **arguments: Any) -> Any:
        local = _local_path(path) if isinstance(path, str) and _URL.match(path) else path
        if local is not None:
            return function(local, **arguments)
        files, target = _opened(path)
        with tempfile.TemporaryDirectory(prefix="tensorferry-") as folder:
            copy = os.path.join(folder, os.path.basename(path.rstrip("/")) or "tensors")
            _download(files, target, copy, path)
            found = function(copy, **arguments)
        return replace(found, path=path) if is_dataclass(found) and not isinstance(found, type) else found

    made: Any = reads
    return made  # type: ignore[no-any-return]
