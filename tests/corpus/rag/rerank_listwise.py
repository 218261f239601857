"""RankGPT: a sliding window of passages is put in order by the model, from the back on."""

import re

import sgc


def parse_ranking(text: str, n: int) -> list[int]:
    """'[2] > [1] > [3]' -> [1, 0, 2]; what is missing goes to the end, doubles are dropped."""
    order = []
    for digits in re.findall(r"\[(\d+)\]", text):
        i = int(digits) - 1
        if 0 <= i < n and i not in order:
            order.append(i)
    return order + [i for i in range(n) if i not in order]


@sgc.function
def rank_window(s, query: str, passages: list[str]):
    s += sgc.system("You are RankGPT, you rank passages by relevance to the query.")
    with s.user():
        s += f"I will give you {len(passages)} passages. Query: {query}.\n"
        for i, passage in enumerate(passages, start=1):
            s += f"[{i}] {passage}\n"
        s += "Rank them, most relevant first, as [2] > [1]."
    s += sgc.assistant(sgc.gen("ranking", max_tokens=4 * len(passages) + 1))
    return parse_ranking(s["ranking"], len(passages))


@sgc.function(max_turns=8)
def program(s, query: str, passages: list[str], window: int = 3, step: int = 2):
    ranked = list(passages)
    end = len(ranked)
    n_calls = 0
    while end > 0:
        start = max(0, end - window)
        part = ranked[start:end]
        order = rank_window(query, part).ret_value
        ranked[start:end] = [part[i] for i in order]
        n_calls += 1
        if start == 0:
            break
        end -= step
    top = ranked[:2]
    s += f"Query: {query}\n" + "\n".join(f"{i}. {p}" for i, p in enumerate(top, 1))
    s += "\nAnswer:" + sgc.gen("answer", max_tokens=24, stop="\n")
    return top, n_calls


ARGUMENTS = [
    {
        "query": "how to prune apple trees",
        "passages": [
            "Apple trees bloom in May.",
            "Prune in late winter, before the buds open.",
            "A pruning saw costs 20 euros.",
            "Cut dead branches first.",
            "Pears are not apples.",
        ],
    },
    {"query": "anything", "passages": []},
]
REPLIES = ["[2] > [1] > [3]", "[3] > [3] > [7]", "2 > 1", "[1]", " In late winter."]
