"""Mistakes to make in the compiler, as data: each must make a test of its area fail.

A row: the file, its text, what stands there instead, and the tests (with `-k` after a colon) that
have to notice. `test_mutants.py` runs them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    file: str
    old: str
    new: str
    tests: str


def _of(file: str, tests: str, *pairs: tuple[str, str]) -> tuple[Mutant, ...]:
    return tuple(Mutant(file, old, new, tests) for old, new in pairs)


GOLDEN = "tests/passes/test_golden.py"
CONVERTED = (
    "tests/tracing/test_convert.py tests/tracing/test_in_place.py "
    "tests/tracing/values/test_constructs.py"
)


PASSES = (
    *_of(
        "passes/exact/share_equal.py",
        f"{GOLDEN} tests/passes/exact/test_share_equal.py:not random",
        ("0 <= degrees < GREEDY_BELOW", "0 <= degrees <= 1.0"),
        ("Flag.PURE in flags and Flag.TIMED not in flags", "Flag.PURE in flags"),
        ("{Kind.LIST, Kind.JSON}", "()"),
        ("for key in self.order[n_before:]:", "for key in ():"),
        ("if any(Flag.CUTS in node.flags for node in graph.nodes()):", "if False:"),
        ("if name not in labels]", 'if name not in {*labels, "stop"}]'),
        ('if dict(node.fields).get("hidden") == Lit(True) and', "if False and"),
    ),
    *_of(
        "passes/hints/mark_last.py", f"{GOLDEN} tests/passes/hints/test_mark_last.py",
        ('in node.flags or node.op == "prefetch" or', "in node.flags or"),
        ("if deopts(graph.nodes()):", "if False:"),
        ("continued = continued[:1]", "pass"),
        ("or commits(node):", "or False:"),
        ("if isinstance(arg, Ref) and param.type.is_stream:", "if False:"),
    ),
    *_of(
        "passes/hints/start_early.py", f"{GOLDEN} tests/passes/hints/test_start_early.py",
        ("return Flag.TIMED not in node.flags and", "return"),
        ("if not any(node.flags & _SLOW for node, _ in moved):", "if False:"),
        ("return Flag.BEGINS in node.flags", 'return node.op == "stream"'),
        ("return bool(node.flags & _COUNTED)", "return False"),
        ("to = firsts[n] = max(to, firsts[n])", "to = max(to, firsts[n])"),
    ),
    *_of(
        "ir/analysis/host_calls.py", f"{GOLDEN} tests/passes/hints/test_start_early.py",
        ('node.text("effect") != "pure"', 'node.text("effect") == "effect"'),
    ),
    *_of(
        "passes/facts/flow.py", f"{GOLDEN} tests/passes/hints/test_start_early.py",
        ("or may_miss(last)", ""),
        ("block not in self._loops and above not in self._loops", "True"),
    ),
    *_of(
        "passes/hints/insert_prefetch.py", "tests/passes/hints/test_insert_prefetch.py",
        ("if len(chosen) < n_free and", "if"),
        ("_n_new(one, [*known, *chosen])", "_n_new(one, known)"),
        ("if not one.waits & ~there:", "if False:"),
    ),
    *_of(
        "passes/exact/fold_constants.py", GOLDEN,
        ("index is None or uses[stream.name] != 1", "index is None"),
        ('constant_text(node) == ""', "False"),
    ),
    *_of(
        "passes/exact/fold_values.py", GOLDEN,
        ("len(texts) == len(parts) and len(made) <= MAX_CHARS", "True"),
        ("type(value) is int and abs(value) <= MAX_INT", "type(value) is int"),
        ("len(values) != len(args) or len(kinds) != 1 or", "len(values) != len(args) or"),
    ),
    *_of(
        "passes/exact/fold_flow.py", GOLDEN,
        ("or may_miss(last):", "or False:"),
        ("if not is_sure or not arms", "if not arms"),
    ),
    *_of(
        "passes/exact/forward_params.py", GOLDEN,
        ("- {Ref(name)}", ""),
        ("or _is_alike(only, values[name])", "or True"),
    ),
)  # fmt: skip

RULES = "tests/ir/test_rules.py tests/ir/test_golden.py tests/ir/test_verify.py"
ENGINE = _of(
    "runtime/engine/scheduling/pins.py", "tests/engine/core/scheduling/test_policies.py:pin",
    ("last = max(self.holders,", "last = min(self.holders,"),
)  # fmt: skip

VERIFIER = (
    *_of(
        "ir/rules/graph.py", "tests/ir/test_golden.py tests/ir/test_verify.py "
        "tests/ir/test_bounds.py",
        ("if block != home and own >> block & 1:", "if False:"),
        ("if first is None and (own & used or used_after >> block & 1):",
         "if first is None and own & used:"),
        ("return definition.index < use.index", "return definition.index <= use.index"),
        ("elif blocks[0].params:", "elif False:"),
        ("if is_known and not tree.is_at_or_above(start.name, end.name):", "if False:"),
        ("if home < 0 or not reached[block] >> home & 1:", "if True:"),
        ("is_found[home] = True", "is_found[home] = False"),
        ("if is_open[each]", "if not is_open[each]"),
    ),
    *_of(
        "ir/rules/node.py", RULES,
        ("if row.static and operand_refs(operand):", "if False:"),
        ("if row.is_required and row.name not in names:", "if False:"),
        ("if depth > MAX_DEPTH:", "if False:"),
        ("not 0 < seconds < math.inf", "not 0 <= seconds < math.inf"),
        ("if len(names) > len(args):", "if False:"),
        ("not 1 <= k <= n", "not 0 <= k <= n"),
        ("if options and not _is_among(choice, options, context):", "if False:"),
        ("return bool(own) and own <= options", "return True"),
    ),
    *_of(
        "ir/rules/flow.py", RULES,
        ("elif name == entry:", "elif False:"),
        ("if len(set(cases)) < len(cases):", "if False:"),
        ("return bool(type_.options) and context.options(type_) <= context.options(wide)",
         "return bool(type_.options)"),
        ('if node.op == "attempt" and not row.error:', "if False:"),
    ),
    *_of(
        "ir/rules/calls.py", "tests/ir/test_golden.py tests/ir/test_verify.py "
        "tests/ir/test_file_hostile.py",
        ("if param.value.type == MEDIA and type_ != MEDIA:", "if False:"),
        ("if len(left) != 1:", "if False:"),
        ("if depths[-1] > MAX_NESTING:", "if False:"),
    ),
    *_of(
        "ir/file/reader.py", "tests/ir/test_bounds.py tests/ir/test_file_hostile.py",
        ("if self._is_used[index]:", "if False:"),
        ("if self._budget.n_left < 0:", "if False:"),
        ("if index >= len(table):", "if index > len(table):"),
    ),
)  # fmt: skip

STATES = "tests/tracing/control_flow/test_states.py"
TRACED = "tests/tracing/test_tracing_parts.py"
WIDENED = "tests/tracing/control_flow/test_widening.py tests/tracing/values/test_lists.py"
READING = "tests/tracing/values/test_reading.py"
HELD = "tests/tracing/values/test_held.py"
TRACING = (
    *_of(
        "sgc/tracing/paths/facts.py", TRACED,
        ('if fn == "eq" and found[0][0] == "lit":', "if False:"),
        ("excluded.add(known[1][-1])", "pass"),
        ("return True if len(left) == 1 else None", "return None"),
        ("if wanted[-1] not in left:", "if False:"),
        ('if is_true and known[1][1] == wanted[1] == "str":', "if False:"),
    ),
    *_of(
        "sgc/tracing/snapshots/snapshot.py", TRACED,
        ("if any(found.get(start, start) != start for start in ours.starts):", "if False:"),
        ("if theirs.facts.get(_moved(fact, found)) is not is_true:", "if False:"),
        ("mine.type == other.type and found.setdefault", "found.setdefault"),
        ("if not set(other_own) <= set(mine_own):", "if False:"),
    ),
    *_of(
        "sgc/tracing/code/bytecode.py", TRACED,
        ("                if handler is not None:\n                    after |=",
         "                if False:\n                    after |="),
        ('and second.opname != "WITH_EXCEPT_START"', ""),
        ("for m in self._next[n]:\n                    after |= live[m]",
         "for m in self._next[n][:1]:\n                    after |= live[m]"),
        ("after.add(name) if is_read else after.discard(name)", "after.add(name)"),
    ),
    *_of(
        "sgc/tracing/code/bytecode.py", "tests/tracing/test_bytecode.py",
        ("if is_known else [everything]", "if True else [everything]"),
    ),
    *_of(
        "sgc/lang/turns.py", "tests/tracing/control_flow/test_max_turns.py",
        ("if n < most + 1:", "if n < most + 2:"),
    ),
    *_of(
        "sgc/tracing/convert/loops/turns.py", "tests/tracing/control_flow/test_max_turns.py",
        ("if _has_no_end(node) and may_ask(node, streams):", "if _has_no_end(node):"),
        ("streams |= streams_of(node)", "streams = streams_of(node)"),
    ),
    *_of(
        "sgc/tracing/pieces/effects/raising.py", "tests/tracing/live/test_raising.py",
        ("{*_names(code), *self.later}", "{*_names(code)}"),
        ('"" if is_called or each.name.startswith("__") else each.name', "each.name"),
        ("named.isdisjoint(found) and _BY_NAME.isdisjoint(found)", "named.isdisjoint(found)"),
        ("are_made = all(", "are_made = True or all("),
        ("return self._size() > n_before and self.is_outdated(classes)", "return False"),
    ),
    *_of(
        "sgc/tracing/operators/live/pieces.py", "tests/tracing/live/test_known_objects.py",
        ("if piece.writes != whole.writes:", "if False:"),
    ),
    *_of(
        "runtime/executor/patterns/linear_regex.py", "tests/tracing/live/test_standard_library.py",
        ("at = end + (start == end)", "at = end + 1"),
    ),
    *_of(
        "sgc/tracing/code/opcodes.py", "tests/tracing/test_bytecode.py",
        ('"DELETE_FAST": (True,),', ""),
        ("LOAD_CONST LOAD_FAST LOAD_FAST_CHECK", "LOAD_FAST LOAD_FAST_CHECK"),
        ("sys.version_info[:2] in PYTHONS", "sys.version_info[:2] >= PYTHONS[0]"),
    ),
    *_of(
        "sgc/tracing/convert/expressions.py", CONVERTED,
        ("return node if is_plain else _call(TEXT, node, node)", "return node"),
        ("if isinstance(op, ast.In):", "if True:"),
        ("node.func = _call(CALLEE, node.func, node.func)", "pass"),
        ("return _call(CONTAINS, node, node.left, right)",
         "return _call(CONTAINS, node, right, node.left)"),
    ),
    *_of(
        "sgc/tracing/operators/lookups.py", CONVERTED,
        ('if isinstance(part, AbstractText) and is_plain(whole, "__contains__"):', "if False:"),
        ("if index == n), items[-1])", "if index != n), items[-1])"),
    ),
    *_of(
        "sgc/tracing/operators/percent.py", CONVERTED,
        ('"<" if "-" in flags else ">"', '"<"'),
        ("left % _mapped(right)  # raises what Python would", "pass"),
        ("'d' if kind in 'iu' else kind", "kind"),
    ),
    *_of(
        "sgc/tracing/tracer.py",
        "tests/tracing/values/test_abstract_text.py:agree or other_markers",
        ("    if graph != again:\n", "    if False:\n"),
        ("again = trace.straight(style=Style.LONG)", "again = trace.straight()"),
    ),
    *_of(
        "sgc/tracing/checking/check.py",
        "tests/tracing/test_trace_check.py tests/tracing/values/test_abstract_text.py",
        ("(are_ended and self._is_one_by_one) or is_too_long:",
         "(are_ended and self._is_one_by_one):"),
        ("(are_ended and self._is_one_by_one) or is_too_long:", "is_too_long:"),
    ),
    *_of(
        "sgc/tracing/checking/comparing.py",
        "tests/tracing/test_trace_check.py tests/tracing/values/test_abstract_text.py",
        ("if more := compiled - interpreted:", "if more := interpreted - compiled:"),
        ("    _compare_calls(function, compiled, interpreted)\n    for a", "    for a"),
    ),
    *_of(
        "sgc/tracing/checking/trials.py", "tests/tracing/test_check_reaches.py",
        ("if n_chars < bound", "if n_chars <= bound"),
        ("self.decided[program, block] = len(self.asked)", "self.decided[program, block] = 0"),
        ("if hints.tools:", "if False:"),
    ),
    *_of(
        "sgc/tracing/checking/rounds.py", "tests/tracing/test_trace_check.py",
        ("kinds = [of_own, nasty, _equal(own), _long()]", "kinds = [of_own, nasty, _long()]"),
        ("kinds = [of_own, nasty, _equal(own), _long()]", "kinds = [of_own, nasty, _equal(own)]"),
    ),
    *_of(
        "sgc/tracing/snapshots/snapshot.py", STATES,
        ("if not is_lone and not (_pair", "if not (_pair"),
    ),
    *_of("sgc/tracing/operators/code/pieces.py", STATES, ("if known.has_iterator:", "if False:")),
    *_of(
        "sgc/tracing/pieces/text/module_text.py",
        "tests/tracing/pieces/test_pieces.py:variable_around",
        ("if isinstance(each, ast.Nonlocal) and", "if False and"),
    ),
    *_of(
        "sgc/tracing/paths/loops.py", f"{TRACED} tests/tracing/control_flow/test_walked.py",
        ("loops[head].n_turns += 1", "loops[head].n_turns += 0"),
        ("        if loop is None:\n            return None\n", "        return None\n"),
    ),
    *_of(
        "sgc/tracing/paths/exploration.py", WIDENED,
        ("if mapped is None or not self.is_joined(wide.snapshot, narrow.snapshot):",
         "if mapped is None:"),
    ),
    *_of(
        "sgc/tracing/paths/segments.py", TRACED,
        ("for target in targets(queue.pop()):", "for target in targets(queue.pop())[:1]:"),
    ),
    *_of(
        "sgc/tracing/snapshots/leaves.py", TRACED,
        ("return type(one) is type(other) and one == other and repr(one) == repr(other)",
         "return one == other"),
    ),
    *_of(
        "sgc/tracing/kinds/held.py", HELD,
        ("if each.is_old or frozen(each.value) != each.before:", "if each.is_old:"),
        ("yield OLD", "pass"),
        ("yield seen[id(part)]", "pass"),
        ("each.is_old = each.is_old or frozen(each.value) != each.before", "pass"),
        ("if not is_unchangeable(symbol.type):", "if False:"),
    ),
    *_of(
        "sgc/tracing/operators/calls.py", READING,
        ("if not carries(function):", "if False:"),
    ),
    *_of(
        "sgc/tracing/paths/assemble.py", TRACED,
        ("given = name if end.mapped is None else end.mapped.get(name, name)", "given = name"),
        ("if isinstance(value, str) and value in by_name and value not in kept:", "if False:"),
    ),
    *_of(
        "sgc/tracing/callees.py", TRACED,
        ("return types.TEXT if is_text else joined_item(sorted(found, key=repr))",
         "return types.JSON"),
        ("if any(each.python is function.python for each in self._going_on):", "if False:"),
        ("kept = [value.name in read for value in node.results]",
         "kept = [True for value in node.results]"),
    ),
)  # fmt: skip
