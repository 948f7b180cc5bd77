"""Calls DLPack deleters from where C and C++ libraries call them: threads that Python did not start, exit handlers."""

from __future__ import annotations

import ctypes

__all__ = ["call_after_python", "call_in_foreign_thread", "call_without_gil"]

# A CDLL releases Python's lock around each call.
_libc = ctypes.CDLL(None)


def call_in_foreign_thread(function: int, argument: int) -> None:
    """Run the C function at address `function` in a new thread of the operating system, and wait for it."""
    thread = ctypes.c_ulong()
    assert _libc.pthread_create(ctypes.byref(thread), None, ctypes.c_void_p(function), ctypes.c_void_p(argument)) == 0
    assert _libc.pthread_join(thread, None) == 0


def call_without_gil(function: int, argument: int) -> None:
    """Run the C function at address `function` in this thread, without Python's lock."""
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)(argument)


def call_after_python(function: int, argument: int) -> None:
    """Run the C function at address `function` when the process exits, after the interpreter is gone."""
    assert _libc.__cxa_atexit(ctypes.c_void_p(function), ctypes.c_void_p(argument), None) == 0
