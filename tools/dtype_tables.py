"""What becomes of each dtype, from the tables that the conversions read."""

from __future__ import annotations

from markdown_text import code, table

from tensorferry._dtypes import NATIVE, TORCH, TorchDType

__all__ = ["array_dtypes", "torch_dtypes"]


def _torch_row(entry: TorchDType) -> list[str]:
    if entry.reads_as is None:
        return [code(entry.name), "refused", "", "", "", f"{entry.note}: {entry.remedy}"]
    native = NATIVE[entry.reads_as]
    shares = native["array"] == entry.reads_as
    return [
        code(entry.name),
        code(native["array"]),
        code(native["native"]),
        code(native["bits"]) or "refused",
        "yes" if shares else "no",
        entry.note,
    ]


def torch_dtypes() -> str:
    """One row for each torch dtype: what ``to_numpy`` gives."""
    head = ["torch dtype", "array dtype", '`dtype="numpy"`', '`dtype="bits"`', "can share memory", "remarks"]
    return table(head, [_torch_row(entry) for entry in TORCH.values()])


def _from_numpy(name: str) -> str:
    if name == "float4_e2m1fn":
        return "`float4_e2m1fn_x2`, packed in pairs along the last axis (a copy)"
    if name in TORCH:
        return code(name)
    return f'refused, torch has none; `dtype="{NATIVE[name]["native"]}"` holds every value'


def array_dtypes() -> str:
    """One row for each dtype that an array can have: what ``from_numpy`` gives."""
    arrays = [entry for name, entry in NATIVE.items() if entry["array"] == name]
    rows = [
        [
            code(entry["name"]),
            "NumPy" if entry["numpy_native"] else "ml_dtypes",
            str(entry["itemsize"]),
            code(entry["native"]),
            code(entry["bits"]) or "refused",
            _from_numpy(entry["name"]),
        ]
        for entry in arrays
    ]
    return table(["array dtype", "from", "bytes", '`dtype="numpy"`', '`dtype="bits"`', "`from_numpy` gives"], rows)
