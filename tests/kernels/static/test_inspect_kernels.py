"""The inspection of machine code, on what the disassembler says; the tool's own self-test compiles planted faults."""

import importlib.util
import struct
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
spec = importlib.util.spec_from_file_location("inspect_kernels", ROOT / "tools" / "inspect_kernels.py")
inspect_kernels = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = inspect_kernels  # dataclasses look there
spec.loader.exec_module(inspect_kernels)

USAGE = """
Fatbin elf code:
================
arch = sm_75
Resource usage:
 Common:
  GLOBAL:0
 Function ferry_rows:
  REG:36 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:712 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function ferry_strided_1:
  REG:36 STACK:{stack} SHARED:0 LOCAL:{local} CONSTANT[0]:712 TEXTURE:0 SURFACE:0 SAMPLER:0

Fatbin elf code:
================
arch = sm_90
 Function ferry_rows:
  REG:40 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:712 TEXTURE:0 SURFACE:0 SAMPLER:0
"""

CODE = """
arch = sm_90
        Function : ferry_rows
        /*0010*/                   {load} R4, desc[UR4][R2.64] ;
        /*0020*/                   {store} desc[UR4][R2.64], R4 ;
        /*0030*/                   LDS.128 R4, [R2] ;
        /*0040*/                   STS.128 [R2], R4 ;
"""


def faults(findings):
    return [(finding.kernel, finding.architecture, finding.fault) for finding in findings]


def test_kernels_without_local_memory_are_in_order():
    usage = USAGE.format(stack=0, local=0)
    assert faults(inspect_kernels.resource_findings(usage, ["ferry_rows"])) == []


@pytest.mark.parametrize(
    ("stack", "local"), [(24, 0), (0, 8)], ids=["spilled registers", "an array with computed indices"]
)
def test_local_memory_is_a_finding_that_names_kernel_and_architecture(stack, local):
    usage = USAGE.format(stack=stack, local=local)
    assert faults(inspect_kernels.resource_findings(usage, [])) == [
        ("ferry_strided_1", "sm_75", f"{stack} bytes of stack, {local} bytes of local memory")
    ]


def test_a_kernel_that_one_architecture_lacks_is_a_finding():
    usage = USAGE.format(stack=0, local=0)
    findings = inspect_kernels.resource_findings(usage, ["ferry_rows", "ferry_strided_1"])
    assert faults(findings) == [("ferry_strided_1", "sm_90", "is missing")]


@pytest.mark.parametrize(
    ("load", "store", "expected"),
    [
        ("LDG.E.128", "STG.E.128", []),
        ("LD.E.128", "ST.E.128", []),
        ("LDG.E.128.CONSTANT", "STG.E.128.STRONG.SYS", []),
        ("LDG.E", "STG.E.128", ["never loads 16 bytes at once"]),
        ("LDG.E.128", "STG.E.64", ["never stores 16 bytes at once"]),
        ("LDG.E.U8", "STG.E.U8", ["never loads 16 bytes at once", "never stores 16 bytes at once"]),
    ],
    ids=["both", "by generic addresses", "with further marks", "narrow load", "narrow store", "both narrow"],
)
def test_memory_of_the_device_is_accessed_by_16_bytes_and_shared_memory_does_not_count(load, store, expected):
    code = CODE.format(load=load, store=store)
    findings = faults(inspect_kernels.access_findings(code, ["ferry_rows"]))
    assert findings == [("ferry_rows", "sm_90", fault) for fault in expected]


def test_other_kernels_may_be_narrow():
    assert faults(inspect_kernels.access_findings(CODE.format(load="LDG.E", store="STG.E"), ["ferry_other"])) == []


def test_an_image_is_found_within_a_library_and_not_taken_for_its_magic_alone():
    image = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 5) + b"code!"
    magic_alone = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 1 << 40)
    assert inspect_kernels.image_in(b"ELF" + magic_alone + b"..." + image + b"rest") == image
    assert inspect_kernels.image_in(b"ELF" + magic_alone) == b""


def test_every_kernel_of_the_product_is_inspected():
    kernels = inspect_kernels.kernels_of((ROOT / "csrc/kernels/kernel_list.hpp").read_text())
    assert "ferry_gather_slot_table" in kernels
    assert len(kernels) == len(set(kernels)) > 30
    wide = inspect_kernels.wide_kernels(kernels)
    assert {"ferry_rows", "ferry_transpose_1", "ferry_rows_bfloat16_from_float32", "ferry_strided_16"} <= set(wide)
    assert set(wide) <= set(kernels)
