"""Hostile and damaged files: a LoadError that says what is wrong, or a valid graph; no more."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Callable, MutableSequence
from pathlib import Path

import pytest
from google.protobuf.message import Message
from random_graphs import random_graph

from sgc.errors import LoadError
from sgc.ir.file import sgir as sgir
from sgc.ir.limits import MAX_FILE_BYTES, MAX_NESTING
from sgc.ir.ops import OP_TABLE_VERSION
from sgc.ir.text.parser import parse
from sgc.ir.verify import find_breaches
from sgc.proto import sgir_pb2 as pb


def message(data: bytes) -> pb.Program:
    return pb.Program.FromString(data[sgir.HEADER.size :])


def sealed(payload: bytes, version: int = sgir.FORMAT_VERSION, reserved: int = 0) -> bytes:
    digest = hashlib.sha256(payload).digest()
    return sgir.HEADER.pack(sgir.MAGIC, version, reserved, len(payload), digest) + payload


VALID = sgir.to_bytes(parse('sgir 1\nprogram @p() {\n return ["text", 1]\n}'))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "found an empty one"),
        (b"SG", "the file is truncated: expected 48 bytes, found 2"),
        (VALID[:47], "the file is truncated: expected 48 bytes, found 47"),
        (VALID[:-1], f"truncated: expected {len(VALID)} bytes, found {len(VALID) - 1}"),
        (VALID + b"!", f"expected {len(VALID)} bytes, found 1 more"),
        (VALID[:-1] + b"!", "the file was altered: its checksum does not match"),
        (b"import sgc\n", r"a file that begins with b'impo'"),
        (b"sgir 1\nprogram @p() {", "the text form of a program"),
        (b"\x80\x04\x95pickle", "a file that begins with"),
        (
            sealed(b"", version=2),
            "expected format version 1, found 2\n  made by a newer sgc: upgrade",
        ),
        (sealed(b"", reserved=1), r"found 1 \(reserved: 1\)\n  made by a newer sgc: upgrade"),
        (sealed(b"\xff\xff"), "expected a program's tables, found something else"),
        (sealed(b""), f"expected version {OP_TABLE_VERSION} of the table of ops, found 0"),
    ],
)
def test_what_is_no_file_of_ours_is_told_apart(data: bytes, told: str) -> None:
    with pytest.raises(LoadError, match=told) as caught:
        sgir.from_bytes(data, "p.sgir")
    assert str(caught.value).startswith("p.sgir: ")
    assert caught.value.hint


def test_size_is_bounded() -> None:
    with pytest.raises(LoadError, match=f"expected at most {MAX_FILE_BYTES} bytes"):
        sgir.from_bytes(sgir.MAGIC + bytes(MAX_FILE_BYTES))


def test_what_cannot_be_opened_is_told_apart(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "prog.py").write_text("import sgc\n")
    (tmp_path / "huge").touch()
    os.truncate(tmp_path / "huge", 2**40)
    for name, told in {
        "missing": "no such file",
        "": "found a folder",
        "pipe": "found a pipe or a device",
        "prog.py": "found Python source\n  compile it first: sgc compile ",
        "prog.py/x": "cannot read the file: Not a directory",
        "huge": "expected at most",
        "nul\0": "cannot read the file",
    }.items():
        with pytest.raises(LoadError, match=told):
            sgir.load(str(tmp_path / name))


def change(edit: Callable[[pb.Program], object]) -> bytes:
    program = message(VALID)
    edit(program)
    return sealed(program.SerializeToString(deterministic=True))


def set_string(program: pb.Program, index: int, text: str) -> None:
    program.strings.append(text)
    program.nodes[0].op = len(program.strings) - 1 if index == 0 else program.nodes[0].op
    if index == 1:
        program.nodes[0].fields[0].name = len(program.strings) - 1


def nest(program: pb.Program, n: int, width: int) -> None:
    """Lists of the operand before, each many times: small here, huge when written out."""
    for _ in range(n):
        last = len(program.operands) - 1
        program.operands.add(list=pb.List(items=[last] * width))
    program.nodes[0].fields[0].operand = len(program.operands) - 1


def reuse(program: pb.Program, n: int) -> None:
    """Many nodes that share one long list."""
    program.operands.add(list=pb.List(items=[0] * n))
    program.nodes[0].fields[0].operand = len(program.operands) - 1
    for _ in range(n):
        program.nodes.add().CopyFrom(program.nodes[0])
    program.blocks[0].n_nodes = n + 1


MAPPING = parse(
    """sgir 1
program @p(%xs: list[text]) {
  %s0 = stream "p" path="p"
  %a  = map 1 %xs caller=%s0 returns=true
  return %a
}
called @f(%x: text) {
  return %x
}
called @g(%x: text) {
  %s0 = stream "g" path="g"
  %a  = map 0 ["a", %x] caller=%s0 returns=true
  return %a
}
"""
)


def set_program(program: pb.Program, number: int) -> None:
    """The program that the second called one runs."""
    node = program.called[1].nodes[1]
    program.called[1].operands[node.fields[0].operand].integer = number


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda p: set_program(p, 0), None),
        (lambda p: set_program(p, 1), "in @g: map: there is no called program 1 that it may run"),
        (lambda p: set_program(p, 99), "there is no called program 99 that it may run"),
        (lambda p: set_program(p, -1), "there is no called program -1 that it may run"),
        (lambda p: p.called.pop(), "there is no called program 1 that it may run"),
        (lambda p: p.called[0].called.add(), "at most 0 called programs, found 1"),
        (lambda p: [p.called.add() for _ in range(300)], "at most 256 called programs, found 302"),
        (lambda p: p.called[0].guards.add(), "the called @f has guards of its own"),
        (lambda p: reuse(p.called[0], 2000), "each operand in one place"),
        (lambda p: p.called[0].MergeFromString(b"\xf8\x01\x01"), "only known fields"),
    ],
)
def test_forged_called_programs(edit: Callable[[pb.Program], object], told: str | None) -> None:
    program = message(sgir.to_bytes(MAPPING))
    edit(program)
    data = sealed(program.SerializeToString(deterministic=True))
    if told is None:
        assert sgir.from_bytes(data) == MAPPING
        return
    with pytest.raises(LoadError, match=told):
        sgir.from_bytes(data, "p.sgir")


def test_maps_nest_within_bounds() -> None:
    """Each called program runs the one before it."""
    levels = [
        f'called @f{n}(%x: text) {{\n %s0 = stream "f{n}" path="f{n}"\n'
        + (f" %a = map {n - 1} [%x] caller=%s0 returns=true\n" if n else "")
        + " return %x\n}\n"
        for n in range(MAX_NESTING + 1)
    ]
    program = "sgir 1\nprogram @p() {\n return\n}\n"
    assert find_breaches(parse(program + "".join(levels[:-1]))) == []
    (breach,) = find_breaches(parse(program + "".join(levels)))
    assert breach.headline == f"R16 calls: @f{MAX_NESTING} nests maps deeper than {MAX_NESTING}"


def add_types(program: pb.Program, n: int) -> None:
    program.strings.append("list")
    program.strings.append("int")
    program.types.add(kind=len(program.strings) - 1)
    for index in range(n):
        program.types.add(kind=len(program.strings) - 2, items=[index])


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda p: setattr(p, "op_table_version", OP_TABLE_VERSION + 1), "newer sgc: upgrade"),
        (lambda p: setattr(p, "name", 99), "expected an index below . into strings, found 99"),
        (lambda p: set_string(p, 0, "teleport"), "an op of this table, found 'teleport'"),
        (lambda p: set_string(p, 1, "velocity"), "a field of op return, found 'velocity'"),
        (lambda p: p.types.add(kind=0), "expected a known kind of value, found 'p'"),
        (lambda p: add_types(p, 40), "expected one item type, 32 deep"),
        (lambda p: p.types.add(kind=0, items=[0]), "expected a known kind"),
        (lambda p: p.operands.add(), "expected an operand of a known kind, found none"),
        (lambda p: p.operands.add(value=0), "expected an index below 0 into values, found 0"),
        (lambda p: p.operands.add(list=pb.List(items=[3])), "below 3 into earlier operands"),
        (lambda p: nest(p, 40, 1), "expected lists at most 32 deep"),
        (lambda p: nest(p, 30, 2), "each operand in one place"),
        (lambda p: reuse(p, 2000), "each operand in one place"),
        (lambda p: setattr(p.blocks[0], "n_nodes", 2), "expected 2 nodes in the blocks, found 1"),
        (lambda p: p.params.add(value=7), "expected an index below 0 into values, found 7"),
        (lambda p: p.guards.add(kind=77), "into strings, found 77"),
        (lambda p: p.nodes[0].ClearField("fields"), None),
        (lambda p: p.nodes[0].results.append(0), "into values, found 0"),
        (lambda p: p.blocks.add(), r"the program breaks the rules of the IR\nR6 blocks"),
        (lambda p: p.MergeFromString(b"\xf8\x01\x01"), "only known fields in the tables"),
        (lambda p: p.nodes[0].MergeFromString(b"\xf8\x01\x01"), "only known fields"),
        (lambda p: p.receipts.add(details=[0] * 65), "expected at most 64 details of a receipt"),
        (lambda p: p.receipts.add(details=[77]), "into strings, found 77"),
        (lambda p: p.strings.extend([""] * 2_000_001), "expected at most 2000000 strings"),
    ],
)
def test_forged_tables(edit: Callable[[pb.Program], object], told: str | None) -> None:
    data = change(edit)
    if told is None:
        sgir.from_bytes(data)
        return
    with pytest.raises(LoadError, match=told) as caught:
        sgir.from_bytes(data, "p.sgir")
    assert caught.value.hint
    assert len(str(caught.value)) < 5000


def test_damage_is_a_load_error_or_a_valid_graph() -> None:
    rng = random.Random(11)
    files = [sgir.to_bytes(random_graph(seed, n_nodes=5)) for seed in range(40)]
    n_loaded = 0
    for turn in range(6000):
        data = damaged(rng, rng.choice(files))
        payload = data[sgir.HEADER.size :]
        try:
            graph = sgir.from_bytes(sealed(payload) if turn % 4 else data)
        except LoadError:
            continue
        n_loaded += 1
        assert sgir.from_bytes(sgir.to_bytes(graph)) == graph
    assert n_loaded > 0


def damaged(rng: random.Random, data: bytes) -> bytes:
    copy = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(copy))
        match rng.choice(("flip", "flip", "set", "set", "insert", "cut")):
            case "flip":
                copy[at] ^= 1 << rng.randrange(8)
            case "set":
                copy[at] = rng.randrange(256)
            case "insert":
                copy.insert(at, rng.randrange(256))
            case "cut":
                del copy[max(at, 1) :]
    return bytes(copy)


@pytest.mark.parametrize("n", [400, pytest.param(1500, marks=pytest.mark.slow)])
def test_wrong_indices_are_a_load_error_or_a_valid_graph(n: int) -> None:
    rng = random.Random(12)
    files = [sgir.to_bytes(random_graph(seed, n_nodes=5)) for seed in range(40)]
    n_loaded = 0
    for _ in range(n):
        program = message(rng.choice(files))
        rows = [row for name in ROWS_WITH_INDICES for row in getattr(program, name)]
        for row in rng.sample(rows, rng.randrange(1, 3)):
            redirect(rng, row)
        try:
            graph = sgir.from_bytes(sealed(program.SerializeToString()))
        except LoadError:
            continue
        n_loaded += 1
        assert sgir.from_bytes(sgir.to_bytes(graph)) == graph
    assert n_loaded > 0


ROWS_WITH_INDICES = ("types", "values", "operands", "params", "blocks", "nodes", "guards")


def redirect(rng: random.Random, row: Message) -> None:
    """Points one index of a row somewhere else."""
    fields = row.ListFields()
    if not fields:
        return
    descriptor, value = rng.choice(fields)
    index = rng.randrange(12)
    if isinstance(value, Message):
        redirect(rng, value)
    elif isinstance(value, int):
        setattr(row, descriptor.name, index % 2 if isinstance(value, bool) else index)
    elif isinstance(value, MutableSequence) and isinstance(value[0], int):
        value[rng.randrange(len(value))] = index
    elif isinstance(value, MutableSequence):
        redirect(rng, rng.choice(value))
