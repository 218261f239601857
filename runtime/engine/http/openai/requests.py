"""Turns OpenAI's requests into the engine's, with pure functions; docs/http.md lists each field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sgc.proto import engine_pb2 as pb
from sgc.runtime.engine.http import sampling as sampling_of
from sgc.runtime.engine.http.errors import HttpError, Json, bad
from sgc.runtime.engine.http.fields import Fields, Refused, is_ids
from sgc.runtime.engine.http.openai import constraints
from sgc.runtime.engine.http.openai.chat import chat_prompt
from sgc.runtime.engine.http.openai.constraints import read_constraint
from sgc.runtime.engine.http.sampling import MAX_N, NAMES, Ask
from sgc.runtime.engine.http.turns.formats import form_of, tag_of
from sgc.runtime.engine.http.turns.planning import plan_of
from sgc.runtime.engine.http.turns.tools import read_tools
from sgc.runtime.engine.http.turns.turn import PLAIN, Plan
from sgc.runtime.engine.preparing.bounds import MAX_LOGPROBS, MAX_TOP_LOGPROBS
from sgc.runtime.engine.server.server import EngineFacts

DEFAULT_COMPLETION_TOKENS = 16


def _metadata(fields: Fields, name: str) -> None:
    given = fields.object(name)
    for key in fields.get(name) or ():
        given.text(key)


# Fields that change nothing, and how each is read: a wrong type is an error all the same.
IGNORED: dict[str, Callable[[Fields, str], Any]] = {
    "user": Fields.text,
    "store": Fields.boolean,
    "metadata": _metadata,
    "service_tier": Fields.text,
    "prompt_cache_key": Fields.text,
    "prompt_cache_retention": Fields.text,
    "safety_identifier": Fields.text,
    "guided_decoding_backend": Fields.text,
}
_SHARED = (
    NAMES
    | IGNORED.keys()
    | {"model", "stream", "stream_options", "n", "seed", "max_tokens", "min_tokens", "logprobs"}
    | {"cache_salt"}
    | constraints.NAMES
)
# As in vLLM and SGLang: whether the reply continues the last message or begins a new one.
_GOING_ON = frozenset({"continue_final_message", "add_generation_prompt"})
_CALLING = frozenset({"tools", "tool_choice", "parallel_tool_calls", "chat_template_kwargs"})
CHAT = _SHARED | {"messages", "max_completion_tokens", "top_logprobs"} | _GOING_ON | _CALLING
COMPLETION = _SHARED | {"prompt", "echo", "best_of"}
REFUSED: dict[str, Refused] = {
    "functions": ("send tools",),
    "function_call": ("send tool_choice", "none", "auto"),
    "audio": ("this engine gives text",),
    "modalities": ("this engine gives text", ["text"]),
    "prediction": ("this engine has no use for it",),
    "reasoning_effort": ("the model decides", "none"),
    "verbosity": ("the model decides", "medium"),
    "web_search_options": ("nothing is fetched",),
    "moderation": ("this engine moderates nothing",),
    "guided_whitespace_pattern": ("a schema may ask for flexible white space by x-guidance",),
    "best_of": ("ask for n and take the best", 1),
    "suffix": ("text is generated after a prompt only",),
}
_REFUSED_COMPLETION = {name: why for name, why in REFUSED.items() if name != "best_of"}
Prompt = str | list[int]
_LIMITS = ("max_tokens", "max_completion_tokens")


@dataclass(frozen=True, slots=True)
class Completions:
    """The engine requests of one HTTP request.

    requests: n per prompt; their ids are their indexes. adapter: of all requests. logprobs: None,
    or the number of top log-probabilities. prompts: the prompts to echo before each completion.
    plan: of each reply to a chat. n_best: how many completions of a prompt are returned, the
    likeliest ones; None is all.
    """

    asks: tuple[Ask, ...]
    adapter: str
    requests: list[pb.Request]
    is_chat: bool
    stream: bool
    include_usage: bool
    logprobs: int | None
    prompts: tuple[Prompt, ...] = ()
    plan: Plan = PLAIN
    n_best: int | None = None


def chat_completions(body: Json, facts: EngineFacts) -> Completions:
    """Raises HttpError."""
    fields = checked(body, CHAT, facts)
    n_top = fields.integer("top_logprobs", high=MAX_TOP_LOGPROBS)
    logprobs = n_top if fields.boolean("logprobs") else None
    n_most = facts.limits.max_positions
    if logprobs is not None:
        n_most = min(n_most, MAX_LOGPROBS // (1 + logprobs))
    sampling = _sampling(fields, _chat_tokens(fields, n_most), facts)
    if logprobs is None and n_top:
        raise bad("top_logprobs needs logprobs: true", "top_logprobs")
    _ask_logprobs(sampling, logprobs, None, fields.boolean("stream"))
    continues = going_on(fields)
    fields.object("chat_template_kwargs")
    form = form_of(facts)
    tools = read_tools(fields, form)
    if continues and tools is not None:
        raise bad("continue_final_message and tools are both given", "continue_final_message")
    told = [function.told for function in tools.told] if tools is not None else []
    messages, values = fields.get("messages"), fields.get("chat_template_kwargs")
    prompt = chat_prompt(messages, facts, continues, told, values)
    tag = tag_of(facts)
    plan = plan_of(prompt, sampling, tools, form, tag, facts.tokenizer, continues)
    adapter = adapter_of(fields, facts)
    return _completions(fields, adapter, [(prompt, 0)], sampling, logprobs, True, plan=plan)


def going_on(fields: Fields) -> bool:
    """Whether the reply continues the last message; raises HttpError."""
    continues_last = fields.boolean("continue_final_message")
    begins = fields.boolean("add_generation_prompt", not continues_last)
    if continues_last == begins:
        message = "continue_final_message and add_generation_prompt must say different things"
        raise bad(message, "add_generation_prompt")
    return continues_last


def text_completions(body: Json, facts: EngineFacts) -> Completions:
    """Raises HttpError."""
    fields = checked(body, COMPLETION, facts, _REFUSED_COMPLETION)
    max_tokens = fields.integer("max_tokens", DEFAULT_COMPLETION_TOKENS)
    sampling = _sampling(fields, max_tokens, facts)
    logprobs = _legacy_logprobs(fields)
    prompts = prompts_of(fields, "prompt")
    sampling_of.check_completions(len(prompts))
    made = [sampling_of.prompt_of(prompt, facts) for prompt in prompts]
    is_echoed = fields.boolean("echo")
    _ask_logprobs(sampling, logprobs, 0 if is_echoed else None, fields.boolean("stream"))
    echoed = tuple(prompts) if is_echoed else ()
    adapter = adapter_of(fields, facts)
    return _completions(fields, adapter, made, sampling, logprobs, False, echoed)


def checked(
    body: Json,
    known: frozenset[str],
    facts: EngineFacts,
    refused: Mapping[str, Refused] = REFUSED,
) -> Fields:
    """The fields of a body; raises HttpError for unknown fields, and for another model."""
    fields = Fields(body)
    fields.check_known(known, refused)
    check_model(fields, facts)
    check_ignored(fields, IGNORED)
    return fields


def check_ignored(fields: Fields, ignored: Mapping[str, Callable[[Fields, str], Any]]) -> None:
    """Raises HttpError for a field without effect that has a wrong type."""
    for name, read in ignored.items():
        read(fields, name)


def check_model(fields: Fields, facts: EngineFacts, is_needed: bool = True) -> None:
    """Raises HttpError for another model, or if no model is given where one is needed."""
    model = fields.text("model")
    if not model and is_needed:
        raise bad(f"model is missing; this engine serves {' and '.join(facts.models)}", "model")
    if model:
        check_name(model, facts)


def check_name(model: str, facts: EngineFacts) -> None:
    """Raises HttpError for a name that is neither the model's nor an adapter's."""
    if model not in facts.models:
        served = " and ".join(map(repr, facts.models))
        message = f"there is no model {model[:200]!r}; this engine serves {served}"
        raise HttpError(404, message, "model", "model_not_found")


def adapter_of(fields: Fields, facts: EngineFacts) -> str:
    """The adapter that the model's name asks for; empty if it is the model itself."""
    model = fields.text("model")
    return "" if model == facts.model else model


def _sampling(fields: Fields, max_tokens: int, facts: EngineFacts) -> pb.Sampling:
    min_tokens, vocab_size = fields.integer("min_tokens"), facts.limits.vocab_size
    found = sampling_of.read_sampling(fields, max_tokens, min_tokens, vocab_size)
    read_constraint(fields, found)
    return found


def _chat_tokens(fields: Fields, n_most: int) -> int:
    """The token limit; without one, as many as fit."""
    both = {fields.integer(name, low=1) for name in _LIMITS if name in fields}
    if len(both) > 1:
        raise bad("max_tokens and max_completion_tokens say different things", "max_tokens")
    return both.pop() if both else n_most


def _legacy_logprobs(fields: Fields) -> int | None:
    return fields.integer("logprobs", high=MAX_TOP_LOGPROBS) if "logprobs" in fields else None


def _ask_logprobs(
    sampling: pb.Sampling, n_top: int | None, start: int | None, stream: bool = False
) -> None:
    if n_top is not None:
        sampling.logprobs.SetInParent()
        sampling.logprobs.stream = stream
        sampling.logprobs.top = n_top
        sampling.logprobs.text = True
        if start is not None:
            sampling.logprobs.start = start


def prompts_of(fields: Fields, name: str) -> list[Prompt]:
    """A text, a list of texts, token ids, or a list of such lists."""
    given = fields.get(name)
    found: Any = given if isinstance(given, list) and not (given and is_ids(given)) else [given]
    if not found or not all(isinstance(each, str) or is_ids(each) for each in found):
        expected = "a text, a list of texts, token ids, or a list of lists of token ids"
        raise bad(f"{name} must be {expected}", name, "invalid_type")
    return list(found)


def _completions(
    fields: Fields,
    adapter: str,
    prompts: list[tuple[pb.Prompt, int]],
    sampling: pb.Sampling,
    logprobs: int | None,
    is_chat: bool,
    echoed: tuple[Prompt, ...] = (),
    plan: Plan = PLAIN,
) -> Completions:
    n_draws, n_best = _draws(fields)
    if n_best is not None and logprobs is None:
        _ask_logprobs(sampling, 0, None)
    salt = fields.text("cache_salt").encode()
    seed = sampling_of.read_seed(fields, "seed")
    asks = tuple(
        Ask(made, _from(sampling, n), n_draws, salt, n, seed, adapter) for made, n in prompts
    )
    stream = fields.boolean("stream")
    options = fields.object("stream_options")
    options.check_known({"include_usage", "include_obfuscation"}, {})
    if "stream_options" in fields and not stream:
        raise bad("stream_options needs stream: true", "stream_options")
    return Completions(
        asks,
        adapter,
        sampling_of.requests_of(asks, stream),
        is_chat,
        stream,
        options.boolean("include_usage"),
        logprobs,
        echoed,
        plan,
        n_best,
    )


def _draws(fields: Fields) -> tuple[int, int | None]:
    """How many completions to generate, and how many of them to return, if not all."""
    n = fields.integer("n", 1, 1, MAX_N)
    best_of = fields.integer("best_of", n, 1, MAX_N)
    if best_of < n:
        raise bad(f"best_of is {best_of}, and n asks for {n} of them", "best_of")
    if best_of > n and fields.boolean("stream"):
        raise bad("best_of with a stream: which is best is known at the end", "best_of")
    return best_of, None if best_of == n else n


def _from(sampling: pb.Sampling, n_added: int) -> pb.Sampling:
    """The sampling, with log-probabilities from the first token of the client's prompt on."""
    if not n_added or not sampling.logprobs.HasField("start"):
        return sampling
    found = pb.Sampling()
    found.CopyFrom(sampling)
    found.logprobs.start = n_added
    return found
