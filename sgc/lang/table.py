"""Look-ups in a dict by values known only at run time."""

from __future__ import annotations

from typing import Any

from sgc.core.markers import has_marker
from sgc.core.symbols import has_symbol


class table(dict[Any, Any]):  # a word of the language
    """A dict that can be looked up by a text known only at run time.

    `sgc.table({"yes": 1, "no": 2})[s["x"]]` raises KeyError, as a dict does, if no key equals the
    text; each key, and the miss, is a path of the compiled program.
    """

    def __getitem__(self, key: Any) -> Any:
        found = self._key(key)
        if found is None:
            raise KeyError(key)
        return dict.__getitem__(self, found[0])

    def get(self, key: Any, default: Any = None) -> Any:
        found = self._key(key)
        return default if found is None else dict.__getitem__(self, found[0])

    def __contains__(self, key: object) -> bool:
        return self._key(key) is not None

    def _key(self, key: Any) -> tuple[Any] | None:
        """The key that equals a value, in a tuple of one; None if there is none."""
        if not (has_symbol(key) or (isinstance(key, str) and has_marker(key))):
            return (key,) if dict.__contains__(self, key) else None
        _refuse_plain(key)
        return next(((each,) for each in self if key == each), None)


def _refuse_plain(key: Any) -> None:
    """Stops the trace for a plain string with a marker in it, which Python would compare as is."""
    from sgc.core.stops import stop

    if type(key) is str:
        stop(
            "a text that contains a value known only at run time is looked up",
            hint='build it with +, as in table[x + "!"]',
        )


def join(sep: str, items: Any) -> Any:
    """`sep.join(items)`, also for a list whose length is known only at run time."""
    if has_symbol(items):
        return items.session.joined(sep, items)
    return sep.join(items)
