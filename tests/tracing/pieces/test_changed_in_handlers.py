"""Dicts that code fills, also where it has failed, and puts into lists that grow."""

from __future__ import annotations

from typing import Any

from control_flow import agree

import sgc

REPLIES = ("", "1 2", "a 1", "x,3 y,", "7,a,a 8")


@sgc.function
def rows(s: Any, q: str) -> Any:
    s += q + sgc.gen("a", max_tokens=9)
    found = []
    for part in s["a"].split(","):
        record: dict[str, Any] = {}
        for word in part.split():
            s += word + sgc.gen("n", max_tokens=3)
            try:
                record[word] = int(s["n"])
            except ValueError:
                record[word] = None
        found.append(record)
    return found, len(found)


def test_a_dict_is_changed_where_code_that_changes_it_has_failed() -> None:
    agree(rows, REPLIES, q="x")
