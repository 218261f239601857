"""Requests of SGLang's native `/generate` as the engine's; docs/http.md lists each field."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.http import sampling as sampling_of
from sgc.runtime.engine.http.errors import Json, bad
from sgc.runtime.engine.http.fields import Fields, Refused, is_ids
from sgc.runtime.engine.http.images.places import file_of, image_prompt, reader_of
from sgc.runtime.engine.http.sampling import MAX_N, NAMES, Ask
from sgc.runtime.engine.preparing.bounds import MAX_TOP_LOGPROBS
from sgc.runtime.engine.server.server import EngineFacts

DEFAULT_MAX_TOKENS = 128
# Fields that may be lists in a batch, with one item per prompt.
_PER_PROMPT = frozenset(
    {"sampling_params", "rid", "extra_key", "lora_path", "image_data"}
    | {"return_logprob", "logprob_start_len", "top_logprobs_num"}
)
IGNORED = frozenset(
    {"log_metrics", "no_logs", "modalities", "conversation_id", "custom_labels"}
    | {"data_parallel_rank", "validation_time"}
)
BODY = _PER_PROMPT | {"text", "input_ids", "stream", "return_text_in_logprobs"}
_NO_MEDIA: Refused = ("this engine takes text and images",)
_NO_STATE: Refused = ("this engine keeps nothing of a client's",)
REFUSED: dict[str, Refused] = {
    "video_data": _NO_MEDIA,
    "audio_data": _NO_MEDIA,
    "input_embeds": ("no tensor is taken from a client",),
    "token_ids_logprob": ("ask for top_logprobs_num instead",),
    "return_hidden_states": ("no tensor is given out",),
    "return_entropy": ("this engine does not tell it",),
    "session_params": _NO_STATE,
    "background": _NO_STATE,
    "lora_id": ("name the adapter in lora_path",),
    "custom_logit_processor": ("nothing of a client's is executed",),
}
PARAMS = NAMES | {
    *("max_new_tokens", "min_new_tokens", "n", "sampling_seed", "skip_special_tokens"),
    *("spaces_between_special_tokens", "no_stop_trim", "stream_interval"),
}
REFUSED_PARAMS: dict[str, Refused] = {
    "structural_tag": ("use regex, json_schema or ebnf",),
    "custom_params": ("nothing of a client's is executed",),
}


@dataclass(frozen=True, slots=True)
class ReplyFormat:
    """How the replies to one prompt are written."""

    rid: str
    keeps_stop: bool
    logprobs: bool
    has_tops: bool
    has_text: bool
    is_prefill: bool  # the client wants no text; one token may be sampled for its logprobs


@dataclass(frozen=True, slots=True)
class Generations:
    """The engine requests of one HTTP request; `shown` has an entry for each."""

    requests: list[pb.Request]
    shown: list[ReplyFormat]
    stream: bool
    is_list: bool

    @property
    def has_rows(self) -> bool:
        """Whether any reply has log-probabilities."""
        return any(each.logprobs for each in self.shown)


def generations(body: Json, facts: EngineFacts) -> Generations:
    """Raises HttpError."""
    fields = Fields(body)
    fields.check_known(BODY | IGNORED, REFUSED)
    prompts, is_batch = _prompts(fields)
    sampling_of.check_completions(len(prompts))
    rows = [_row(fields, i if is_batch else None, len(prompts)) for i in range(len(prompts))]
    has_text = fields.boolean("return_text_in_logprobs")
    is_shared = not isinstance(fields.get("sampling_params"), list)
    shared = _params(rows[0], facts) if is_shared else None
    pairs, n_bytes = [], 0
    for row, prompt in zip(rows, prompts, strict=True):
        pairs.append(_ask(row, prompt, shared or _params(row, facts), has_text, facts))
        n_bytes += pairs[-1][0].n_bytes
        sampling_of.check_bytes(n_bytes)
    stream = fields.boolean("stream")
    requests = sampling_of.requests_of([ask for ask, _ in pairs], stream)
    shown = [each for ask, each in pairs for _ in range(ask.n)]
    return Generations(requests, shown, stream, is_batch or len(requests) > 1)


def _prompts(fields: Fields) -> tuple[list[str | list[int]], bool]:
    """The prompts, and whether they came as a list."""
    if ("text" in fields) == ("input_ids" in fields):
        raise bad("expected one of text and input_ids", "text")
    name = "text" if "text" in fields else "input_ids"
    given = fields.get(name)
    is_one = isinstance(given, str) if name == "text" else is_ids(given) and bool(given)
    found: Any = [given] if is_one else given
    is_fit = (lambda each: isinstance(each, str)) if name == "text" else is_ids
    if not isinstance(found, list) or not found or not all(map(is_fit, found)):
        what = "a text or a list of texts" if name == "text" else "token ids or lists of them"
        raise bad(f"{name} must be {what}", name, "invalid_type")
    return found, not is_one


def _row(fields: Fields, index: int | None, n: int) -> Fields:
    """The fields for one prompt."""
    values: Json = {}
    for name in _PER_PROMPT:
        value = fields.get(name)
        if name == "image_data" and index == 0 and n == 1 and not _is_nested(value):
            pass  # the images of the only prompt
        elif isinstance(value, list) and index is not None:
            if len(value) != n:
                raise bad(f"{name} has {len(value)} items for {n} prompts", name)
            value = value[index]
        values[name] = value
    return Fields(values)


def _is_nested(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 1 and isinstance(value[0], list)


@dataclass(frozen=True, slots=True)
class _Params:
    """The parsed `sampling_params`."""

    sampling: pb.Sampling
    n: int
    seed: int | None
    keeps_stop: bool


def _params(row: Fields, facts: EngineFacts) -> _Params:
    params = row.object("sampling_params")
    params.check_known(PARAMS, REFUSED_PARAMS)
    _check_special(params)
    max_tokens = params.integer("max_new_tokens", DEFAULT_MAX_TOKENS)
    min_tokens, vocab_size = params.integer("min_new_tokens"), facts.limits.vocab_size
    sampling = sampling_of.read_sampling(params, max_tokens, min_tokens, vocab_size)
    n, seed = params.integer("n", 1, 1, MAX_N), sampling_of.read_seed(params, "sampling_seed")
    return _Params(sampling, n, seed, params.boolean("no_stop_trim"))


def _ask(
    row: Fields, prompt: str | list[int], params: _Params, has_text: bool, facts: EngineFacts
) -> tuple[Ask, ReplyFormat]:
    made, n_added = _prompt(row, prompt, facts)
    sampling = pb.Sampling()
    sampling.CopyFrom(params.sampling)
    is_prefill = sampling.max_tokens == 0
    wants, n_top = (
        row.boolean("return_logprob"),
        row.integer("top_logprobs_num", high=MAX_TOP_LOGPROBS),
    )
    start = row.integer("logprob_start_len", -1, -1)
    if wants:
        _ask_logprobs(sampling, start, n_top, has_text, n_added)
    if is_prefill and wants and n_top:
        sampling.max_tokens = 1  # top log-probabilities are returned only with a sampled token
    salt = row.text("extra_key").encode()
    adapter = _adapter(row, facts)
    ask = Ask(made, sampling, params.n, salt, n_added, params.seed, adapter)
    rid = row.text("rid") or secrets.token_hex(16)
    return ask, ReplyFormat(rid, params.keeps_stop, wants, n_top > 0, has_text, is_prefill)


def _adapter(row: Fields, facts: EngineFacts) -> str:
    """lora_path: the name of one of the engine's adapters; null or empty for the model itself."""
    name = row.text("lora_path")
    if name and name not in facts.models[1:]:
        served = ", ".join(facts.models[1:]) or "none"
        raise bad(
            f"lora_path: there is no adapter {name[:200]!r}; there are: {served}", "lora_path"
        )
    return name


def _prompt(row: Fields, prompt: str | list[int], facts: EngineFacts) -> tuple[pb.Prompt, int]:
    given = row.get("image_data")
    if given is None or given == []:
        return sampling_of.prompt_of(prompt, facts)
    if not isinstance(prompt, str):
        raise bad("image_data needs a prompt as text, in which the images have places", "input_ids")
    reader_of(facts, "image_data")
    images = given if isinstance(given, list) else [given]
    files = [file_of(each, f"image_data[{i}]", bare=True) for i, each in enumerate(images)]
    return image_prompt(prompt, facts, files, where="image_data"), 0


def _ask_logprobs(
    sampling: pb.Sampling, start: int, n_top: int, has_text: bool, n_added: int
) -> None:
    """Asks for log-probabilities of the prompt's tokens after position `start`.

    0 includes the first token, which has none itself. -1 means none of the prompt, or all of it for
    a prefill, which generates nothing.
    """
    asked = sampling.logprobs
    asked.SetInParent()
    asked.top, asked.text = n_top, has_text
    if start > 0:
        asked.start = start + 1 + n_added
    elif start == 0 or sampling.max_tokens == 0:
        asked.start = n_added


def _check_special(params: Fields) -> None:
    name = "skip_special_tokens"
    if not params.boolean(name, True):
        raise bad(
            f"{params.where}{name}: special tokens are never text here; leave it true",
            params.where + name,
            "unsupported_parameter",
        )
