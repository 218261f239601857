"""Replies that a test may look for, made from the values that the test compares with."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

from sgc.tracing.checking.hints import Hints
from sgc.tracing.checking.pattern_samples import sample_of

N_CANDIDATES = 8
N_FAVOURITE = 3 * N_CANDIDATES
N_OBJECTS = N_CHANGED = 6  # favourites that are JSON, and those that are changed replies
MAX_CHARS = 1000  # of a changed reply
_BETWEEN = (" ", "\n", ", ", ": ", " | ", "\n\n", "; ")
MAX_DEPTH = 2
MAX_INNER = 6  # keys of an object inside of another


class Candidates:
    """Draws texts that a test may look for.

    own, keys: the program's own texts and the keys that it looks up, used where hints do not help;
    reply: the reply of an earlier trial, of which perhaps only a part must change.
    """

    def __init__(
        self,
        hints: Hints,
        own: Sequence[str],
        keys: Sequence[str],
        random: Random,
        reply: str = "",
    ) -> None:
        self._hints, self._own, self._random = hints, own, random
        self._keys = tuple(dict.fromkeys((*hints.keys, *keys)))
        self._texts = [text for text in hints.texts if text not in self._keys]
        self._reply = reply[:MAX_CHARS]
        kinds: list[tuple[int, Callable[[], str]]] = [(1, self._number)]
        kinds += [(4, self._text), (2, self._joined)] if hints.texts else [(1, self._joined)]
        kinds += [(3, self._number)] if hints.numbers else []
        kinds += [(6, self._sample), (3, self._samples)] if hints.patterns else []
        is_json = any(text[0] in "{[" for text in hints.texts)
        kinds += [(8 if hints.keys or is_json else 1, self._json)] if self._keys else []
        self._kinds = [make for weight, make in kinds for _ in range(weight)]

    def texts(self, nth: int = 0) -> tuple[str, ...]:
        """The texts of one trial; three quarters of them are its favourite, the nth text that the
        test may look for."""
        others = [self._random.choice(self._kinds)() for _ in range(N_CANDIDATES)]
        favourites = self._favourites()
        if not favourites:
            return tuple(others)
        return (*[favourites[nth % len(favourites)]()] * N_FAVOURITE, *others)

    def _favourites(self) -> list[Callable[[], str]]:
        """Functions that make one text for each hint, the kinds of hints in turn."""
        hints = self._hints
        data = [self._whole] * N_OBJECTS if hints.keys else []
        kinds: list[list[Callable[[], str]]] = [
            data,
            [self._changed] * (N_CHANGED if self._reply else 0),
            [partial(self._matching, pattern) for pattern in hints.patterns],
            [partial(str, each) for each in (*hints.texts, *hints.numbers)],
        ]
        turns = itertools.zip_longest(*kinds)
        return [make for turn in turns for make in turn if make is not None]

    def _near(self, found: Sequence[Any]) -> Any:
        """One of some items, the first more often than the last."""
        return found[min(self._random.randrange(len(found)) for _ in range(2))]

    def _word(self) -> str:
        if self._texts and self._random.random() < 0.6:
            return str(self._near(self._texts))
        return self._random.choice(self._own) if self._own else "word"

    def _text(self) -> str:
        """A text as it is, in other letters, or with something before or after it."""
        text = str(self._near(self._hints.texts))
        return self._random.choice([
            text, text, text, text.upper(), text.capitalize(), f"{text}.", f" {text}\n",
            f"{text}: {self._word()}", f"{text} {self._number()}", f"{self._word()} {text}",
            f"{text}{self._word()}",
        ])  # fmt: skip

    def _joined(self) -> str:
        n_parts = self._random.randint(2, 5)
        parts = [
            self._word() if self._random.random() < 0.7 else self._number() for _ in range(n_parts)
        ]
        return self._random.choice(_BETWEEN).join(parts)

    def _value(self) -> int | float:
        numbers = self._hints.numbers
        if not numbers or self._random.random() < 0.3:
            return self._random.choice((0, 1, 2, 3, 5, 10, 100, -1, 0.5, 7.5))
        return self._near(numbers) + self._random.choice((0, 0, 1, -1))  # type: ignore[no-any-return]

    def _number(self) -> str:
        value = self._value()
        return self._random.choice(
            [f"{value}", f"{value}", f"{value}/10", f"{self._word()} {value}"]
        )

    def _sample(self) -> str:
        return self._matching(str(self._near(self._hints.patterns)))

    def _matching(self, pattern: str) -> str:
        return sample_of(pattern, self._random) or self._word()

    def _samples(self) -> str:
        """Several matches, with other lines between them."""
        n_parts = self._random.randint(1, 4)
        parts = [
            self._sample() if self._random.random() < 0.7 else self._word() for _ in range(n_parts)
        ]
        return self._random.choice(("\n", "\n", " ")).join(parts)

    def _json(self) -> str:
        found = self._object(0, self._random.choice((1.0, 1.0, 0.7, 0.3)))
        if self._random.random() < 0.25:
            found = [self._object(1) for _ in range(self._random.randint(0, 3))]
        text = json.dumps(found, ensure_ascii=False)
        return self._random.choice([text, text, text, f"```json\n{text}\n```", f"So: {text}."])

    def _changed(self) -> str:
        """The reply with a part of it changed."""
        with suppress(ValueError):
            data = json.loads(self._reply)
            return json.dumps(self._changed_data(data), ensure_ascii=False)
        return self._random.choice([
            f"{self._reply} {self._word()}", f"{self._word()} {self._reply}",
            f"{self._reply}\n{self._joined()}", re.sub(r"\d+", self._digits, self._reply),
            re.sub(r"\w+$", self._word().replace("\\", ""), self._reply),
        ])  # fmt: skip

    def _digits(self, _: object) -> str:
        return str(self._value())

    def _changed_data(self, data: Any) -> Any:
        if isinstance(data, dict):
            near = [key for key in self._hints.keys if self._random.random() < 0.7]
            key = self._random.choice([*near, *data, *self._keys, "key"])
            if key in data and self._random.random() < 0.5:
                return data | {key: self._changed_data(data[key])}
            return data | {key: self._data_of(key, 1)}
        if isinstance(data, list) and data:
            at = self._random.randrange(len(data))
            return [*data[:at], self._changed_data(data[at]), *data[at + 1 :]]
        return self._data(1)

    def _whole(self) -> str:
        """JSON with every key."""
        return json.dumps(self._object(0), ensure_ascii=False)

    def _object(self, depth: int, share: float = 1.0) -> Any:
        keys = [key for key in self._keys if self._random.random() < share]
        if depth and len(keys) > MAX_INNER:
            keys = self._random.sample(keys, MAX_INNER)
        return {key: self._data_of(key, depth + 1) for key in keys}

    def _data_of(self, key: str, depth: int) -> Any:
        """Data under a key: as a rule, a value that the test compares with under the key nearest to
        the test, and under the next key an object, which may have the nearest key."""
        wanted, near = (*self._texts, *self._hints.numbers), self._hints.keys[:2]
        is_as_a_rule = key in near and self._random.random() < 0.6
        if is_as_a_rule and key == near[0] and wanted:
            return self._near(wanted)
        is_outer = is_as_a_rule and key != near[0] and depth <= MAX_DEPTH
        return self._object(depth) if is_outer else self._data(depth)

    def _data(self, depth: int) -> Any:
        kinds: list[Callable[[], Any]] = [self._word] * 6 + [self._value, self._other]
        if depth <= MAX_DEPTH:
            kinds += [partial(self._object, depth)] * 3 + [partial(self._list, depth)] * 2
        return self._random.choice(kinds)()

    def _list(self, depth: int) -> list[Any]:
        return [self._data(depth + 1) for _ in range(self._random.randint(0, 3))]

    def _other(self) -> Any:
        return self._random.choice((True, False, None, ""))
