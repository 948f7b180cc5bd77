"""Prints what the doctor found."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from tensorferry._doctor.devices import Device
from tensorferry._doctor.facts import Facts
from tensorferry._doctor.kernels import Kernels
from tensorferry._doctor.links import Link
from tensorferry._units import binary_size
from tensorferry.cli._output import grid, heading, stdout, verdict

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["show"]

_FREE = {"lazy": "nothing moved until someone writes to the tensor"}


def show(facts: Facts) -> None:
    """Print all facts, the findings last."""
    console = stdout()
    console.print(heading(f"tensorferry {facts.versions['tensorferry']}"), f"on Python {facts.versions['python']},",
                  f"{platform.system()} {platform.machine()}")  # fmt: skip
    console.print()
    console.print(_software(facts))
    console.print()
    calibrated = any(link.measured for link in facts.links)
    console.print(heading("Devices"), "" if calibrated else "(none was initialised)")
    console.print(_devices(facts))
    console.print()
    console.print(heading("Links"), "and the figures that copies over them are chosen by")
    console.print(_links(facts.links))
    console.print()
    console.print(heading("What each call does here"))
    console.print(_paths(facts))
    console.print()
    console.print(heading("Checks"))
    console.print(_checks(facts))
    console.print()
    if facts.remedies:
        console.print(heading("To get more"))
        console.print(_remedies(facts))
        console.print()
    for finding in facts.findings:
        console.print(verdict(False, no="FINDING"), f"{finding.given}: {finding.why}; {finding.instead}")
    if not facts.findings:
        console.print(verdict(True, yes="Tensors and arrays convert both ways here."))


def _software(facts: Facts) -> Table:
    table = grid("what", "version", "note")
    for package in ("numpy", "ml_dtypes", "torch", "scikit-learn", "pillow", "safetensors"):
        table.add_row(package, facts.versions[package] or "not installed", _note(package, facts))
    native = facts.native
    sanitizers = f", sanitizers {native['sanitizers']}" if native.get("sanitizers") else ""
    built = f"compiler {native['compiler']}, {native['build_type']}, NumPy {native['numpy']}, DLPack {native['dlpack']}"
    table.add_row("native module", "built by", built + sanitizers)
    engine = facts.engine
    threads = f"up to {engine.threads} threads, those of {engine.thread_owner}"
    past = f"results from {binary_size(engine.stream_from_nbytes)} on go past the caches"
    table.add_row("copies and casts", engine.processor_level, f"{threads}; {past}")
    kept = f"{binary_size(facts.host_pool.limit_nbytes)} of idle memory are kept for the next ones, at most"
    table.add_row("private copies", "from a pool", kept)
    table.add_row("device kernels", facts.kernels.source or "none", _kernels(facts.kernels))
    return table


def _kernels(kernels: Kernels) -> str:
    without = "without them the tensor's library packs (metrics by torch.stack), and casts are made on the host"
    if not kernels.source:
        return f"{kernels.reason}; {without}"
    built = ""
    if kernels.source == "embedded":
        built = (
            f"built by toolkit {kernels.toolkit} for compute capability {', '.join(kernels.architectures)} and, by the "
            f"driver, for {kernels.compiled_for[-1]} and newer; needs {kernels.needs}"
        )
    unusable = "" if kernels.usable else f"not used here: {kernels.reason}; {without}"
    return "; ".join(filter(None, [built, unusable]))


def _note(package: str, facts: Facts) -> str:
    if package == "torch" and facts.versions["torch"] is not None:
        if facts.exchange_table:
            read = "tensors are read through the DLPack C exchange table it carries"
        else:
            read = f"tensors are read through DLPack capsules: {facts.exchange_reason}"
        bridge = "its own .numpy() works" if facts.numpy_bridge else "its own .numpy() does not work, tensorferry does"
        return f"{read}; {bridge}"
    uses = {"scikit-learn": "for the demo", "pillow": "for the demo", "safetensors": "for explain FILE.safetensors"}
    return uses.get(package, "")


def _devices(facts: Facts) -> Table:
    table = grid("device", "built", "seen", "so")
    absent = []
    for device in facts.devices:
        if not device.built and not device.seen:
            absent.append(device.name)
        elif device.name == "cpu":
            does = "views, copies and casts" if device.built else "arrays and DLPack producers only"
            table.add_row("cpu", "always there", device.seen, does)
        else:
            built = f"torch has {device.built}" if device.built else "torch is built without"
            table.add_row(device.name, built, device.seen or "none seen", _use(device))
    if absent:
        table.add_row(", ".join(absent), "torch is built without" if facts.versions["torch"] else "", "none seen", "")
    return table


def _use(device: Device) -> str:
    if device.built and device.seen:
        way = "through its driver" if device.path == "driver" else "through torch, blocking"
        return f"{way}: {device.reason}"
    return "needs another build of torch" if device.seen else "no use here"


def _links(links: list[Link]) -> Table:
    table = grid("device", "link", "figures")
    for link in links:
        parts = [link.figures.together, *filter(None, [_measured(link), link.note])]
        parts += [f"kept in {link.kept}"] if link.kept else []
        table.add_row(link.device, link.link, "; ".join(parts))
    return table


def _measured(link: Link) -> str:
    if not link.measured:
        return ""
    made = "simulated" if link.simulated else "measured"
    rates = f"{link.measured['to_host_nbytes_per_s'] / 1e9:.1f} GB/s to the host, "
    rates += f"{link.measured['to_device_nbytes_per_s'] / 1e9:.1f} to the device"
    small = [
        f"{nbytes:,} bytes by a copy in {by_copy * 1e6:.1f} us{f', stored in {by_store * 1e6:.1f}' if by_store else ''}"
        for nbytes, by_store, by_copy in link.measured["small"]
        if by_copy
    ]
    rows = [f"{width}: {efficiency:.0%}" for width, efficiency in link.measured["pitched"]]
    parts = [rates, *small, f"rows of so many bytes against a block {', '.join(rows)}" if rows else ""]
    return f"{made} in {link.measured['seconds'] * 1e3:.0f} ms: " + "; ".join(filter(None, parts))


def _paths(facts: Facts) -> Table:
    table = grid("!call", "!path", "what it costs")
    for path in facts.paths:
        cost = f"{path.copies} copy: {path.reason}" if path.copies else _FREE.get(path.path, "nothing moved")
        waits = f"; waits for {' and '.join(path.waits)}" if path.waits else ""
        table.add_row(path.call, path.path, cost + waits)
    return table


def _checks(facts: Facts) -> Table:
    table = grid("verdict", "check", "detail")
    for check in facts.checks:
        table.add_row(verdict(check.ok), check.name, check.detail)
    return table


def _remedies(facts: Facts) -> Table:
    table = grid("command", "gives")
    for remedy in facts.remedies:
        table.add_row(remedy.command, remedy.gives)
    return table
