"""Makes the tokenizer that the default and the fake model share, from text made up here.

A byte-level BPE over word lists and sentence shapes below: no text from elsewhere, no
randomness but a seeded one, so the same library version writes the same bytes.

    python -P tools/make_tokenizer.py           # rewrites runtime/engine/assets/tokenizer
    python -P tools/make_tokenizer.py --check   # fails if the committed files differ
"""

# ruff: noqa: SIM905
from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

FOLDER = Path(__file__).resolve().parent.parent / "runtime/engine/assets/tokenizer"
VOCAB_SIZE = 2048
N_LINES = 24_000
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] not in ['system', 'user', 'assistant', 'tool'] %}"
    "{{ raise_exception('unknown role: ' + message['role']) }}{% endif %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)

FUNCTION_WORDS = """the of and to in is that for it as with was on are by this be at from or
have an they which one you were all her she there would their we him been has when who will no
more if out so said what up its about than into them can only other new some could time these
two may then do first any my now such like our over man me even most made after also did many
before must through back years where much your way well down should because each just those
people how too little state good very make world still own see work long here between both
life being under never day same another know while last might us great old year off come since
against go came right used take three""".split()
NOUNS = """answer question model prompt essay story letter city river mountain garden house
school teacher student doctor engineer machine computer program function value result number
list table chart report review judge score reason step plan idea example problem solution
summary paragraph sentence word language translation country capital island ocean weather
winter summer morning evening music painting picture film book chapter author reader history
science energy light water fire earth paper window door kitchen bread coffee market price money
business company customer product service team project meeting email message phone network
server client request response memory cache token branch tree leaf root graph node edge path
loop error warning test case input output file folder line column row index key name address
date hour minute second week month family friend child mother father animal horse bird fish
dog cat flower forest road bridge train ship plane ticket travel hotel health medicine heart
hand head voice color shape size weight speed distance temperature character dimension clarity
originality evidence content agent action observation thought tip advice topic""".split()
VERBS = """write read think answer explain describe compare choose select find give tell ask
help show create build learn teach study follow start stop continue change move turn open close
bring carry hold keep leave meet play run walk speak listen remember forget believe understand
consider decide suggest improve measure compute return call check search look visit travel
cook eat drink sleep work pay buy sell send receive print parse generate evaluate summarize
translate classify extract rewrite""".split()
ADJECTIVES = """small large short long early late quick slow simple complex clear strong weak
warm cold bright dark quiet loud happy sad kind brave careful concise helpful possible
important different similar certain common rare final correct wrong true false empty full
young ancient modern local public private natural human digital positive negative neutral
beautiful useful famous green blue red white black yellow""".split()
NAMES = """Alice Bob Carol David Emma Frank Grace Henry Iris Jack Karen Leo Maria Nina Oscar
Paul Quinn Rosa Sam Tina Uma Victor Wendy Yara Paris London Tokyo Berlin Rome Madrid Cairo
Monday Tuesday Wednesday Thursday Friday Saturday Sunday January March July October""".split()
HEADINGS = """Question Answer Thought Action Observation Final Result Score Reason Summary Note
Input Output Example System User Assistant Name Date Topic Tip Step Title Review Judge Yes No
Human Context Task Story Character Dimension Grade""".split()
OTHER_SCRIPTS = "café naïve über señor crème façade année città größe — … “quoted” ‘so’ → € £ °"


def _sentence(r: random.Random) -> str:
    n, v, a, f = (
        lambda words=w: r.choice(words) for w in (NOUNS, VERBS, ADJECTIVES, FUNCTION_WORDS)
    )
    shapes: list[Callable[[], str]] = [
        lambda: f"The {a()} {n()} will {v()} the {n()} {f()} the {a()} {n()}.",
        lambda: f"{r.choice(NAMES)} {v()}s {f()} {n()}s, and {f()} {n()} is {a()}.",
        lambda: f"I think that {f()} {n()} {f()} {f()} {a()}, because the {n()}'s {n()} is {a()}.",
        lambda: f"Please {v()} a {a()} {n()} about {n()}s and {v()} it in {r.randint(1, 9)} words.",
        lambda: f"What is the {n()} of {r.choice(NAMES)}? It is a {a()} {n()} {f()} {f()}.",
        lambda: f"You are a {a()} {n()}; {v()} {f()} and {v()} {f()} {f()} {n()}!",
        lambda: " ".join([f(), n(), f(), v(), f(), f(), a(), n(), f(), f(), v(), n()]) + ".",
        lambda: f"{v().capitalize()}ing {n()}s isn't {a()}; we've {v()}ed it, it doesn't {v()}.",
    ]
    return r.choice(shapes)()


def _list_line(r: random.Random) -> str:
    shape = r.randrange(4)
    text = f"{r.choice(ADJECTIVES)} {r.choice(NOUNS)}"
    if shape == 0:
        return f"{r.randint(1, 20)}. {text.capitalize()}: {_sentence(r)}\n"
    if shape == 1:
        return f"- {text}\n- {r.choice(VERBS)} the {r.choice(NOUNS)}\n"
    if shape == 2:
        return f"{r.choice(HEADINGS)}: {text}\n{r.choice(HEADINGS)} {r.randint(1, 9)}:"
    return f"## {text.title()}\n\n* {r.choice(NOUNS)}, {r.choice(NOUNS)} and {r.choice(NOUNS)}\n"


def _json_line(r: random.Random) -> str:
    record = {
        r.choice(NOUNS): r.choice(NAMES),
        r.choice(NOUNS): r.randint(0, 2000),
        r.choice(NOUNS): [r.choice(ADJECTIVES), r.choice([True, False, None])],
        r.choice(NOUNS): round(r.random() * 100, 2),
    }
    return json.dumps(record, indent=r.choice([None, 2, 4])) + "\n"


def _code_line(r: random.Random) -> str:
    f, x, y = r.choice(VERBS), r.choice(NOUNS), r.choice(NOUNS)
    shapes = [
        f"def {f}_{x}(self, {x}: str, {y}: int = {r.randint(0, 9)}) -> list[{x.title()}]:\n"
        f'    """{f.title()} the {x}."""\n'
        f"    return [{y} for {y} in {x}.{f}() if {y} is not None]\n",
        f"for i in range(len({x})):\n    if {x}[i] == {y}:\n        {y} += 1\n    else:\n"
        f'        print(f"{{{x}}} {{{y}}}")\n',
        f"import {x}\nfrom {y} import {f}\n\nclass {x.title()}{y.title()}:\n    pass\n",
        f"const {x} = async ({y}) => {{ return await {f}({y}, {r.randint(0, 99)}); }};\n",
        f"<div class=\"{x}\"><a href='/{y}'>{f}</a></div>\n",
    ]
    return r.choice(shapes)


def _number_line(r: random.Random) -> str:
    a, b = r.randint(0, 999), r.randint(0, 99)
    return r.choice(
        [
            f"{a} + {b} = {a + b}, {a} * {b} = {a * b}; ",
            f"{r.randint(1900, 2030)}-{r.randint(1, 12):02}-{r.randint(1, 28):02} ",
            f"{r.randint(0, 23):02}:{r.randint(0, 59):02} {r.random():.3f}% ${a}.{b:02} ",
            f"{r.randint(1000, 9_999_999):,} (x{b}) #{a} ",
        ]
    )


def corpus() -> Iterator[str]:
    """The training text: deterministic, mostly prose."""
    r = random.Random(20260101)
    makers = [_sentence] * 12 + [_list_line] * 3 + [_json_line, _code_line] * 2 + [_number_line]
    for i in range(N_LINES):
        line = r.choice(makers)(r)
        yield line + " " + _sentence(r) if i % 3 == 0 else line
    yield from [OTHER_SCRIPTS] * 20


def train() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def files() -> dict[str, str]:
    """File name -> text of everything in the folder."""
    tokenizer = train()
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": None,
        "eos_token": SPECIALS[0],
        "pad_token": SPECIALS[0],
        "clean_up_tokenization_spaces": False,
        "model_max_length": 8192,
        "chat_template": CHAT_TEMPLATE,
    }
    ends = [tokenizer.token_to_id(token) for token in ("<|endoftext|>", "<|im_end|>")]
    return {
        "tokenizer.json": tokenizer.to_str(pretty=False) + "\n",
        "tokenizer_config.json": json.dumps(config, indent=2) + "\n",
        "generation_config.json": json.dumps({"eos_token_id": ends}, indent=2) + "\n",
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    check = parser.parse_args().check
    stale = []
    for name, text in files().items():
        path = FOLDER / name
        if check:
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                stale.append(name)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"{path.name}: {len(text.encode())} bytes")
    if stale:
        print("differ from what this script makes: " + ", ".join(stale), file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
