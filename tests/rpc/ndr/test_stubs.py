"""The typed stubs of the interfaces are those that the tables of rpc/idl give."""

from __future__ import annotations

import importlib

import pytest

from tools import rpcstubs


@pytest.mark.parametrize("module", rpcstubs.TABLES)
def test_the_stubs_are_those_of_the_table(module: str) -> None:
    written = (rpcstubs.TARGET / f"{module}.py").read_text(encoding="utf-8")
    assert written == rpcstubs.text(module), "run python -m tools.rpcstubs"


@pytest.mark.parametrize("module", rpcstubs.TABLES)
def test_the_names_are_the_classes_and_numbers_of_the_table(module: str) -> None:
    stubs = importlib.import_module(f"msmq_fast.rpc.stubs.{module}")
    table = getattr(importlib.import_module(f"msmq_fast.rpc.idl.{module}"), rpcstubs.TABLES[module])
    called = [op for op in table.ops if not op.obsolete]
    assert [(each.name.lower(), each.value) for each in stubs.Opnum] == [(op.name, op.opnum) for op in called]
    for op in called:
        title = "".join(word.capitalize() for word in op.name.split("_"))
        assert getattr(stubs, f"{title}Args") is op.Args
        assert getattr(stubs, f"{title}Results") is op.Results
