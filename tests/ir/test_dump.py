"""Dumps: strict JSON, and drawings in which no text of a program can become markup."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import golden_files
import pytest
from random_graphs import random_graph

from sgc.ir.analysis.dump import to_dot, to_json, to_mermaid
from sgc.ir.graph import Graph
from sgc.ir.text.parser import parse

TIPS = parse(golden_files.read("text_tips"), "tips.py", locate=True)
GRAPHS = [TIPS, *map(random_graph, range(60))]


def test_json_is_strict_and_complete() -> None:
    for graph in GRAPHS:
        text = json.dumps(to_json(graph), allow_nan=False)
        nodes = [node for block in json.loads(text)["blocks"] for node in block["nodes"]]
        assert [node["op"] for node in nodes] == [node.op for node in graph.nodes()]


def test_json_of_a_program() -> None:
    found = to_json(TIPS)
    assert found["params"][1] == {"name": "n", "type": "int", "default": 3}
    fork = found["blocks"][0]["nodes"][3]
    assert fork["fields"] == {"stream": {"ref": "s2"}, "n": 2}
    assert fork["loc"] == {"file": "tips.py", "line": 8, "function": ""}


def test_dot_of_a_program() -> None:
    dot = to_dot(TIPS)
    assert dot.count("subgraph cluster_") == 3, "the trunk and two children"
    assert dot.count("ffd98a") == 3, "two generations and a selection"
    assert 'n3 [label="fork 2\\ntips.py:8"];' in dot
    assert "n3 -> n4 [penwidth=2];" in dot
    assert 'n4 -> n6 [style=dashed, label="%tip_1"];' in dot


def test_mermaid_of_a_program() -> None:
    text = to_mermaid(TIPS)
    assert text.startswith("flowchart TD\n")
    assert text.count("subgraph") == 3
    assert text.count(":::generation") == 3
    assert "n3 ==> n4\n" in text
    assert 'n4 -.->|"#37;tip_1"| n6\n' in text


LINE_OF_DOT = re.compile(
    r"  *(subgraph cluster_(c\d+_|called_)?\d+ \{|\}"
    r'|label="([^"\\]|\\.)*"; style=(filled; color="#eef2f7"|dashed);'
    r'|(c\d+_)?n\d+ \[label="([^"\\]|\\.)*"(, fillcolor="#ffd98a")?\];'
    r'|(c\d+_)?n\d+ -> (c\d+_)?n\d+ \[(penwidth=2|style=dashed)(, label="([^"\\]|\\.)*")?\];)'
)
LINE_OF_MERMAID = re.compile(
    r'  *(subgraph ((c\d+_)?s|called)\d+\["[^"\[\]<>`]*"\]|end'
    r'|(c\d+_)?n\d+\["([^"\[\]<>`]|<br/>)*"\](:::generation)?'
    r'|(c\d+_)?n\d+ (==>|-\.->)(\|"[^"|<>`]*"\|)? (c\d+_)?n\d+|classDef generation [\w:#,]*)'
)


@pytest.mark.parametrize("graph", GRAPHS)
def test_texts_cannot_become_markup(graph: Graph) -> None:
    for line in to_dot(graph).splitlines()[3:-1]:
        assert LINE_OF_DOT.fullmatch(line), line
    for line in to_mermaid(graph).splitlines()[1:]:
        assert LINE_OF_MERMAID.fullmatch(line), line


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_reads_it() -> None:
    for graph in GRAPHS[:5]:
        dot = to_dot(graph).encode()
        found = subprocess.run(["dot", "-Tcanon"], input=dot, capture_output=True, timeout=60)
        assert (found.returncode, found.stderr.decode()) == (0, "")
