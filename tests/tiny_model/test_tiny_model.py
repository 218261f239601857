"""What `sgc-tiny` is trained on: its texts, its split, and its tokenizer."""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from pathlib import Path
from random import Random

import pytest
from safetensors.torch import load_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from sgc.runtime.engine.model.models import DEFAULT_FOLDER
from sgc.runtime.engine.text.template import assemble, probe
from sgc.runtime.engine.text.template_render import renderer

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from tiny_model import card, corpus, evaluate, tasks, tokenizer, tool_tasks, train, world
from tiny_model.batches import IGNORED, PROMPT_SHARE, WINDOW, encode, window
from tiny_model.first_hour import phrasings, reviews, services, sixty, spin, summaries, sums
from tiny_model.programs import essays, reasoning
from tiny_model.text import Text
from tiny_model.world import World

N_TEXTS = 1500


@cache
def small_tokenizer():
    return tokenizer.train(n_texts=1500, vocab_size=1200)


def train_texts() -> list[str]:
    return [str(corpus.text(7, i, World("train"))[1]) for i in range(N_TEXTS)]


def test_texts_are_functions_of_seed_and_number():
    assert train_texts() == train_texts()


@pytest.mark.parametrize("name", corpus.SHAPES)
@pytest.mark.parametrize("split", ["train", "test"])
def test_every_shape_asks_and_replies(name, split):
    for i in range(40):
        text = corpus.SHAPES[name][0](Random(f"{name}{i}"), World(split))
        assert any(is_new for _, is_new in text.parts)
        assert not text.parts[0][1], "a text begins with what the program writes"
        assert all(part for part, _ in text.parts)
        assert "{" not in re.sub(r"\{\"[^\n]*\"?[^\n]*\}", "", str(text)), "unfilled"


def test_held_out_names_never_occur_in_training():
    names = [
        (first, last)
        for first in world.WOMEN + world.MEN
        for last in world.LAST
        if world.is_held_out("name", first, last)
    ]
    assert 300 < len(names) < 700
    text = "\n".join(train_texts())
    assert not [f"{first} {last}" for first, last in names if f"{first} {last}" in text]


def test_held_out_sentences_and_sums_never_occur_in_training():
    text = "\n".join(train_texts())
    for _, who, *did in world.rows("areas"):
        for subject in who.split(", "):
            for predicate in did:
                if world.is_held_out("sentence", subject, predicate):
                    assert world.cap(f"{subject} {predicate}.") not in text


@pytest.mark.sweep
@pytest.mark.parametrize("line", evaluate.LINES, ids=lambda line: line.name)
def test_exams_are_held_out_and_pass_their_own_check(line):
    training = set(train_texts())
    for i in range(20):
        exam = evaluate.exam(line, 1, i)
        assert exam == evaluate.exam(line, 1, i)
        assert line.check(evaluate.cut(exam.expected, exam.stop), exam.expected), exam
        assert not any(text.startswith(exam.prompt) for text in training)


def test_a_space_before_a_reply_mostly_goes_to_it():
    moved = sum(
        Text(Random(i)).ask("Answer: ").reply("yes").parts == [("Answer:", False), (" yes", True)]
        for i in range(200)
    )
    assert 120 < moved < 180


def test_letter_grades_follow_the_planted_levels():
    worth = {"A": [], "B": [], "C": [], "D": []}
    for i in range(400):
        _, letter, levels = essays.essay(Random(i), World())
        worth[letter].append(sum(essays.LEVELS.index(level) for level in levels.values()))
    assert min(worth["A"]) > max(worth["B"]) > max(worth["C"]) > max(worth["D"])


# -- tokenizer --


@pytest.mark.parametrize(
    "text",
    [
        "Ada Moor, 1970-05-03.\n\n  x",
        '{"name": "Żółć", "n": 12}',
        "tabs\tand \r\n",
        "漢字 🙂",
        "aB CDe",
    ],
)
def test_the_tokenizer_gives_the_text_back(text):
    ids = small_tokenizer().encode(text).ids
    assert small_tokenizer().decode(ids, skip_special_tokens=False) == text


def test_the_tokenizer_is_deterministic():
    again = tokenizer.train(n_texts=1500, vocab_size=1200)
    assert again.to_str() == small_tokenizer().to_str()


def test_names_and_numbers_are_the_same_tokens_everywhere():
    encode_ = small_tokenizer().encode
    for value in ("Ada Moor", "Zelda", "1970", "Q"):
        alone = encode_(value).ids
        for before in (" ", ' "', ": ", "\n", '{"name": "'):
            assert encode_(before + value).ids[-len(alone) :] == alone
    assert len(encode_("2024").ids) == 4


def test_the_chat_template_is_prefix_stable():
    chat = probe(renderer(tokenizer.CHAT_TEMPLATE, {}), bos="")
    assert chat.prefix_stable
    assert set(chat.roles) == {"system", "user", "assistant", "tool"}
    text = Text(Random(0)).turn("system", "S").turn("user", "U").answer("A").turn("tool", "T")
    messages = [("system", "S"), ("user", "U"), ("assistant", "A"), ("tool", "T")]
    rendered = assemble(chat, [{"role": role, "content": c} for role, c in messages])
    assert rendered == str(text) + chat.roles["assistant"].prefix


def test_special_tokens_are_tokens():
    ids, generated = encode(small_tokenizer(), Text(Random(0)).turn("user", "Hi").answer("Ho"))
    close = small_tokenizer().token_to_id("<|im_end|>")
    assert ids.count(close) == 2
    assert generated[len(ids) - 1 - ids[::-1].index(close)]


# -- batches --


def test_batches_hold_what_is_generated_and_few_other_targets():
    batches = window(small_tokenizer(), seed=3, i=0, batch_tokens=4096)
    n_chosen = sum(int((batch.targets != IGNORED).sum()) for batch in batches)
    n_tokens = sum(batch.n_tokens for batch in batches)
    assert PROMPT_SHARE < n_chosen / n_tokens < 0.5
    assert n_tokens > 0.85 * sum(batch.ids.size for batch in batches)
    for batch in batches:
        assert batch.ids.size <= 4096 or len(batch.ids) == 2
        learnt = batch.targets != IGNORED
        assert (batch.ids.reshape(-1)[batch.chosen + 1] == batch.targets)[learnt].all()


@pytest.mark.slow
def test_the_shipped_tokenizer_is_what_the_tool_makes():
    shipped = (DEFAULT_FOLDER / "tokenizer.json").read_text(encoding="utf-8")
    assert tokenizer.train().to_str(pretty=False) + "\n" == shipped


def test_the_card_that_ships_has_every_phrasing():
    shipped = (DEFAULT_FOLDER / "README.md").read_text(encoding="utf-8")
    scores = json.loads((DEFAULT_FOLDER / "evaluation.json").read_text(encoding="utf-8"))
    assert card.templates(scores["stage"]) in shipped
    assert card.examples(scores["stage"]) in shipped
    assert card.unseen(scores) in shipped


# -- unseen phrasings --


def test_phrasings_of_the_sixty_prompts_never_occur_in_training():
    first = corpus.STAGES[-1]
    texts = [str(corpus.text(7, first + i, World("train"))[1]) for i in range(600)]
    text = "\n".join(" ".join(line.split()) for part in texts for line in part.splitlines())
    phrasings = {prompt.phrasing for prompt in sixty.prompts()}
    assert phrasings <= set(spin.UNSEEN.read_text(encoding="utf-8").splitlines())
    assert not [p for p in phrasings if sixty.pattern_of(p).search(text)]


def test_each_of_the_sixty_prompts_has_its_phrasing_and_rules():
    assert len(sixty.prompts()) == 60
    for prompt in sixty.prompts():
        assert sixty.pattern_of(prompt.phrasing).search(prompt.whole), prompt
        assert prompt.has_rules
        assert not prompt.is_sound("")
        assert all(prompt.is_sound(reply.removesuffix(".") + ".") for reply in prompt.equal)


def test_no_phrasing_is_in_both_splits():
    for kind, templates in phrasings.TEMPLATES.items():
        r = Random(kind)
        drawn = {
            split: {spin.plain(spin.phrase(r, World(split), kind, templates)) for _ in range(40)}
            for split in ("train", "test")
        }
        assert not drawn["train"] & drawn["test"], kind


def test_sums_of_the_exams_never_occur_in_training():
    for i in range(400):
        sign, x, y, value = sums.drawn(Random(i), World("train"))
        assert value == {"+": x + y, "-": x - y, "*": x * y}[sign] <= 100
        assert not world.is_held_out(sums.kind_of(sign, x, y), sign, x, y)


def test_no_other_text_has_the_sums_of_the_exams():
    stage = World("train", stage=corpus.LAST_STAGE)
    asked = [draw(Random(i), stage) for i in range(400)
             for draw in (tool_tasks.big_sum, tasks.small_sum, reasoning.small_sum)]  # fmt: skip
    assert not [each for each in asked if sums.is_held_out(*each)]


def test_no_sentence_of_a_review_is_held_out(monkeypatch):
    said = []
    monkeypatch.setattr(reviews, "_filled", lambda r, *each: said.append(each) or "")
    for i in range(400):
        reviews.review(Random(i), World("train"))
    assert len(said) > 500
    assert not [each for each in said if reviews.is_held_out(*each)]


def test_what_a_calendar_tells_is_not_searched_for():
    stage = World("train", stage=corpus.LAST_STAGE)
    asked = [services.asked_of(Random(i), stage, "search") for i in range(300)]
    assert not re.findall("What (day|month|season)|in a (day|week|year)", " ".join(asked))


def test_sentences_are_joined_as_they_are_written():
    said = ["You use a knife to cut.", "Saturday comes after Friday.", "The Pacific is large.",
            "Bees make honey.", "Ada Fox likes rice."]  # fmt: skip
    assert summaries.join(said[::-1]) == (
        "Ada Fox likes rice, bees make honey, the Pacific is large, Saturday comes after Friday "
        "and you use a knife to cut."
    )


@pytest.mark.parametrize(
    ("phrasing", "right", "wrong"),
    [
        ("A brief reply will do", "8.", "six"),
        ("Are these on one and the same subject? Yes or no", "Yes.", "yes and no"),
        ("What trade does {} follow", "a baker", "a baker and a pilot"),
        ("How much is {} times {}, please", "7 times 8 is 56.", "7 times 8 is 156."),
        ("Use tools to find the answer. The tools are", "calculator[31 + 45]", "no calculator"),
        ("Merge these notes into a single sentence",
         "Helen Holm is a nurse in Oslo and David Wood a painter in Leeds.",
         "Helen Holm is a painter in Leeds and David Wood a nurse in Oslo."),
        ("Keep only the essential", "The writer hates the radio.", "The writer likes the radio."),
        ("Tell me the text in one short sentence", "Eric Moss paints pictures and lives in Leeds.",
         "Eric Moss is a painter in Oslo."),
        ("Share {} handy tips about {}", "Start slowly.\n2. Eat well.", "Eat well.\n2. Eat well."),
        ("Could you list {} tips for {}", "Go early.\n2. Read.\n3. Rest well.",
         "Go early.\n2. Read.\n3. Go early."),
    ],
)  # fmt: skip
def test_rules_take_what_is_right_only(phrasing, right, wrong):
    (prompt,) = [each for each in sixty.prompts() if each.phrasing == phrasing]
    assert prompt.is_sound(right)
    assert not prompt.is_sound(wrong)


def test_a_summary_keeps_to_its_limit_and_its_text():
    for i in range(200):
        e = summaries.summarised(Random(i), Random(i), World("train", stage=corpus.LAST_STAGE))
        limit = re.search(r"(\d+) words", e.cue)
        assert limit is None or len(e.reply.split()) <= int(limit[1]), e


# -- training --


@pytest.mark.slow
def test_training_goes_on_from_weights_with_the_texts_of_the_last_stage(tmp_path):
    options = train.Options(tmp_path, compile=False, start=DEFAULT_FOLDER)
    trainer = train.Trainer(options, train.tokenizer_of(DEFAULT_FOLDER))
    assert not trainer.load()
    trainer.begin_with(DEFAULT_FOLDER)
    assert corpus.stage_of(trainer.progress.window * WINDOW) == corpus.LAST_STAGE
    trainer.save()
    before = load_file(DEFAULT_FOLDER / "model.safetensors")
    after = load_file(tmp_path / "model" / "model.safetensors")
    assert all((after[name] == before[name]).all() for name in before)
    again = train.Trainer(options, train.tokenizer_of(DEFAULT_FOLDER))
    assert again.load()
    assert again.progress == trainer.progress


@pytest.mark.slow
def test_training_on_from_weights_does_not_go_on_with_another_training(tmp_path):
    options = train.Options(tmp_path, compile=False, start=DEFAULT_FOLDER)
    tokenizer.write(tmp_path / "model", train.tokenizer_of(DEFAULT_FOLDER))
    train.Trainer(options, train.tokenizer_of(DEFAULT_FOLDER)).save()
    with pytest.raises(SystemExit, match="goes on here; give --from another --folder"):
        train.train(options)
    other = Tokenizer(WordLevel({"a": 0}, unk_token="a"))
    tokenizer.write(tmp_path / "model", other)
    with pytest.raises(SystemExit, match="its tokenizer is not that of"):
        train.train(options)
