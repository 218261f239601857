"""The programs of workload W5 in sgc's language; `programs_asyncio.py` has them for peers.

Each takes a row's text and ends with its answer. The texts and lengths are in `texts.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))

import texts as t

import sgc


def gen(name: str, n_tokens: int) -> Any:
    return sgc.gen(name, max_tokens=n_tokens, ignore_eos=True)


@sgc.function
def essay_judge(s, text):
    s += t.JUDGE_HEAD + text + "\n"
    forks = s.fork(len(t.DIMENSIONS))
    for fork, dimension in zip(forks, t.DIMENSIONS, strict=True):
        fork += t.JUDGE_ASK.format(dimension) + gen("judgment", t.N_JUDGMENT)
    forks.join()
    for fork, dimension in zip(forks, t.DIMENSIONS, strict=True):
        s += dimension + ":" + fork["judgment"] + "\n"
    s += t.JUDGE_END + gen("answer", t.N_SUMMARY)


@sgc.function
def tree_of_thought(s, text):
    s += t.TREE_HEAD + text + "\n"
    plans = s.fork(t.N_PLANS)
    found = []
    for i, plan in enumerate(plans):
        plan += t.TREE_PLAN.format(i + 1) + gen("plan", t.N_PLAN)
        ways = plan.fork(t.N_WAYS)
        for j, way in enumerate(ways):
            way += t.TREE_SOLVE.format(j + 1) + gen("solution", t.N_SOLVE)
            way += t.TREE_RATE + gen("rating", t.N_RATE)
        found.append(ways)
    for ways in found:
        for way in ways:
            s += way["solution"] + t.TREE_RATE + way["rating"]
    s += t.TREE_END + gen("answer", t.N_BEST)


@sgc.function
def multi_chain(s, text):
    s += t.CHAIN_HEAD + text + "\n"
    chains = s.fork(t.N_CHAINS)
    for i, chain in enumerate(chains):
        chain += t.CHAIN_ASK.format(i + 1) + gen("chain", t.N_CHAIN)
    chains.join()
    for i, chain in enumerate(chains):
        s += t.CHAIN_ASK.format(i + 1) + chain["chain"] + "\n"
    s += t.CHAIN_END + gen("answer", t.N_ANSWER)


@sgc.function
def few_shot_select(s, text):
    s += text
    s += sgc.select("answer", choices=list(t.CHOICES))


@sgc.function
def json_by_regex(s, text):
    s += t.CHARACTER_ASK.format(text)
    s += sgc.gen("answer", regex=t.CHARACTER, max_tokens=t.N_CHARACTER)


PROGRAMS = {
    function.__name__: function
    for function in (essay_judge, tree_of_thought, multi_chain, few_shot_select, json_by_regex)
}
