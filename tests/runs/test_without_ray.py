"""`sgc.ray` where Ray is not installed."""

from __future__ import annotations

import importlib
import importlib.util
import sys

import pytest

from sgc.errors import SgcError


def test_it_tells_what_to_install(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "ray" else find(name, *a)
    )
    monkeypatch.delitem(sys.modules, "sgc.ray", raising=False)
    with pytest.raises(SgcError) as caught:
        importlib.import_module("sgc.ray")
    assert "pip install 'sgc[ray]'" in str(caught.value)
    assert "sgc.ray" not in sys.modules
