"""Which of several engines a request goes to."""

from __future__ import annotations

import random
from itertools import count

import pytest

from sgc.runtime.executor.routing.blocks import blocks_of
from sgc.runtime.executor.routing.held import LEAST, Held
from sgc.runtime.executor.routing.router import NobodyAnswers, Router

BLOCK = 32


def router(n: int, room: int = 1000) -> Router:
    made = Router(BLOCK / 4, clock=lambda: 0.0)
    for number in range(n):
        made.add(f"e{number}", room)
    return made


def prompt(*parts: str) -> tuple[int, ...]:
    return blocks_of("".join(part * BLOCK for part in parts), BLOCK)


def test_blocks_stand_for_all_text_up_to_them():
    one, other = blocks_of("a" * 64 + "b" * 32, 32), blocks_of("a" * 64 + "c" * 40, 32)
    assert len(one) == len(other) == 3
    assert one[:2] == other[:2]
    assert one[2] != other[2]
    assert blocks_of("c" + "a" * 95, 32)[1] != one[1]
    assert not set(one) & set(blocks_of("a" * 96, 32, salt="another"))
    assert blocks_of("a" * 31, 32) == ()


@pytest.mark.parametrize("seed", range(20))
def test_what_is_held_is_the_beginning_of_what_was_held_before(seed):
    draw = random.Random(seed)
    held = Held(room=draw.randint(LEAST, 3 * LEAST))
    under_way = []
    for _ in range(300):
        blocks = prompt(*(draw.choice("ab") for _ in range(draw.randint(0, 40))))
        n_held = held.n_held(blocks)
        assert n_held == next((n for n, each in enumerate(blocks) if each not in held), len(blocks))
        age = held.age(blocks[n_held - 1]) if n_held else 0
        under_way.append(held.use(blocks, draw.randint(0, 10)))
        if draw.random() < 0.01:
            held.clear()
        else:
            assert held.n_held(blocks) == len(blocks)
        while len(under_way) > 6 or (under_way and draw.random() < 0.5):
            held.release(under_way.pop(draw.randrange(len(under_way))))
        held.learn(n_held, draw.randint(0, n_held) if draw.random() < 0.2 else n_held, age)
        assert LEAST <= held.n_kept <= held.room
    while under_way:
        held.release(under_way.pop())
    held.release(held.use(()))
    assert len(held) <= held.n_kept
    assert len(held) == len(held._idle)
    assert held._promised == 0


def test_what_is_under_way_is_not_evicted_and_its_reply_takes_room():
    held = Held(room=LEAST)
    first, others = prompt("x", "y"), prompt(*map(chr, range(200, 200 + LEAST)))
    use = held.use(first, n_made=LEAST // 2)
    held.release(held.use(others))
    assert held.n_held(first) == 2
    assert len(held) + LEAST // 2 == LEAST
    held.release(use)
    held.release(held.use(prompt(*map(chr, range(300, 300 + LEAST)))))
    assert held.n_held(first) == 0


def test_prompts_of_more_than_an_engine_can_run_are_not_noted():
    held = Held(room=LEAST)
    for number in range(100):
        held.use(prompt(*[str(number % 10)] * 2, *map(chr, range(400 + number, 430 + number))))
    assert 4 * LEAST <= len(held) < 5 * LEAST


def test_an_engine_that_keeps_less_than_its_pool_is_believed_to_hold_less():
    held = Held(room=10_000)
    first = prompt("x", "y")
    held.release(held.use(first))
    held.release(held.use(prompt(*map(chr, range(200, 600)))))
    held.learn(expected=2, found=0, age=held.age(first[0]))
    assert held.n_kept <= 5_200
    for _ in range(200):
        held.learn(expected=2, found=2, age=0)
    assert held.n_kept == 10_000


def test_what_is_not_found_while_another_request_computes_it_says_nothing():
    """It was taken for evicted, so a busy engine was believed to keep next to nothing."""
    held = Held(room=10_000)
    first = prompt("x", "y")
    held.use(first)
    held.learn(expected=2, found=0, age=held.age(first[-1]))
    assert held.n_kept == 10_000


def test_a_prompt_goes_where_its_beginning_is():
    made = router(4)
    at = {}
    for name in "abcd":
        ticket = made.send(prompt(name, name), 4)
        at[name] = ticket.member.name
        made.done(ticket, 0)
    assert len({*at.values()}) == 4
    for turn in range(20):
        for name in "abcd":
            ticket = made.send(prompt(name, name, *map(str, range(turn))), 4)
            assert ticket.member.name == at[name]
            made.done(ticket, ticket.expected)


@pytest.mark.parametrize("n", [2, 3, 8])
def test_a_beginning_that_all_share_is_soon_on_all_engines(n):
    made = router(n)
    shared = ["s"] * 50
    for number in range(200 * n):
        made.send(prompt(*shared, str(number)), 16)
    n_running = [member.n_running for member in made.members]
    assert min(n_running) > 150
    assert max(n_running) < 250


def test_work_is_not_far_from_the_mean_whatever_is_asked():
    draw = random.Random(1)
    for n in (2, 3, 16):
        made = router(n)
        running = []
        for _ in range(600):
            blocks = prompt(*(draw.choice("abc") for _ in range(draw.randint(0, 60))))
            n_out = draw.randint(1, 200)
            own = len(blocks) * made.block_tokens + n_out
            ticket = made.send(blocks, n_out)
            others = sum(each.work for each in made.members) - ticket.work
            assert ticket.member.work - ticket.work <= 1.5 * others / n + 4 * own
            running.append(ticket)
            if draw.random() < 0.9:
                done = running.pop(draw.randrange(len(running)))
                made.done(done, done.expected)
        for ticket in running:
            made.done(ticket, ticket.expected)
        assert all(member.work == member.n_running == 0 for member in made.members)


def test_an_engine_that_fails_is_left_out_for_longer_and_longer_and_forgets():
    now = [0.0]
    made = Router(8.0, clock=lambda: now[0])
    made.add("only", 100)
    waits = []
    for _ in range(8):
        made.failed(made.send(prompt("a"), 1))
        begun = now[0]
        with pytest.raises(NobodyAnswers):
            made.send(prompt("a"), 1)
        for tenth in count(1):
            now[0] = begun + tenth / 10
            try:
                ticket = made.send(prompt("a"), 1)
            except NobodyAnswers:
                continue
            assert ticket.expected == 0
            made.left(ticket)
            break
        waits.append(round(now[0] - begun, 1))
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 16.0, 16.0]
    made.done(made.send(prompt("a"), 1))  # it answers, and does not say what was cached
    made.failed(made.send(prompt("a"), 1))
    now[0] += 0.5
    made.send(prompt("a"), 1)


def test_requests_that_fail_together_are_one_failure():
    made = router(1)
    tickets = [made.send(prompt("a"), 1) for _ in range(60)]
    for ticket in tickets:
        made.failed(ticket)
    (member,) = made.members
    assert (member.n_failed, member.tried_at, member.n_running) == (1, 0.5, 0)


def test_an_engine_may_be_gone_for_days():
    """Doubling the wait each time it fails came to the end of what a number holds."""
    now = [0.0]
    made = Router(8.0, clock=lambda: now[0])
    made.add("only", 100)
    for _ in range(1100):
        made.failed(made.send(prompt("a"), 1))
        now[0] += 16.0
    assert made.members[0].tried_at <= now[0]
