"""Hostile files: programs changed at random, with valid checksums.

`mutant(seed)` is a file that depends only on the seed. `try_file` does all that users do with a
stranger's program before they run it: it loads, prints, explains and optimizes it.
"""

from __future__ import annotations

import hashlib
import io
import json
import random
import time
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from google.protobuf.message import DecodeError, Message
from hostile_programs import FAMILIES
from random_graphs import random_graph

from sgc.cli.programs.explain import explain_program
from sgc.errors import SgcError, UsageError
from sgc.ir.analysis.dump import to_dot, to_json, to_mermaid
from sgc.ir.file import sgir as sgir
from sgc.ir.functions import FUNCTIONS
from sgc.ir.graph import Graph, Lit, Ref, Value, make_node
from sgc.ir.ops import OPS
from sgc.ir.text.parser import parse
from sgc.ir.text.printer import to_text
from sgc.ir.types import STREAM
from sgc.passes.pipeline import optimize
from sgc.proto import sgir_pb2 as pb

GOLDENS = Path(__file__).parents[1] / "golden"
N_REPEATS = 2000
LONG = 32_000
MAX_MUTANT_BYTES = 200_000
MAX_ERROR_CHARS = 6000
INTEGERS = (0, 1, -1, 2, 64, 1000, 10**6, 2**31, 2**53, 2**63 - 1, -(2**63))
TEXTS = ("", "a", "\0", "\n" * 50, "🙂", '"\\', "%", "stream", "list", "choice", "none", "{0.x}")


# -- the programs that are changed --


@cache
def originals() -> tuple[Graph, ...]:
    """Valid programs: random ones that cover all ops, and the golden programs."""
    graphs = [random_graph(seed, n_nodes=12) for seed in range(30)]
    return (*graphs, *(parse(path.read_text()) for path in sorted(GOLDENS.glob("*.sgir.txt"))))


@cache
def large(name: str) -> bytes:
    """The payload of a family's program, which is valid and large."""
    return payload_of(parse(FAMILIES[name]()))


def payload_of(graph: Graph) -> bytes:
    return sgir.to_bytes(graph)[sgir.HEADER.size :]


def grown(rng: random.Random, graph: Graph) -> Graph:
    """The graph with many more appends of one text in one of its streams."""
    places = [
        (block, n)
        for block in graph.blocks
        for n, node in enumerate(block.nodes)
        if node.op == "const"
    ]
    if not places:
        return graph
    block, at = rng.choice(places)
    node = block.nodes[at]
    text = Lit(rng.choice(("a", "\u202e", "b\n", "🙂", "")) * rng.choice((1, 100, LONG)))
    n = rng.choice((3, 100, 250, N_REPEATS))
    state, made = node.get("stream"), []
    for number in range(n):
        value = Value(f"grown{number}", STREAM)
        made.append(make_node("const", (value,), node.loc, stream=state, text=text))
        state = Ref(value.name)
    nodes = (*block.nodes[:at], *made, node.with_fields(stream=state), *block.nodes[at + 1 :])
    blocks = tuple(replace(b, nodes=nodes) if b is block else b for b in graph.blocks)
    return replace(graph, blocks=blocks)


def sealed(payload: bytes) -> bytes:
    digest = hashlib.sha256(payload).digest()
    return sgir.HEADER.pack(sgir.MAGIC, sgir.FORMAT_VERSION, 0, len(payload), digest) + payload


def mutant(seed: int) -> bytes:
    rng = random.Random(seed)
    program = pb.Program.FromString(_original(seed, rng))
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
        part = rng.choice([program, program, *program.called])
        rng.choice(MUTATIONS)(rng, part)
    payload = program.SerializeToString()
    if rng.random() < 0.15:
        payload = _raw(rng, payload)
    return sealed(payload[:MAX_MUTANT_BYTES])


def _original(seed: int, rng: random.Random) -> bytes:
    """The payload of the program to change: of 25 seeds, one takes a large family, one is grown."""
    if seed % 25 == 0:
        return large(sorted(FAMILIES)[seed // 25 % len(FAMILIES)])
    graph = rng.choice(originals())
    try:
        return payload_of(grown(rng, graph) if seed % 25 == 1 else graph)
    except UsageError:  # too long to be saved
        return payload_of(graph)


def _raw(rng: random.Random, payload: bytes) -> bytes:
    copy = bytearray(payload or b"\0")
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(copy))
        match rng.randrange(4):
            case 0:
                copy[at] ^= 1 << rng.randrange(8)
            case 1:
                copy[at : at + 1] = rng.randbytes(rng.randrange(4))
            case 2:
                copy[at:at] = copy[at : at + 200] * rng.randrange(1, 20)
            case 3:
                del copy[at : at + rng.randrange(1, 30)]
    return bytes(copy)


# -- mutations of a message --

Mutation = Callable[[random.Random, pb.Program], object]
TABLES = ("types", "values", "operands", "params", "blocks", "nodes", "guards", "receipts")


def _tables(program: pb.Program) -> list[str]:
    return [name for name in TABLES if len(getattr(program, name))]


def _row(rng: random.Random, program: pb.Program) -> Message | None:
    names = _tables(program)
    row: Message | None = rng.choice(getattr(program, rng.choice(names))) if names else None
    while row is not None and rng.random() < 0.5:  # a field of a node, a list of an operand
        inner = [
            item
            for descriptor, value in row.ListFields()
            if descriptor.message_type is not None
            for item in ([value] if isinstance(value, Message) else value)
        ]
        if not inner:
            break
        row = rng.choice(inner)
    return row


def index(rng: random.Random, program: pb.Program) -> None:
    """Changes a number in a row: an index, a count, a line."""
    row = _row(rng, program)
    scalars = [d for d in row.DESCRIPTOR.fields if d.message_type is None] if row else []
    if row is None or not scalars:
        return
    chosen = rng.choice(scalars)
    size = len(getattr(program, rng.choice(TABLES)))
    number = rng.choice((rng.randrange(size + 2), rng.randrange(8), size, 2**31, 2**32 - 1))
    if chosen.is_repeated:
        indices = getattr(row, chosen.name)
        if indices and rng.random() < 0.6:
            indices[rng.randrange(len(indices))] = number
        else:
            indices.extend([number] * rng.choice((1, 1, 2, N_REPEATS)))
    elif chosen.name == "integer":
        setattr(row, chosen.name, rng.choice(INTEGERS))
    elif chosen.name == "number":
        setattr(row, chosen.name, rng.choice((0.0, -1.0, 1e300, float("inf"), float("nan"))))
    elif isinstance(getattr(row, chosen.name), bool):
        setattr(row, chosen.name, rng.random() < 0.5)
    else:
        setattr(row, chosen.name, number)


def row(rng: random.Random, program: pb.Program) -> None:
    """Deletes, duplicates, swaps or overwrites a row."""
    names = _tables(program)
    if not names:
        return
    rows = getattr(program, rng.choice(names))
    at, other = rng.randrange(len(rows)), rng.randrange(len(rows))
    match rng.randrange(4):
        case 0:
            del rows[at]
        case 1:
            rows.add().CopyFrom(rows[at])
        case 2:
            held = type(rows[at])()
            held.CopyFrom(rows[at])
            rows[at].CopyFrom(rows[other])
            rows[other].CopyFrom(held)
        case 3:
            rows[at].CopyFrom(rows[other])


def swap(rng: random.Random, program: pb.Program) -> None:
    """Swaps two strings, which may be names, ops, labels or texts."""
    if len(program.strings) > 1:
        one, two = rng.sample(range(len(program.strings)), 2)
        held = program.strings[one]
        program.strings[one] = program.strings[two]
        program.strings[two] = held


def text(rng: random.Random, program: pb.Program) -> None:
    """Replaces a string by the name of an op or function, or an odd or long text."""
    if not program.strings:
        return
    words = rng.choice((TEXTS, tuple(OPS), tuple(FUNCTIONS), ("a" * LONG, "\u202e" * LONG)))
    program.strings[rng.randrange(len(program.strings))] = rng.choice(words)


def repeat(rng: random.Random, program: pb.Program) -> None:
    """Repeats a row up to thousands of times."""
    names = _tables(program)
    if not names:
        return
    name = rng.choice(names)
    rows = getattr(program, name)
    copied = type(rows[0])()
    copied.CopyFrom(rng.choice(rows))
    rows.extend([copied] * rng.randrange(N_REPEATS))
    if name == "nodes" and program.blocks:
        block = rng.choice(program.blocks)
        n_more = len(rows) - sum(each.n_nodes for each in program.blocks)
        block.n_nodes = min(max(block.n_nodes + n_more, 0), 2**32 - 1)


def nest(rng: random.Random, program: pb.Program) -> None:
    """Adds deeply nested lists or types; each list may hold the previous one several times."""
    n, width = rng.choice((2, 30, 33, 40)), rng.choice((1, 1, 2, 6))
    if rng.random() < 0.3:
        program.strings.append("list")
        kind = len(program.strings) - 1
        for _ in range(n):
            program.types.add(kind=kind, items=[max(len(program.types) - 1, 0)])
        if program.values:
            rng.choice(program.values).type = len(program.types) - 1
        return
    if not program.operands:
        return
    for _ in range(n):
        program.operands.add(list=pb.List(items=[len(program.operands) - 1] * width))
    _use(rng, program, len(program.operands) - 1)


def widen(rng: random.Random, program: pb.Program) -> None:
    """Adds a list of thousands of items, or a choice type of as many options."""
    if rng.random() < 0.3 and program.strings:
        program.strings.append("choice")
        n = rng.randrange(len(program.strings))
        options = [n] * rng.choice((5, N_REPEATS))
        program.types.add(kind=len(program.strings) - 1, options=options)
        for value in rng.sample(list(program.values), len(program.values) // 2):
            value.type = len(program.types) - 1
        return
    first = len(program.operands)
    n = rng.choice((0, 1, 5, N_REPEATS))
    made = pb.Operand(integer=1) if rng.random() < 0.5 else pb.Operand(text=0)
    program.operands.extend([made] * n)
    program.operands.add(list=pb.List(items=range(first, first + n)))
    _use(rng, program, len(program.operands) - 1)


def _use(rng: random.Random, program: pb.Program, operand: int) -> None:
    fields = [each for node in program.nodes for each in node.fields]
    for each in rng.sample(fields, min(len(fields), rng.choice((1, 1, 3, 100)))):
        each.operand = operand


def kind(rng: random.Random, program: pb.Program) -> None:
    """Changes the kind of an operand."""
    if not program.operands:
        return
    chosen = rng.choice(program.operands)
    chosen.Clear()
    match rng.randrange(6):
        case 0:
            chosen.value = rng.randrange(len(program.values) + 1)
        case 1:
            chosen.text = rng.randrange(len(program.strings) + 1)
        case 2:
            chosen.integer = rng.choice(INTEGERS)
        case 3:
            chosen.number = rng.random()
        case 4:
            chosen.boolean = True
        case 5:
            chosen.none = True


def call(rng: random.Random, program: pb.Program) -> None:
    """Adds called programs, up to 20 times the same."""
    copied = pb.Program()
    copied.CopyFrom(rng.choice([program, *program.called]))
    if rng.random() < 0.7:
        del copied.called[:]
        del copied.guards[:]
    program.called.extend([copied] * rng.choice((1, 2, 20)))


def unknown(rng: random.Random, program: pb.Program) -> None:
    """Adds a field that no table has."""
    target = _row(rng, program) or program
    try:
        target.MergeFromString(rng.choice((b"\xf8\x01\x01", b"\xfa\x01\x03abc")))
    except DecodeError:
        return


MUTATIONS: tuple[Mutation, ...] = (
    index, index, index, index, row, row, swap, text, text, text, repeat, nest, widen,
    kind, kind, call, unknown,
)  # fmt: skip


# -- the use of a file --


@dataclass
class Tally:
    """worst_s, worst_bytes: the most CPU seconds and memory that a file took, with its seed."""

    n_files: int = 0
    n_loaded: int = 0
    worst_s: tuple[float, int] = (0.0, -1)
    worst_bytes: tuple[int, int] = (0, -1)

    def add(self, seed: int, graph: Graph | None, seconds: float, grown: int) -> None:
        self.n_files += 1
        self.n_loaded += graph is not None
        self.worst_s = max(self.worst_s, (seconds, seed))
        self.worst_bytes = max(self.worst_bytes, (grown, seed))


def try_files(seeds: Iterable[int], folder: Path, tally: Tally) -> None:
    """Asserts that each file succeeds or raises a typed error; notes CPU seconds and memory."""
    for seed in seeds:
        path = folder / "program.sgir"
        path.write_bytes(mutant(seed))
        before = _resident(reset=True)
        start_s = time.process_time()
        graph = try_file(path, as_json=bool(seed % 2))
        seconds = time.process_time() - start_s
        tally.add(seed, graph, seconds, _resident("VmHWM") - before)
        if graph is not None:
            assert sgir.from_bytes(sgir.to_bytes(graph)) == graph, seed


def try_file(path: Path, as_json: bool) -> Graph | None:
    graph, told = _loaded(path)
    assert len(told) < MAX_ERROR_CHARS
    if graph is None:
        return None
    to_text(graph)
    json.dumps(to_json(graph))
    to_dot(graph)
    to_mermaid(graph)
    with redirect_stdout(io.StringIO()):
        explain_program(
            str(path), (), None, (), None, None, False, None, **EXPLAINED, as_json=as_json
        )
    optimize(graph, 1)  # must not raise PassFailed
    return graph


def _loaded(path: Path) -> tuple[Graph | None, str]:
    try:
        return sgir.load(path), ""
    except SgcError as error:
        return None, str(error)


EXPLAINED = {
    "engine": None, "model": None, "prices": None, "level": 1, "is_warm": False
}  # fmt: skip


def _resident(name: str = "VmRSS", reset: bool = False) -> int:
    """Resident memory of this process in bytes; `reset` resets its high-water mark."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{name}:")[1].split()[0]) * 1024
