"""What `sgc doctor` says of GPUs: devices, driver, and what the kernels for them need."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgc.cli.running.findings import Finding

_CUDA_TORCH = "install a torch with CUDA: pip install --force-reinstall torch"
_INSTALL = "pip install 'sgc[gpu]'"
_INSTALL_TOOLS = "install the CUDA toolkit of torch's version, and pip install ninja"


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """has_device: whether the system has an NVIDIA device. driver: its version, "" if unknown.
    torch: torch's version, "" without torch; cuda: the version that torch is built for, "" for
    none. names: the GPUs that torch sees. tools: the installed tools for compiling kernels.
    modules: the Python packages that are installed."""

    has_device: bool
    driver: str = ""
    torch: str = ""
    cuda: str = ""
    names: tuple[str, ...] = ()
    tools: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()


def gpu_findings(facts: GpuFacts) -> Iterator[Finding]:
    if not facts.has_device:
        yield Finding("gpu", "none")
        return
    yield _device(facts)
    if facts.names:
        yield _triton(facts)
        yield _flashinfer(facts)


def _device(facts: GpuFacts) -> Finding:
    driver = f"driver {facts.driver}" if facts.driver else "a driver that does not tell its version"
    if facts.names:
        return Finding("gpu", f"{', '.join(facts.names)}; {driver}, torch for CUDA {facts.cuda}")
    if not facts.torch:
        return Finding("gpu", f"an NVIDIA device, {driver}, and no torch", _INSTALL)
    if not facts.cuda:
        found = f"an NVIDIA device, {driver}; torch {facts.torch} is built without CUDA"
        return Finding("gpu", found, _CUDA_TORCH)
    found = f"an NVIDIA device that torch {facts.torch} does not see; {driver}"
    return Finding("gpu", found, f"install a driver for CUDA {facts.cuda} or later")


def _triton(facts: GpuFacts) -> Finding:
    if "triton" not in facts.modules:
        found = "not installed: torch attends, slowly, and without graphs"
        return Finding("kernels in triton", found, _INSTALL)
    if not facts.tools & {"cc", "gcc", "clang"} and "CC" not in os.environ:
        found = "triton finds no C compiler, which it needs to launch kernels"
        return Finding("kernels in triton", found, "install gcc")
    return Finding("kernels in triton", "there")


def _flashinfer(facts: GpuFacts) -> Finding:
    what = "kernels of flashinfer"
    if "flashinfer" not in facts.modules:
        found = "not installed: our own kernels in triton attend"
        return Finding(what, found, _INSTALL)
    if missing := _missing_tools(facts):
        return Finding(what, f"it cannot compile its kernels without {missing}", _INSTALL_TOOLS)
    found = "there; they are compiled when a model first needs them, which takes minutes"
    return Finding(what, found, "sgc doctor --prepare compiles the usual ones now")


def _missing_tools(facts: GpuFacts) -> str:
    return " and ".join(tool for tool in ("nvcc", "ninja") if tool not in facts.tools)


def unprepared(facts: GpuFacts) -> Finding | None:
    """Why FlashInfer's kernels cannot be compiled here; None if they can."""
    if not facts.has_device:
        lack, advice = "there is no GPU to compile for", "run this where the engine will run"
    elif not facts.names:
        lack, advice = "torch sees no GPU", _device(facts).advice
    elif "flashinfer" not in facts.modules:
        lack, advice = "flashinfer is not installed", _INSTALL
    elif missing := _missing_tools(facts):
        lack, advice = f"there is no {missing}", _INSTALL_TOOLS
    else:
        return None
    return Finding("--prepare", f"nothing was compiled: {lack}", advice)


def look_at_gpus() -> GpuFacts:
    if not any(Path("/dev").glob("nvidia[0-9]*")):
        return GpuFacts(has_device=False)
    modules = {name for name in ("triton", "flashinfer") if importlib.util.find_spec(name)}
    tools = {name for name in ("nvcc", "ninja", "cc", "gcc", "clang") if _has(name)}
    told = {"driver": _driver(), "tools": frozenset(tools), "modules": frozenset(modules)}
    if importlib.util.find_spec("torch") is None:
        return GpuFacts(True, **told)  # type: ignore[arg-type]
    import torch

    names = tuple(_named(torch.cuda.get_device_properties(i)) for i in _seen(torch))
    cuda = torch.version.cuda or ""
    return GpuFacts(True, torch=torch.__version__, cuda=cuda, names=names, **told)  # type: ignore[arg-type]


def _seen(torch: Any) -> range:
    return range(torch.cuda.device_count() if torch.cuda.is_available() else 0)


def _named(properties: Any) -> str:
    capability = f"{properties.major}.{properties.minor}"
    gib = properties.total_memory / 2**30
    return f"{properties.name} ({gib:.0f} GiB, capability {capability})"


def _driver() -> str:
    """The driver's version, from the text that Linux's kernel module shows."""
    path = Path("/sys/module/nvidia/version")
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""


def _has(tool: str) -> bool:
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return shutil.which(tool) is not None or Path(home, "bin", tool).exists()
