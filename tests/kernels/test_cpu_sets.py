"""A library is built for the instruction sets that its machine uses."""

from __future__ import annotations

import ctypes
import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from kernel_cache import found, needs_compiler

from sgc.kernels.cpu import build, compiling, library, sets
from sgc.kernels.cpu.sets import ALL, AMX_BF16, AVX2, AVX512, AVX512_BF16, PLAIN, InstructionSet

needs_x86 = pytest.mark.skipif(not sets._is_x86(), reason="these are sets of x86")


def flags_by_name(*names: str) -> list[tuple[str, ...]]:
    """Of one source of each name."""
    units = sets.units([Path(f"{name}.cpp") for name in names], ALL)
    return [
        next(unit.flags for unit in units if Path(f"{name}.cpp") in unit.sources) for name in names
    ]


def test_each_source_has_the_flags_of_its_name() -> None:
    names = ("x", "x_plain", "x_avx2", "x_avx512", "x_avx512_bf16", "x_amx_bf16")
    common, plain, avx2, avx512, bf16, amx = flags_by_name(*names)
    assert not [flag for flag in (*common, *plain) if flag.startswith("-m")]
    assert "-mavx2" in avx2
    assert "-mavx512f" not in avx2
    assert "-mavx512bw" in avx512
    assert "-mavx512bf16" not in avx512
    assert "-mavx512bf16" in bf16
    assert "-mamx-bf16" in amx


def test_every_source_is_in_one_unit_and_the_common_ones_first() -> None:
    sources = sorted(build.SOURCES.glob("*.cpp"))
    units = sets.units(sources, ALL)
    assert sorted(source for unit in units for source in unit.sources) == sources
    assert [sets.set_of(unit.sources[0]) is None for unit in units] == [True] + [False] * (
        len(units) - 1
    )


@needs_x86
@pytest.mark.parametrize("top", ALL, ids=lambda s: s.name)
def test_a_machine_gets_what_it_can_use(monkeypatch, top) -> None:
    monkeypatch.delenv("SGC_KERNEL_SETS", raising=False)
    monkeypatch.setenv("SGC_CPU_AMX", "1")
    monkeypatch.setattr(sets, "_features", lambda: top.needs | {"sse2"})
    with_f32 = {AVX512_BF16: (AVX512,), AMX_BF16: (AVX512, AVX512_BF16)}
    assert sets.chosen() == (*with_f32.get(top, ()), top)
    monkeypatch.delenv("SGC_CPU_AMX")
    assert AMX_BF16 not in sets.chosen()
    monkeypatch.setenv("SGC_KERNEL_SETS", "all")
    assert sets.chosen() == ALL


def test_where_the_system_does_not_say_all_are_built(monkeypatch) -> None:
    monkeypatch.delenv("SGC_KERNEL_SETS", raising=False)
    monkeypatch.setattr(sets, "_features", frozenset)
    assert sets.chosen() == sets.everything()
    monkeypatch.setattr(sets.platform, "machine", lambda: "aarch64")
    assert sets.chosen() == (PLAIN,)


@needs_x86
@needs_compiler
def test_another_machine_compiles_its_own(cache, monkeypatch) -> None:
    """As with a home folder that several machines have."""
    monkeypatch.delenv("SGC_KERNEL_SETS", raising=False)
    monkeypatch.setattr(sets, "_features", lambda: AVX2.needs)
    first = found()
    monkeypatch.setattr(sets, "_features", lambda: AVX512.needs)
    second = found()
    assert second != first
    monkeypatch.setenv("PATH", "")
    assert found() == second
    monkeypatch.setattr(sets, "_features", lambda: AVX512_BF16.needs)
    assert build.find().path is None


@needs_x86
@needs_compiler
def test_a_library_of_all_sets_is_as_good(cache, monkeypatch) -> None:
    monkeypatch.setenv("SGC_KERNEL_SETS", "all")
    path = found()
    monkeypatch.delenv("SGC_KERNEL_SETS")
    assert found() == path


def linked(sets_built: Sequence[InstructionSet], folder: Path) -> ctypes.CDLL:
    """Without optimisation, for it takes less time: what is checked is that nothing is missing."""
    folder.chmod(0o700)
    units = [
        dataclasses.replace(unit, flags=(*unit.flags, "-O0"))
        for unit in sets.units(sorted(build.SOURCES.glob("*.cpp")), sets_built)
    ]
    compiler = build._compiler()
    assert compiler is not None
    with compiling.compiled(units, compiler, folder, time.monotonic() + 100) as built:
        return ctypes.CDLL(str(built))


@pytest.mark.slow
@needs_x86
@needs_compiler
def test_every_set_has_something_in_its_place(tmp_path) -> None:
    assert linked((), tmp_path).sgc_cpu_isa_best() == -1


@pytest.mark.slow
@needs_x86
@needs_compiler
@pytest.mark.parametrize("top", ALL, ids=lambda s: s.name)
def test_a_library_without_the_other_sets_links_and_runs(native, tmp_path, top) -> None:
    built_in = (*sets._WITH.get(top, ()), top)
    c = linked(built_in, tmp_path)
    names = [one.bit for one in ALL if c.sgc_cpu_isa_has(one.bit)]
    assert names == [one.bit for one in built_in if native.has(library.Isa(one.bit))]
    assert c.sgc_cpu_isa_best() == (names[-1] if names else -1)


def test_the_bits_are_those_of_the_library() -> None:
    assert [(one.bit, one.name) for one in ALL] == [
        (int(isa), isa.name.lower()) for isa in library.Isa
    ]


def test_tests_ask_for_all_sets(native) -> None:
    assert native.has(library.Isa.PLAIN)
