"""Placed heads against float64, and against the decoder's own functions in the same dtype."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from property_tests import examples

from sgc.kernels.layers import HeadLayout, Norm, Rope
from sgc.kernels.triton.place import place, rope_table
from sgc.runtime.engine.model.decoders.fused import _Angles, normed

N_PAGES, N_POSITIONS = 40, 300
TOLERANCES = {torch.float32: 1e-5, torch.float16: 3e-3, torch.bfloat16: 2e-2}


def rope_of(head_dim, n_rotated, scale=1.0, is_interleaved=False):
    steps = torch.arange(0, n_rotated, 2, dtype=torch.float32) / n_rotated
    return Rope(10000.0**-steps, scale, is_interleaved)


def norm_of(kind, head_dim, dtype, seed):
    if kind == "none":
        return None
    weight = torch.randn(head_dim, generator=torch.Generator().manual_seed(seed)) / 2 + 1
    by_kind = {"bare": None, "same": weight.to(dtype), "wide": weight}
    return Norm(by_kind[kind], 1e-6)


def on(layout, device):
    """The layout with its weights on a device."""

    def moved(norm):
        if norm is None or norm.weight is None:
            return norm
        return Norm(norm.weight.to(device), norm.eps)

    norms = moved(layout.q_norm), moved(layout.k_norm)
    return HeadLayout(layout.n_heads, layout.n_kv_heads, layout.head_dim, *norms, layout.rope)


def torchs(layout, qkv, positions, dtype):
    """Q, K and V as the fused decoder makes them, in dtype."""
    q, k, v = qkv.to(dtype).split([layout.q_width, layout.kv_width, layout.kv_width], -1)
    q, k, v = (h.unflatten(-1, (-1, layout.head_dim)) for h in (q, k, v))
    angles = _Angles(positions, dtype)
    placed = []
    for heads, norm in ((q, layout.q_norm), (k, layout.k_norm)):
        if norm is not None and dtype == torch.float64:
            heads = heads * (heads.square().mean(-1, keepdim=True) + norm.eps).rsqrt()
            heads = heads if norm.weight is None else heads * norm.weight.double()
        elif norm is not None:
            heads = normed(norm, heads)
        placed.append(heads if layout.rope is None else angles.rotated(heads, layout.rope))
    return *placed, v


def run(device, layout, qkv, positions, slots, pools=None):
    dtype = qkv.dtype
    shape = (N_PAGES, layout.n_kv_heads, layout.head_dim)
    k_pool, v_pool = pools or [torch.full(shape, -7.0, dtype=dtype, device=device) for _ in "kv"]
    table = None if layout.rope is None else rope_table(layout.rope, N_POSITIONS, device)
    q = place(
        qkv.to(device), on(layout, device), table, positions.to(device), slots.to(device),
        k_pool, v_pool,
    )  # fmt: skip
    return q.cpu(), k_pool.cpu(), v_pool.cpu()


@pytest.mark.slow
@examples(100)
@given(
    n=st.integers(1, 5),
    heads=st.sampled_from([(1, 1), (3, 1), (14, 2), (32, 8)]),
    head=st.sampled_from([(64, 64), (64, 32), (80, 20), (96, 96), (128, 128), (16, 0)]),
    dtype=st.sampled_from(list(TOLERANCES)),
    norms=st.tuples(*[st.sampled_from(["none", "bare", "same", "wide"])] * 2),
    is_interleaved=st.booleans(),
    scale=st.sampled_from([1.0, 1.25]),
    seed=st.integers(0, 1000),
)
def test_heads_are_placed(device, n, heads, head, dtype, norms, is_interleaved, scale, seed):
    (n_heads, n_kv_heads), (head_dim, n_rotated) = heads, head
    random = torch.Generator().manual_seed(seed)
    rope = rope_of(head_dim, n_rotated, scale, is_interleaved) if n_rotated else None
    q_norm, k_norm = (norm_of(kind, head_dim, dtype, seed + i) for i, kind in enumerate(norms))
    layout = HeadLayout(n_heads, n_kv_heads, head_dim, q_norm, k_norm, rope)
    qkv = torch.randn(n, layout.width, generator=random).to(dtype)
    positions = torch.randint(0, N_POSITIONS, (n,), generator=random)
    slots = torch.randperm(N_PAGES, generator=random)[:n]
    is_padding = torch.rand(n, generator=random) < 0.2
    slots[is_padding] = -1
    qkv[is_padding] = float("nan")
    positions[is_padding] = -(1 << 40)
    q, k_pool, v_pool = run(device, layout, qkv, positions, slots)
    assert not q[is_padding].any()
    kept = ~is_padding
    slots = slots[kept]
    untouched = torch.ones(N_PAGES, dtype=torch.bool)
    untouched[slots] = False
    assert bool((k_pool[untouched] == -7).all())
    assert bool((v_pool[untouched] == -7).all())
    exact = torchs(layout, qkv[kept], positions[kept], torch.float64)
    same = torchs(layout, qkv[kept], positions[kept], dtype)
    assert torch.equal(v_pool[slots], same[2])
    for out, exactly, torch_s in zip((q[kept], k_pool[slots]), exact, same, strict=False):
        error = (out.double() - exactly).norm(dim=-1) / exactly.norm(dim=-1)
        assert bool((error < TOLERANCES[dtype]).all()), error
        if dtype != torch.float32:
            assert int((out != torch_s).sum()) <= 2 + out.numel() // 100


def test_pools_of_any_strides_and_parts_of_rows(device):
    layout = HeadLayout(2, 2, 64, rope=rope_of(64, 64))
    qkv = torch.randn(3, layout.width + 8)[:, : layout.width]
    pools = torch.full((2, 2, N_PAGES, 64), -7.0, device=device).transpose(1, 2)
    positions, slots = torch.tensor([0, 5, 299]), torch.tensor([39, 0, 7])
    _, k_pool, v_pool = run(device, layout, qkv, positions, slots, list(pools))
    _, k, v = torchs(layout, qkv, positions, torch.float32)
    torch.testing.assert_close(k_pool[slots], k)
    torch.testing.assert_close(v_pool[slots], v)
    assert int((k_pool == -7).sum()) == (N_PAGES - 3) * 2 * 64


def test_what_is_out_of_range_is_never_read_or_written(device):
    layout = HeadLayout(1, 1, 64, rope=rope_of(64, 64))
    qkv = torch.ones(4, layout.width)
    positions = torch.tensor([N_POSITIONS, -1, 0, 1])
    slots = torch.tensor([0, 1, N_PAGES, 3])
    q, k_pool, _ = run(device, layout, qkv, positions, slots)
    assert q.isnan().flatten(1).all(1).tolist() == [True, True, True, False]
    assert k_pool[:2].isnan().all()
    assert bool((k_pool[4:] == -7).all())
    assert not q[3].isnan().any()


def test_what_does_not_fit_is_refused(device):
    layout = HeadLayout(2, 1, 16, rope=rope_of(16, 16))
    table = rope_table(layout.rope, 8, device)
    qkv = torch.zeros(3, layout.width, device=device)
    at = torch.zeros(3, dtype=torch.int64, device=device)
    pool = torch.zeros(5, 1, 16, device=device)
    bare = HeadLayout(2, 1, 16)
    layered = HeadLayout(2, 1, 16, Norm(None, 1e-6, is_layer_norm=True), rope=layout.rope)
    biased = HeadLayout(2, 1, 16, Norm(None, 1e-6, bias=pool[0, 0]), rope=layout.rope)
    for bad in (
        (qkv[:, :-1], layout, table, at, at, pool, pool),
        (qkv, bare, table, at, at, pool, pool),
        (qkv, layout, None, at, at, pool, pool),
        (qkv, layered, table, at, at, pool, pool),
        (qkv, biased, table, at, at, pool, pool),
        (qkv, layout, table[:, :8], at, at, pool, pool),
        (qkv, layout, table, at[:2], at, pool, pool),
        (qkv, layout, table, at, at.int(), pool, pool),
        (qkv, layout, table, at, at, pool.half(), pool),
        (qkv, layout, table, at, at, pool, pool[:4]),
        (qkv, layout, table, at, at, pool, pool[..., :8]),
    ):
        with pytest.raises(AssertionError):
            place(*bad)
