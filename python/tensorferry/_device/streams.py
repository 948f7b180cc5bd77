"""Streams of others, as the number that DLPack gives them."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tensorferry._errors import StreamError
from tensorferry._native import core

__all__ = ["LEGACY", "number_of", "torch_cuda", "torch_stream", "working_in"]

LEGACY = 1


def number_of(stream: Any) -> int:
    """Return DLPack's number of `stream`: an int, an object with ``__cuda_stream__``, a torch or a CuPy stream.

    Raises
    ------
    StreamError
        For anything else, and for the numbers 0 (ambiguous) and -1 (a copy cannot be without order).
    """
    if isinstance(stream, int) and not isinstance(stream, bool):
        if stream > 0:
            return stream
        why = "DLPack forbids 0: it does not say which default stream is meant"
        if stream < 0:
            why = "a copy has to be ordered after the work that makes its values"
        raise _refused(stream, why)
    for name in ("__cuda_stream__", "cuda_stream", "ptr"):
        handle = getattr(stream, name, None)
        if handle is not None:
            return _handle(stream, handle() if callable(handle) else handle)
    raise _refused(stream, f"a {type(stream).__name__} names no CUDA stream")


def _handle(stream: Any, answer: Any) -> int:
    # The protocol answers (version, handle); a handle of 0 is the default stream, which is the legacy one.
    handle = answer[1] if isinstance(answer, tuple) and len(answer) == 2 else answer
    if isinstance(handle, int) and handle >= 0:
        return handle or LEGACY
    raise _refused(stream, f"its handle is {handle!r}")


def _refused(stream: Any, why: str) -> StreamError:
    return StreamError(
        f"stream={stream!r}",
        why,
        "pass a torch or CuPy stream, an object with __cuda_stream__, 1 for the legacy default stream, 2 for the "
        "per-thread one, or leave it out for the producer's current stream",
    )


def torch_cuda() -> Any:
    """Return ``torch.cuda`` where torch is loaded and has begun to use CUDA devices, else None; initialises nothing."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_initialized() or getattr(getattr(torch, "version", None), "hip", None):
        return None
    return cuda


def torch_stream(device: int) -> int:
    """Return the number of torch's current stream on a device, asked in the calling thread."""
    torch = sys.modules["torch"]
    known = core.work_stream_of(torch.Tensor, device)
    return number_of(torch.cuda.current_stream(device)) if known is None else known


def working_in(stream: Any, device: int) -> AbstractContextManager[object]:
    """Let torch work in a stream of somebody's, inside a ``with`` statement; in its current one for None."""
    torch = sys.modules["torch"]
    if stream is None or number_of(stream) == torch_stream(device):
        return nullcontext()
    external = torch.cuda.ExternalStream(number_of(stream), device=device)
    context: AbstractContextManager[object] = torch.cuda.stream(external)
    return context
