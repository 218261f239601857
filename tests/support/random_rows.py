"""Random programs whose dicts are known only at run time, as Python source, from a seed.

They put dicts whose keys the source writes into lists, dicts, each other and variables, several
into each, choose some by what a model says, change them, and give them more keys. What a program
shows and returns at its end tells every key.
"""

from __future__ import annotations

import random
import textwrap

from random_blocks import ASK, REPLIES, block_of

__all__ = ["REPLIES", "source_of"]

HEAD = """
import json
from collections import deque

import sgc


def made(name, n=0):
    return {"name": name, "n": n, "tags": [], "of": {"k": 0}, "note": None}


def change(row, by):
    row["n"] += by
    if by > 1:
        row["tags"].append(str(by))
    return row


def label(row):
    return f"{row['name']}:{row['n']}"


GIVEN = [{"name": "g", "n": 1, "tags": ["x"]}, {"name": "h", "of": {"k": None}}]


@sgc.function
def program(s, given: list[dict] = GIVEN):
    a, b = made("a"), made("b", 1)
    xs, by, groups, kept, copies = [], {}, {}, [], []
"""

TAIL = """
for each in (a, b):
    s += label(each) + "/" + ",".join(each["tags"]) + f"{each['of']['k']} {each['note']}"
    s += f"{each.get('late', '-')} {each.get('rank')} {'rank' in each} {len(each)}"
for each in xs:
    s += str(each)
for name, each in by.items():
    s += f"{name}={label(each)}"
for name, group in groups.items():
    s += f"{name}:{group['n']}:{len(group['rows'])}"
    for each in group["rows"]:
        s += each["name"]
for each in kept:
    s += f"{each['v']}"
for each in copies:
    s += f"{each['name']} {each.get('n')} {each.get('tags')}"
s += json.dumps(b, sort_keys=True)
return a, xs, copies, len(by), a is b, b == a
"""

SIMPLE = (
    ASK,
    ASK,
    'a = made(s["g"])',
    'b = made(s["g"], len(s["g"]))',
    'b = {"name": s["g"], "n": 2, "tags": ["t"], "of": {"k": 1}, "note": "x"}',
    "a['n'] += 1",
    "change(b, 2)",
    "change(a, 1)['n'] -= 3",
    "b = a",
    "a, b = b, a",
    "xs.append(a)",
    "xs.append(b)",
    "xs.append(made('x', a['n']))",
    "xs += [a, b]",
    "for word in s['g'].split(','):\n    xs.append(made(word, len(word)))",
    "xs = [made(word, 1) for word in s['g'].split(',')]",
    "for each in xs:\n    each['n'] += 1",
    "for each in xs:\n    each['note'] = s['g']",
    "for each in xs:\n    each['late'] = s['g']",
    "for n, each in enumerate(xs):\n    each['rank'] = n",
    "for each in xs:\n    each['tags'].append(s['g'])",
    "for each in xs:\n    each['of']['k'] += 1",
    "for each in xs[:2]:\n    each['n'] += 5",
    "for each in reversed(xs):\n    each['n'] *= 2",
    "for each in sorted(xs, key=lambda each: each['n'])[:1]:\n    each['note'] = 'least'",
    "a = max(xs, key=lambda each: each['n'], default=a)",
    "b = min(xs, key=lambda each: each['n'], default=b)",
    "xs.sort(key=lambda each: each['n'])",
    "xs = sorted(xs, key=lambda each: each['name'], reverse=True)",
    "xs = [each for each in xs if each['n'] != 1]",
    "xs = xs[1:]",
    "xs = list(xs)",
    "if xs:\n    b = xs.pop()",
    "if xs:\n    b = xs[0]",
    "if xs:\n    xs[0], xs[-1] = xs[-1], xs[0]",
    "if xs:\n    xs[-1]['n'] += 7",
    "s += f'{label(a)} {len(xs)} {a is b}'",
    "s += str(b)",
    "s += json.dumps(a)",
    "a['n'] = sum(each['n'] for each in xs)",
    "a['tags'] = a['tags'][-2:]",
    "w = a['tags']\nw.append('w')\ns += '|'.join(b['tags'])",
    "a['tags'] = b['tags']",
    "a['of'] = b['of']",
    "a['of'] = {'k': 9}",
    "a['note'] = s['g']",
    "b['note'] = None",
    "if a['note']:\n    s += a['note']",
    "b['late'] = a['name']",
    "b['rank'] = b['n']",
    "if 'late' in b:\n    s += b['late']",
    "try:\n    s += a['late']\nexcept KeyError as error:\n    s += f'no {error}'",
    "a.pop('late', None)",
    "a.setdefault('late', 'first')",
    "a.update(note='u', n=4)",
    "b.update({'rank': 3})",
    "b = dict(a)",
    "b = a.copy()",
    "b = {**a, 'name': 'other'}",
    "b = a | {'n': 8}",
    "found = next((each for each in xs if each['name'] == s['g']), None)\n"
    "if found is not None:\n    found['n'] += 3",
    "s += str(any(each is a for each in xs)) + str(a in xs)",
    "if a in xs:\n    s += str(xs.index(a))",
    "if b in xs:\n    xs.remove(b)",
    "s += str(a == b) + str(a == {'name': 'a'})",
    "by[s['g']] = a",
    "by[b['name']] = b",
    "b = by.get(s['g'], b)",
    "if s['g'] in by:\n    by[s['g']]['n'] += 2",
    "for each in by.values():\n    each['n'] += 1",
    "for name, each in by.items():\n    each['note'] = name",
    "xs = list(by.values())",
    "by = {each['name']: each for each in xs}",
    "a = max(by.values(), key=lambda each: each['n'], default=a)",
    "group = groups.setdefault(s['g'], {'n': 0, 'rows': []})\n"
    "group['n'] += 1\ngroup['rows'].append(a)",
    "for group in groups.values():\n    for each in group['rows']:\n        each['n'] += 1",
    "if s['g'] in groups:\n    groups[s['g']]['rows'].append(b)",
    "copies = [dict(each) for each in given]",
    "for each in given:\n    copies.append({**each, 'n': len(copies)})",
    "for each in copies:\n    each['n'] = s['g']",
    "for each in copies:\n    each['late'] = each.get('n')",
    "if copies:\n    copies[-1]['name'] += '!'\n    s += json.dumps(copies)",
    "if copies:\n    first = copies[0]\n    first['n'] = a['n']\n    copies.append(first)",
    "copies.append(made('m', 5))",
    "copies.append({**a, 'name': 'c'})",
    "copies = [each for each in copies if each['name'] != s['g']]",
    "copies.sort(key=lambda each: each['name'], reverse=True)",
    "for each in copies:\n    a['n'] += len(each)\n    each.pop('late', None)",
    "words = s['g'].split(',')\na['log'] = words\ns += str(len(words))",
    "log = b.get('log', [])\ns += ','.join(log)",
    "if 'log' in b:\n    b['log'].append('z')",
    "queue = deque(xs)\nwhile queue:\n    each = queue.popleft()\n    each['n'] += 1",
    "queue = deque([a, b])\nqueue.appendleft(b)\n"
    "s += queue[0]['name'] + queue[-1]['name'] + str(len(queue))",
    "queue = deque()\ntry:\n    queue.pop()\nexcept IndexError as error:\n    s += str(error)",
    "kept.append({'v': s['g']})",
    "kept.append({'v': a['n'], 'w': 1})",
    "for each in kept:\n    each['v'] = 'kept'",
    "for key, value in a.items():\n    s += key",
    "for key in b:\n    s += key",
    "s += f\"{a['name']} {sorted(b['tags'])}\"",
    "pair = (a, len(xs))\npair[0]['n'] += pair[1]",
    "roles = {'a': a, 'b': b}\nif s['g'] in roles:\n    roles[s['g']]['n'] += 5",
    "grow = lambda row: change(row, 1)\ngrow(a)",
    "s += '+'.join(map(label, xs))",
    "rows = [{'name': each['name'], 'size': each['n']} for each in xs]\n"
    "for row in rows:\n    row['size'] += 1\ns += str(rows)",
)
BLOCKS = (
    "if a is b:",
    "if a is not b and b['n'] > a['n']:",
    "if 'a' in s['g']:",
    "for a in xs:",
    "for each in list(xs):",
    "for n, a in enumerate(xs):",
    "for _ in range(2):",
    "for _ in sgc.turns(3):",
)
LIVE = ("in xs:", "(xs):")  # loops that would never end if their lists grew
GROWS = ("xs.append", "xs +=")


def source_of(seed: int) -> str:
    """The text of one program."""
    rng = random.Random(f"rows {seed}")
    lines = [ASK, *block_of(rng, rng.randrange(4, 12), 2, SIMPLE, BLOCKS, LIVE, GROWS)]
    return HEAD + textwrap.indent("\n".join(lines) + TAIL, "    ")
