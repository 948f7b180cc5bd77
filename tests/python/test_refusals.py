"""Every refusal says what was given, why it cannot be done and what to write instead."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

import tensorferry as ferry


def packed() -> torch.Tensor:
    return torch.zeros(3, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)


def quantised() -> torch.Tensor:
    return torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8)


def emptied() -> torch.Tensor:
    x = torch.ones(3)
    x.untyped_storage().resize_(0)
    return x


def read_only() -> np.ndarray:
    x = np.ones(3)
    x.flags.writeable = False
    return x


def cycle() -> list:
    x: list = []
    x.append(x)
    return x


def write_to_leaf() -> None:
    with ferry.writable(torch.ones(3, requires_grad=True)):
        pass


def write_to_expanded() -> None:
    with ferry.writable(torch.ones(1).expand(3)):
        pass


def in_vmap() -> None:
    torch.func.vmap(lambda t: torch.as_tensor(ferry.to_numpy(t)))(torch.ones(2, 2))


def in_grad() -> None:
    torch.func.grad(lambda t: torch.as_tensor(ferry.to_numpy(t)).sum())(torch.ones(2))


class NoTensor:
    pass


class Refusing:
    """A producer with an opinion of its own."""

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        raise BufferError("not today")


class OnDevice(Refusing):
    """A producer on device type 2, CUDA."""

    def __dlpack_device__(self):
        return (2, 0)


# name, call, class, builtin bases, a word of `given`, of `why`, of `instead`
REFUSALS = [
    ("copy=False with a cast", lambda: ferry.to_numpy(torch.ones(3), copy=False, dtype="float64"),
     ferry.CopyRequiredError, (ValueError, BufferError), "(3,) float32", "dtype changes", "copy=None"),
    ("copy=False with another order", lambda: ferry.to_numpy(torch.ones(3, 2), copy=False, order="F"),
     ferry.CopyRequiredError, (ValueError, BufferError), "(3, 2) float32", "memory order", "copy=None"),
    ("copy=False of a conjugate view", lambda: ferry.to_numpy(torch.ones(3, dtype=torch.cfloat).conj(), copy=False),
     ferry.CopyRequiredError, (ValueError, BufferError), "complex64", "conjugate bit", "copy=None"),
    ("copy=False of a negative view", lambda: ferry.to_numpy(torch._neg_view(torch.ones(3)), copy=False),
     ferry.CopyRequiredError, (ValueError, BufferError), "float32", "negative bit", "copy=None"),
    ("copy=False of packed pairs", lambda: ferry.to_numpy(packed(), copy=False),
     ferry.CopyRequiredError, (ValueError, BufferError), "float4_e2m1fn_x2", "share a byte", "copy=None"),
    ("copy=False of complex32", lambda: ferry.to_numpy(torch.ones(2, dtype=torch.complex32), copy=False),
     ferry.CopyRequiredError, (ValueError, BufferError), "complex32", "widens to complex64", "copy=None"),
    ("copy=False of negative strides", lambda: ferry.from_numpy(np.ones(3)[::-1], copy=False),
     ferry.CopyRequiredError, (ValueError, BufferError), "float64", "negative strides", "copy=None"),
    ("copy=False of big-endian", lambda: ferry.from_numpy(np.ones(3, ">f4"), copy=False),
     ferry.CopyRequiredError, (ValueError, BufferError), "float32", "other order", "copy=None"),
    ("float to integer", lambda: ferry.to_numpy(torch.ones(3), dtype="int32"),
     ferry.DTypeError, (TypeError,), "dtype=int32", "casting rule", 'casting="unsafe"'),
    ("dtype that is none", lambda: ferry.to_numpy(torch.ones(3), dtype="float33"),
     ferry.DTypeError, (TypeError,), "float33", "no dtype", "torch dtype"),
    ("quantised", lambda: ferry.to_numpy(quantised()),
     ferry.DTypeError, (TypeError,), "torch.quint8", "scale and zero point", "x.dequantize()"),
    ("object array", lambda: ferry.from_numpy(np.array([np.ones(2), np.ones(3)], dtype=object)),
     ferry.DTypeError, (TypeError,), "object array", "(0,) is a ndarray of shape (2,)", "stack"),
    ("dates", lambda: ferry.from_numpy(np.array(["2020-01-01"], "M8[D]")),
     ferry.DTypeError, (TypeError,), "datetime64[D]", "unit (D)", 'x.view("i8")'),
    ("text", lambda: ferry.from_numpy(np.array(["a"])),
     ferry.DTypeError, (TypeError,), "<U1", "no text", "integers"),
    ("extended precision", lambda: ferry.from_numpy(np.ones(2, np.longdouble)),
     ferry.DTypeError, (TypeError,), "array", "extended precision", 'dtype="float64"'),
    ("records", lambda: ferry.from_numpy(np.zeros(2, [("x", "f4")])),
     ferry.DTypeError, (TypeError,), "array", "no records", "x['x']"),
    ("masked array", lambda: ferry.from_numpy(np.ma.masked_array([1.0, 2.0], [True, False])),
     ferry.DTypeError, (TypeError,), "masked", "no mask", "filled(value)"),
    ("an object that is no tensor", lambda: ferry.to_numpy(NoTensor()),
     ferry.DTypeError, (TypeError,), "NoTensor", "no tensor", "__dlpack__"),
    ("sparse", lambda: ferry.to_numpy(torch.eye(2).to_sparse()),
     ferry.LayoutError, (ValueError,), "sparse_coo", "only some elements", "x.to_dense()"),
    ("compressed sparse", lambda: ferry.to_numpy(torch.eye(2).to_sparse_csr()),
     ferry.LayoutError, (ValueError,), "sparse_csr", "only some elements", "x.to_dense()"),
    ("nested", lambda: ferry.to_numpy(torch.nested.nested_tensor([torch.ones(1), torch.ones(2)])),
     ferry.LayoutError, (ValueError,), "nested", "different lengths", "x.unbind()"),
    ("emptied storage", lambda: ferry.to_numpy(emptied()),
     ferry.LayoutError, (ValueError,), "0 bytes", "taken away", "restore the storage"),
    ("cycle", lambda: ferry.to_numpy(cycle()),
     ferry.LayoutError, (ValueError,), "contains itself", "descendants", "break the cycle"),
    ("vmap", in_vmap,
     ferry.LayoutError, (ValueError,), "torch.func", "whole batch", "return it"),
    ("grad", in_grad,
     ferry.AutogradError, (RuntimeError,), "torch.func", "differentiated", "has_aux=True"),
    ("refusing producer", lambda: ferry.to_numpy(Refusing()),
     ferry.LayoutError, (ValueError,), "Refusing", "not today", "message"),
    ("unequal shapes", lambda: ferry.stack([np.ones(2), np.ones(3)]),
     ferry.LayoutError, (ValueError,), "item 1 of shape (3,)", "item 0 has shape (2,)", "crop"),
    ("nothing to stack", lambda: ferry.stack([]),
     ferry.LayoutError, (ValueError,), "no items", "shape", "at least one"),
    ("meta", lambda: ferry.to_numpy(torch.ones(3, device="meta")),
     ferry.DeviceError, (RuntimeError,), "device meta", "no values", "to_empty"),
    ("producer on a device", lambda: ferry.to_numpy(OnDevice()),
     ferry.DeviceError, (RuntimeError,), "a CUDA device", "cannot be read", "its own library"),
    ("pinned memory", lambda: ferry.to_numpy(torch.ones(3), pinned=True),
     ferry.DeviceError, (RuntimeError,), "pinned=True", "no pinned memory", 'pinned="auto"'),
    ("stream for host memory", lambda: ferry.to_numpy(torch.ones(3), stream=7),
     ferry.StreamError, (RuntimeError, ValueError), "stream=7", "host memory", "leave stream out"),
    ("destination of another shape", lambda: ferry.to_numpy(torch.ones(3), out=np.ones(4, "f4")),
     ferry.BufferMismatchError, (ValueError,), "(4,)", "(3,)", "shape (3,)"),
    ("destination of another dtype", lambda: ferry.to_numpy(torch.ones(3), out=np.ones(3), dtype="float32"),
     ferry.BufferMismatchError, (ValueError,), "float64", "disagree", "leave dtype out"),
    ("destination over the source", lambda: (lambda t: ferry.to_numpy(t, out=t.numpy()))(torch.ones(3)),
     ferry.BufferMismatchError, (ValueError,), "(3,)", "overlaps the source", "other memory"),
    ("read-only destination", lambda: ferry.to_numpy(torch.ones(3, dtype=torch.float64), out=read_only()),
     ferry.ReadOnlyError, (ValueError,), "(3,)", "read-only", "writable array"),
    ("read-only array under raise", lambda: ferry.from_numpy(read_only(), readonly="raise"),
     ferry.ReadOnlyError, (ValueError,), 'readonly="raise"', "always writable", 'readonly="copy"'),
    ("out with copy=False", lambda: ferry.to_numpy(torch.ones(3), out=np.ones(3, "f4"), copy=False),
     ferry.ArgumentError, (TypeError,), "out= with copy=False", "is a copy", "leave out one"),
    ("order that is none", lambda: ferry.to_numpy(torch.ones(3), order="Z"),
     ferry.ArgumentError, (TypeError, ValueError), "order='Z'", "no choice", '"K"'),
    ("copy that is none", lambda: ferry.to_numpy(torch.ones(3), copy="maybe"),
     ferry.ArgumentError, (TypeError, ValueError), "copy='maybe'", "no choice", '"lazy"'),
    ("writing to a leaf", write_to_leaf,
     ferry.AutogradError, (RuntimeError,), "requires grad", "cannot be recorded", "torch.no_grad()"),
    ("writing to overlapping elements", write_to_expanded,
     ferry.LayoutError, (ValueError,), "(3,) float32", "overlap", "clone()"),
    ("gradients of integers", lambda: ferry.from_numpy(np.arange(3), requires_grad=True),
     ferry.AutogradError, (RuntimeError,), "requires_grad=True", "floating", 'dtype="float32"'),
    ("hand-off of a tensor in a graph", lambda: ferry.to_dlpack(torch.ones(3, requires_grad=True)),
     ferry.AutogradError, (RuntimeError, BufferError), "requires grad", "not be recorded", "detach=True"),
    ("a value that does not survive",
     lambda: ferry.to_numpy(torch.tensor([1.0, 2.5]), dtype="i4", casting="same_value"),
     ferry.PrecisionLossError, (ValueError,), "same_value", "index (1,)", "wider dtype"),
    ("a failed check", lambda: ferry.check(torch.ones(3), shape=(4,)),
     ferry.CheckError, (ValueError,), "", "", ""),
    ("a file in a folder that is not there", lambda: ferry.save(torch.ones(3), "no-such-folder/x.npy"),
     ferry.ExportError, (OSError,), "no-such-folder/x.npy", "", "folder"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*nested tensors.*:UserWarning", "ignore:Sparse CSR.*:UserWarning")
@pytest.mark.parametrize(
    ("call", "error_class", "bases", "given", "why", "instead"),
    [row[1:] for row in REFUSALS],
    ids=[row[0] for row in REFUSALS],
)
def test_refusal_has_three_parts_that_fit_it(call, error_class, bases, given, why, instead):
    with pytest.raises(error_class) as caught:
        call()
    error = caught.value
    assert isinstance(error, ferry.FerryError)
    assert all(isinstance(error, base) for base in bases)
    assert given in error.given
    assert why in error.why
    assert instead in error.instead
    assert str(error) == f"{error.given}: {error.why}; {error.instead}"
    assert min(len(error.given), len(error.why), len(error.instead)) > 3


def test_every_error_class_is_raised_by_some_refusal():
    raised = {row[2] for row in REFUSALS}
    names = [getattr(ferry, name) for name in ferry.__all__]
    classes = {value for value in names if isinstance(value, type) and issubclass(value, Exception)}
    not_here = {ferry.FerryError, ferry.FerryWarning, ferry.ExtensionDTypeWarning, ferry.MissingDependencyError}
    not_here.add(ferry.TransferTimeout)  # needs a device that is busy: tests/python/test_transfer.py
    not_here.add(ferry.SinkError)  # needs a sink that failed: tests/metrics/test_delivery.py
    assert classes - not_here == raised


def test_errors_survive_pickling():
    error = ferry.DTypeError("a", "b", "c")
    copied = pickle.loads(pickle.dumps(error))
    assert (type(copied), copied.given, copied.why, copied.instead) == (ferry.DTypeError, "a", "b", "c")
