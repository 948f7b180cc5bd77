from collections.abc import Mapping, Sequence
from typing import Any, Literal, SupportsIndex, TypeAlias, TypeVar, final, overload

import numpy as np
import torch
from numpy.typing import DTypeLike

_T = TypeVar("_T")
_S = TypeVar("_S", bound=np.generic)
_Array: TypeAlias = np.ndarray[Any, Any]
_Casting: TypeAlias = Literal["no", "equiv", "safe", "same_kind", "unsafe", "same_value"]
_Order: TypeAlias = Literal["K", "C", "F", "A"]
_ReadOnly: TypeAlias = Literal["copy", "share", "raise"]
_DType: TypeAlias = DTypeLike | torch.dtype | Mapping[Any, Any] | None

# An out= decides the result; a tensor becomes an array, an array stays what it is, a nest keeps its containers.
@overload
def to_numpy(
    x: Any,
    /,
    *,
    copy: Literal[True, "lazy"] | None = None,
    dtype: _DType = None,
    casting: _Casting = "same_kind",
    order: _Order = "K",
    out: _T,
    stream: Any = None,
    pinned: bool | Literal["auto"] = "auto",
) -> _T: ...
@overload
def to_numpy(
    x: torch.Tensor,
    /,
    *,
    copy: bool | Literal["lazy"] | None = None,
    dtype: type[_S] | np.dtype[_S],
    casting: _Casting = "same_kind",
    order: _Order = "K",
    out: None = None,
    stream: Any = None,
    pinned: bool | Literal["auto"] = "auto",
) -> np.ndarray[Any, np.dtype[_S]]: ...
@overload
def to_numpy(
    x: torch.Tensor,
    /,
    *,
    copy: bool | Literal["lazy"] | None = None,
    dtype: _DType = None,
    casting: _Casting = "same_kind",
    order: _Order = "K",
    out: None = None,
    stream: Any = None,
    pinned: bool | Literal["auto"] = "auto",
) -> _Array: ...
@overload
def to_numpy(
    x: np.ndarray[Any, np.dtype[_S]],
    /,
    *,
    copy: bool | Literal["lazy"] | None = None,
    dtype: None = None,
    casting: _Casting = "same_kind",
    order: _Order = "K",
    out: None = None,
    stream: Any = None,
    pinned: bool | Literal["auto"] = "auto",
) -> np.ndarray[Any, np.dtype[_S]]: ...
@overload
def to_numpy(
    x: Any,
    /,
    *,
    copy: bool | Literal["lazy"] | None = None,
    dtype: _DType = None,
    casting: _Casting = "same_kind",
    order: _Order = "K",
    out: Any = None,
    stream: Any = None,
    pinned: bool | Literal["auto"] = "auto",
) -> Any: ...
@overload
def from_numpy(
    a: _Array,
    /,
    *,
    device: torch.device | str | int | None = None,
    dtype: _DType = None,
    casting: _Casting = "same_kind",
    copy: bool | None = None,
    readonly: _ReadOnly = "copy",
    requires_grad: bool = False,
) -> torch.Tensor: ...
@overload
def from_numpy(
    a: Any,
    /,
    *,
    device: torch.device | str | int | None = None,
    dtype: _DType = None,
    casting: _Casting = "same_kind",
    copy: bool | None = None,
    readonly: _ReadOnly = "copy",
    requires_grad: bool = False,
) -> Any: ...

@final
class ReadOnlyView:
    @property
    def storage(self) -> torch.UntypedStorage: ...
    @property
    def tensor(self) -> torch.Tensor | None: ...

class Source:
    @staticmethod
    def from_array(array: _Array) -> Source: ...
    @staticmethod
    def from_capsule(capsule: Any) -> Source: ...
    @staticmethod
    def from_exchange(producer: Any) -> Source: ...
    @staticmethod
    def zeros(dtype: str, shape: Sequence[SupportsIndex]) -> Source: ...
    @staticmethod
    def described(dtype: str, shape: Sequence[SupportsIndex], strides: Sequence[SupportsIndex]) -> Source: ...
    def relabelled(self, dtype: str, *, conjugated: bool = False, negated: bool = False) -> Source: ...
    def marked_read_only(self, read_only: bool) -> Source: ...
    def owned_by(self, owner: Any) -> Source: ...
    def item(self, index: int) -> Source: ...
    def layout_facts(self) -> dict[str, Any]: ...
    def summary(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def address(self) -> int: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def conjugated(self) -> bool: ...
    @property
    def negated(self) -> bool: ...
    @property
    def byte_swapped(self) -> bool: ...
    @property
    def no_memory(self) -> bool: ...
    @property
    def owner(self) -> Any: ...

class Decision:
    @property
    def path(self) -> Literal["view", "lazy", "copy"]: ...
    @property
    def causes(self) -> list[str]: ...
    @property
    def value_dtype(self) -> str: ...
    @property
    def result_dtype(self) -> str: ...
    @property
    def writable(self) -> bool: ...
    @property
    def checks_values(self) -> bool: ...
    @property
    def shares_memory(self) -> bool: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def nbytes_moved(self) -> int: ...

def decide(
    source: Source,
    *,
    target: str = "numpy",
    copy: str = "if_needed",
    dtype: str = "keep",
    casting: str = "same_kind",
    order: str = "K",
    readonly: str = "copy",
    into_destination: bool = False,
    lazy_possible: bool = False,
    private_memory: bool = False,
) -> Decision: ...
def execute(source: Source, decision: Decision, destination: Any = None) -> _Array: ...
def writable_array(source: Source, decision: Decision) -> _Array: ...
def copy_into(destination: Source, source: Source, *, check_values: bool = False) -> None: ...
def export_capsule(source: Source, *, versioned: bool, flags: int = 0) -> Any: ...
def view_base(storage: Any, origin: Any) -> ReadOnlyView: ...
def note_lazy_snapshot() -> None: ...
def warn_about_extension(dtype: str) -> None: ...
def scan_nonfinite(source: Source) -> tuple[int, int]: ...
def scan_outside(source: Source, low: float, high: float) -> tuple[int, int]: ...
def dtype_table() -> list[dict[str, Any]]: ...
def can_cast(from_: str, to: str, casting: str) -> bool: ...
def build_info() -> dict[str, str]: ...
def exchange_api_enabled() -> bool: ...
def reads_through_exchange_table(type: type) -> bool: ...
