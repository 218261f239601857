"""The client of `dspy_rag.py`: DSPy's retrieval pipeline, in a Python that has DSPy and no sgc.

    PYTHON -P benches/dspy_pipeline.py < JOB.json

The module is the papers' (DSPy's introduction): retrieve 3 passages, then a chain of thought over
them. A job says what to do: `compile` lets BootstrapFewShot choose examples and saves the program;
else it is evaluated on questions by DSPy's own threads. It prints one line of JSON.
"""

from __future__ import annotations

import json
import logging
import os
import re
import statistics
import sys
import time
import urllib.request
import uuid
from collections import Counter, defaultdict
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import dspy

# The models have random weights, so a constraint gives replies the form that DSPy asks for. It sets
# their lengths, too: about those of the tutorial.
FORM = (
    r"\[\[ ## reasoning ## \]\]\n[A-Za-z ,.]{120,160}\n\n"
    r"\[\[ ## answer ## \]\]\n[A-Za-z ]{8,24}\n\n\[\[ ## completed ## \]\]"
)
N_PASSAGES, N_DEMOS = 3, 4
COUNTED = ("prompt_tokens", "cached_tokens", "generated_tokens", "positions_run")


class GenerateAnswer(dspy.Signature):
    """Answer questions with short factoid answers."""

    context: list[str] = dspy.InputField(desc="may contain relevant facts")
    question: str = dspy.InputField()
    answer: str = dspy.OutputField(desc="often between 1 and 5 words")


class Search:
    """Ranks passages by the words that they share with a question, the rare ones most."""

    def __init__(self, passages: list[str]) -> None:
        self._passages = passages
        self._found: dict[str, list[int]] = defaultdict(list)
        for i, passage in enumerate(passages):
            for word in words(passage):
                self._found[word].append(i)

    def __call__(self, query: str, k: int) -> list[str]:
        scores: Counter[int] = Counter()
        for word in sorted(words(query)):
            for i in self._found[word]:
                scores[i] += 1 / len(self._found[word])  # type: ignore[assignment]
        return [self._passages[i] for i, _ in scores.most_common(k)]


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text.lower()))


class RAG(dspy.Module):
    """is_apart: each request has a cache of its own, so that none finds another's prefix."""

    def __init__(self, search: Search, is_apart: bool = False) -> None:
        super().__init__()
        self.search, self.is_apart = search, is_apart
        self.generate_answer = dspy.ChainOfThought(GenerateAnswer)
        self.took_s: list[float] = []

    def forward(self, question: str) -> dspy.Prediction:
        begun = time.perf_counter()
        context = self.search(question, N_PASSAGES)
        salt = {"cache_salt": uuid.uuid4().hex if self.is_apart else "shared"}
        found = self.generate_answer(context=context, question=question, config=salt)
        self.took_s.append(time.perf_counter() - begun)
        return dspy.Prediction(context=context, answer=found.answer, reasoning=found.reasoning)


def examples(rows: list[list[str]]) -> list[dspy.Example]:
    return [dspy.Example(question=q, answer=a).with_inputs("question") for q, a in rows]


def compiled(job: dict[str, Any]) -> dict[str, Any]:
    """Any reply is good enough as an example: right ones are not to be had of random weights."""
    chosen = dspy.BootstrapFewShot(
        metric=lambda example, found, trace=None: True,
        max_bootstrapped_demos=N_DEMOS, max_labeled_demos=N_DEMOS,
    )  # fmt: skip
    program = chosen.compile(RAG(Search(job["passages"])), trainset=examples(job["train"]))
    program.save(job["compile"])
    return {"demos": len(program.generate_answer.predict.demos)}


def evaluated(job: dict[str, Any]) -> dict[str, Any]:
    program = RAG(Search(job["passages"]), job["is_apart"])
    if job["program"]:
        program.load(job["program"])
    evaluate = dspy.Evaluate(
        devset=examples(job["dev"]), metric=lambda example, found: 1.0,
        num_threads=job["threads"], display_progress=False,
    )  # fmt: skip
    dspy.settings.lm("Say hello.", cache_salt="none")  # imports what it needs
    asked(job["url"] + "/flush_cache", b"")
    counted, begun, cpu = counters(job["url"]), time.perf_counter(), time.process_time()
    result = evaluate(program)
    wall_s, cpu_s = time.perf_counter() - begun, time.process_time() - cpu
    counted = {name: n - counted[name] for name, n in counters(job["url"]).items()}
    replies = [[found.reasoning, found.answer] for _, found, _ in result.results]
    p50_s = statistics.median(program.took_s)
    return {"wall_s": wall_s, "client_cpu_s": cpu_s, "p50_s": p50_s, **counted, "replies": replies}


def counters(url: str) -> dict[str, int]:
    """What the server has counted so far."""
    said = asked(url + "/metrics")
    found = {name: re.search(rf"^sgc_{name}_total (\S+)$", said, re.M) for name in COUNTED}
    return {name: int(float(match[1])) for name, match in found.items() if match}


def asked(url: str, body: bytes | None = None) -> str:
    with urllib.request.urlopen(url, body, timeout=60) as reply:
        return str(reply.read().decode())


def main() -> None:
    logging.disable(logging.WARNING)
    job = json.load(sys.stdin)
    lm = dspy.LM(
        f"openai/{job['model']}", api_base=job["url"] + "/v1", api_key="none", temperature=0.0,
        max_tokens=400, cache=False, num_retries=0, timeout=3000, regex=FORM,
    )  # fmt: skip
    dspy.configure(lm=lm)
    found = compiled(job) if job.get("compile") else evaluated(job)
    print(json.dumps({**found, "dspy": dspy.__version__}))


if __name__ == "__main__":
    main()
