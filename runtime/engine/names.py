"""The values of options that are names, and the options passed on to the step process unchanged."""

from __future__ import annotations

import re
from dataclasses import dataclass

POLICIES = ("lpm", "dfs", "fcfs", "random", "program")  # see waiting.py
DEFAULT_POLICY = "program"
DTYPES = ("auto", "float32", "bfloat16", "float16")
ATTENTION = ("auto", "flashinfer", "triton", "torch")  # on a GPU
MEMORY_FRACTION = 0.9  # of a GPU's memory
KV_DIR_BYTES = 8 << 30
KV_CLOSING_S = 20.0  # how long the end of an engine may take to write there
HELD_AS = ("auto", "int8")  # weights, K and V
LAST_TOKEN, FIRST_TOKEN, MEAN = "last", "first", "mean"
POOLINGS = (LAST_TOKEN, MEAN, FIRST_TOKEN)  # which hidden states an embedding is made of
AUTO, OFF = "auto", "off"
TOOL_FORMATS = ("hermes", "llama3", "mistral", "harmony")  # how models write tool calls
REASONING = ("think", "seed:think", "reasoning")  # names of the tags around a model's reasoning
TOOL_FORMAT_NAMES, REASONING_NAMES = (AUTO, *TOOL_FORMATS), (AUTO, *REASONING, OFF)
IN_EIGHT_BITS = "in eight bits"  # whoever starts an engine passes this line on


@dataclass(frozen=True, slots=True)
class Pooling:
    """How embeddings are made. name: one of `POOLINGS`, or empty if there are none, and `refusal`
    says why. said_by: what decided it. warning: about other settings in the folder that are not
    applied."""

    name: str = LAST_TOKEN
    said_by: str = "the default"
    refusal: str = ""
    warning: str = ""

    @property
    def line(self) -> str:
        """What an engine says of it at its start."""
        if self.refusal:
            return f"embeddings: none: {self.refusal}"
        what = "the mean of all tokens" if self.name == MEAN else f"the {self.name} token"
        return f"embeddings: {what} ({self.said_by})"


DEFAULT_POOLING = Pooling()


@dataclass(frozen=True, slots=True)
class ServedAdapter:
    """An adapter that requests may ask for. digest: of its files; rank: the largest of its
    modules'."""

    name: str
    digest: bytes
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOptions:
    """None: decided by the model or the machine. threads: of the model's computation.

    lookup: whether requests guess tokens (`lookup.py`); None is on CPUs. deterministic: whether a
    reply is kept from depending on what runs beside it. weights, kv: how weights, and K and V, are
    held; "auto" is in the model's dtype. device: "auto" is a GPU where torch sees one, else "cpu".
    attention: the kernels that attend on a GPU. memory_fraction: of a GPU's memory, that the engine
    may take. tensor_parallel: processes, and GPUs, that compute the model together. kv_dir: a
    folder for evicted K and V (`disk/`), of at most kv_dir_bytes. adapter: those that requests
    may ask for, NAME=FOLDER each. check: verify the engine's invariants after every step.
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
    kv_dir: str | None = None
    kv_dir_bytes: int = KV_DIR_BYTES
    adapter: tuple[str, ...] = ()
    check: bool = False


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 1 << 10, "mi": 1 << 20,
          "gi": 1 << 30, "ti": 1 << 40}  # fmt: skip


def size_of(text: str) -> int:
    """Bytes of a size such as "8GiB", "500MB" or "1000000"; raises ValueError."""
    found = re.fullmatch(r"(\d{1,15})(?:\.(\d{1,3}))? ?([kmgt]i?)?b?", text.strip().lower())
    if found is None:
        raise ValueError(f"expected a size such as 8GiB or 500MB, not {text!r:.50}")
    whole, part, unit = found.groups()
    n = int(float(f"{whole}.{part or 0}") * _UNITS[unit or ""])
    if n < 1:
        raise ValueError("a size must be one byte or more")
    return n
