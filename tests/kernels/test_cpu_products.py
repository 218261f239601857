"""Products with packed weights against float64, with every instruction set of this machine."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from property_tests import examples

from sgc.kernels.cpu.library import (
    Epilogue,
    Format,
    Isa,
    KernelError,
    Library,
    Packed,
    Threads,
    Weight,
)

Array = npt.NDArray[np.float64]

PAIRED = (Epilogue.SWIGLU, Epilogue.GEGLU_TANH)
WIDE = (Epilogue.STORE_F32, Epilogue.ADD)  # out is float32
EXAMPLES = examples(100, suppress_health_check=[HealthCheck.function_scoped_fixture])
formats = pytest.mark.parametrize(
    ("format_", "packed_as"),
    [(Format.F32, Format.F32), (Format.BF16, Format.BF16), (Format.F32, Format.I8),
     (Format.BF16, Format.I8)],
    ids=["f32", "bf16", "f32_i8", "bf16_i8"],
)  # fmt: skip


def numbers(values: npt.ArrayLike, format_: Format) -> npt.NDArray[np.generic]:
    """In the format's memory: bfloat16 as 16 bits, to the nearest, ties to even."""
    single = np.ascontiguousarray(values, np.float32)
    if format_ == Format.F32:
        return single
    bits = single.view(np.uint32)
    return np.where(np.isnan(single), 0x7FC0, (bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(
        np.uint16
    )


def floats(memory: npt.NDArray[np.generic]) -> Array:
    if memory.dtype == np.uint16:
        return (memory.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return memory.astype(np.float64)


def quantized(weight: Array) -> Array:
    """As packing in eight bits leaves it: multiples of a row's largest number over 127."""
    scale = (np.abs(weight).max(1, keepdims=True) / 127).astype(np.float32)
    return np.rint(weight.astype(np.float32) * (np.float32(1) / scale)) * scale.astype(np.float64)


@dataclass
class Case:
    """Weights of random numbers, packed; x @ weight.T is about 1."""

    native: Library
    threads: Threads
    format_: Format
    packed_as: Format
    n_outs: tuple[int, ...]
    n_in: int
    has_biases: bool = True
    interleaved: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        random = np.random.default_rng(self.seed)
        parts = [
            numbers(random.normal(size=(n, self.n_in)) / math.sqrt(self.n_in), self.format_)
            for n in self.n_outs
        ]
        biases = random.normal(size=sum(self.n_outs)).astype(np.float32)
        self.packed = Packed(
            self.native,
            self.format_,
            [Weight(part.ctypes.data, len(part)) for part in parts],
            self.n_in,
            self.threads,
            biases=biases.ctypes.data if self.has_biases else None,
            interleaved=self.interleaved,
            packed_as=self.packed_as,
        )
        self.weight = np.concatenate([floats(part) for part in parts])
        if self.packed_as == Format.I8:
            self.weight = quantized(self.weight)
        self.biases = biases.astype(np.float64) * self.has_biases
        for part in parts:
            part[:] = numbers(np.nan, self.format_)  # the originals are not needed any more
        biases[:] = np.nan
        self.n_written = self.n_outs[0] if self.interleaved else sum(self.n_outs)

    def rows(self, n: int, gap: int = 0) -> npt.NDArray[np.generic]:
        """Random rows; what is between them is not a number."""
        values = np.random.default_rng(self.seed + 1).normal(size=(n, self.n_in + gap))
        values[:, self.n_in :] = np.nan
        return numbers(values, self.format_)

    def run(
        self,
        x: npt.NDArray[np.generic],
        epilogue: Epilogue = Epilogue.STORE,
        *,
        before: Array | None = None,
        gap: int = 0,
        fastest: bool = False,
        threads: Threads | None = None,
    ) -> npt.NDArray[np.generic]:
        """Returns out, with `gap` columns beside it that were not to be written."""
        out = np.zeros((len(x), self.n_written + gap)) if before is None else before
        memory = numbers(out, Format.F32 if epilogue in WIDE else self.format_)
        self.packed.multiply(
            x.ctypes.data, x.shape[1], len(x), epilogue, memory.ctypes.data, memory.shape[1],
            threads or self.threads, scale=0.5, fastest=fastest,
        )  # fmt: skip
        return memory

    def allowed(self, x: npt.NDArray[np.generic], epilogue: Epilogue = Epilogue.STORE) -> float:
        """How far a result may be from the exact one, beside its own rounding. Rows of bfloat16 by
        bytes have 15 bits of their largest number and a sign."""
        if self.format_ != Format.BF16 or self.packed_as != Format.I8 or not len(x):
            return 2e-5
        step = np.abs(floats(x)[:, : self.n_in]).max() / 32767
        error = step / 2 * np.abs(self.weight).sum(1).max()
        return float(2e-5 + error * (6 if epilogue in PAIRED else 1.2))

    def expected(self, x: npt.NDArray[np.generic], epilogue: Epilogue, before: Array) -> Array:
        sums = floats(x)[:, : self.n_in] @ self.weight.T + self.biases
        gate, up = np.split(sums, 2, 1) if self.interleaved else (sums, sums)
        match epilogue:
            case Epilogue.STORE | Epilogue.STORE_F32:
                return sums
            case Epilogue.ADD:
                return before + 0.5 * sums
            case Epilogue.SWIGLU:
                return silu(gate) * up
            case Epilogue.GEGLU_TANH:
                return gelu_tanh(gate) * up
            case Epilogue.SILU:
                return silu(sums)
            case Epilogue.GELU:
                return sums / 2 * (1 + np.vectorize(math.erf, otypes=[float])(sums / math.sqrt(2)))
            case Epilogue.GELU_TANH:
                return gelu_tanh(sums)
            case Epilogue.RELU:
                return np.maximum(sums, 0)


def silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


def gelu_tanh(x: Array) -> Array:
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


sizes = st.one_of(st.integers(1, 70), st.sampled_from([31, 32, 33, 64, 96, 127, 200]))


@pytest.mark.sweep
@formats
@EXAMPLES
@given(
    epilogue=st.sampled_from(list(Epilogue)),
    n_outs=st.lists(sizes, min_size=1, max_size=3),
    n_in=sizes,
    n_rows=st.integers(0, 40),
    gaps=st.tuples(st.integers(0, 5), st.integers(0, 5)),
    flags=st.tuples(st.booleans(), st.booleans()),
)
def test_products_agree_with_float64(
    native, threads, isa, format_, packed_as, epilogue, n_outs, n_in, n_rows, gaps, flags
) -> None:
    has_biases, fastest = flags
    is_paired = epilogue in PAIRED
    outs = (n_outs[0], n_outs[0]) if is_paired else tuple(n_outs)
    case = Case(native, threads, format_, packed_as, outs, n_in, has_biases, is_paired)
    x = case.rows(n_rows, gaps[0])
    before = np.random.default_rng(5).normal(size=(n_rows, case.n_written + gaps[1]))
    before = floats(numbers(before, Format.F32 if epilogue in WIDE else format_))
    out = floats(case.run(x, epilogue, before=before, gap=gaps[1], fastest=fastest))
    expected = case.expected(x, epilogue, before[:, : case.n_written])
    is_narrow = format_ == Format.BF16 and epilogue not in WIDE
    np.testing.assert_allclose(
        out[:, : case.n_written],
        expected,
        rtol=2**-8 if is_narrow else 1e-5,
        atol=case.allowed(x, epilogue),
    )
    np.testing.assert_array_equal(out[:, case.n_written :], before[:, case.n_written :])


@pytest.mark.sweep
@formats
def test_large_products_agree_with_float64(native, threads, isa, format_, packed_as) -> None:
    case = Case(native, threads, format_, packed_as, (700, 300), 1030)
    x = case.rows(150)
    for fastest in (False, True):
        out = floats(case.run(x, Epilogue.STORE_F32, fastest=fastest))
        expected = case.expected(x, Epilogue.STORE_F32, np.zeros(0))
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=case.allowed(x))


@formats
@pytest.mark.parametrize("epilogue", [Epilogue.STORE, Epilogue.SWIGLU, Epilogue.GELU])
def test_a_row_is_the_same_whatever_is_beside_it(
    native, threads, isa, format_, packed_as, epilogue
) -> None:
    outs = (75, 75) if epilogue in PAIRED else (75,)
    case = Case(native, threads, format_, packed_as, outs, 71, interleaved=epilogue in PAIRED)
    x = case.rows(40)
    alone = np.concatenate([case.run(x[i : i + 1], epilogue) for i in range(40)])
    one = Threads(native, 1)
    for n in range(2, 41):
        np.testing.assert_array_equal(case.run(x[:n], epilogue), alone[:n])
        np.testing.assert_array_equal(case.run(x[-n:], epilogue, threads=one), alone[-n:])


@formats
@pytest.mark.parametrize("fastest", [False, True])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_a_number_stays_in_its_row(
    native, threads, isa, format_, packed_as, fastest, bad
) -> None:
    case = Case(native, threads, format_, packed_as, (50,), 37)
    x = case.rows(21)
    clean = case.run(x, fastest=fastest)
    spoiled = x.copy()
    spoiled[3::5] = numbers(bad, format_)
    out = case.run(spoiled, fastest=fastest)
    is_spoiled = np.zeros(21, bool)
    is_spoiled[3::5] = True
    np.testing.assert_array_equal(out[~is_spoiled], clean[~is_spoiled])
    assert not np.isfinite(floats(out)[is_spoiled]).any()


@pytest.mark.parametrize("format_", [Format.F32, Format.BF16], ids=["f32", "bf16"])
def test_numbers_are_rounded_to_the_nearest_and_none_are_lost(
    native, threads, isa, format_
) -> None:
    """A weight of one and values that a format can only just hold, or not at all."""
    one = numbers([[1.0]], format_)
    packed = Packed(native, format_, [Weight(one.ctypes.data, 1)], 1, threads)
    for x, bias, expected in [
        (1.0, 2**-8, 1.0),  # a tie, to even
        (1.0, 3 * 2**-8, 1 + 2**-6),
        (1.0, 2**-8 + 2**-20, 1 + 2**-7),
        (-1.0, -(2**-8) - 2**-20, -1 - 2**-7),
        (3e38, 0.0, 3e38),
        (np.inf, 0.0, np.inf),
    ]:
        biases = np.array([bias], np.float32)
        packed = Packed(
            native, format_, [Weight(one.ctypes.data, 1)], 1, threads, biases=biases.ctypes.data,
        )  # fmt: skip
        memory, out = numbers([[x]], format_), numbers([[0.0]], format_)
        packed.multiply(memory.ctypes.data, 1, 1, Epilogue.STORE, out.ctypes.data, 1, threads)
        if format_ == Format.F32:
            expected = floats(memory)[0, 0] + np.float64(np.float32(bias))
        assert floats(out)[0, 0] == pytest.approx(floats(numbers(expected, format_)), rel=1e-7)


@formats
def test_activations_far_from_zero(native, threads, isa, format_, packed_as) -> None:
    one = numbers([[1.0]], format_)
    packed = Packed(native, format_, [Weight(one.ctypes.data, 1)], 1, threads, packed_as=packed_as)
    x = numbers([[-1e30], [-200], [-90], [-20], [20], [90], [200], [1e30]], format_)
    for epilogue in (Epilogue.SILU, Epilogue.GELU, Epilogue.GELU_TANH, Epilogue.RELU):
        out = numbers(np.zeros((8, 1)), format_)
        packed.multiply(x.ctypes.data, 1, 8, epilogue, out.ctypes.data, 1, threads)
        expected = np.maximum(floats(x), 0)
        np.testing.assert_allclose(floats(out), expected, rtol=2**-8, atol=1e-4)


def test_no_rows_are_no_work(native, threads) -> None:
    case = Case(native, threads, Format.F32, Format.F32, (5,), 3)
    assert case.run(case.rows(0)).shape == (0, 5)


@pytest.mark.parametrize(("packed_as", "n_bytes"), [(Format.BF16, 2), (Format.I8, 1)])
def test_packed_weights_take_about_as_much_memory(native, threads, isa, packed_as, n_bytes) -> None:
    case = Case(native, threads, Format.BF16, packed_as, (640,), 512)
    assert case.packed.n_out == 640
    assert 640 * 512 * n_bytes <= case.packed.n_bytes <= 640 * 512 * n_bytes * 1.05


@pytest.mark.parametrize("n_in", [65536, 65537])
def test_the_longest_sums_of_bytes_are_exact(native, threads, isa, n_in) -> None:
    weights, x = numbers(np.ones((2, n_in)), Format.BF16), numbers(np.ones((1, n_in)), Format.BF16)
    weights[1] |= 0x8000  # -1
    packed = Packed(
        native, Format.BF16, [Weight(weights.ctypes.data, 2)], n_in, threads, packed_as=Format.I8
    )
    out = np.zeros((1, 2), np.float32)
    packed.multiply(x.ctypes.data, n_in, 1, Epilogue.STORE_F32, out.ctypes.data, 2, threads)
    np.testing.assert_allclose(out, [[n_in, -n_in]], rtol=1e-5)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_weight_that_is_not_a_number_shows_in_its_output(native, threads, isa, bad) -> None:
    weights = numbers([[1.0, bad, 1.0], [1.0, 2.0, 3.0]], Format.BF16)
    packed = Packed(
        native, Format.BF16, [Weight(weights.ctypes.data, 2)], 3, threads, packed_as=Format.I8
    )
    x, out = numbers(np.ones((1, 3)), Format.BF16), np.zeros((1, 2), np.float32)
    packed.multiply(x.ctypes.data, 3, 1, Epilogue.STORE_F32, out.ctypes.data, 2, threads)
    assert np.isnan(out[0, 0])
    assert out[0, 1] == pytest.approx(6, rel=1e-2)


def test_sizes_are_checked(native, threads) -> None:
    weight = np.zeros((4, 3), np.float32)
    good = Weight(weight.ctypes.data, 4)
    for weights, n_in, interleaved, message in [
        ([], 3, False, "no weights"),
        ([good], 0, False, "n_in"),
        ([good], -1, False, "n_in"),
        ([good], 1 << 40, False, "n_in"),
        ([Weight(weight.ctypes.data, 0)], 3, False, "n_out"),
        ([Weight(weight.ctypes.data, 1 << 62)], 3, False, "n_out"),
        ([Weight(0, 4)], 3, False, "no data"),
        ([good], 3, True, "two weights"),
        ([good, Weight(weight.ctypes.data, 3)], 3, True, "two weights"),
    ]:
        with pytest.raises(KernelError, match=message):
            Packed(native, Format.F32, weights, n_in, threads, interleaved=interleaved)
    with pytest.raises(KernelError, match="in eight bits"):
        Packed(native, Format.F32, [good], 3, threads, packed_as=Format.BF16)


def test_arguments_are_checked(native, threads) -> None:
    case = Case(native, threads, Format.F32, Format.F32, (4,), 3)
    memory = np.zeros(64, np.float32)
    at = memory.ctypes.data
    for x, x_stride, n_rows, epilogue, out, out_stride, message in [
        (at, 3, -1, 0, at, 4, "negative"),
        (at, 2, 2, 0, at, 4, "stride"),
        (at, 3, 2, 0, at, 3, "stride"),
        (at, -3, 2, 0, at, 4, "stride"),
        (at, 3, 2, 99, at, 4, "unknown epilogue"),
        (at, 3, 2, Epilogue.SWIGLU, at, 4, "pairs"),
        (None, 3, 2, 0, at, 4, "no x"),
        (at, 3, 2, 0, None, 4, "no out"),
        (at, 1 << 61, 1 << 62, 0, at, 4, "too many"),
    ]:
        with pytest.raises(KernelError, match=message):
            case.packed.multiply(x, x_stride, n_rows, epilogue, out, out_stride, threads)


def test_a_limit_holds_for_what_is_packed_from_then_on(native, isa) -> None:
    assert native.isa == isa
    for other in Isa:
        if not native.has(other):
            with pytest.raises(KernelError, match="has no"):
                native.limit(other)
