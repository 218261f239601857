"""Finds where top-k and top-p cut a row's tokens off, without sorting it.

`totals` adds up, over the whole row, how many tokens or how much weight lies above each of a few
keys; these show which part of the keys has the cut. `gather` lists the keys of that part, in any
order, and `finish` halves the part until the cut is found: for most rows the list is short.

A cut is a pair (least, n_equal): tokens with keys of at least `least` stay, and so do the first
`n_equal` of those with the key just below it.
"""

from __future__ import annotations

import triton
import triton.language as tl

from sgc.kernels.triton.keys import (
    KEY_BITS,
    TOP,
    best_id,
    best_number,
    key_of,
    load_row,
    masked,
    weight_of,
)

N_PARTS = 8  # of the keys, each a factor of e**4 of weight
_PARTS = tl.constexpr(N_PARTS)
_PART = tl.constexpr((1 << KEY_BITS) // N_PARTS)


@triton.jit
def _starts(row, top_ks, top_ps, vocab):
    """(k, share, cuts_k, cuts_p) of a row: its top-k and top-p, and whether each cuts anything."""
    k, share = tl.load(top_ks + row).to(tl.int64), tl.load(top_ps + row).to(tl.float64)
    return k, share, (k > 0) & (k < vocab), share < 1


@triton.jit
def _is_drawn(row, packed, temperatures):
    return (tl.load(temperatures + row) >= 1e-5) & (best_id(tl.load(packed + row)) >= 0)


@triton.jit
def row_keys(
    logits, allowed, is_masked, packed, temperatures, row, column, logits_stride, allowed_stride,
    vocab,
):  # fmt: skip
    """The keys of some of a row's tokens; 0 beyond its end."""
    x = load_row(logits, logits_stride, row, column, vocab)
    x = masked(x, allowed, allowed_stride, is_masked, row, column, vocab)
    return key_of(x, best_number(tl.load(packed + row)), tl.load(temperatures + row))


@triton.jit
def totals(
    logits, allowed, is_masked, packed, temperatures, top_ks, top_ps, sums, logits_stride,
    allowed_stride, vocab, CHUNK: tl.constexpr,
):  # fmt: skip
    """Adds a part of a row to sums, [n, N_PARTS]: how many tokens' keys are in each part, from
    i * _PART + 1 on, or above it; for rows that only top-p cuts, how much these tokens weigh."""
    row = tl.program_id(1).to(tl.int64)
    _, _, cuts_k, cuts_p = _starts(row, top_ks, top_ps, vocab)
    if (not (cuts_k | cuts_p)) | (not _is_drawn(row, packed, temperatures)):
        return
    column = tl.program_id(0) * CHUNK + tl.arange(0, CHUNK)
    key = row_keys(
        logits, allowed, is_masked, packed, temperatures, row, column, logits_stride,
        allowed_stride, vocab,
    )  # fmt: skip
    part = tl.arange(0, _PARTS)
    found = tl.zeros((_PARTS,), tl.int64)
    if cuts_k:
        for i in tl.static_range(_PARTS):
            n_found = tl.sum((key > i * _PART).to(tl.int32), 0)
            found = tl.where(part == i, n_found.to(tl.int64), found)
    else:
        weight = weight_of(key, 0.0)
        for i in tl.static_range(_PARTS):
            mass = tl.sum(tl.where(key > i * _PART, weight, 0), 0)
            found = tl.where(part == i, mass, found)
    tl.atomic_add(sums + row * _PARTS + part, found, sem="relaxed")


@triton.jit
def _target(share, mass):
    """The least weight that is at least a share of mass."""
    exact = share * mass.to(tl.float64)
    target = exact.to(tl.int64)
    return tl.maximum(target + (target.to(tl.float64) < exact).to(tl.int64), 1)


@triton.jit
def _range(row, k, share, cuts_k, sums):
    """(low, high, above, target): the keys to list, from low to high - 1; the weight above these;
    what top-k or top-p must reach. For top-k, all keys above are listed too, as top-p needs
    them."""
    part = tl.arange(0, _PARTS)
    reached = tl.load(sums + row * _PARTS + part)
    high, above, target = row * 0 + (TOP + 1), row * 0, k
    if not cuts_k:
        target = _target(share, tl.sum(tl.where(part == 0, reached, 0), 0))
    chosen = tl.sum((reached >= target).to(tl.int64), 0) - 1
    if not cuts_k:
        high = (chosen + 1) * _PART + 1
        above = tl.sum(tl.where(part == chosen + 1, reached, 0), 0)
    return tl.maximum(chosen, 0) * _PART + 1, high, above, target


@triton.jit
def gather(
    logits, allowed, is_masked, packed, temperatures, top_ks, top_ps, sums, lists, lengths,
    logits_stride, allowed_stride, vocab, CHUNK: tl.constexpr,
):  # fmt: skip
    """Appends a part of a row's keys that are in its range to lists, [n, vocab]."""
    row = tl.program_id(1).to(tl.int64)
    k, share, cuts_k, cuts_p = _starts(row, top_ks, top_ps, vocab)
    if (not (cuts_k | cuts_p)) | (not _is_drawn(row, packed, temperatures)):
        return
    low, high, _, _ = _range(row, k, share, cuts_k, sums)
    column = tl.program_id(0) * CHUNK + tl.arange(0, CHUNK)
    key = row_keys(
        logits, allowed, is_masked, packed, temperatures, row, column, logits_stride,
        allowed_stride, vocab,
    )  # fmt: skip
    is_in = (key >= low.to(tl.int32)) & (key < high.to(tl.int32))
    rank = tl.cumsum(is_in.to(tl.int32), 0)
    n_in = tl.sum(is_in.to(tl.int32), 0)
    if n_in > 0:
        first = tl.atomic_add(lengths + row, n_in.to(tl.int64), sem="relaxed")
        tl.store(lists + row * vocab + first + rank - 1, key, mask=is_in)


@triton.jit
def _reached(keys, n, least, IS_MASS: tl.constexpr, BLOCK: tl.constexpr):
    """How many listed keys are at least `least`, or, IS_MASS, how much they weigh."""
    found = tl.zeros((BLOCK,), tl.int64)
    for start in range(0, n, BLOCK):
        item = start + tl.arange(0, BLOCK)
        key = tl.load(keys + item, mask=item < n, other=0)
        is_in = (key >= least.to(tl.int32)) & (key > 0)
        if IS_MASS:
            found += tl.where(is_in, weight_of(key, 0.0), 0)
        else:
            found += is_in.to(tl.int64)
    return tl.sum(found, 0)


@triton.jit
def _last_reaching(
    keys, n, low, high, above, target, IS_MASS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """(key, more): the greatest key that reaches target, from low, which does, to high - 1; and how
    much is missing without the tokens of this key."""
    while high - low > 1:
        middle = (low + high) // 2
        if above + _reached(keys, n, middle, IS_MASS, BLOCK) >= target:
            low = middle
        else:
            high = middle
    return low, target - above - _reached(keys, n, low + 1, IS_MASS, BLOCK)


@triton.jit
def _n_of(more, key):
    """How many tokens of this key reach `more`."""
    weight = tl.maximum(weight_of(key, 0.0), 1)
    return (more + weight - 1) // weight


@triton.jit
def finish(
    packed, temperatures, top_ks, top_ps, sums, lists, lengths, cuts, vocab, BLOCK: tl.constexpr
):  # fmt: skip
    """Finds a row's cut: cuts, [n, 2]."""
    row = tl.program_id(0).to(tl.int64)
    if not _is_drawn(row, packed, temperatures):
        return
    k, share, cuts_k, cuts_p = _starts(row, top_ks, top_ps, vocab)
    least, n_equal = row * 0, row * 0
    if cuts_k | cuts_p:
        keys, n = lists + row * vocab, tl.load(lengths + row)
        low, high, above, target = _range(row, k, share, cuts_k, sums)
        is_cut = cuts_p  # whether low, high, above and target are of a cut by weight
        if cuts_k:
            if n >= k:
                key, n_equal = _last_reaching(keys, n, low, high, above, target, False, BLOCK)
                least = key + 1
            if cuts_p:
                low, above = tl.maximum(least, 1), row * 0
                mass = _reached(keys, n, low, True, BLOCK)
                equal = row * 0
                if n_equal > 0:
                    equal = weight_of(least - 1, 0.0)
                target = _target(share, mass + n_equal * equal)
                if mass < target:  # some of the equal tokens that top-k keeps are needed
                    n_equal = _n_of(target - mass, least - 1)
                    is_cut = mass >= target
        if is_cut:
            key, more = _last_reaching(keys, n, low, high, above, target, True, BLOCK)
            least, n_equal = key + 1, _n_of(more, key)
    tl.store(cuts + row * 2, least)
    tl.store(cuts + row * 2 + 1, n_equal)
