"""The detectors are themselves tested: each planted bug must make one of them complain."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pytest
from engine.core.cache import cache_fuzz
from engine.core.fuzz import engine_fuzz, planted_bugs
from engine.core.fuzz.planted_bugs import BUGS

N_OPERATIONS, N_ENGINES = 2000, 30
make_case = cache(engine_fuzz.make_case)


def random_engines(n: int) -> None:
    for seed in range(n):
        requests, setup, right = make_case(seed)
        engine_fuzz.check_all(requests, setup, right, seed)


def complaint(n_engines: int) -> str | None:
    """Which detector found something, and what."""
    detectors: dict[str, Callable[[], None]] = {
        "tree and pool against a dictionary": partial(cache_fuzz.run, 0, N_OPERATIONS),
        "random engines against the naive model": partial(random_engines, n_engines),
    }
    for name, detect in detectors.items():
        try:
            detect()
        except Exception as error:
            return f"{name}: {_describe(error)}"
    return None


def _describe(error: Exception) -> str:
    place = traceback.extract_tb(error.__traceback__)[-1]
    assert place.filename != planted_bugs.__file__, f"badly planted: {error!r}"
    message = " ".join(str(error).split())[:100]
    return f"{type(error).__name__} {message} ({Path(place.filename).name}, {place.name})"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "n_engines"), [(8, 10), pytest.param(1, N_ENGINES, marks=pytest.mark.slow)]
)
def test_planted_bugs_are_found(step: int, n_engines: int) -> None:
    """All but one at most; a run with -s says which detector found each."""
    for seed in range(n_engines):  # before anything is planted
        make_case(seed)
    found: dict[str, str | None] = {}
    for name, plant in [*BUGS.items()][::step]:
        with pytest.MonkeyPatch.context() as patches:
            plant(lambda owner, at, make, p=patches: p.setattr(owner, at, make(getattr(owner, at))))
            found[name] = complaint(n_engines)
        print(f"{name}: {found[name]}")
    missed = [name for name, what in found.items() if what is None]
    assert len(BUGS) >= 20
    assert len(missed) <= 1, f"not found: {missed}"


@pytest.mark.slow
def test_nothing_stays_planted() -> None:
    """And the detectors are quiet where nothing is planted, as `test_fuzz` says of them too."""
    assert complaint(N_ENGINES) is None
