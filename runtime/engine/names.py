"""The values of options that are names, and the options passed on to the step process unchanged."""

from __future__ import annotations

from dataclasses import dataclass

POLICIES = ("lpm", "dfs", "fcfs", "random", "program")  # see waiting.py
DEFAULT_POLICY = "program"
DTYPES = ("auto", "float32", "bfloat16", "float16")
ATTENTION = ("auto", "flashinfer", "triton", "torch")  # on a GPU
MEMORY_FRACTION = 0.9  # of a GPU's memory
HELD_AS = ("auto", "int8")  # weights, K and V
IN_EIGHT_BITS = "in eight bits"  # whoever starts an engine passes this line on


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOptions:
    """None: decided by the model or the machine. threads: of the model's computation.

    lookup: whether requests guess tokens (`lookup.py`); None is on CPUs. deterministic: whether a
    reply is kept from depending on what runs beside it. weights, kv: how weights, and K and V, are
    held; "auto" is in the model's dtype. device: "auto" is a GPU where torch sees one, else "cpu".
    attention: the kernels that attend on a GPU. memory_fraction: of a GPU's memory, that the engine
    may take. tensor_parallel: processes, and GPUs, that compute the model together. check: verify
    the engine's invariants after every step.
    """

    pool_tokens: int | None = None
    max_context: int | None = None
    chunk_tokens: int = 512
    max_running: int = 256
    max_waiting: int = 8192
    policy: str = DEFAULT_POLICY
    shares_in_batch: bool = True
    jumps: bool = True
    lookup: bool | None = None
    dtype: str = "auto"
    threads: int | None = None
    deterministic: bool = False
    weights: str = "auto"
    kv: str = "auto"
    device: str = "auto"
    attention: str = "auto"
    memory_fraction: float = MEMORY_FRACTION
    tensor_parallel: int = 1
    check: bool = False
