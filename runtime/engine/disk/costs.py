"""The measured cost of loading a prefix, and of computing it: seconds by number of tokens.

Both are means of recent measurements, by class of length (powers of two), since neither is
proportional to length: a load has a delay, and a step reads the model's weights for few tokens or
many.
"""

from __future__ import annotations

from dataclasses import dataclass

_NEW = 0.25  # the weight of the newest measurement
_FADE = 0.95
_LOAD_DELAY_S = 0.001  # assumed until one is measured
_LOAD_BYTES_PER_S = 1e9


@dataclass(slots=True)
class _Point:
    n: float
    seconds: float


class Curve:
    """Mean seconds, by number of tokens."""

    def __init__(self) -> None:
        self._points: dict[int, _Point] = {}  # by class

    def note(self, n: int, seconds: float) -> None:
        found = self._points.setdefault(n.bit_length(), _Point(n, seconds))
        found.n += _NEW * (n - found.n)
        found.seconds += _NEW * (seconds - found.seconds)

    def seconds(self, n: int) -> float | None:
        """Interpolated between the points around `n`, else proportional to the nearest point; if
        that is too low, the length is tried, and so measured. None without measurements."""
        if not self._points:
            return None
        below, above = self._around(n)
        if below is above:
            return below.seconds * n / below.n
        share = (n - below.n) / (above.n - below.n)
        return below.seconds + share * (above.seconds - below.seconds)

    def fade(self, n: int) -> None:
        """Lowers the estimate a little, so that a length that was too costly is tried again."""
        for point in self._around(n) if self._points else ():
            point.seconds *= _FADE

    def _around(self, n: int) -> tuple[_Point, _Point]:
        """The points next to `n`; the same point twice if there are points only on one side."""
        points = sorted(self._points.values(), key=lambda point: point.n)
        below = [point for point in points if point.n <= n]
        above = [point for point in points if point.n > n]
        return (below[-1] if below else above[0]), (above[0] if above else below[-1])


class Costs:
    """chunk_tokens: positions a step may run. token_bytes: of a page."""

    def __init__(self, chunk_tokens: int, token_bytes: int) -> None:
        self._chunk_tokens, self._token_bytes = chunk_tokens, token_bytes
        self.steps, self.loads = Curve(), Curve()

    def is_worth_loading(self, n_loaded: int, n_without: int, n_with: int) -> bool:
        """Whether to load `n_loaded` tokens, so that only `n_with` of `n_without` tokens need to be
        computed. True while nothing was computed yet."""
        without, left = self._computing(n_without), self._computing(n_with)
        if without is None or left is None:
            return True
        is_worth = self._loading(n_loaded) < without - left
        if not is_worth:
            self.loads.fade(n_loaded)
        return is_worth

    def _loading(self, n: int) -> float:
        measured = self.loads.seconds(n)
        if measured is not None:
            return measured
        return _LOAD_DELAY_S + n * self._token_bytes / _LOAD_BYTES_PER_S

    def _computing(self, n: int) -> float | None:
        n_whole, n_rest = divmod(n, self._chunk_tokens)
        whole = self.steps.seconds(self._chunk_tokens)
        if whole is None:
            return None
        rest = self.steps.seconds(n_rest) if n_rest else 0.0
        return None if rest is None else n_whole * whole + rest
