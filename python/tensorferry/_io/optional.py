"""Libraries of other formats, imported when a call needs them."""

from __future__ import annotations

import importlib
from typing import Any

from tensorferry._errors import MissingDependencyError

__all__ = ["optional"]


def optional(module: str, what: str, extra: str) -> Any:
    """Import a library.

    Parameters
    ----------
    module : str
        Such as "pyarrow.parquet".
    what : str
        What needs it, for the message.
    extra : str
        Of ours, that installs it.

    Raises
    ------
    MissingDependencyError
        Says what to install.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingDependencyError(
            what, f"it needs {package}, which cannot be imported ({error})", f"run pip install 'tensorferry[{extra}]'"
        ) from error
