"""Where a model is computed: `--device`, and what attends there: `--attention`."""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sgc.errors import LoadError
from sgc.kernels.interface import PagedAttention
from sgc.kernels.torch_attention import TorchAttention
from sgc.runtime.engine.model.device.graphs import Capture, CudaCapture
from sgc.runtime.engine.model.device.group import ALONE, Group
from sgc.runtime.engine.model.device.operations import Operations, TorchOperations
from sgc.runtime.engine.model.forward import Logits

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Place:
    """A device, and by which kernels a model attends there. attention: "flashinfer", "triton" or
    "torch". group: the processes that compute the model, of which this is one."""

    device: torch.device
    attention: str
    group: Group = ALONE

    @property
    def is_gpu(self) -> bool:
        return self.device.type == "cuda"

    @property
    def has_own_kernels(self) -> bool:
        """Whether it is our CPU engine's."""
        return not self.is_gpu and self.group.is_alone

    @property
    def loads_on(self) -> torch.device:
        """Where a model is loaded: whole, so on the CPU if its device gets a share of it."""
        return self.device if self.group.is_alone else torch.device("cpu")

    @property
    def name(self) -> str:
        """For people: a GPU's name; else the device's."""
        if not self.is_gpu:
            return str(self.device)
        properties: Any = torch.cuda.get_device_properties(self.device)
        return f"{self.device} ({properties.name})"

    def take(self) -> None:
        """Makes the GPU the current one of this thread, which Triton, graphs and NCCL use."""
        if self.is_gpu:
            torch.cuda.set_device(self.device)

    def paged_attention(self) -> PagedAttention:
        if self.attention == "torch":
            return TorchAttention(device=self.device)
        from sgc.kernels.triton.attention import TritonAttention

        triton: PagedAttention = TritonAttention(self.device)
        if self.attention == "triton":
            return triton
        from sgc.kernels.flashinfer.attention import FlashInferAttention

        return FlashInferAttention(self.device, fallback=triton)

    def logits(self, values: Tensor) -> npt.NDArray[np.float32] | Logits:
        """As a step reads them. values: [n_logits, vocab]."""
        if self.attention == "torch":
            wide: npt.NDArray[np.float32] = values.float().cpu().numpy()
            return wide
        from sgc.runtime.engine.model.device.logits import DeviceLogits

        return DeviceLogits(values)

    def capture(self) -> Capture | None:
        """What captures graphs; None where there are none."""
        is_held = self.is_gpu and self.attention != "torch"
        return CudaCapture(self.device) if is_held else None

    def operations(self) -> Operations:
        if self.attention == "torch":
            return TorchOperations()
        from sgc.runtime.engine.model.device.triton_operations import TritonOperations

        return TritonOperations()


CPU = Place(torch.device("cpu"), "torch")


def find_place(device: str, attention: str, group: Group = ALONE) -> Place:
    """device: "auto" is a GPU where torch sees one, else "cpu"; or as torch names devices; of a
    group, the first process's. attention: "auto" is the fastest that is there. Raises
    `LoadError`."""
    found = _there(group.device(_device(device)))
    if attention == "auto":
        return Place(found, _fastest(found), group)
    if found.type != "cuda":
        raise LoadError(
            f"--attention {attention} is for models on a GPU, and this one is on the {found}",
            hint="leave --attention out, or choose --device cuda",
        )
    for package in _NEEDS.get(attention, ()):
        if not _is_installed(package):
            raise LoadError(
                f"--attention {attention} needs a package that is not installed: {package}",
                hint="pip install 'sgc[gpu]'",
            )
    return Place(found, attention, group)


_NEEDS = {"triton": ("triton",), "flashinfer": ("triton", "flashinfer")}


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise LoadError(f"--device must be auto, cpu or cuda, not {name!r}") from error
    if device.type == "cpu":
        return torch.device("cpu")
    if device.type != "cuda":
        raise LoadError(f"--device must be auto, cpu or cuda, not {name!r}")
    return device


def _there(device: torch.device) -> torch.device:
    n = torch.cuda.device_count()
    if device.type == "cuda" and (device.index or 0) >= n:
        has = f"torch {torch.__version__} sees {n} NVIDIA GPUs" if n else _why_none()
        raise LoadError(f"there is no {device}: {has}", hint="`sgc doctor` says what would help")
    return torch.device("cuda", device.index or 0) if device.type == "cuda" else device


def _why_none() -> str:
    if torch.version.cuda is None:
        return f"torch {torch.__version__} is a build without CUDA"
    return f"torch {torch.__version__} sees no NVIDIA GPU"


def _fastest(device: torch.device) -> str:
    if device.type != "cuda":
        return "torch"
    if not _is_installed("triton"):
        _log.warning("triton is not installed: torch attends, slowly (pip install 'sgc[gpu]')")
        return "torch"
    if not _is_installed("flashinfer"):
        return "triton"
    if _has_nvcc() or _is_installed("flashinfer_jit_cache"):
        return "flashinfer"
    _log.warning("there is no nvcc, which compiles FlashInfer's kernels: our own attend")
    return "triton"


def _has_nvcc() -> bool:
    """Where FlashInfer looks for it."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    return shutil.which("nvcc") is not None or Path(home, "bin", "nvcc").exists()


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
