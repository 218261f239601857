"""The tokenizer: a byte-level BPE learnt from generated texts, and the chat template.

Digits are tokens by themselves, and so are the spaces before numbers and before capitalized words.
So a name or a number has the same tokens everywhere: copying it is copying tokens, and a prompt may
end with a space before it. Training with the same library version makes the same bytes: it uses one
thread, a fixed order and a seed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from tiny_model.corpus import stream
from tiny_model.text import CLOSE, END, OPEN

VOCAB_SIZE = 3072
N_TEXTS = 40_000
SEED = 20260601
MAX_LENGTH = 4096
SPECIALS = [END, OPEN, CLOSE]
SPLIT = (
    r"'(?:s|t|re|ve|m|ll|d)\b"
    r"| ?[\p{Ll}\p{Lo}\p{Lm}\p{M}]+"
    r"|[\p{Lu}\p{Lt}]+(?![\p{Ll}])|[\p{Lu}\p{Lt}][\p{Ll}\p{M}]*"
    r"|\p{N}|\n| ?[^\s\p{L}\p{N}]+|\s"
)
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] not in ['system', 'user', 'assistant', 'tool'] %}"
    "{{ raise_exception('unknown role: ' + message['role']) }}{% endif %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
PRINTABLE = "".join(map(chr, range(32, 127)))


def corpus(n_texts: int) -> Iterator[str]:
    for text in islice(stream(SEED), n_texts):
        yield "".join(part for part, _ in text.parts)
    yield from [PRINTABLE, PRINTABLE.replace("", " ")] * 5


def train(n_texts: int = N_TEXTS, vocab_size: int = VOCAB_SIZE) -> Tokenizer:
    os.environ["RAYON_NUM_THREADS"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus(n_texts), trainer)
    return tokenizer


def ends(tokenizer: Tokenizer) -> list[int]:
    """The tokens that end a generation."""
    return [tokenizer.token_to_id(token) for token in (END, CLOSE)]


def write(folder: Path, tokenizer: Tokenizer) -> None:
    """Writes the tokenizer's files in the form that transformers and the engine read."""
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": None,
        "eos_token": END,
        "pad_token": END,
        "clean_up_tokenization_spaces": False,
        "model_max_length": MAX_LENGTH,
        "chat_template": CHAT_TEMPLATE,
    }
    generation = {"eos_token_id": ends(tokenizer), "pad_token_id": ends(tokenizer)[0]}
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {
        "tokenizer.json": tokenizer.to_str(pretty=False),
        "tokenizer_config.json": json.dumps(config, indent=2),
        "generation_config.json": json.dumps(generation, indent=2),
    }.items():
        (folder / name).write_text(text + "\n", encoding="utf-8")
