r"""Stop patterns: regular expressions that end a generation, matched in bounded time.

A generation ends where the first match of any pattern ends, counted in characters, however the text
is split into tokens. Its text is cut where the leftmost match with this end starts. The step
process finds the end (`checker`); the server finds the cut (`locate`) and the text it may not
stream yet (`HoldBack`).

Patterns are Python's: `re` parses them, and `python_regex.py` translates them for llguidance, whose
automata grow with the texts they read, up to a limit; a text that needs more is an error. Refused
are patterns that match the empty text, never match, or are too large, and anchors, look-around,
back-references, possessive repeats and atomic groups.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, ClassVar

from sgc.errors import SgcError
from sgc.runtime.engine.guides import python_regex

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer

MAX_PATTERNS = 16
MAX_BYTES = 16 * 1024  # of all patterns together
MAX_STATES = 100_000
# How much an automaton may grow, in llguidance's units of about 25 ns and 6 bytes.
SHARED_FUEL = 1_000_000
OWN_FUEL = 4_000_000
# How many bytes a HoldBack may read again: a fixed number, and more for each byte of the text.
FREE_LOOKS = 100_000
LOOKS_PER_BYTE = 100
FIRST_LOOK_BYTES = 32
END = 256  # the only token that is not a byte


class PatternError(SgcError, ValueError):
    """A stop pattern that cannot be used, or that needs too large an automaton for the text."""


class StopPatterns:
    """Compiled patterns. Make them with `stop_patterns`, which caches the latest."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns = tuple(patterns)
        _check_sizes(self.patterns)
        self._forward = _written(self.patterns)
        self.ends = self._build("(?s:.*)")
        self.matches = self._build("")
        if not self.matches.first_bytes:
            raise _refusal(self.patterns[0], "can never match", "leave it out")

    @cached_property
    def _reversed_matches(self) -> _Automaton:
        return self._build("", is_reversed=True)

    def checker(self) -> PatternChecker:
        return PatternChecker(self)

    def locate(self, text: str, end: int, since: int = 0) -> int:
        """The leftmost start, not before `since`, of a match that ends at `end`.

        Raises ValueError if there is none, PatternError if finding it is too costly.
        """
        for automaton in self._reversed_matches.attempts():
            start = _furthest(automaton.run(), text, end, since)
            if not automaton.is_spent:
                break
        else:
            raise self.too_costly()
        if start is None:
            raise ValueError(f"no match of a stop pattern ends at character {end}")
        return start

    def too_costly(self) -> PatternError:
        shown = ", ".join(map(_shown, self.patterns))
        return PatternError(
            f"the stop patterns {shown} need too large an automaton for this text",
            hint="counted repeats of parts that overlap, such as (.{0,500}a){9}, take the most",
        )

    def _build(self, prefix: str, is_reversed: bool = False) -> _Automaton:
        written = _written(self.patterns, is_reversed=True) if is_reversed else self._forward
        automaton = _Automaton(prefix + python_regex.joined(written), SHARED_FUEL)
        if automaton.is_valid:
            return automaton
        alone = (_Automaton(f"{prefix}(?:{text})", SHARED_FUEL).is_valid for text in written)
        bad = next((p for p, ok in zip(self.patterns, alone, strict=True) if not ok), None)
        longest = max(self.patterns, key=len)
        raise _refusal(bad or longest, "is too large or too deeply nested", python_regex.SIMPLER)


@lru_cache(maxsize=128)  # more than requests can wait for at once (`intake.MAX_COMPILED`)
def stop_patterns(patterns: tuple[str, ...]) -> StopPatterns:
    """The patterns, compiled once; raises PatternError."""
    return StopPatterns(patterns)


class PatternChecker:
    """Finds the first match's end in the bytes of one growing text.

    end: the number of characters up to the end, once it is found; then `feed` may not be called
    again.
    """

    __slots__ = ("_held", "_is_alone", "_matcher", "_n_chars", "_patterns", "_seen", "end")

    def __init__(self, patterns: StopPatterns) -> None:
        self._patterns = patterns
        self._matcher = patterns.ends.run()
        self._is_alone = False  # whether its automaton is its own, so that no other text fills it
        self._held = b""  # the beginning of an unfinished character
        self._seen = bytearray()
        self._n_chars = 0
        self.end: int | None = None

    def feed(self, data: bytes, counts: bool = True) -> int | None:
        """How many of the next bytes come before the end of the first match.

        None: no match ends in them, or `counts` is false. 0: one ends in held bytes that these show
        to be invalid UTF-8, so U+FFFD. Raises PatternError.
        """
        raw = self._held + data
        text, n_read = codecs.utf_8_decode(raw, "replace", False)
        clean = text.encode()
        n_held, self._held = len(self._held), raw[n_read:]
        found = self._read(clean, counts)
        if found is None:
            self._seen += clean
            self._n_chars += len(text)
            return None
        n_chars = len(clean[:found].decode())
        self.end = self._n_chars + n_chars
        n_raw = found if raw.startswith(clean) else _n_raw_bytes(raw, n_chars)
        return max(0, n_raw - n_held)

    def _read(self, clean: bytes, counts: bool) -> int | None:
        matcher = self._matcher
        if not counts:
            if not matcher.consume_tokens(list(clean)):
                self._start_over(clean)
            return None
        for n, byte in enumerate(clean, start=1):
            if not matcher.consume_token(byte):
                matcher = self._start_over(clean[:n])
            if matcher.is_accepting():
                return n
        return None

    def _start_over(self, new: bytes) -> LLMatcher:
        """Reads the text again in an automaton of its own: others' texts may fill the shared
        one."""
        if self._is_alone:
            raise self._patterns.too_costly()
        self._is_alone = True
        self._patterns.ends.renew()
        self._matcher = self._patterns.ends.alone().run()
        if not self._matcher.consume_tokens([*self._seen, *new]):
            raise self._patterns.too_costly()
        return self._matcher


class HoldBack:
    """How much of the end of a growing text may belong to a match that has not ended yet.

    Where that is too costly to find out, it gives up and holds back all further text.
    """

    __slots__ = ("_attempts", "_automaton", "_held", "_leader", "_n_held", "_n_looks_left")

    def __init__(self, patterns: StopPatterns) -> None:
        self._attempts = patterns.matches.attempts()
        self._automaton: _Automaton | None = next(self._attempts)
        self._held = b""  # the text from the first place where such a match could start
        self._leader: LLMatcher | None = None  # the matcher that has read all of `_held`
        self._n_held = 0
        self._n_looks_left = FREE_LOOKS

    @property
    def has_given_up(self) -> bool:
        return self._automaton is None

    def feed(self, new: str) -> int:
        """How many characters at the end of the text so far must not be streamed yet."""
        self._n_held += len(new)
        if self._automaton is not None:
            data = new.encode()
            self._held += data
            self._n_looks_left += LOOKS_PER_BYTE * len(data)
            if not self._follows(list(data)):
                self._find_leader()
        return self._n_held

    def _follows(self, tokens: list[int]) -> bool:
        leader = self._leader
        # A failing `consume_tokens` writes a report, which takes a hundred times longer.
        if leader is None or leader.validate_tokens(tokens) < len(tokens):
            return False
        return leader.consume_tokens(tokens)

    def _find_leader(self) -> None:
        """Looks for the first possible start again; no earlier one can become possible."""
        while self._automaton is not None:
            start = self._first_live(self._automaton)
            leader = self._automaton.run()
            is_read = leader.consume_tokens(list(self._held[start:]))
            if self._n_looks_left < 0:
                self._automaton = None
            elif self._automaton.is_spent or not is_read:
                self._automaton = next(self._attempts, None)
            else:
                self._held = self._held[start:]
                self._n_held = len(self._held.decode())
                self._leader = leader if self._held else None
                return

    def _first_live(self, automaton: _Automaton) -> int:
        tokens = list(self._held)
        for i, byte in enumerate(tokens):
            if byte in automaton.first_bytes and self._is_live(automaton, tokens, i):
                return i
        return len(tokens)

    def _is_live(self, automaton: _Automaton, tokens: list[int], start: int) -> bool:
        for end in (start + FIRST_LOOK_BYTES, len(tokens)):
            part = tokens[start:end]
            n_live = automaton.n_live(part)
            self._n_looks_left -= n_live
            if n_live < len(part) or self._n_looks_left < 0:
                return False
            if end >= len(tokens):
                break
        return True


class _Automaton:
    """A regular expression's automaton; all runs share the states they add."""

    def __init__(self, regex: str, fuel: int) -> None:
        self._regex = regex
        self._fuel = fuel
        self._start = _matcher(regex, fuel)
        self.first_bytes = frozenset(byte for byte in range(256) if self.n_live([byte]))

    @property
    def is_valid(self) -> bool:
        return not self._start.is_error()

    @property
    def is_spent(self) -> bool:
        """Whether it may grow no further; it then reports that no text can match."""
        return not any(self.n_live([byte]) for byte in self.first_bytes)

    def run(self) -> LLMatcher:
        return self._start.deep_copy()

    def n_live(self, tokens: list[int]) -> int:
        """How many of the first tokens are a match or can be continued to one."""
        return self._start.validate_tokens(tokens)

    def renew(self) -> None:
        if self.is_spent:
            self._start = _matcher(self._regex, self._fuel)

    def alone(self) -> _Automaton:
        """A new automaton, empty and with a larger limit."""
        return _Automaton(self._regex, OWN_FUEL)

    def attempts(self) -> Iterator[_Automaton]:
        """This automaton, and if it is spent, one of the caller's own."""
        yield self
        self.renew()
        yield self.alone()


def _matcher(regex: str, fuel: int) -> LLMatcher:
    from llguidance import LLMatcher, LLParserLimits

    limits = LLParserLimits(
        initial_lexer_fuel=fuel, max_lexer_states=MAX_STATES, verbose_errors=False
    )
    grammar = LLMatcher.grammar_from_regex(regex)
    return LLMatcher(_tokenizer(), grammar, log_level=0, limits=limits)


@cache
def _tokenizer() -> LLTokenizer:
    try:
        from llguidance import LLTokenizer, TokenizerWrapper
    except ImportError as error:
        raise SgcError(
            "stop patterns need the package llguidance, which is not installed",
            hint="pip install llguidance",
        ) from error
    return LLTokenizer(TokenizerWrapper(_Bytes()), slices=[])


class _Bytes:
    """A vocabulary of all bytes, in the form that llguidance wants."""

    bos_token_id = None
    eos_token_id = END
    special_token_ids: ClassVar = [END]
    tokens: ClassVar = [*(bytes([byte]) for byte in range(256)), b"\xff<end>"]

    def __call__(self, data: bytes) -> list[int]:
        return list(data)


def _furthest(matcher: LLMatcher, text: str, end: int, since: int) -> int | None:
    """Where the longest match starts that is read backwards from `end`."""
    found = None
    for start in range(end - 1, since - 1, -1):
        if not matcher.consume_tokens(list(text[start].encode())):
            break
        if matcher.is_accepting():
            found = start
    return found


def _n_raw_bytes(raw: bytes, n_chars: int) -> int:
    """How many bytes the first `n_chars` decoded characters take."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    n_decoded = n = 0
    while n_decoded < n_chars:
        n_decoded += len(decoder.decode(raw[n : n + 1]))
        n += 1
    n_pending = len(decoder.getstate()[0])
    return n - n_pending if n_decoded == n_chars else n - 1


def _check_sizes(patterns: tuple[str, ...]) -> None:
    if not 1 <= len(patterns) <= MAX_PATTERNS:
        reason = f"expected 1 to {MAX_PATTERNS} stop patterns, found {len(patterns)}"
        raise PatternError(reason, hint="join some of them with |")
    size_bytes = sum(len(pattern.encode("utf-8", "replace")) for pattern in patterns)
    if size_bytes > MAX_BYTES:
        longest = max(patterns, key=len)
        reason = f"makes {size_bytes} bytes of patterns, over the {MAX_BYTES} allowed"
        raise _refusal(longest, reason, "write fewer or shorter ones")


def _written(patterns: tuple[str, ...], is_reversed: bool = False) -> list[str]:
    written = []
    for pattern in patterns:
        try:
            made = python_regex.translate(pattern, is_reversed=is_reversed, is_whole=False)
        except python_regex.PatternError as error:
            raise _refusal(pattern, error.reason, error.hint) from error
        if made.shortest == 0:
            hint = "it would end every text at once; make a part of it required, + for *"
            raise _refusal(pattern, "matches the empty text", hint)
        written.append(made.translated)
    return written


def _refusal(pattern: str, reason: str, hint: str) -> PatternError:
    return PatternError(f"the stop pattern {_shown(pattern)} {reason}", hint=hint)


def _shown(pattern: str) -> str:
    return repr(pattern if len(pattern) <= 60 else pattern[:57] + "...")
