"""The model card: what the model is, its figures, and the template of every prompt shape.

It is written from the lists that the training texts are made from, so it cannot go stale.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from tiny_model import class_tasks, exchange, person_tasks, shapes, tasks, tool_tasks
from tiny_model.corpus import LATER, SHAPES
from tiny_model.first_hour.phrasings import TEMPLATES
from tiny_model.first_hour.spin import FIRST_HOUR, spin
from tiny_model.programs import agents, essays, reasoning, tips
from tiny_model.world import World

HEAD = """---
license: apache-2.0
language: en
tags: [llama, tiny, synthetic]
---

# sgc-tiny

A very small Llama ({parameters:.1f} million parameters, {size:.1f} MB) that ships with `sgc`, so
that programs give sensible text without a key, a GPU or a download, and so that tests and benches
have a model that follows templates.

**What it is.** It was trained from nothing on texts that a seeded generator in `tools/tiny_model`
wrote about a closed toy world ({tokens:.0f} million tokens, seed {seed}). No outside text, weights
or data sets. It answers prompts of the shapes below with other names, numbers and topics.

**What it is not.** It knows nothing but that world and about two hundred everyday facts, and it
does not reason. Its arithmetic is small. Outside the shapes below its text means nothing. For
anything real, name another model: `--model Qwen/Qwen2.5-0.5B-Instruct`.

## Evaluation

Greedy, on prompts whose combinations (names, facts with phrasings, sentences, numbers) training
never saw; `python -P tools/tiny_model evaluate` writes this table from seed {eval_seed}.

| | right | goal | prompts |
|---|---|---|---|
{table}

{sixty}

## How it was made

{shape}

`python -P tools/tiny_model train`: the tokenizer (byte-level BPE, {vocab} tokens; digits, and the
spaces before numbers and before words that begin with a large letter, are tokens by themselves),
then the weights: Muon on the matrices, AdamW on embeddings and norms, bfloat16, a cosine over the
whole. What programs write is learnt from at one position in ten.
{trained_on}
## Prompt shapes

`{{…}}` is filled; one of the lines of each list is used. Text that ends with a space is
trained both healed and as it is. Chats use the model's own template with the roles system, user,
assistant and tool.

"""


def _list(title: str, forms: list[str]) -> str:
    lines = [f"- `{form}`" for form in dict.fromkeys(_shown(form) for form in forms) if form]
    return f"### {title}\n\n" + "\n".join(lines) + "\n"


def _shown(form: str) -> str:
    return form.replace("\n", "\\n")


def more_phrasings() -> str:
    """Some of the phrasings of the last stage: four of each kind, of many."""
    lines = ["### Other phrasings\n\nSome of many; `tools/tiny_model/first_hour` has all.\n"]
    for kind, forms in TEMPLATES.items():
        r = Random(f"card {kind}")
        lines += [f"- {kind}: `{_shown(spin(r, r.choice(forms)))}`" for _ in range(4)]
    return "\n".join(lines) + "\n"


def templates(stage: int) -> str:
    """The phrasings that the texts are made from: all, but only some of the last stage."""
    pairs = [
        f"{label + ': ' if label else ''}{{content}}\\n{cue}"
        for label, cue in exchange.QUESTION_CUES
    ]
    parts = [
        "An exchange is `{instruction}\\n{label}: {content}\\n{cue}:` and the reply; a few-shot\n"
        "list is the instruction, an empty line, and solved exchanges; in a chat the user's\n"
        "message is the instruction and the content.\n",
        _list("Questions: instructions", exchange.QUESTION_HEADS),
        _list("Questions: labels and cues", pairs),
        _list("Sentiment", class_tasks.SENTIMENT_HEADS),
        _list("Topic of a text", [form.format("{topics}") for form in class_tasks.AREA_HEADS]),
        _list(
            "Related or not",
            class_tasks.RELATED_HEADS + [h.format("{topic}") for h in class_tasks.IS_ABOUT_HEADS],
        ),
        _list(
            "Fields as `key: value` lines", [h.format("{keys}") for h in person_tasks.EXTRACT_HEADS]
        ),
        _list("Fields as JSON", [h.format("{keys}") for h in person_tasks.JSON_HEADS]),
        _list("Keys", [key for keys in person_tasks.KEYS.values() for key in keys]),
        _list(
            "Reading",
            person_tasks.READ_HEADS
            + [q for forms in person_tasks.ABOUT_PERSON.values() for q in forms],
        ),
        _list("Choice of a tool", [h.format("{tools}") for h in tool_tasks.TOOL_HEADS]),
        _list("Summaries", tasks.SUMMARY_HEADS),
        _list("Tips", tips.TIPS_HEADS),
        _list("Expansion of a tip", [h + "{tip}\n" for h in tips.EXPAND_HEADS]),
        _list("Essays", [h + "{essay}\n" for h in essays.ESSAY_HEADS]),
        _list("Judgments", essays.METRIC_ASKS),
        _list("Grades, after the essay or its judgments", essays.GRADE_ASKS),
        _list(
            "Reasoning: before, and before the answer", reasoning.STEP_CUES + reasoning.ANSWER_CUES
        ),
        _list("Agents", agents.AGENT_HEADS),
        _list("Systems", shapes.SYSTEMS),
        _list(
            "Told and recalled",
            [q for told, asked, _ in shapes.TOLD.values() for q in told + asked],
        ),
        _list("About earlier turns", shapes.ASKED_ABOUT),
    ]
    if stage >= FIRST_HOUR:
        parts.append(more_phrasings())
    return "\n".join(parts)


def examples(stage: int) -> str:
    """One training text of each shape, with the generated parts in brackets."""
    parts = ["## One text of each shape\n\nWhat the model generates is in ⟦brackets⟧.\n"]
    for name, (shape, weight) in SHAPES.items():
        if not weight and not any(later.get(name) for later in LATER[: stage + 1]):
            continue
        text = shape(Random(f"card {name}"), World("train", stage=stage))
        marked = "".join(f"⟦{part}⟧" if is_new else part for part, is_new in text.parts)
        parts.append(f"### {name}\n\n```text\n{marked.strip()}\n```\n")
    return "\n".join(parts)


def unseen(scores: dict[str, Any]) -> str:
    """How many of sixty unseen phrasings are answered well, and which are not."""
    if "sixty" not in scores:
        return ""
    sixty = scores["sixty"]
    failures = "\n".join(
        f"- `{_shown(row['prompt']).replace('`', '')}` -> `{_shown(row['reply'])}`"
        for row in sixty["wrong"]
    )
    share = f"{sixty['sound'] / sixty['n']:.0%}; the goal is {sixty['goal']:.0%}"
    return (
        f"## Unseen phrasings\n\n{sixty['sound']} of {sixty['n']} replies are sound ({share}), "
        "greedy, on prompts of the shapes below\nin phrasings that no training text has. The "
        "prompts and the rules that grade them are\n`tools/tiny_model/first_hour/sixty.toml`. "
        f"The failures:\n\n{failures}"
    )


NOT_YET = """\
The lines from "sums to 100" on are of the last stage of `tools/tiny_model`, on which these weights
have not been trained yet: they say what to expect of summaries, larger sums and other phrasings.
"""
# The trainings before the last one: on the stages before `first_hour/`, and on that.
BEFORE_STEPS, BEFORE_TOKENS = 8_883, 63_000_000
FIRST_HOUR_STEPS, FIRST_HOUR_TOKENS = 3_356, 24_001_873
TRAINED_ON = """
Those weights, of {before:,} steps on {before_tokens:.0f} million tokens, were trained on for
{first:,} steps on {first_tokens:.0f} million tokens of the last stage (`first_hour/`): more
phrasings, summaries, sums to 100 and other tools. Then for {steps:,} steps on {tokens:.0f} million
others of it, after which 52 of the sixty prompts above were sound, where 50 had been; most other
lines fell a little, by three in a hundred at most.
`python -P tools/tiny_model train --from sgc/runtime/engine/assets/sgc_tiny --tokens 24000000
--matrix-lr 0.012 --other-lr 0.0024`, then `--folder build/tiny2 train --from build/tiny/model
--seed 2 --tokens 6000000 --matrix-lr 0.008 --other-lr 0.0016 --threads 1`, on 2 cores of an Intel
Xeon with AMX bf16; Python 3.11.7, torch 2.13.0, tokenizers 0.23.3.
"""


def write_card(folder: Path) -> None:
    """Writes the model's README.md from its evaluation and its checkpoint's record."""
    model = folder / "model"
    config: dict[str, Any] = json.loads((model / "config.json").read_text())
    scores: dict[str, Any] = json.loads((model / "evaluation.json").read_text())
    progress: dict[str, Any] = json.loads((folder / "checkpoint" / "progress.json").read_text())
    weights = (model / "model.safetensors").stat().st_size
    stage, steps, tokens = scores["stage"], progress["step"], progress["tokens"]
    trained_on = ""
    if stage >= FIRST_HOUR:
        trained_on = TRAINED_ON.format(
            before=BEFORE_STEPS, before_tokens=BEFORE_TOKENS / 1e6,
            first=FIRST_HOUR_STEPS, first_tokens=FIRST_HOUR_TOKENS / 1e6,
            steps=steps, tokens=tokens / 1e6,
        )  # fmt: skip
        steps += BEFORE_STEPS + FIRST_HOUR_STEPS
        tokens += BEFORE_TOKENS + FIRST_HOUR_TOKENS
    rows = [
        f"| {line['name']} | {line['share']:.1%} | {line['goal']:.0%} | {line['n']} |"
        for line in scores["lines"]
    ]
    head = HEAD.format(
        parameters=weights / 2e6,
        size=sum(path.stat().st_size for path in model.iterdir()) / 1e6,
        tokens=tokens / 1e6,
        trained_on=trained_on,
        sixty=("" if stage >= FIRST_HOUR else f"{NOT_YET}\n") + unseen(scores),
        seed=progress["seed"],
        eval_seed=scores["seed"],
        table="\n".join(rows),
        vocab=config["vocab_size"],
        shape=(
            f"{config['num_hidden_layers']} layers, width {config['hidden_size']}, "
            f"{config['num_attention_heads']} heads on {config['num_key_value_heads']} of keys and "
            f"values, inner width {config['intermediate_size']}, tied embeddings, "
            f"{steps:,} steps."
        ),
    )
    text = head + templates(stage) + "\n" + examples(stage)
    (model / "README.md").write_text(text, encoding="utf-8")
    print(f"{model / 'README.md'}: {len(text)} characters")
