"""Options of a run that are lists of stops."""

from __future__ import annotations

import pytest

from sgc.errors import UsageError
from sgc.runtime.executor.run.options import RunOptions, decide_sampling

WRONG_LISTS = [
    ("stop", 5), ("stop", [None]), ("stop", [""]), ("stop", b"ab"), ("stop", {"a": 1}),
    ("stop_regex", 5), ("stop_regex", ["a", 3]),
    ("stop_token_ids", 5), ("stop_token_ids", "ab"), ("stop_token_ids", [None]),
    ("stop_token_ids", [True]), ("stop_token_ids", [-1]), ("stop_token_ids", [1.0]),
    ("stop_token_ids", [2**31]), ("stop_token_ids", {3: 4}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given"), WRONG_LISTS)
def test_stops_of_a_wrong_type(name, given):
    with pytest.raises(UsageError, match=f"{name} must be"):
        RunOptions(**{name: given})
    with pytest.raises(UsageError, match=f"{name} must be"):
        decide_sampling({name: given}, RunOptions())


def test_stops_are_kept_as_tuples():
    options = RunOptions(stop="a", stop_regex=["b", "c"], stop_token_ids=[1, 2])  # type: ignore[arg-type]
    assert (options.stop, options.stop_regex, options.stop_token_ids) == (
        ("a",), ("b", "c"), (1, 2),
    )  # fmt: skip
    sampling = decide_sampling({"stop": ["x"], "stop_token_ids": [3]}, options, ("chat",))
    assert (sampling.stop, sampling.stop_token_ids) == (("x", "chat"), (3,))
    assert hash(options) == hash(
        RunOptions(**{"stop": ("a",), "stop_regex": ("b", "c")}, stop_token_ids=(1, 2))
    )
