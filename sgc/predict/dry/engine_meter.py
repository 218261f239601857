"""Counts what our engine would compute for a request, and find in its cache.

It uses the engine's own request preparation, constraints and radix tree, without a model: a
position is computed unless it is in the tree, and is then inserted. The pool is unlimited, or has
`pool_tokens` and evicts the least recently used. Requests are counted one by one, in the order in
which they are made: of those made at once, the first is said to compute what they share, whichever
the engine takes first.

Ids of assumed tokens have a multiple of `FRESH` added, so that they equal no others; modulo FRESH
they are a plausible token of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sgc.errors import BackendError, UnsupportedParameter
from sgc.predict.dry.forced import Follower, Forced
from sgc.predict.dry.model import OpenedModel
from sgc.proto import engine_pb2 as pb
from sgc.proto import worker_pb2 as wpb
from sgc.runtime.engine.cache.radix import RadixTree
from sgc.runtime.engine.preparing.bounds import RequestError, ServerLimits
from sgc.runtime.engine.preparing.prepare import prepare_all
from sgc.runtime.engine.requests.choices import Branch, ChoiceTrie
from sgc.runtime.engine.text.tokenizer import Ids, Text
from sgc.runtime.executor.backends.engine.wire import ERRORS, generate_message, prompt_message
from sgc.runtime.executor.interface.backend import (
    Generated,
    Joined,
    MediaRun,
    Prompt,
    Sampling,
    Scored,
    TokenRun,
    Usage,
)
from sgc.runtime.executor.interface.place import Place

FRESH = 2**31  # above every id of a vocabulary


class EngineMeter:
    """A `Meter` (`runtime/executor/backends/dry.py`)."""

    def __init__(self, model: OpenedModel, pool_tokens: int | None = None) -> None:
        self._model = model
        self._tokenizer = model.tokenizer
        self._follower = Follower(model)
        self._pool_tokens = pool_tokens
        self._limits = ServerLimits(
            model.capabilities.max_context, pool_tokens or 0, model.tokenizer.vocab_size
        )
        self._tree = RadixTree()

    # The Meter interface.

    def generate(
        self,
        place: Place,
        prompt: Prompt,
        samplings: Sequence[Sampling],
        replies: Sequence[Generated],
    ) -> list[Usage]:
        pairs = zip(samplings, replies, strict=True)
        return [self._generate(prompt, sampling, reply.ids) for sampling, reply in pairs]

    def score(
        self,
        place: Place,
        prompt: Prompt,
        choices: tuple[str, ...],
        reply: Scored,
        unconditional: bool,
    ) -> Usage:
        message = pb.Score(choices=choices)
        self._prepared(pb.Request(prompt=_known(prompt), score=message))
        ids, choice_ids = self._tokenizer.encode_choices(_segments(prompt), choices)
        trie = ChoiceTrie(choice_ids)
        cached = self._run(ids, len(ids) - 1, len(ids))
        for branch in trie.branches:
            path = [*ids, *_path(branch), *branch.tokens[: branch.n_to_run].tolist()]
            self._run(path, len(path), len(path))
        usage = _usage(len(ids) + trie.n_positions, cached)
        for each in choice_ids if unconditional else ():
            alone = [*self._tokenizer.prefix_ids, *each]
            self._run(alone, 0, len(alone))
            usage = usage.with_more(_usage(len(alone), 0))
        return usage

    def commit(self, prompt: Prompt, heads: tuple[str, ...]) -> Usage:
        ids = self._tokenizer.encode_commit(_segments(prompt), heads)
        return _usage(len(ids), self._run(ids, len(ids), len(ids)))

    # Counting.

    def _generate(self, prompt: Prompt, sampling: Sampling, reply: Sequence[int]) -> Usage:
        message = generate_message(sampling, stream=False)
        work = self._prepared(pb.Request(prompt=_known(prompt), generate=message))
        ids = self._tokenizer.encode_prompt(_segments(prompt))[: len(work.tokens)]  # less healed
        forced = Forced()
        if work.grammar and reply:
            forced = self._follower.forced(work, [each % FRESH for each in reply])
        wants_logits = sampling.max_tokens > 0 and not forced.is_all
        n_matchable = len(ids) + forced.n_first - wants_logits
        if sampling.logprobs is not None:
            start = sampling.logprobs.start
            n_matchable = min(n_matchable, max(len(ids) if start is None else start, 1) - 1)
        n_fed = len(ids) + max(len(reply) - max(forced.n_last, 1), 0)
        cached = self._run([*ids, *reply], n_matchable, n_fed)
        usage = _usage(len(ids), min(cached, len(ids)))
        return replace(usage, completion_tokens=len(reply), forced_tokens=forced.n_in_all)

    def _run(self, ids: Sequence[int], n_matchable: int, n_fed: int) -> int:
        """Inserts a sequence's computed part into the tree; returns how many tokens were cached."""
        tokens = np.fromiter(ids, np.int64, len(ids))
        root = self._tree.root()
        match = self._tree.match(tokens[:n_matchable], root)
        node = self._tree.lock(match) if match.length else root
        new = tokens[match.length : n_fed]
        if self._pool_tokens is not None:
            self._tree.evict(max(0, self._tree.n_tokens + len(new) - self._pool_tokens))
        self._tree.insert(new, np.zeros(len(new), np.int64), node)
        if node is not root:
            self._tree.unlock(node)
        return match.length

    def _prepared(self, request: pb.Request) -> wpb.WorkerRequest:
        """The request as the engine prepares it; raises an error if the engine would refuse it."""
        (found,) = prepare_all([request], self._tokenizer, self._limits)
        if isinstance(found, RequestError):
            raise ERRORS.get(found.code, BackendError)(found.message)
        return found.work


def _usage(prompt_tokens: int, cached: int) -> Usage:
    return Usage(prompt_tokens, cached, prompt_tokens - cached)


def _path(branch: Branch) -> list[int]:
    """The tokens of a choice before a branch."""
    steps: list[list[int]] = []
    step = branch.parent
    while step is not None:
        steps.append(step.tokens.tolist())
        step = step.parent
    return [token for tokens in reversed(steps) for token in tokens]


def _segments(prompt: Prompt) -> list[Text | Ids]:
    found: list[Text | Ids] = []
    for run in prompt:
        if isinstance(run, MediaRun):
            raise UnsupportedParameter("the engine takes no images")
        assert not isinstance(run, Joined), "a dry run computes joins as plain prompts"
        found.append(Ids(run.ids) if isinstance(run, TokenRun) else Text(run.text, run.literal))
    return found


def _known(prompt: Prompt) -> pb.Prompt:
    """The message of a prompt, with assumed tokens mapped back to the vocabulary."""
    runs = [
        TokenRun(tuple(each % FRESH for each in run.ids), run.text)
        if isinstance(run, TokenRun)
        else run
        for run in prompt
    ]
    return prompt_message(tuple(runs))
