"""Writes the typed stubs of the RPC interfaces: python -m tools.rpcstubs

The tables of rpc/idl make the classes of requests and results at run time, where type checkers do not see
them. For each table, this writes a module of rpc/stubs that names its operations and gives these classes
types. Run it after a change to a table; a test compares. What is in structures and unions stays untyped.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

from msmq_fast.rpc.ndr import types as t
from msmq_fast.rpc.ndr.operations import InterfaceTable, Op
from msmq_fast.rpc.ndr.pointers import PointerKind

TARGET = Path(__file__).resolve().parent.parent / "src" / "msmq_fast" / "rpc" / "stubs"
TABLES = {
    "epm": "EPM",
    "mgmt": "MGMT",
    "qm2qm": "QM2QM",
    "qmcomm": "QMCOMM",
    "qmcomm2": "QMCOMM2",
    "qmmgmt": "QMMGMT",
    "remoteread": "REMOTE_READ",
}
"""The modules of rpc/idl, and the names of their tables."""


def annotation(kind: t.NdrType) -> str:
    """The Python type of the values of an IDL type."""
    match kind:
        case t.Integer() | t.Range() | t.Enum16():
            return "int"
        case t.Uuid():
            return "UUID"
        case t.ContextHandle():
            return "bytes | None"
        case t.FixedBytes() | t.Bytes() | t.WChars():
            return "bytes"
        case t.StringType():
            return "str"
        case t.ArrayOf(element=element):
            return f"Sequence[{annotation(element)}]"
        case t.Ptr(kind=pointer, target=target):
            inner = annotation(target if isinstance(target, t.NdrType) else target())
            return inner if pointer is PointerKind.REF else _optional(inner)
        case t.Struct():
            return "Record"
    return "Any"


def _optional(text: str) -> str:
    return text if text.endswith(("None", "Any")) else f"{text} | None"


def _out(kind: t.NdrType) -> str:
    """The type and the default of an [out] parameter."""
    found = annotation(kind)
    zero = {"int": "0", "UUID": "_NIL", "bytes": 'b""', "str": '""'}.get(found)
    if found.startswith("Sequence") and not found.endswith("None"):
        zero = "()"
    return f"{found} = {zero}" if zero is not None else f"{_optional(found)} = None"


def _title(op: Op) -> str:
    return "".join(word.capitalize() for word in op.name.split("_"))


def _classes(op: Op) -> Iterator[str]:
    requests = {name: annotation(kind) for name, kind in op.inputs.items()}
    results = {name: f"{_optional(found)} = None" for name, found in requests.items()}  # may be left out
    results |= {name: _out(kind) for name, kind in op.outputs.items()}
    for suffix, fields in (("Args", requests), ("Results", results)):
        yield "    @dataclass"
        yield f"    class {_title(op)}{suffix}:"
        yield from [f"        {name}: {found}" for name, found in fields.items()] or ["        pass"]
        yield ""


def text(module: str) -> str:
    """The source of the stubs of one interface."""
    name = TABLES[module]
    table: InterfaceTable = getattr(importlib.import_module(f"msmq_fast.rpc.idl.{module}"), name)
    called = [op for op in table.ops if not op.obsolete]
    typed = [line for op in called for line in _classes(op)][:-1]
    body = "\n".join(typed)
    names = [f"{_title(op)}{suffix}" for op in called for suffix in ("Args", "Results")]
    lines = [
        f'"""{table.name}: its operations by name, and the types of their requests and results.',
        "",
        f"Made by tools/rpcstubs.py from rpc/idl/{module}.py; do not edit.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from enum import IntEnum",
        "from typing import TYPE_CHECKING",
        "",
        f"from msmq_fast.rpc.idl.{module} import {name}",
        "",
        "if TYPE_CHECKING:",
        *(["    from collections.abc import Sequence"] if "Sequence[" in body else []),
        "    from dataclasses import dataclass",
        *(["    from typing import Any"] if "Any" in body else []),
        *(["    from uuid import UUID"] if "UUID" in body else []),
        "",
        *(["    from msmq_fast.rpc.ndr.record import Record", ""] if "Record" in body else []),
        *(["    _NIL = UUID(int=0)", ""] if "_NIL" in body else []),
        body,
        "",
        "else:",
        *(
            f'    {_title(op)}{suffix} = {name}.op("{op.name}").{suffix}'
            for op in called
            for suffix in ("Args", "Results")
        ),
        "",
        "",
        "class Opnum(IntEnum):",
        '    """The numbers of the operations."""',
        "",
        *(f"    {op.name.upper()} = {op.opnum}" for op in called),
        "",
        "",
        "__all__ = [",
        *(f'    "{each}",' for each in sorted([*names, "Opnum"])),
        "]",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Writes all of them."""
    TARGET.mkdir(exist_ok=True)
    for module in TABLES:
        (TARGET / f"{module}.py").write_text(text(module), encoding="utf-8")


if __name__ == "__main__":
    main()
