"""The reader of bytecode on the Python that runs: it knows every instruction and its effects."""

from __future__ import annotations

import ast
import dis
import opcode
import re
import sys
import tomllib
from pathlib import Path

import pytest
from control_flow import BUDGET, agree

import sgc
from sgc.errors import TraceError
from sgc.tracing.code import bytecode, opcodes
from sgc.tracing.code.bytecode import CodeInfo
from sgc.tracing.code.handlers import _asks_for_class
from sgc.tracing.code.trees import function_of, place_in, position, renamed_in, tree_of
from sgc.tracing.paths.exploration import Report
from sgc.tracing.tracer import trace

ROOT = Path(__file__).parents[2]


def written() -> set[str]:
    """The instructions that this Python's compiler writes: not those made while code runs."""
    made = set(
        getattr(opcode, "_specialized_opmap", getattr(opcode, "_specialized_instructions", ()))
    )
    pseudo = {name for name in dis.opmap if dis.opmap[name] > 255}
    ours = set(dis.opmap) - made - pseudo
    return {name for name in ours if not name.startswith("INSTRUMENTED_")}


# Made by the interpreter for itself, or reserved.
INTERNAL = {"RESERVED", "ENTER_EXECUTOR", "EXIT_INIT_CHECK", "CACHE"}


def test_every_instruction_of_this_python_is_known():
    assert written() - opcodes.KNOWN - INTERNAL == set()


def test_every_instruction_that_reads_a_local_variable_is_known():
    named = {name for name in written() if "_FAST" in name and name != "STORE_FAST_MAYBE_NULL"}
    assert named <= opcodes.READS_LOCAL.keys()


def test_pops_are_what_an_instruction_can_take():
    for name in written() & opcodes.KNOWN:
        op = dis.opmap[name]
        effect = dis.stack_effect(op, 1 if op >= dis.HAVE_ARGUMENT else None)
        instruction = next(dis.get_instructions("x"))._replace(opname=name, opcode=op, arg=1)
        popped = opcodes.n_popped(instruction, effect)
        assert popped >= 0, name
        assert popped == opcodes.EVERYTHING or popped + effect >= 0, name


def sample(a, b, xs):
    c = a
    d = c = b
    for x in xs:
        c, d = d, x
        if c:
            continue
        a = [y for y in xs if y != c]
    return a, d


def test_an_unknown_instruction_makes_everything_live(monkeypatch):
    known = CodeInfo(sample.__code__)
    last = max(known._places)
    assert known.before(last).live == frozenset()
    monkeypatch.setattr(opcodes, "KNOWN", opcodes.KNOWN - {"RETURN_VALUE"})
    unknown = CodeInfo(sample.__code__)
    for offset in unknown._places:
        assert unknown.before(offset).live == set(sample.__code__.co_varnames)
        assert unknown.before(offset).stack is None
        assert not unknown.before(offset).is_clean


class Counted:
    """A place of an instruction that counts how often it is hashed."""

    n_hashed = 0

    def __hash__(self) -> int:
        Counted.n_hashed += 1
        return 0


def test_the_ends_of_a_long_function_are_compared_by_numbers(monkeypatch):
    """Each instruction is looked at once: as nested tuples, its square would be."""
    source = "def f(x):\n" + "    x = x + 1\n" * 300 + "    return x\n"
    names = {}
    exec(source, names)
    info = CodeInfo(names["f"].__code__)
    monkeypatch.setattr(Counted, "n_hashed", 0)
    info._ops = [op._replace(positions=Counted()) for op in info._ops]
    assert dict(info._copies()) == {}
    assert 0 < Counted.n_hashed <= len(info._ops)


def test_without_liveness_a_trace_is_as_right(monkeypatch):
    """Where no instruction is known nothing merges, and what is compiled is the same."""
    bytecode.forget_infos()
    with monkeypatch.context() as patched:
        patched.setattr(opcodes, "KNOWN", frozenset())
        agree(labelled, ["x" * 37, "y"], q="q")
        assert not bytecode.info_of(sample.__code__).before(0).is_clean
    bytecode.forget_infos()


class Forgetful(dict):
    """What a thread writes is forgotten at once by another."""

    def __setitem__(self, key, value):
        pass


def test_another_thread_may_forget_a_code_at_any_time(monkeypatch):
    monkeypatch.setattr(bytecode, "_infos", Forgetful())
    assert bytecode.info_of(sample.__code__).before(0).is_clean


@sgc.function
def labelled(s, q: str):
    s += q + sgc.gen("x")
    if len(s["x"]) == 37:
        label = "LONG"
    else:
        label = "SHORT"
    other = label
    s += label + other


@sgc.function
def swapped(s, q: str):
    s += q + sgc.gen("x")
    first, second = ("a", "b") if s["x"] == "yes" else ("c", "d")
    first, second = second, first
    s += sgc.gen("y")
    s += first + second + helper(first, other=second) + helper(second)


def helper(text, other="-"):
    if text == other:
        return "same"
    return f"{text}{other}"


def decides(s, names, *, loud=False):
    for name in names:
        s += f"{name}?" + sgc.gen(name)
        if s[name] == "yes":
            s += "Yes!" if loud else "yes"
        else:
            s += "no"
    return f"{names}."


def test_paths_merge_inside_a_helper_that_is_called_in_an_expression():
    @sgc.function
    def program(s, q: str):
        s += q
        said = decides(s, "abcdefgh", loud=True).upper()
        s += said

    report = Report()
    trace(program, budget=BUDGET, is_full=True, report=report)
    assert report.n_runs == 9  # each arm once: else 256


@pytest.mark.parametrize("program", [labelled, swapped], ids=["labelled", "swapped"])
def test_names_set_in_arms_are_kept_apart_and_read(program):
    agree(program, ["x" * 37, "yes", "no"], q="q")


def test_the_pythons_are_listed_once_and_the_same():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pythons = [
        tuple(map(int, name.rpartition(" ")[2].split(".")))
        for name in project["classifiers"]
        if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", name)
    ]
    assert tuple(pythons) == opcodes.PYTHONS
    (said,) = re.findall(
        r"^With Python (.*), `make`", (ROOT / "README.md").read_text(), re.MULTILINE
    )
    assert re.findall(r"\b3\.\d+\b", said) == [f"{a}.{b}" for a, b in opcodes.PYTHONS]


@pytest.mark.parametrize("listed", [(3, 9), (3, 99)])
def test_on_another_python_programs_are_interpreted(listed, monkeypatch, scripted):
    assert listed != sys.version_info[:2]
    monkeypatch.setattr(opcodes, "PYTHONS", (listed,))
    with pytest.raises(TraceError, match=r"programs compile on CPython 3\.\d+; this is CPython"):
        labelled.compile()
    state = labelled(q="q", backend=scripted(lambda prompt, sampling: "x" * 37))
    assert state.text() == "q" + "x" * 37 + "LONGLONG"
    assert "programs compile on CPython" in labelled.explain()


def ends_twice(t, word):
    t += "L" if word == "a" else "R"
    return "end"


def test_copies_of_an_end_are_one_place():
    """3.12 copies `return x` into both arms: where they meet would depend on the Python."""
    info = CodeInfo(ends_twice.__code__)
    returns = [op.offset for op in dis.get_instructions(ends_twice) if "RETURN_" in op.opname]
    assert len({info.canonical(offset) for offset in returns}) == 1


def blocks(xs, opened):
    for x in sorted(xs):
        x.go()
    with opened(xs) as first, first:
        first.go()


def test_what_takes_items_and_enters_blocks_is_at_the_whole_statement():
    """From 3.13 on Python says that it is at the iterable or the manager, which would then be taken
    for what stopped the trace: a copy of what the loop goes over would be made."""
    ops = ("GET_ITER", "FOR_ITER", "BEFORE_WITH", "WITH_EXCEPT_START")
    tree = tree_of(__file__)
    function = function_of(blocks.__code__, tree)
    code = blocks.__code__
    found = [(op.opname, place_in(code, op.offset, tree)) for op in dis.get_instructions(code)]
    loop, block = map(position, function.body)
    of_blocks = {(name, place) for name, place in found if name in ops}
    assert of_blocks == {*((name, loop) for name in ops[:2]), *((name, block) for name in ops[2:])}
    calls = {position(each) for each in ast.walk(function) if isinstance(each, ast.Call)}
    assert {place for name, place in found if name == "CALL"} == {*calls, block}  # and its exit


class Compares:
    def __exit__(self, kind, error, trace):
        return bool([each for each in (KeyError, IndexError) if kind is each])


class Looks:
    def __exit__(self, kind, error, trace):
        return kind is not None


def test_a_load_that_is_one_instruction_with_a_store_is_a_load():
    assert _asks_for_class(Compares.__exit__)
    assert not _asks_for_class(Looks.__exit__)


def test_names_stored_by_one_instruction_are_found():
    """3.13 stores two variables at once, or stores one and loads it."""
    source = "def made(pairs):\n    for __sgc_1_k__, __sgc_1_v__ in pairs: return __sgc_1_k__\n"
    names = {}
    exec(compile(source, "made.py", "exec"), names)
    whole = (2, 0, 2, 100)
    assert renamed_in(names["made"].__code__, whole) == {"k": "__sgc_1_k__", "v": "__sgc_1_v__"}
