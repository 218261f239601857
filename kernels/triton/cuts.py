"""Finds where top-k and top-p cut a row's tokens off, without sorting it: a search from the first
digits of the cut's key to its last, a launch a digit (radix selection; Alabi et al., 2012).

A launch counts, for each of the 16 values of a digit, the tokens in the range found so far whose
digit is at least that, and the next one begins by choosing. Top-k counts tokens, top-p adds their
weights. All sums are of whole numbers, so that they are the same whoever adds first.

A cut is a pair (least, n_equal): the tokens that stay have keys of at least `least`, and the first
`n_equal` with a key just below it stay, too.
"""

from __future__ import annotations

import triton
import triton.language as tl

from sgc.kernels.triton.keys import (
    best_id,
    best_number,
    key_of,
    load_row,
    masked,
    number_of,
    weight_of,
)

DIGIT_BITS = 4
_N_DIGITS = tl.constexpr(1 << DIGIT_BITS)
_BITS = tl.constexpr(DIGIT_BITS)
N_TOTALS = 2 << DIGIT_BITS  # a launch's: counts, then weights
N_STATE = 4  # low, above, target, n_equal


@triton.jit
def _narrowed(low, above, target, counts, sums, shift):
    """(low, above, is_alone) after a digit is chosen: the greatest with which target is reached.
    low: of the range's keys; above: the sum of what lies above the range."""
    digit = tl.arange(0, _N_DIGITS)
    chosen = tl.sum((above + sums >= target).to(tl.int32), 0) - 1
    count = tl.sum(tl.where(digit == chosen, counts, 0), 0)
    count -= tl.sum(tl.where(digit == chosen + 1, counts, 0), 0)
    above += tl.sum(tl.where(digit == chosen + 1, sums, 0), 0)
    return low + (chosen.to(tl.int64) << shift), above, count == 1


@triton.jit
def count_state(row, i, n_passes, top_k, vocab, totals, state):
    """(low, above, n_equal) of a row's search for top-k after i passes: n_equal is -1 while it goes
    on; then (low, n_equal) is the cut."""
    low, above = row * 0, row * 0
    n_equal = row * 0
    target = tl.load(top_k + row).to(tl.int64)
    if i == 0:
        if (target > 0) & (target < vocab):
            n_equal -= 1
    else:
        slot = row * 2 * n_passes + i - 1
        low, above = tl.load(state + slot * 4), tl.load(state + slot * 4 + 1)
        n_equal = tl.load(state + slot * 4 + 3)
        if n_equal < 0:
            shift = (n_passes - i) * _BITS
            digit = tl.arange(0, _N_DIGITS)
            counts = tl.load(totals + slot * 2 * _N_DIGITS + digit)
            low, above, is_alone = _narrowed(low, above, target, counts, counts, shift)
            if is_alone:
                n_equal += 1
            elif shift == 0:
                low, n_equal = low + 1, target - above
    return low, above, n_equal


@triton.jit
def mass_state(
    row, i, n_passes, least, n_kept_equal, top_p, best, temperature, totals, state,
    LOW: tl.constexpr,
):  # fmt: skip
    """(low, above, target, n_equal), as `count_state`, of a row's search for top-p. least,
    n_kept_equal: the cut of top-k, which top-p's may only narrow."""
    low, above, target = row * 0, row * 0, row * 0
    n_equal = row * 0
    share = tl.load(top_p + row).to(tl.float64)
    if i == 0:
        if share < 1:
            n_equal -= 1
        else:
            low, n_equal = least, n_kept_equal
    else:
        slot = (row * 2 + 1) * n_passes + i - 1
        low, above = tl.load(state + slot * 4), tl.load(state + slot * 4 + 1)
        target, n_equal = tl.load(state + slot * 4 + 2), tl.load(state + slot * 4 + 3)
        if n_equal < 0:
            shift = (n_passes - i) * _BITS
            digit = tl.arange(0, _N_DIGITS)
            counts = tl.load(totals + slot * 2 * _N_DIGITS + digit)
            sums = tl.load(totals + slot * 2 * _N_DIGITS + _N_DIGITS + digit)
            whole = tl.sum(tl.where(digit == 0, sums, 0), 0)
            if i == 1:
                equal = row * 0
                if n_kept_equal > 0:
                    equal = weight_of(number_of(least - 1, LOW), best, temperature, 0.0)
                exact = share * (whole + n_kept_equal * equal).to(tl.float64)
                target = exact.to(tl.int64)
                target += (target.to(tl.float64) < exact).to(tl.int64)
                target = tl.maximum(target, 1)
                if whole < target:  # what top-k keeps of equals is needed
                    low, n_equal = least, (target - whole + equal - 1) // tl.maximum(equal, 1)
            if n_equal < 0:
                low, above, is_alone = _narrowed(low, above, target, counts, sums, shift)
                if is_alone:
                    n_equal += 1
                elif shift == 0:
                    equal = weight_of(number_of(low, LOW), best, temperature, 0.0)
                    low, n_equal = low + 1, (target - above + equal - 1) // tl.maximum(equal, 1)
    return low, above, target, n_equal


@triton.jit
def cut_of(
    row, n_passes, top_k, top_p, best, temperature, vocab, totals, state,
    ANY_TOP_K: tl.constexpr, ANY_TOP_P: tl.constexpr, LOW: tl.constexpr,
):  # fmt: skip
    """The cut of a row whose searches are done."""
    least, n_equal = row * 0, row * 0
    if ANY_TOP_K:
        least, _, n_equal = count_state(row, n_passes, n_passes, top_k, vocab, totals, state)
    if ANY_TOP_P:
        least, _, _, n_equal = mass_state(
            row, n_passes, n_passes, least, n_equal, top_p, best, temperature, totals, state, LOW
        )
    return least, n_equal


@triton.jit
def search(
    logits, allowed, is_masked, packed, temperatures, top_k, top_p, totals, state,
    logits_stride, allowed_stride, vocab, i, n_passes,
    IS_MASS: tl.constexpr, ANY_TOP_K: tl.constexpr, LOW: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Pass i of the search for top-k, or, IS_MASS, for top-p: a program for each part of a row."""
    row = tl.program_id(1).to(tl.int64)
    chunk = tl.program_id(0)
    temperature = tl.load(temperatures + row)
    best_packed = tl.load(packed + row)
    if (temperature < 1e-5) | (best_id(best_packed) < 0):
        return
    best = best_number(best_packed)
    least, target = row * 0, row * 0
    if IS_MASS:
        n_kept_equal = row * 0
        if ANY_TOP_K:
            least, _, n_kept_equal = count_state(
                row, n_passes, n_passes, top_k, vocab, totals, state
            )
        low, above, target, n_equal = mass_state(
            row, i, n_passes, least, n_kept_equal, top_p, best, temperature, totals, state, LOW
        )
        slot = (row * 2 + 1) * n_passes + i
    else:
        low, above, n_equal = count_state(row, i, n_passes, top_k, vocab, totals, state)
        slot = row * 2 * n_passes + i
    if chunk == 0:
        tl.store(state + slot * 4, low)
        tl.store(state + slot * 4 + 1, above)
        tl.store(state + slot * 4 + 2, target)
        tl.store(state + slot * 4 + 3, n_equal)
    if n_equal >= 0:
        return
    column = chunk * CHUNK + tl.arange(0, CHUNK)
    x = load_row(logits, logits_stride, row, column, vocab)
    x = masked(x, allowed, allowed_stride, is_masked, row, column, vocab)
    key = key_of(x, LOW)
    shift = (n_passes - 1 - i) * _BITS
    is_in = ((key >> shift) >> _BITS) == ((low >> shift) >> _BITS).to(tl.uint32)
    is_in = is_in & (column < vocab) & (key >= least.to(tl.uint32))
    digit = tl.where(is_in, ((key >> shift) & (_N_DIGITS - 1)).to(tl.int32), -1)
    digits = tl.arange(0, _N_DIGITS)
    counts = tl.zeros((_N_DIGITS,), tl.int32)
    sums = tl.zeros((_N_DIGITS,), tl.int64)
    if IS_MASS:
        weight = weight_of(x, best, temperature, 0.0)
    for least_digit in tl.static_range(_N_DIGITS):
        is_of = digit >= least_digit
        counts = tl.where(digits == least_digit, tl.sum(is_of.to(tl.int32), 0), counts)
        if IS_MASS:
            sums = tl.where(digits == least_digit, tl.sum(tl.where(is_of, weight, 0), 0), sums)
    at = totals + slot * 2 * _N_DIGITS + digits
    tl.atomic_add(at, counts.to(tl.int64), sem="relaxed")
    if IS_MASS:
        tl.atomic_add(at + _N_DIGITS, sums, sem="relaxed")
