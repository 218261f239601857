"""Self-RAG: whether to retrieve, reflection tokens for each segment, the best segment wins."""

from dataclasses import asdict, dataclass

import sgc

RELEVANCE = {"[Relevant]": 1.0, "[Irrelevant]": 0.0}
SUPPORT = {"[Fully supported]": 1.0, "[Partially supported]": 0.5, "[No support]": 0.0}
UTILITY = {f"[Utility:{i}]": (i - 3) / 2 for i in range(1, 6)}


@dataclass
class Candidate:
    passage: str
    answer: str
    score: float

    def __lt__(self, other):
        return self.score < other.score


@sgc.function
def segment(s, instruction: str, passage: str, w_rel: float = 1.0, w_sup: float = 1.0):
    s += f"### Instruction:\n{instruction}\n### Evidence:\n{passage}\n"
    s += sgc.select("rel", choices=list(RELEVANCE))
    s += "\n### Response:\n" + sgc.gen("answer", max_tokens=48, stop="###")
    score = w_rel * RELEVANCE[s["rel"]]
    if score > 0:
        s += sgc.select("sup", choices=list(SUPPORT))
        score += w_sup * SUPPORT[s["sup"]]
    s += sgc.select("use", choices=list(UTILITY))
    score += 0.5 * UTILITY[s["use"]]
    return s["answer"].strip(), score


@sgc.function
def program(s, instruction: str, passages: list[str], threshold: float = 0.5):
    s += f"### Instruction:\n{instruction}\n"
    s += sgc.select("retrieve", choices=["[Retrieval]", "[No Retrieval]"])
    if s["retrieve"] == "[No Retrieval]" or not passages:
        s += "\n### Response:\n" + sgc.gen("answer", max_tokens=48, stop="###")
        return s["answer"].strip(), None

    candidates = []
    for passage in passages:
        answer, score = segment(instruction, passage, w_sup=2.0).ret_value
        candidates.append(Candidate(passage, answer, round(score, 3)))
    best = max(candidates)
    if best.score < threshold:
        s += "\n### Response:\nThe evidence does not help."
        return None, best.score
    s += f"\n### Evidence:\n{best.passage}\n### Response:\n{best.answer}"
    return asdict(best)


ARGUMENTS = [
    {
        "instruction": "Why is the sky blue?",
        "passages": [
            "Short wavelengths are scattered more.",
            "The sea reflects the sky.",
            "Blue is a colour.",
        ],
    },
    {"instruction": "Write a haiku.", "passages": []},
    {"instruction": "Who won?", "passages": ["It rained."], "threshold": 2.5},
]
REPLIES = ["Because of scattering.", "It mirrors the sea.\n###", "Nobody knows."]
