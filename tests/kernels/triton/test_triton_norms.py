"""Norms and gated activations against float64, and against torch's own in the same dtype."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from property_tests import examples

from sgc.kernels.layers import Activation, Norm
from sgc.kernels.triton.activations import gated
from sgc.kernels.triton.norms import rms_norm
from sgc.runtime.engine.model.decoders.fused import normed

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
TOLERANCES = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}
ACTIVATIONS = {
    Activation.SILU: F.silu,
    Activation.GELU_TANH: lambda x: F.gelu(x, approximate="tanh"),
}


def check(out, exact, torchs, share=0.01):
    """Near float64, and what torch gives on the CPU but for a share that round the other way."""
    out = out.cpu()
    assert out.dtype == torchs.dtype
    least = torch.finfo(out.dtype).tiny  # below it numbers have fewer digits
    error = (out.double() - exact).norm(dim=-1) / exact.norm(dim=-1).clamp_min(least)
    assert bool((error < TOLERANCES[out.dtype]).all()), error
    if out.dtype != torch.float32:
        assert int((out != torchs).sum()) <= 2 + share * out.numel()


def rows(n, width, dtype, seed, scale=1.0):
    numbers = torch.randn(n, width, generator=torch.Generator().manual_seed(seed))
    return (numbers * scale).to(dtype)


def exact_norm(x, weight, eps):
    x = x.double()
    out = x * (x.square().mean(-1, keepdim=True) + eps).rsqrt()
    return out if weight is None else out * weight.double()


@examples(60)
@given(
    n=st.integers(1, 5),
    width=st.sampled_from([1, 64, 96, 896, 1000, 4096]),
    dtype=st.sampled_from(DTYPES),
    weighted=st.sampled_from(["none", "same", "wide"]),
    has_residual=st.booleans(),
    scale=st.sampled_from([1e-3, 1.0, 30.0]),
    seed=st.integers(0, 1000),
)
def test_rms_norms(device, n, width, dtype, weighted, has_residual, scale, seed):
    x = rows(n, width, dtype, seed, scale)
    weight = rows(1, width, dtype if weighted == "same" else torch.float32, seed + 1)[0] + 1
    weight = None if weighted == "none" else weight
    residual = rows(n, width, dtype, seed + 2, scale) if has_residual else None
    summed = x if residual is None else x + residual
    given_residual = None if residual is None else residual.to(device, copy=True)
    given_weight = None if weight is None else weight.to(device)
    out = rms_norm(x.to(device), given_weight, 1e-6, given_residual)
    check(out, exact_norm(summed, weight, 1e-6), normed(Norm(weight, 1e-6), summed))
    if given_residual is not None:
        assert torch.equal(given_residual.cpu(), summed)


def test_part_of_each_row_is_normed_in_place(device):
    whole = rows(4, 300, torch.bfloat16, 0)
    given_whole = whole.to(device, copy=True)
    part = given_whole[:, :128]
    assert rms_norm(part, None, 1e-5, out=part) is part
    assert torch.equal(given_whole[:, 128:].cpu(), whole[:, 128:])
    check(part, exact_norm(whole[:, :128], None, 1e-5), normed(Norm(None, 1e-5), whole[:, :128]))


@examples(40)
@given(
    n=st.integers(1, 4),
    inner=st.sampled_from([1, 100, 1024, 1500]),
    dtype=st.sampled_from(DTYPES),
    activation=st.sampled_from(list(ACTIVATIONS)),
    scale=st.sampled_from([0.1, 1.0, 30.0]),
    seed=st.integers(0, 1000),
)
def test_gated(device, n, inner, dtype, activation, scale, seed):
    pair = rows(n, 2 * inner, dtype, seed, scale)
    gate, up = pair.chunk(2, -1)
    active = ACTIVATIONS[activation]
    exact = active(gate.double()) * up.double()
    # Where tanh is near -1, torch's GELU loses digits, and ours does not.
    share = 0.01 if activation is Activation.SILU else 0.1
    check(gated(pair.to(device), activation), exact, active(gate) * up, share)


def test_no_rows(device):
    none = torch.empty(0, 64, device=device)
    assert rms_norm(none, None, 1e-6).shape == (0, 64)
    assert gated(none, Activation.SILU).shape == (0, 32)


def test_what_does_not_fit_is_refused(device):
    x = torch.zeros(3, 64, device=device)
    for bad in (
        lambda: rms_norm(x, x[0, :32], 1e-6),
        lambda: rms_norm(x, x[0].half(), 1e-6),
        lambda: rms_norm(x, None, 1e-6, x[:2]),
        lambda: rms_norm(x, None, 1e-6, x.half()),
        lambda: rms_norm(x.T, None, 1e-6),
        lambda: rms_norm(x[0], None, 1e-6),
        lambda: gated(x, Activation.RELU),
        lambda: gated(x[:, :63], Activation.SILU),
        lambda: gated(x.long(), Activation.SILU),
    ):
        with pytest.raises(AssertionError):
            bad()
