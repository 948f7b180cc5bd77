"""The driver's functions, called from Python as a program in C calls them."""

from __future__ import annotations

import ctypes
from typing import Any

from helpers.fake_cuda import fake_cuda

__all__ = ["Copy2D", "Driver", "DriverError"]

_int, _unsigned, _size, _handle, _device_pointer = (
    ctypes.c_int,
    ctypes.c_uint,
    ctypes.c_size_t,
    ctypes.c_void_p,
    ctypes.c_uint64,
)

# Name: version to ask for, types of the arguments. "out" types come last in what the methods below need.
SIGNATURES: dict[str, tuple[int, tuple[Any, ...]]] = {
    "cuInit": (2000, (_unsigned,)),
    "cuDriverGetVersion": (2020, (_handle,)),
    "cuGetErrorName": (6000, (_int, _handle)),
    "cuGetErrorString": (6000, (_int, _handle)),
    "cuDeviceGet": (2000, (_handle, _int)),
    "cuDeviceGetCount": (2000, (_handle,)),
    "cuDeviceGetName": (2000, (_handle, _int, _int)),
    "cuDeviceGetAttribute": (2000, (_handle, _int, _int)),
    "cuDeviceGetUuid": (11040, (_handle, _int)),
    "cuDeviceGetPCIBusId": (4010, (_handle, _int, _int)),
    "cuDevicePrimaryCtxGetState": (7000, (_int, _handle, _handle)),
    "cuDevicePrimaryCtxRetain": (7000, (_handle, _int)),
    "cuDevicePrimaryCtxRelease": (11000, (_int,)),
    "cuDevicePrimaryCtxReset": (11000, (_int,)),
    "cuCtxGetCurrent": (4000, (_handle,)),
    "cuCtxSetCurrent": (4000, (_handle,)),
    "cuCtxPushCurrent": (4000, (_handle,)),
    "cuCtxPopCurrent": (4000, (_handle,)),
    "cuCtxGetDevice": (2000, (_handle,)),
    "cuCtxGetId": (12000, (_handle, _handle)),
    "cuCtxSynchronize": (2000, ()),
    "cuCtxRecordEvent": (12050, (_handle, _handle)),
    "cuStreamCreateWithPriority": (5050, (_handle, _unsigned, _int)),
    "cuStreamDestroy": (4000, (_handle,)),
    "cuStreamWaitEvent": (3020, (_handle, _handle, _unsigned)),
    "cuStreamQuery": (2000, (_handle,)),
    "cuStreamSynchronize": (2000, (_handle,)),
    "cuStreamGetCtx": (9020, (_handle, _handle)),
    "cuStreamIsCapturing": (10000, (_handle, _handle)),
    "cuStreamBeginCapture": (10010, (_handle, _int)),
    "cuStreamEndCapture": (10000, (_handle, _handle)),
    "cuStreamGetCaptureInfo": (11030, (_handle, _handle, _handle, _handle, _handle, _handle)),
    "cuThreadExchangeStreamCaptureMode": (10010, (_handle,)),
    "cuGraphInstantiate": (12000, (_handle, _handle, ctypes.c_ulonglong)),
    "cuGraphLaunch": (10000, (_handle, _handle)),
    "cuGraphDestroy": (10000, (_handle,)),
    "cuGraphExecDestroy": (10000, (_handle,)),
    "cuUserObjectCreate": (11030, (_handle, _handle, _handle, _unsigned, _unsigned)),
    "cuUserObjectRetain": (11030, (_handle, _unsigned)),
    "cuUserObjectRelease": (11030, (_handle, _unsigned)),
    "cuGraphRetainUserObject": (11030, (_handle, _handle, _unsigned, _unsigned)),
    "cuStreamWriteValue32": (11070, (_handle, _device_pointer, ctypes.c_uint32, _unsigned)),
    "cuEventCreate": (2000, (_handle, _unsigned)),
    "cuEventDestroy": (4000, (_handle,)),
    "cuEventRecord": (2000, (_handle, _handle)),
    "cuEventRecordWithFlags": (11010, (_handle, _handle, _unsigned)),
    "cuEventQuery": (2000, (_handle,)),
    "cuEventSynchronize": (2000, (_handle,)),
    "cuEventElapsedTime": (2000, (_handle, _handle, _handle)),
    "cuMemAlloc": (3020, (_handle, _size)),
    "cuMemFree": (3020, (_device_pointer,)),
    "cuMemAllocAsync": (11020, (_handle, _size, _handle)),
    "cuMemFreeAsync": (11020, (_device_pointer, _handle)),
    "cuMemHostRegister": (6050, (_handle, _size, _unsigned)),
    "cuMemHostUnregister": (4000, (_handle,)),
    "cuMemHostGetDevicePointer": (3020, (_handle, _handle, _unsigned)),
    "cuMemHostAlloc": (2020, (_handle, _size, _unsigned)),
    "cuMemFreeHost": (2000, (_handle,)),
    "cuPointerGetAttributes": (7000, (_unsigned, _handle, _handle, _device_pointer)),
    "cuMemcpyDtoHAsync": (3020, (_handle, _device_pointer, _size, _handle)),
    "cuMemcpyHtoDAsync": (3020, (_device_pointer, _handle, _size, _handle)),
    "cuMemcpyDtoDAsync": (3020, (_device_pointer, _device_pointer, _size, _handle)),
    "cuMemcpy2DAsync": (3020, (_handle, _handle)),
    "cuMemcpyPeerAsync": (4000, (_device_pointer, _handle, _device_pointer, _handle, _size, _handle)),
    "cuMemcpyBatchAsync": (
        12080,
        (_handle, _handle, _handle, _size, _handle, _handle, _size, _handle, _handle),
    ),
    "cuLibraryLoadData": (
        12000,
        (_handle, _handle, _handle, _handle, _unsigned, _handle, _handle, _unsigned),
    ),
    "cuLibraryUnload": (12000, (_handle,)),
    "cuLibraryGetKernel": (12000, (_handle, _handle, ctypes.c_char_p)),
    "cuKernelGetFunction": (12000, (_handle, _handle)),
    "cuFuncGetAttribute": (2020, (_handle, _int, _handle)),
    "cuLaunchKernel": (
        4000,
        (
            _handle,
            _unsigned,
            _unsigned,
            _unsigned,
            _unsigned,
            _unsigned,
            _unsigned,
            _unsigned,
            _handle,
            _handle,
            _handle,
        ),
    ),
    "cuMemsetD8Async": (3020, (_device_pointer, ctypes.c_ubyte, _size, _handle)),
}
SUCCESS, NOT_READY = 0, 600


class DriverError(RuntimeError):
    """A driver function did not succeed.

    Attributes
    ----------
    name : str
        Of the function.
    code : int
        What it returned.
    """

    def __init__(self, name: str, code: int) -> None:
        super().__init__(f"{name} returned {code}")
        self.name, self.code = name, code


class Copy2D(ctypes.Structure):
    """CUDA_MEMCPY2D; memory types are 1 for the host and 2 for a device."""

    _fields_ = (
        ("src_x", _size),
        ("src_y", _size),
        ("src_type", _unsigned),
        ("src_host", _handle),
        ("src_device", _device_pointer),
        ("src_array", _handle),
        ("src_pitch", _size),
        ("dst_x", _size),
        ("dst_y", _size),
        ("dst_type", _unsigned),
        ("dst_host", _handle),
        ("dst_device", _device_pointer),
        ("dst_array", _handle),
        ("dst_pitch", _size),
        ("width", _size),
        ("height", _size),
    )


class Driver:
    """Functions by name: ``driver.code("cuInit", 0)`` gives the result, ``driver("cuInit", 0)`` raises unless it is 0.

    Parameters
    ----------
    flags : int
        For the search: 1 takes a NULL stream for the legacy one, 2 for the thread's own.
    """

    def __init__(self, flags: int = 1) -> None:
        self._flags = flags
        self._found: dict[str, Any] = {}

    def find(self, name: str, version: int, flags: int | None = None) -> tuple[int, int | None, int]:
        """Ask for a symbol: (result, address, status)."""
        address, status = ctypes.c_void_p(), ctypes.c_int(-1)
        door = fake_cuda().library.cuGetProcAddress_v2
        door.argtypes = [ctypes.c_char_p, _handle, _int, ctypes.c_uint64, _handle]
        chosen = self._flags if flags is None else flags
        code = door(name.encode(), ctypes.addressof(address), version, chosen, ctypes.addressof(status))
        return code, address.value, status.value

    def code(self, name: str, *arguments: Any) -> int:
        """Call and give the result."""
        if name not in self._found:
            version, types = SIGNATURES[name]
            _, address, _ = self.find(name, version)
            assert address is not None, f"the fake has no {name} of version {version}"
            self._found[name] = ctypes.CFUNCTYPE(_int, *types)(address)
        return int(self._found[name](*arguments))

    def __call__(self, name: str, *arguments: Any) -> None:
        """Call and raise DriverError unless the result is 0."""
        code = self.code(name, *arguments)
        if code != SUCCESS:
            raise DriverError(name, code)

    def get(self, kind: Any, name: str, *arguments: Any, after: tuple[Any, ...] = ()) -> Any:
        """Call a function that gives its answer through a pointer, and return the answer."""
        answer = kind()
        self(name, *arguments, ctypes.addressof(answer), *after)
        return answer.value

    def context(self, device: int = 0) -> int:
        """Retain a primary context and make it current."""
        self("cuInit", 0)
        context: int = self.get(_handle, "cuDevicePrimaryCtxRetain", after=(device,))
        self("cuCtxSetCurrent", context)
        return context

    def stream(self, *, blocking: bool = False) -> int:
        """A new stream; its handle."""
        return int(self.get(_handle, "cuStreamCreateWithPriority", after=(0 if blocking else 1, 0)))

    def event(self, flags: int = 2) -> int:
        """A new event, without timing by default; its handle."""
        return int(self.get(_handle, "cuEventCreate", after=(flags,)))

    def alloc(self, nbytes: int) -> int:
        """Device memory; its address."""
        return int(self.get(_device_pointer, "cuMemAlloc", after=(nbytes,)))

    def is_done(self, event: int) -> bool:
        """Query an event."""
        code = self.code("cuEventQuery", event)
        if code not in (SUCCESS, NOT_READY):
            raise DriverError("cuEventQuery", code)
        return code == SUCCESS

    def capture_status(self, stream: int) -> int:
        """0 for a stream that is not capturing, 1 while it is, 2 when its capture was invalidated."""
        return int(self.get(_int, "cuStreamIsCapturing", stream))

    def exchange_capture_mode(self, mode: int) -> int:
        """Set the calling thread's mode: 0 global, 1 thread local, 2 relaxed; the mode before."""
        given = ctypes.c_int(mode)
        self("cuThreadExchangeStreamCaptureMode", ctypes.addressof(given))
        return given.value

    def get_handle(self, name: str, *arguments: Any) -> int | None:
        """The handle that a function gives through its last argument; None for NULL."""
        handle: int | None = self.get(_handle, name, *arguments)
        return handle

    def code_of_get(self, name: str, *arguments: Any, after: tuple[Any, ...] = ()) -> int:
        """The result of a function that would give an answer of at most 64 bits."""
        return self.code(name, *arguments, ctypes.addressof(ctypes.c_uint64()), *after)

    def get_handle_after(self, name: str, *after: Any) -> int | None:
        """The same for a function that takes the place of its answer first."""
        handle: int | None = self.get(_handle, name, after=after)
        return handle
