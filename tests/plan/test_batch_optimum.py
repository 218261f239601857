"""Planned batches compute what the offline optimum does, in a pool of a few of their rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from batch_shapes import SHAPES, TABLE
from request_tokens import best_of

import sgc
from sgc.runtime.engine.model.models import DEFAULT_FOLDER
from sgc.runtime.engine.text.tokenizer import load_tokenizer

POOL_TOKENS = 1200
N_ROWS = 40


@pytest.fixture(scope="module")
def small_pool() -> Iterator[sgc.Runtime]:
    with sgc.Runtime("fake", pool_tokens=POOL_TOKENS, check=True) as runtime:
        assert isinstance(runtime, sgc.Runtime)
        yield runtime


def computed(program: sgc.Function, rows: list, engine: sgc.Runtime, **options) -> tuple[int, int]:
    """Prompt tokens computed by a batch on an empty cache, and by the optimum."""
    engine.flush_cache()
    states = program.run_batch(rows, backend=engine, temperature=0, **options)
    assert {state.how for state in states} == {"compiled"}
    asked = [request for state in states for request in state.result().requests]
    asked = [request for request in asked if not request.usage.from_shared]
    best = best_of(asked, load_tokenizer(DEFAULT_FOLDER))
    assert max(len(request.prompt[0].text) for request in asked) > 400  # a few fill the pool
    n_cached = sum(request.usage.cached_tokens for request in asked)
    return best.prompt_tokens - n_cached, best.prompt_tokens - best.cached_tokens


@pytest.mark.sweep
@pytest.mark.parametrize("shape", SHAPES)
def test_a_planned_batch_computes_what_the_optimum_does(shape, small_pool):
    rows = SHAPES[shape].rows(3, N_ROWS)
    n_computed, optimum = computed(SHAPES[shape].program, rows, small_pool)
    assert n_computed == optimum


@pytest.mark.parametrize("shape", ["tree of thought", pytest.param("chat", marks=pytest.mark.slow)])
def test_the_order_of_arrival_computes_more(shape, small_pool):
    """The pool is too small for what these rows keep between their requests."""
    rows = SHAPES[shape].rows(3, N_ROWS)
    n_computed, optimum = computed(SHAPES[shape].program, rows, small_pool, order="given")
    assert n_computed > 1.1 * optimum


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("pool_tokens", [1200, 2000])
def test_every_shape_on_the_model_that_ships(seed, pool_tokens):
    with sgc.Runtime(pool_tokens=pool_tokens, check=True) as engine:
        assert isinstance(engine, sgc.Runtime)
        for name, shape in SHAPES.items():
            n_computed, optimum = computed(shape.program, shape.rows(seed, 96), engine)
            assert n_computed == optimum, name


@pytest.mark.slow
def test_tables_compute_less_with_their_fields_reordered(small_pool):
    rows = TABLE.rows(2, 120)
    planned, _ = computed(TABLE.program, rows, small_pool)
    reordered, optimum = computed(TABLE.program, rows, small_pool, reorder_fields=True)
    assert reordered == optimum
    assert planned > 1.5 * reordered
