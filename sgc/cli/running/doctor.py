"""`sgc doctor`: what this machine has for an engine, which parts are used, and what would help."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from sgc.cli.output.colours import warning
from sgc.cli.running.doctor_gpu import GpuFacts, gpu_findings, look_at_gpus, unprepared
from sgc.cli.running.findings import Finding
from sgc.kernels.cpu import build, library
from sgc.kernels.cpu.limits import measure

_PACKAGES = ("torch", "transformers", "numpy", "grpcio", "triton", "flashinfer-python")
_GIGA = 1e9


def doctor(as_json: bool, measures: bool, prepares: bool) -> None:
    findings = list(look(measures, prepares))
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=1))
        return
    width = max(len(finding.what) for finding in findings)
    for finding in findings:
        click.echo(f"{finding.what:<{width}}  {finding.found}")
        if finding.advice:
            click.echo(f"{'':<{width}}  {warning('->')} {finding.advice}")


def look(measures: bool, prepares: bool) -> Iterator[Finding]:
    yield Finding("python", f"{platform.python_version()} on {sys.platform} {platform.machine()}")
    yield Finding("processor", f"{_processor()}, {_cores()} cores for us")
    yield from map(_package, _PACKAGES)
    build.forget_failure()
    kernels = library.find()
    yield _kernels(kernels)
    if kernels is not None:
        yield Finding("instruction sets", ", ".join(_sets(kernels)))
        if measures:
            yield from _limits(kernels)
    gpus = look_at_gpus()
    yield from gpu_findings(gpus)
    if prepares:
        yield from _prepare(gpus)


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return (os.cpu_count() or 1) if affinity is None else len(affinity(0))


def _processor() -> str:
    """The processor's name from Linux; elsewhere from Python."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def _package(name: str) -> Finding:
    try:
        return Finding(name, version(name))
    except PackageNotFoundError:
        is_for_gpu = name in ("triton", "flashinfer-python")
        extra = "gpu" if is_for_gpu else "engine"
        advice = "" if is_for_gpu else f"pip install 'sgc[{extra}]'"
        return Finding(name, "not installed" + (" (for GPUs alone)" if is_for_gpu else ""), advice)


def _kernels(kernels: library.Library | None) -> Finding:
    if kernels is not None:
        return Finding("our own kernels", f"{kernels.isa.name} ({library.reason()})")
    has_compiler = any(shutil.which(name) for name in ("g++", "clang++", "c++"))
    is_off = os.environ.get("SGC_CPU_KERNELS", "").lower() == "off"
    advice = "unset SGC_CPU_KERNELS" if is_off else "install a C++ compiler, such as g++"
    found = f"none: {library.reason()}; torch computes models, slower"
    return Finding("our own kernels", found, "" if has_compiler and not is_off else advice)


def _sets(kernels: library.Library) -> list[str]:
    return [isa.name for isa in library.Isa if kernels.has(isa)]


def _limits(kernels: library.Library) -> Iterator[Finding]:
    threads = library.Threads(kernels, _cores())
    limits = measure(kernels, threads)
    arithmetic = (
        f"{limits.bf16 / _GIGA:.0f} GFLOP/s in bfloat16, {limits.fp32 / _GIGA:.0f} in float32"
    )
    yield Finding("arithmetic", f"{arithmetic} (all cores, measured)")
    rate = limits.memory / _GIGA
    yield Finding(
        "memory",
        f"{rate:.1f} GB/s read (all cores, measured): one stream of a model of 1 GB of weights "
        f"gets at most {rate:.0f} tokens a second",
    )


def _prepare(gpus: GpuFacts) -> Iterator[Finding]:
    """Compiles FlashInfer's kernels, which takes minutes, or prints why it cannot."""
    lack = unprepared(gpus)
    if lack is not None:
        yield lack
        return
    from sgc.kernels.flashinfer.preparing import prepare

    for made in prepare():
        found = f"compiled in {made.took_s:.0f} s" if not made.problem else made.problem
        yield Finding(f"flashinfer: {made.name}", found)
