"""A scripted server that speaks SGLang's native HTTP API, for tests and front-end benches.

There is no model in it. A reply is a pure function of the prompt, the sampling parameters that
change what is sampled, the index within `n` and the number of images; so two front ends that ask
for the same things get the same texts, whatever the order or timing of their requests. It does not
imitate caching, scheduling or speed. From a shell:
`python tests/support/sglang_server.py --port 0`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import re._compiler as regex_compiler  # type: ignore[import-not-found]
import re._parser as regex_parser  # type: ignore[import-not-found]
import threading
import zlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial, reduce
from hashlib import blake2b
from itertools import accumulate, chain, zip_longest
from typing import Any, Self

from aiohttp import web

Json = dict[str, Any]

TOKEN = re.compile(r"\s?\w+|\s?[^\w\s]|\s+")  # one match, one token
END_OF_TEXT: Json = {"type": "stop", "matched": 2}
WORDS = re.findall(r" \w+", " a the river stone Paris yes no blue sun seven True city é 東京")
KINDS = [WORDS, [f" {n}" for n in range(100)], list(',.:!?;"😀'), ["\n"]]
COMMON = [chr(c) for c in (9, 10, *range(32, 127))]
OTHERS = [chr(c) for c in (*range(0xD800), *range(0xE000, 0x20000))]
GREEDY_DEFAULTS = {"frequency_penalty": 0.0, "presence_penalty": 0.0, "repetition_penalty": 1.0}
DEFAULTS = GREEDY_DEFAULTS | {"temperature": 1.0, "top_p": 1.0, "top_k": -1.0, "min_p": 0.0}
CONSTRAINTS = ("regex", "json_schema", "ebnf", "structural_tag", "logit_bias", "sampling_seed")
FAST_META = {"id": "0", "prompt_tokens": 1, "completion_tokens": 1, "cached_tokens": 0}
FAST = {"text": "ok", "meta_info": {**FAST_META, "finish_reason": END_OF_TEXT}}
dumps = partial(json.dumps, ensure_ascii=False)


def token_id(piece: str) -> int:
    """One of 50,000 ids, by hash; an id cannot be decoded."""
    return zlib.crc32(piece.encode("utf-8", "surrogatepass")) % 50_000


def regex_text(pattern: str, rng: random.Random) -> str:
    """A text that fully matches `pattern`; for look-arounds and anchors it tries several texts."""
    compiled, tree = re.compile(pattern), regex_parser.parse(pattern)
    for text in (_walk(tree, rng) for _ in range(200)):
        if compiled.fullmatch(text):
            return text
    raise ValueError(f"found no text that matches the regex {pattern!r}")


def _walk(tree: Any, rng: random.Random) -> str:
    text = ""
    for at, (op, arg) in enumerate(tree):
        match str(op):
            case "LITERAL":
                text += chr(arg)
            case "ANY" | "IN" | "NOT_LITERAL":
                fits = regex_compiler.compile(tree[at : at + 1]).fullmatch
                text += rng.choice(list(filter(fits, COMMON)) or list(filter(fits, OTHERS)))
            case "BRANCH":
                text += _walk(rng.choice(arg[1]), rng)
            case "SUBPATTERN":
                text += _walk(arg[3], rng)
            case "MAX_REPEAT" | "MIN_REPEAT":
                for _ in range(rng.randint(arg[0], min(int(arg[1]), arg[0] + 5))):
                    text += _walk(arg[2], rng)
    return text


def schema_value(schema: Any, root: Json, rng: random.Random, depth: int = 0) -> Any:
    """A small instance of a JSON schema."""

    def inner(part: Any) -> Any:
        return schema_value(part, root, rng, depth + 1)

    if "$ref" in schema:
        return inner(reduce(lambda node, key: node[key], schema["$ref"].split("/")[1:], root))
    if "const" in schema or "enum" in schema:
        return rng.choice(schema.get("enum") or [schema["const"]])
    for key in filter(schema.__contains__, ("anyOf", "oneOf", "allOf")):
        # Deep in a recursive schema, take the last choice, which most often ends the recursion.
        return inner(schema[key][-1] if depth > 6 else rng.choice(schema[key]))
    kind = schema.get("type", "object" if "properties" in schema else "string")
    low = schema.get({"array": "minItems", "string": "minLength"}.get(kind, "minimum"), 0)
    high = schema.get({"array": "maxItems", "string": "maxLength"}.get(kind, "maximum"), low + 3)
    size = rng.randint(int(low), max(int(low), min(int(high), int(low) + 100)))
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            return {name: inner(part) for name, part in schema.get("properties", {}).items()}
        case "array":
            return [inner(schema.get("items", {})) for _ in range(low if depth > 6 else size)]
        case "string" if "pattern" in schema:
            return regex_text(schema["pattern"], rng)
        case "string":
            return "".join(rng.choices("abcdé 0", k=size))
        case "integer" | "number":
            return size if kind == "integer" else size + 0.5 * (size < high)
    return rng.random() < 0.5 if kind == "boolean" else None


@dataclass(frozen=True)
class Completion:
    """One completion of a request. A text and its token ids are equal prompts."""

    ids: tuple[int, ...]
    pieces: tuple[str, ...]
    n_images: int
    params: Json  # without None values
    index: int  # within `n`
    logprobs: tuple[int, int, bool, bool] | None  # start, top, with text, null first

    def replies(self, chunk_tokens: int | None) -> Iterator[Json]:
        """The whole reply, after its chunks if they are requested."""
        whole = TOKEN.findall(self._unbounded())
        limit = self.params.get("max_new_tokens", 128)
        is_cut = len(whole) >= limit
        finish = {"type": "length", "length": limit} if is_cut else END_OF_TEXT
        made, text = whole[:limit], "".join(whole[:limit])
        if stop := self._first_stop(made, text):
            n_made, n_kept, matched = stop
            made, finish = made[:n_made], {"type": "stop", "matched": matched}
            text = "".join(made) if self.params.get("no_stop_trim") else text[:n_kept]
        for count in range(chunk_tokens, len(made), chunk_tokens) if chunk_tokens else ():
            shown = text[: sum(map(len, made[:count]))]
            yield {"text": shown, "meta_info": self._meta(made[:count], None, whole)}
        yield {"text": text, "meta_info": self._meta(made, finish, whole)}

    def _unbounded(self) -> str:
        """The text without stops and limits."""
        is_greedy = self.params.get("temperature", 1.0) < 1e-5
        defaults = GREEDY_DEFAULTS if is_greedy else DEFAULTS
        knobs = {name: float(self.params.get(name, default)) for name, default in defaults.items()}
        asked = {name: self.params[name] for name in CONSTRAINTS if self.params.get(name)}
        key = json.dumps([self.ids, self.n_images, self.index, knobs, asked], sort_keys=True)
        rng = random.Random(blake2b(key.encode(), digest_size=8).digest())
        if "regex" in asked:
            return regex_text(asked["regex"], rng)
        if "json_schema" in asked:
            schema = asked["json_schema"]
            schema = json.loads(schema) if isinstance(schema, str) else schema
            return dumps(schema_value(schema, schema, rng))
        shortest = "max_new_tokens" if self.params.get("ignore_eos") else "min_new_tokens"
        n_tokens = max(rng.randint(3, 40), 2 * self.params.get(shortest, 0))  # some merge
        return "".join(map(rng.choice, rng.choices(KINDS, (70, 10, 14, 6), k=n_tokens)))

    def _first_stop(self, made: list[str], text: str) -> tuple[int, int, Any] | None:
        """The stop that a decoder reaches first: tokens until it, characters kept, its match."""
        ends = list(accumulate(map(len, made)))
        stops, patterns = as_list(self.params.get("stop")), as_list(self.params.get("stop_regex"))
        stop_ids = self.params.get("stop_token_ids") or ()
        tokens = zip(ends, made, map(token_id, made), strict=True)
        hits = [(text.find(x) + len(x), text.find(x), x) for x in stops if x and x in text]
        # SGLang does not trim what a stop_regex matched.
        hits += [(m.end(), m.end(), x) for x in patterns if x and (m := re.search(x, text))]
        hits += [(end, end - len(piece), x) for end, piece, x in tokens if x in stop_ids]
        first = min(hits, key=lambda hit: hit[0], default=None)
        return first and (sum(end < first[0] for end in ends) + 1, *first[1:])

    def _meta(self, made: list[str], finish: Json | None, whole: list[str]) -> Json:
        name = f"{token_id(''.join(self.pieces)):05}-{self.index}"
        meta: Json = {"id": name, "finish_reason": finish, "prompt_tokens": len(self.ids)}
        meta |= {"completion_tokens": len(made), "cached_tokens": len(self.ids) // 2}
        # Even with max_new_tokens 0, a server scores the next token.
        return meta | self._scores(made or whole[:1]) if self.logprobs else meta

    def _scores(self, made: list[str]) -> Json:
        """Rows `[logprob, token id, text or null]`, each logprob a function of the whole prefix."""
        assert self.logprobs is not None
        start, n_top, has_text, pads_first = self.logprobs
        ids, pieces = [*self.ids, *map(token_id, made)], [*self.pieces, *made]
        states = list(accumulate(ids, lambda s, i: zlib.crc32(i.to_bytes(4), s), initial=0))

        def row(at: int) -> list[Any]:
            logprob = None if pads_first and at == start < len(self.ids) else score(states[at + 1])
            return [logprob, ids[at], pieces[at] if has_text else None]

        def top(at: int) -> list[list[Any]] | None:
            others = [w for w in WORDS if w != pieces[at]][: n_top - 1]
            logprobs = [score(zlib.crc32(w.encode(), states[at])) for w in others]
            texts = others if has_text else [None] * len(others)
            rows = [row(at), *map(list, zip(logprobs, map(token_id, others), texts, strict=True))]
            return None if rows[0][0] is None else sorted(rows, key=lambda r: -r[0])

        asked = {"input": range(start, len(self.ids)), "output": range(len(self.ids), len(ids))}
        fields: Json = {f"{k}_token_logprobs": list(map(row, ats)) for k, ats in asked.items()}
        tops = {f"{k}_top_logprobs": list(map(top, ats)) for k, ats in asked.items()}
        return fields | tops if n_top else fields


def score(state: int) -> float:
    """A logprob in [-5, -0.01]."""
    return -0.01 - state % 49_901 / 10_000


def as_list(value: Any) -> list[Any]:
    """A list of no values (for None), one or several."""
    return [] if value is None else list(value) if isinstance(value, list) else [value]


@dataclass
class ScriptedServer:
    """The server, in a thread of its own: `with ScriptedServer(model="m") as server: server.url`.

    Fields may be set while it runs; `fail_on` holds numbers of /generate requests, from 1 after
    each `reset`; `requests` holds their bodies.
    """

    model: str = "scripted"
    port: int = 0
    is_fast: bool = False  # a constant reply, nothing recorded
    delay_s: float = 0.0
    fail_on: Collection[int] = ()
    cut_stream_after: int | None = None  # chunks
    chunk_tokens: int = 1
    is_seeded: bool = False  # sampling_seed changes the texts
    pads_first_logprob: bool = True  # the first input logprob is null, as in SGLang's servers
    requests: list[Json] = field(default_factory=list)
    n_requests: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def reset(self) -> None:
        self.requests, self.n_requests = [], 0

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _start(self) -> None:
        app = web.Application(client_max_size=1 << 30)
        infos = ("get_model_info", "model_info", "get_server_info", "server_info")
        for path in (*infos, "health", "health_generate", "_requests"):
            app.router.add_get(f"/{path}", self._small)
        app.router.add_post("/flush_cache", self._small)
        app.router.add_post("/_reset", self._small)
        app.router.add_post("/generate", self._generate)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, backlog=4096).start()
        self.port = self._runner.addresses[0][1]

    async def _small(self, request: web.Request) -> web.Response:
        if request.path == "/_reset":
            self.reset()
        info = {"model_path": self.model, "tokenizer_path": self.model}
        return web.json_response(self.requests if request.path == "/_requests" else info)

    async def _generate(self, request: web.Request) -> web.StreamResponse:
        self.n_requests += 1
        number, body = self.n_requests, await request.json()
        if not self.is_fast:
            self.requests.append(body)
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        try:
            if number in self.fail_on:
                raise RuntimeError(f"request {number} was told to fail")
            asked, is_list = self._read(body)
            chunk_tokens = self.chunk_tokens if body.get("stream") else None
            replies = [
                [FAST] if self.is_fast and not c.logprobs else list(c.replies(chunk_tokens))
                for c in asked
            ]
        except Exception as error:
            status = 400 if isinstance(error, (ValueError, re.error)) else 500
            return web.json_response({"error": {"message": str(error)}}, status=status)
        if body.get("stream"):
            marked = [[{**r, "index": i} for r in one] for i, one in enumerate(replies)]
            return await self._stream(request, filter(None, chain(*zip_longest(*marked))))
        last = [one[-1] for one in replies]
        return web.json_response(last if is_list else last[0], dumps=dumps)

    def _read(self, body: Json) -> tuple[list[Completion], bool]:
        """The completions that a body requests, and whether the reply is a list."""
        given = body["input_ids"] if body.get("text") is None else body["text"]
        is_list = isinstance(given, list) and not (given and isinstance(given[0], int))
        prompts = given if is_list else [given]

        def each(name: str, default: Any) -> list[Any]:
            value = body.get(name)
            values = value if is_list and isinstance(value, list) else [value] * len(prompts)
            return [default if v is None else v for v in values]

        names: Json = {"sampling_params": {}, "image_data": [], "return_logprob": False}
        names |= {"logprob_start_len": -1, "top_logprobs_num": 0, "return_text_in_logprobs": False}
        columns = [each(name, default) for name, default in names.items()]
        asked = []
        for prompt, params, images, wants, start, top, texts in zip(prompts, *columns, strict=True):
            params = {k: v for k, v in params.items() if v is not None}
            if not self.is_seeded:
                params.pop("sampling_seed", None)
            prompt = "" if self.is_fast and not wants else prompt
            is_text = isinstance(prompt, str)
            pieces = TOKEN.findall(prompt) if is_text else [f"<{i}>" for i in prompt]
            ids = map(token_id, pieces) if is_text else prompt
            if start < 0:  # all tokens of a prefill, otherwise only the last
                start = 0 if params.get("max_new_tokens") == 0 else max(len(pieces) - 1, 0)
            logprobs = (start, top, texts, self.pads_first_logprob) if wants else None
            shared = (tuple(ids), tuple(pieces), len(as_list(images)), params)
            asked += [Completion(*shared, index, logprobs) for index in range(params.get("n", 1))]
        return asked, is_list or len(asked) > 1

    async def _stream(self, request: web.Request, events: Iterable[Json]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for count, event in enumerate(events):
            if count == self.cut_stream_after and request.transport is not None:
                request.transport.close()
                return response
            await response.write(f"data: {dumps(event)}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--model", default="scripted")
    parser.add_argument("--fast", dest="is_fast", action="store_true")
    parser.add_argument("--delay", dest="delay_s", type=float, default=0.0)
    parser.add_argument("--fail-on", type=int, nargs="*", default=())
    parser.add_argument("--cut-stream-after", type=int)
    parser.add_argument("--seeded", dest="is_seeded", action="store_true")
    parser.add_argument("--no-null-pad", dest="pads_first_logprob", action="store_false")
    with ScriptedServer(**vars(parser.parse_args())) as server:
        print(server.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
