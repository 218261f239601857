"""The file form: it round-trips, its bytes are stable, and nothing it holds can do harm."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from random_graphs import random_graph

from sgc.errors import SgcError, UsageError, VerifyError
from sgc.ir.file import sgir as sgir
from sgc.ir.file import writer
from sgc.ir.graph import Block, Graph, Lit, Loc, Operand, make_node
from sgc.ir.text.parser import parse


def returning(operand: Operand, line: int = 3) -> Graph:
    node = make_node("return", loc=Loc("p.py", line, "f"), value=operand)
    return Graph("p", (), (Block("entry", (), (node,)),))


@pytest.mark.parametrize(
    "seeds", [range(80), pytest.param(range(80, 250), marks=pytest.mark.slow)], ids=str
)
def test_random_graphs_round_trip_with_their_facts(seeds: range) -> None:
    for seed in seeds:
        graph = random_graph(seed)
        data = sgir.to_bytes(graph)
        again = sgir.from_bytes(data)
        assert again == graph
        assert [node.loc for node in again.nodes()] == [node.loc for node in graph.nodes()]
        assert again.receipts == graph.receipts
        assert sgir.to_bytes(again) == data


DIGEST = "0816b462854662b3bfe8b9a530e4fc56ed316d5025d6e10d5381fa286fe53138"


def test_bytes_do_not_depend_on_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "OP_TABLE_VERSION", 13)  # files hold it; a new op raises it
    text = 'sgir 1\nprogram @p(%x: choice["A", "B"] = "A") {\n return [%x, 1, -0.0]\n}'
    digest = hashlib.sha256(sgir.to_bytes(parse(text))).hexdigest()
    assert digest == DIGEST, "the bytes of a program changed: raise the format version"


def test_literals_keep_their_bits() -> None:
    operand = (Lit(-0.0), Lit(0.0), Lit(float("nan")), Lit(2**63 - 1), Lit(-(2**63)), Lit(True))
    (node,) = sgir.from_bytes(sgir.to_bytes(returning(operand))).nodes()
    assert repr(node.get("value")) == repr(operand)


def test_an_unknown_line_is_no_place() -> None:
    (node,) = sgir.from_bytes(sgir.to_bytes(returning(Lit(1), line=0))).nodes()
    assert node.loc is None


@pytest.mark.parametrize(
    "value", [2**63, -(2**63) - 1, 10**5000, "\ud800", "a\udfff"], ids=["1", "2", "3", "4", "5"]
)
def test_what_the_format_cannot_hold_is_refused_when_saving(value: int | str) -> None:
    with pytest.raises(UsageError, match=r"^p.py:3: the program cannot be saved: (an int|a text)"):
        sgir.to_bytes(returning((Lit("ok"), (Lit(value),))))


def test_what_could_not_be_loaded_is_not_saved(tmp_path: Path) -> None:
    path = tmp_path / "p.sgir"
    with pytest.raises(VerifyError):
        sgir.save(Graph("p", (), ()), path)
    assert not path.exists()


def test_save_and_load(tmp_path: Path) -> None:
    path = tmp_path / "p.sgir"
    for operand in (Lit("old"), Lit("new")):
        sgir.save(returning(operand), path)
        assert sgir.load(path) == sgir.load(str(path)) == returning(operand)
    assert os.listdir(tmp_path) == ["p.sgir"]


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.sgir"
    sgir.save(returning(Lit("old")), path)

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(SgcError, match="cannot write the program: No space left on device"):
        sgir.save(returning(Lit("new")), path)
    assert sgir.load(path) == returning(Lit("old"))
    assert os.listdir(tmp_path) == ["p.sgir"]


def test_save_into_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(SgcError, match="cannot write the program: No such file"):
        sgir.save(returning(Lit(1)), tmp_path / "missing" / "p.sgir")
