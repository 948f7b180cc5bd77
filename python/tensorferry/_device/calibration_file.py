"""Where calibrations are kept: one file for each host in the user's cache folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tensorferry._device.calibration import Calibration, dump, parse
from tensorferry._errors import DeviceError

__all__ = ["CalibrationFile", "calibration_file", "is_off"]

_SETTING = "TENSORFERRY_CALIBRATION"
_MOST_NBYTES = 1 << 20


def is_off() -> bool:
    """Return whether ``TENSORFERRY_CALIBRATION=off`` is set."""
    return os.environ.get(_SETTING) == "off"


def calibration_file(*, simulated: bool) -> CalibrationFile | None:
    """Return the file of this host; None where calibrations are off, or there is no place for one.

    ``TENSORFERRY_CALIBRATION`` may name another folder. Only there is anything kept of a simulated device.
    """
    asked = os.environ.get(_SETTING, "")
    if asked == "off" or (simulated and not asked):
        return None
    if asked:
        return CalibrationFile(Path(asked) / _name())
    cache = os.environ.get("XDG_CACHE_HOME", "")
    try:
        base = Path(cache) if os.path.isabs(cache) else Path.home() / ".cache"
    except RuntimeError:  # there is no home
        return None
    return CalibrationFile(base / "tensorferry" / _name())


def _name() -> str:
    host = re.sub(r"[^A-Za-z0-9._-]", "_", platform.node()) or "host"
    return f"link-{host}.json"


@dataclass(frozen=True)
class CalibrationFile:
    """The file of one host.

    Attributes
    ----------
    path : Path
    """

    path: Path

    def read(self) -> tuple[dict[str, Calibration], str]:
        """Return what it holds, by UUID, and why nothing where it cannot be read; "" when it can, or is absent."""
        try:
            with self.path.open("rb") as file:
                content = file.read(_MOST_NBYTES + 1)
            if len(content) > _MOST_NBYTES:
                return {}, f"{self.path} is too long"
            return parse(content.decode()), ""
        except FileNotFoundError:
            return {}, ""
        except (OSError, ValueError) as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
            return {}, f"{self.path} cannot be used: {error}"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes of this host from calibrating meanwhile.

        Raises
        ------
        DeviceError
            When another one does, and when nothing can be written there.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._not_writable(error) from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise DeviceError(
                    "doctor --calibrate",
                    "another process is calibrating on this host, and each would slow the other down",
                    "wait until it is done, a second or two",
                ) from None
            except OSError as error:
                raise self._not_writable(error) from error
            yield
        finally:
            os.close(descriptor)  # which lets go of the lock

    def write(self, made: Calibration) -> None:
        """Add a calibration, or replace that of the same device; call it inside of :meth:`locked`.

        Readers see the file before or after, never between.

        Raises
        ------
        DeviceError
            When it cannot be written.
        """
        found = {**self.read()[0], made.key.uuid: made}
        temporary = ""
        try:
            descriptor, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=self.path.stem, suffix=".tmp")
            with os.fdopen(descriptor, "w") as file:
                file.write(dump(found))
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path)
        except OSError as error:
            if temporary:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            raise self._not_writable(error) from error

    def _not_writable(self, error: OSError) -> DeviceError:
        return DeviceError(
            f"the calibration in {self.path.parent}",
            f"it cannot be kept there: {error.strerror}",
            f"set XDG_CACHE_HOME, or {_SETTING}, to a folder that can be written to",
        )
