"""Seeded texts: pseudo-words, and the texts of the programs of workload W5.

It imports only the standard library, so that any peer's Python can import it. `models.py` (for the
tokenizer's training), `programs_w5.py` and `programs_asyncio.py` use it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from itertools import accumulate

ONSETS = ["b", "br", "c", "ch", "d", "dr", "f", "fl", "g", "gr", "h", "j", "k", "l", "m", "n"]
ONSETS += ["p", "pl", "qu", "r", "s", "sh", "st", "t", "th", "tr", "v", "w", "z"]
NUCLEI = ["a", "e", "i", "o", "u", "ai", "ea", "ou", "oo"]
CODAS = ["", "", "", "n", "r", "l", "s", "t", "m", "nd", "st", "ck"]
N_WORDS = 40_000


def words(seed: int = 0, n_words: int = N_WORDS) -> list[str]:
    """Distinct pronounceable words of one to four syllables."""
    draw = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < n_words:
        n_syllables = draw.choices((1, 2, 3, 4), (1, 4, 4, 2))[0]
        syllables = (
            draw.choice(ONSETS) + draw.choice(NUCLEI) + draw.choice(CODAS)
            for _ in range(n_syllables)
        )
        found["".join(syllables)] = None
    return list(found)


class Prose:
    """Sentences of these words, of which the first are more frequent, as in Zipf's law."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(f"prose {seed}")
        self._words = words()
        self._weights = list(accumulate(1 / (rank + 10) for rank in range(len(self._words))))

    def text(self, n_words: int) -> str:
        """Sentences of twelve words."""
        drawn = self._draw.choices(self._words, cum_weights=self._weights, k=n_words)
        parts = [drawn[start : start + 12] for start in range(0, n_words, 12)]
        return " ".join(" ".join(part).capitalize() + "." for part in parts)


# The texts of the programs. Lengths are in tokens.
DIMENSIONS = ("Clarity", "Originality", "Evidence", "Structure", "Style", "Persuasion")
JUDGE_HEAD = "Please evaluate the following essay.\n"
JUDGE_ASK = "Evaluate it by this metric: {}. Be short and say what could be better.\nJudgment:"
JUDGE_END = "In summary,"
N_JUDGMENT, N_SUMMARY = 16, 32

TREE_HEAD = "Think step by step and answer the question.\nQuestion: "
TREE_PLAN = "Plan number {}: to answer this question, first"
TREE_SOLVE = "\nWorking out the plan, way {}:"
TREE_RATE = "\nHow good is this on a scale of one to ten?"
TREE_END = "\nThe best of these ways says:"
N_PLANS, N_WAYS, N_PLAN, N_SOLVE, N_RATE, N_BEST = 3, 2, 24, 24, 4, 16

CHAIN_HEAD = "Answer the question by reasoning in several ways.\nQuestion: "
CHAIN_ASK = "Chain of reasoning {}: let us think step by step."
CHAIN_END = "\nAll in all, the best answer is:"
N_CHAINS, N_CHAIN, N_ANSWER = 5, 32, 16

SHOT_HEAD = "Choose the subject of each text.\n"
SHOT_ASK = "Text: {}\nSubject:"
CHOICES = (" nature and science", " history and politics", " games and sports", " art and music")
N_SHOTS = 8

CHARACTER_ASK = (
    "{} is a character in Harry Potter. Please fill in the following information about this"
    " character.\n"
)
N_CHARACTER = 512  # more than any answer needs


def _object(fields: dict[str, str]) -> str:
    """A regular expression for a JSON object, from those for its values."""
    return r"\{" + ", ".join(f'"{name}": {value}' for name, value in fields.items()) + r"\}"


def _one_of(*texts: str) -> str:
    return f'"({"|".join(texts)})"'


_NAME = '"[A-Z][a-z]{2,8}"'
# The character of the SGLang paper's JSON benchmark, but on one line: the tokenizers here have no
# tokens for indentation, so indentation would have more forced tokens than with real tokenizers.
CHARACTER = _object(
    {
        "name": _NAME,
        "house": _one_of("Gryffindor", "Slytherin", "Ravenclaw", "Hufflepuff"),
        "blood status": _one_of("Pure-blood", "Half-blood", "Muggle-born"),
        "occupation": _one_of(
            "student", "teacher", "auror", "ministry of magic", "death eater",
            "order of the phoenix",
        ),
        "wand": _object({"wood": _NAME, "core": _NAME, "length": r"[0-9]{1,2}\.[0-9]{0,2}"}),
        "alive": _one_of("Alive", "Deceased"),
        "patronus": _NAME,
        "bogart": _NAME,
    }
)  # fmt: skip

TEMPLATES = [  # the tokenizers are trained on them, so a change makes other models
    JUDGE_HEAD, JUDGE_ASK, JUDGE_END, TREE_HEAD, TREE_PLAN, TREE_SOLVE, TREE_RATE, TREE_END,
    CHAIN_HEAD, CHAIN_ASK, CHAIN_END, SHOT_HEAD, SHOT_ASK, *CHOICES, *DIMENSIONS,
]  # fmt: skip


def few_shots(seed: int) -> str:
    """The examples with which every row of the few-shot program begins."""
    prose, draw = Prose(seed), random.Random(seed)
    asked = (SHOT_ASK.format(prose.text(36)) + draw.choice(CHOICES) for _ in range(N_SHOTS))
    return SHOT_HEAD + "\n".join(asked) + "\n"


N_WORDS_OF = {
    "essay_judge": 180,
    "tree_of_thought": 70,
    "multi_chain": 70,
    "few_shot_select": 36,
    "json_by_regex": 2,
}


def rows(program: str, seed: int, n_rows: int) -> list[str]:
    """A text for each row: an essay, a question, few shots and a text to classify, or a name."""
    prose = Prose(seed)
    texts = [prose.text(N_WORDS_OF[program]) for _ in range(n_rows)]
    if program == "few_shot_select":
        shots = few_shots(seed + 10_000)
        texts = [shots + SHOT_ASK.format(text) for text in texts]
    if program == "json_by_regex":
        texts = [text.title().rstrip(".") for text in texts]
    return texts


def judged(program: str, answers: Sequence[str]) -> dict[str, int]:
    """For a program with a constraint: the number of valid answers, of answers, of characters."""
    if program != "json_by_regex":
        return {}
    n_valid = sum(re.fullmatch(CHARACTER, answer) is not None for answer in answers)
    return {"n_valid": n_valid, "n_answers": len(answers), "n_chars": sum(map(len, answers))}
