"""What is generated under the corpus's constraints, held against Python's `re` and `jsonschema`.

    python -P benches/generation/constraints.py [--model default] [--k 3] [--out FILE.json]

For every regex and schema of `corpus/`, and those in `corpus/refused.json`, the real server makes K
generations at temperature 1, with seeds. A model with random weights hardly ever closes what it
opens, so tokens of punctuation and spaces and the end token have a bias, another one in each of the
K. An output is complete if its finish reason is "stop"; the exit status is 1 if a complete output
breaks its constraint. The documented limits (`corpus/README.md`) are counted separately: duplicate
keys in an open object, and characters of a class that are newer than Python's Unicode.
"""

from __future__ import annotations

import asyncio
import json
import string
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

from generation import serving
from generation.corpus import validate
from generation.serving import bars

from sgc.errors import BackendError, SgcError
from sgc.runtime.engine.text.token_bytes import token_bytes
from sgc.runtime.engine.text.tokenizer import Tokenizer
from sgc.runtime.executor.backends.engine.backend import EngineBackend
from sgc.runtime.executor.interface.backend import FinishReason, Sampling, TextRun

CLOSING = frozenset(string.punctuation.encode() + b" \n\t")
BIASES = (4.0, 7.0, 1.0)  # of closing tokens, one for each of the K in turn
MAX_TOKENS = 300
WIDTH = 16  # requests in flight
PROMPT = (TextRun("Answer:\n"),)


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the corpus. group: regexes, schemas, or refused by llguidance as written."""

    name: str
    group: str
    regex: str | None = None
    schema: Any = None

    @property
    def asked(self) -> dict[str, str]:
        """The constraint as a field of `Sampling`."""
        if self.regex is not None:
            return {"regex": self.regex}
        return {"json_schema": json.dumps(self.schema)}

    def complaint(self, text: str) -> str | None:
        """Why the oracle rejects a text; None if it accepts it."""
        if self.regex is None:
            return validate.schema_complaint(self.schema, text)
        return None if validate.regex_holds(self.regex, text) else "no match"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One generation: refused, or its text, with the oracle's complaint if it is complete."""

    entry: Entry
    k: int
    refusal: str | None = None
    text: str = ""
    is_complete: bool = False
    n_tokens: int = 0
    n_forced: int = 0
    complaint: str | None = None

    @property
    def is_duplicate_key(self) -> bool:
        return self.complaint is not None and self.complaint.endswith("duplicate key")

    @property
    def is_newer_unicode(self) -> bool:
        """Whether a rejected text has characters that this Python's Unicode does not have."""
        is_known = all(unicodedata.category(char) != "Cn" for char in self.text)
        return self.complaint is not None and not is_known

    @property
    def is_invalid(self) -> bool:
        is_explained = self.is_duplicate_key or self.is_newer_unicode
        return self.complaint is not None and not is_explained


def entries() -> list[Entry]:
    """All entries of the corpus."""
    found = [Entry(name, "regexes", pattern) for name, pattern in validate.regexes().items()]
    found += [Entry(name, "schemas", None, of) for name, of in validate.schemas().items()]
    for each in validate.refusals():
        group = f"refused as written, {each['cause']}"
        found.append(Entry(each["name"], group, each.get("pattern"), each.get("schema")))
    return found


def closing_bias(tokenizer: Tokenizer, bias: float) -> tuple[tuple[int, float], ...]:
    """A bias for closing tokens and end tokens, which random weights do not favour.

    It is empty for a tokenizer without a table of token bytes.
    """
    table = token_bytes(tokenizer)
    if not bias or table is None:
        return ()
    closing = [i for i in range(tokenizer.vocab_size) if table[i] and CLOSING.issuperset(table[i])]
    return tuple((i, bias) for i in [*tokenizer.eos_ids, *closing][:1024])


async def generate(
    uri: str, asked: Iterable[tuple[Entry, int]], tokenizer: Tokenizer
) -> list[Outcome]:
    """The outcomes of all entries, with WIDTH requests in flight."""
    biases = [closing_bias(tokenizer, bias) for bias in BIASES]
    room = asyncio.Semaphore(WIDTH)
    async with EngineBackend(uri) as backend:

        async def one(entry: Entry, k: int) -> Outcome:
            async with room:
                sampling = Sampling(
                    MAX_TOKENS,
                    seed=k,
                    logit_bias=biases[k % len(biases)],
                    **entry.asked,  # type: ignore[arg-type]
                )
                return await outcome(backend, entry, k, sampling)

        return await asyncio.gather(*(one(entry, k) for entry, k in asked))


async def outcome(backend: EngineBackend, entry: Entry, k: int, sampling: Sampling) -> Outcome:
    """Makes a request, and checks its reply."""
    try:
        found = await backend.generate(PROMPT, sampling)
    except SgcError as error:
        if type(error) is not BackendError:  # not caused by the constraint
            raise
        return Outcome(entry, k, refusal=str(error))
    is_complete = found.finish_reason is FinishReason.STOP
    return Outcome(
        entry, k, None, found.text, is_complete, len(found.ids), found.usage.forced_tokens,
        entry.complaint(found.text) if is_complete else None,
    )  # fmt: skip


def figures(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Counts: of entries (compiled, refused) and of generations."""
    names = {each.entry.name for each in outcomes}
    refused = {each.entry.name for each in outcomes if each.refusal}
    complete = [each for each in outcomes if each.is_complete]
    return {
        "entries": len(names),
        "compiled": len(names - refused),
        "refused": len(refused),
        "generations": sum(each.refusal is None for each in outcomes),
        "completed": len(complete),
        "entries completed": len({each.entry.name for each in complete}),
        "valid": sum(each.complaint is None for each in complete),
        "duplicate keys": sum(each.is_duplicate_key for each in complete),
        "newer Unicode": sum(each.is_newer_unicode for each in complete),
        "invalid": sum(each.is_invalid for each in complete),
        "tokens": sum(each.n_tokens for each in outcomes),
        "forced": sum(each.n_forced for each in outcomes),
    }


def tell(found: dict[str, dict[str, int]], outcomes: Sequence[Outcome]) -> None:
    """Prints the table, and the outputs and refusals that need an explanation."""
    columns = list(next(iter(found.values())))
    print("|", " | ".join(["", *columns]), "|")
    print("|", " | ".join(["---"] * (len(columns) + 1)), "|")
    for group, row in found.items():
        print("|", " | ".join([group, *(str(row[each]) for each in columns)]), "|")
    for each in outcomes:
        if each.complaint:
            kind = "INVALID" if each.is_invalid else "documented"
            print(f"{kind}: {each.entry.name}, seed {each.k}: {each.complaint}: {each.text[:99]!r}")
        elif each.refusal and each.k == 0 and not each.entry.group.endswith("meaning"):
            print(f"refused {each.entry.name}: {each.refusal}")


def by_group(outcomes: Sequence[Outcome]) -> dict[str, dict[str, int]]:
    """The figures of each group."""
    groups = dict.fromkeys(each.entry.group for each in outcomes)
    return {
        group: figures([each for each in outcomes if each.entry.group == group]) for group in groups
    }


def noted(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The single outcomes that a report keeps."""
    n_completed = Counter(each.entry.name for each in outcomes if each.is_complete)
    return {
        "not accepted": [
            {"name": o.entry.name, "seed": o.k, "complaint": o.complaint, "text": o.text}
            for o in outcomes if o.complaint
        ],
        "refused": {o.entry.name: o.refusal for o in outcomes if o.refusal},
        "never completed": sorted(
            {o.entry.name for o in outcomes if not o.refusal and not n_completed[o.entry.name]}
        ),
    }  # fmt: skip


def main() -> None:
    options = serving.common_arguments(__doc__, model="default", k=3).parse_args()
    tokenizer = serving.tokenizer_of(options.model, options.folder)
    asked = [(entry, k) for entry in entries() for k in range(options.k)]
    with serving.engine(options.model, options) as engine:
        outcomes = asyncio.run(generate(engine.uri, asked, tokenizer))
    found = by_group(outcomes)
    tell(found, outcomes)
    if options.out:
        found_all = {"groups": found, **noted(outcomes)}
        serving.save(options.out, serving.report("constraints", options, **found_all))
        shown = ("entries", "compiled", "generations", "completed", "valid")
        bars.draw(
            options.out.with_suffix(".png"),
            f"The corpus through the server (model {options.model}, {options.k} seeds)",
            list(found), {each: [row[each] for row in found.values()] for each in shown}, "count",
        )  # fmt: skip
    sys.exit(any(each.is_invalid for each in outcomes))


if __name__ == "__main__":
    main()
