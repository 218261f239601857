"""Turns prompts into token ids: text runs, kept ids, literal spans, choices and commits.

A thin layer over the `tokenizers` library: it imports neither torch nor transformers unless the
folder lacks a tokenizer.json. Used by the server process and by the step process (stop strings).
Decoding to text is in `detokenizer.py`.
"""

from __future__ import annotations

import hashlib
import json
import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tokenizers import Tokenizer as Backend

from sgc.errors import LoadError, SgcError
from sgc.runtime.engine.text import tokenizer_files as files_of
from sgc.runtime.engine.text.json_files import AGAIN, Json, content_of
from sgc.runtime.engine.text.literal import Spans, SpecialFinder, SpecialToken
from sgc.runtime.engine.text.token_count import LeastTokens, least_tokens

CACHE_CHARS = 8 * 1024 * 1024
PROBES = (*"etaoinsrhlducmfgpwbyvkxzqjATS", " a", " ", "\n", "\n\n", "1", " 1", *'.,:-"', "é")


@dataclass(frozen=True, slots=True)
class Text:
    """A maximal text run; in its `literal` code point ranges special tokens are plain text."""

    text: str
    literal: Spans = ()


@dataclass(frozen=True, slots=True)
class Ids:
    """Token ids kept as they are."""

    ids: tuple[int, ...]


Segments = Sequence[Text | Ids]


GoOn = Callable[[], None]
"""Called between texts; raises if nobody waits for the result any more."""


def always() -> None:
    """The default: never raises."""


class Tokenizer:
    """The tokenizer of a model; safe to use from several threads."""

    def __init__(self, files: files_of.TokenizerFiles) -> None:
        self._files = files
        self._first = files_of.build(files, files.spec)
        added = self._first.get_added_tokens_decoder()
        self._specials = [
            SpecialToken(i, t.content, t.lstrip, t.rstrip, t.single_word)
            for i, t in added.items()
            if t.special
        ]
        self._finder = SpecialFinder(self._specials)
        self._next_spec = files_of.continuation_spec(files.spec)
        self._cache = _RunCache(CACHE_CHARS)
        self.added_tokens: dict[int, str] = {i: t.content for i, t in added.items()}
        self.special_ids = frozenset(token.id for token in self._specials)
        self.special_tokens = tuple(token.content for token in self._specials)
        self.prefix_ids, self.suffix_ids = self._around()
        self.vocab_size: int = self._first.get_vocab_size(with_added_tokens=True)

    @property
    def backend(self) -> Backend:
        """The library's object, for decoding."""
        return self._first

    @property
    def decoder_spec(self) -> object:
        """The `decoder` part of the tokenizer.json."""
        return self._files.spec.get("decoder")

    @property
    def config(self) -> Json:
        """The content of tokenizer_config.json."""
        return self._files.config

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of everything that decides how text becomes ids."""
        payload = json.dumps([self._files.spec, self.prefix_ids, sorted(self.added_tokens.items())])
        return hashlib.sha256(payload.encode()).hexdigest()

    @cached_property
    def longest_token_chars(self) -> int:
        """The characters of the longest token that is text."""
        texts = self._first.get_vocab(with_added_tokens=True)
        return max((len(t) for t, i in texts.items() if i not in self.special_ids), default=1)

    @cached_property
    def _least(self) -> LeastTokens | None:
        return least_tokens(self._first, self._files.spec)

    def least_tokens(self, text: str) -> int:
        """A lower bound on the text's tokens, without tokenizing it; 0 if there is none."""
        return 0 if self._least is None else self._least.of(text)

    def most_bytes(self, n_tokens: int, is_json: bool = False) -> int | None:
        """The bytes of the longest text of `n_tokens` tokens, or of its longest JSON string; None
        if there is no bound."""
        return None if self._least is None else self._least.most_bytes(n_tokens, is_json)

    @cached_property
    def eos_ids(self) -> tuple[int, ...]:
        """Ids that end a generation: the tokenizer's and the generation configuration's."""
        eos = self._first.token_to_id(content_of(self._files.config.get("eos_token")) or "")
        own = () if eos is None else (eos,)
        return tuple(dict.fromkeys((*own, *self._files.eos_ids)))

    # Prompts.

    def encode_prompt(self, segments: Segments) -> list[int]:
        """The ids of a prompt: the beginning-of-sequence token once, then every run in order."""
        ids = list(self.prefix_ids)
        at_start = True
        for segment in segments:
            if isinstance(segment, Ids):
                ids.extend(segment.ids)
                at_start = False
            elif segment.text:
                ids.extend(self._encode_run(segment, at_start))
                at_start = False
        return ids

    def encode_whole(self, segments: Segments, last: int | None = None) -> list[int]:
        """The ids of a prompt that nothing follows: with what the tokenizer puts at its end, which
        ids may bring themselves. last: how many count, of the last ones; the beginning-of-sequence
        token stays."""
        ids = self.encode_prompt(segments)
        brings_end = bool(segments) and isinstance(segments[-1], Ids)
        n_end = len(self.suffix_ids)
        if not (brings_end and n_end and tuple(ids[-n_end:]) == self.suffix_ids):
            ids += self.suffix_ids
        if last is None or len(ids) <= last:
            return ids
        n_start = len(self.prefix_ids) if last > len(self.prefix_ids) else 0
        return ids[:n_start] + ids[n_start + len(ids) - last :]

    def encode_choices(
        self, segments: Segments, choices: Sequence[str], go_on: GoOn = always
    ) -> tuple[list[int], list[list[int]]]:
        """The prompt's ids, and each choice's from the first token at which any of them differ.

        Every choice is tokenized together with the run it continues. If one would have no token,
        the cut moves back by one. If prompt and choices have no token in common (a short prompt
        that merges with all of them), the choices are tokenized separately. Raises ValueError for
        an empty choice or prompt, and whatever `go_on` raises, which is called before each choice.
        """
        if not all(choices):
            raise ValueError("a choice is empty")
        alone = self.encode_prompt(segments)
        if not alone:
            raise ValueError("the prompt has no token for the choices to follow")
        whole = [
            self.encode_prompt(with_text(segments, choice, is_literal=True))
            for choice in _each(choices, go_on)
        ]
        cut = common_prefix_length([alone, *whole])
        cut = min(cut, min(len(ids) for ids in whole) - 1)
        if cut < 1:
            cut = len(alone)
            whole = [alone + self.encode_continuation(choice) for choice in choices]
            if any(len(ids) == cut for ids in whole):
                raise ValueError("a choice has no token")
        return whole[0][:cut], [ids[cut:] for ids in whole]

    def encode_commit(
        self, segments: Segments, heads: Sequence[str] = (), go_on: GoOn = always
    ) -> list[int]:
        """The longest common token prefix of the prompt followed by each of `heads`.

        Without heads: of the prompt alone and followed by each of PROBES. Raises whatever `go_on`
        raises, which is called before each of them.
        """
        follow = dict.fromkeys(list(heads) or ["", *PROBES])
        whole = [self.encode_prompt(with_text(segments, head)) for head in _each(follow, go_on)]
        return whole[0][: common_prefix_length(whole)]

    def encode_continuation(self, text: str) -> list[int]:
        """The ids of a text that follows token ids."""
        return list(self._encode_run(Text(text), at_start=False))

    def encode_literal(self, text: str) -> list[int]:
        """The ids of a text that follows token ids, in which special tokens are plain text."""
        return list(self._encode_run(Text(text, ((0, len(text)),)), at_start=False))

    # Runs.

    def _encode_run(self, run: Text, at_start: bool) -> tuple[int, ...]:
        key = (_CLIENT.get(), run.text, run.literal, at_start)
        ids = self._cache.get(key)
        if ids is None:
            ids = self._encode_fresh(run, at_start)
            self._cache.put(key, ids)
        return ids

    def _encode_fresh(self, run: Text, at_start: bool) -> tuple[int, ...]:
        if run.literal and self._finder.touches(run.text, run.literal):
            return tuple(self._encode_around_specials(run, at_start))
        return tuple(_ids(self._first if at_start else self._next, run.text))

    def _encode_around_specials(self, run: Text, at_start: bool) -> list[int]:
        ids: list[int] = []
        done = 0
        for special in self._finder.outside(run.text, run.literal):
            ids += self._encode_plain(run.text[done : special.start], at_start, done == 0)
            ids.append(special.id)
            done = special.end
        return ids + self._encode_plain(run.text[done:], at_start, done == 0)

    def _encode_plain(self, text: str, at_start: bool, is_first_chunk: bool) -> list[int]:
        """A chunk between special tokens, in which no special token is recognised."""
        if not text:
            return []
        gets_prefix = at_start and (is_first_chunk or not self._prefix_only_first)
        return _ids(self._first_plain if gets_prefix else self._next_plain, text)

    @cached_property
    def _prefix_only_first(self) -> bool:
        return '"prepend_scheme": "first"' in json.dumps(self._files.spec.get("pre_tokenizer"))

    @cached_property
    def _next(self) -> Backend:
        if self._next_spec == self._files.spec:
            return self._first
        return files_of.build(self._files, self._next_spec)

    @cached_property
    def _first_plain(self) -> Backend:
        return _plain(files_of.build(self._files, self._files.spec))

    @cached_property
    def _next_plain(self) -> Backend:
        if self._next is self._first:
            return self._first_plain
        return _plain(files_of.build(self._files, self._next_spec))

    def _around(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The ids that the post-processor puts before every text (BOS), and those after it, which
        only texts that nothing follows have.

        With a tokenizer.json the configuration's `add_bos_token` is ignored, as in transformers.
        """
        probe = "a"
        bare = _ids(self._first, probe)
        dressed = self._first.encode(probe, add_special_tokens=True).ids
        for start in range(len(dressed) - len(bare) + 1):
            if dressed[start : start + len(bare)] == bare:
                return tuple(dressed[:start]), tuple(dressed[start + len(bare) :])
        return (), ()


def load_tokenizer(folder: str | Path) -> Tokenizer:
    """The tokenizer of a Hugging Face folder; `LoadError` if it cannot be read."""
    try:
        return Tokenizer(files_of.read_files(Path(folder)))
    except (SgcError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # bad files may also make the library panic
        reason = f"{type(error).__name__}: {error}"
        path = Path(folder) / "tokenizer.json"
        raise LoadError(
            f"{path} or a file beside it cannot be used: {reason:.500}", hint=AGAIN
        ) from error


def with_text(segments: Segments, text: str, *, is_literal: bool = False) -> list[Text | Ids]:
    """The prompt followed by a text."""
    out = list(segments)
    if not text:
        return out
    last = out.pop() if out and isinstance(out[-1], Text) else Text("")
    assert isinstance(last, Text)
    span = ((len(last.text), len(last.text) + len(text)),) if is_literal else ()
    return [*out, Text(last.text + text, (*last.literal, *span))]


def common_prefix_length(lists: Sequence[Sequence[int]]) -> int:
    """How many leading items all the lists share."""
    low, high = min(map(list, lists)), max(map(list, lists))
    length = min(len(low), len(high))
    return next((i for i in range(length) if low[i] != high[i]), length)


def _ids(backend: Backend, text: str) -> list[int]:
    # The library's only call for encoding that releases the GIL.
    ids: list[int] = backend.encode_batch_fast([text], add_special_tokens=False)[0].ids
    return ids


def _each(texts: Iterable[str], go_on: GoOn) -> Iterator[str]:
    for text in texts:
        go_on()
        yield text


def _plain(backend: Backend) -> Backend:
    backend.encode_special_tokens = True
    return backend


_Key = tuple[bytes, str, Spans, bool]
_CLIENT: ContextVar[bytes] = ContextVar("client", default=b"")


@contextmanager
def tokenizing_for(cache_key: bytes) -> Iterator[None]:
    """Within the block, only runs that were tokenized for the same cache key are known: how long
    a text takes tells nobody else that it was asked before. `preparing/salts.py` makes the keys."""
    before = _CLIENT.set(cache_key)
    try:
        yield
    finally:
        _CLIENT.reset(before)


_BESIDE_CHARS = 512  # what an entry takes beside its text and its ids, in bytes


class _RunCache:
    """An LRU cache of tokenized runs, bounded by their characters.

    Ids are kept as four bytes each. As a tuple they would be ten times that, and the last thing
    that a long-lived server's memory would stop growing by.
    """

    def __init__(self, max_chars: int) -> None:
        self._max_chars = max_chars
        self._chars = 0
        self._items: OrderedDict[_Key, array[int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: _Key) -> tuple[int, ...] | None:
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
            found = self._items.get(key)
        return None if found is None else tuple(found)

    def put(self, key: _Key, ids: tuple[int, ...]) -> None:
        if len(key[1]) > self._max_chars // 8:
            return
        with self._lock:
            if key in self._items:
                return
            self._items[key] = array("I", ids)
            self._chars += len(key[1]) + _BESIDE_CHARS
            while self._chars > self._max_chars:
                old, _ = self._items.popitem(last=False)
                self._chars -= len(old[1]) + _BESIDE_CHARS
