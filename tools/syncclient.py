"""Writes src/msmq_fast/client/sync*.py, the client without asyncio, from the one with it:

python -m tools.syncclient             says whether the files are what they would be made python -m
tools.syncclient --write     makes them

Each public class becomes one around it; `blocking.py` runs what it calls in a background thread. The rules:

1. A coroutine is run to its end; enumerations and dataclasses stay what they are. What it or a method
   returns of the classes here is wrapped, and arguments of these classes are unwrapped. An iterable is read
   by the calling thread.
2. `async with`, `async for` and `await` become `with`, `for` and nothing, in the docstrings as well.
3. What belongs to the inside (INSIDE) stays away. OVERRIDES are the methods that are not made by rule.

To add a class to the client: add its module to FILES.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar, cast

ROOT = Path(__file__).resolve().parent.parent
CLIENT = ROOT / "src" / "msmq_fast" / "client"
FILES = {
    "syncqueue": ("transaction", "subscription", "cursor", "sender", "queue"),
    "syncparts": ("exchange", "securityadmin", "auditadmin", "definitionadmin", "serveradmin"),
    "syncadmin": ("admin",),
    "sync": ("connection",),
}
"""The modules of which each file is made. A file imports the classes of those before it, and the last one has
all names.
"""
MODULES = tuple(module for modules in FILES.values() for module in modules)
INSIDE = frozenset(
    ("restore", "give_up", "opened", "live", "link", "ready", "handle", "hello", "number", "acknowledging")
)
WIDTH = 110
OVERRIDES = {
    ("Subscription", "__aiter__"): """\
    def __iter__(self) -> Iterator[ReceivedMessage]:
        while messages := self.batch():  # one hand-over between the threads for all that are here
            yield from messages
""",
}
HEAD = '''"""The client without asyncio: the same names, calls that block. See `msmq_fast.client.blocking`.

Made by tools/syncclient.py of the modules beside it: do not edit.
"""

from __future__ import annotations

'''
STANDARD = ("collections.abc", "ssl", "typing", "uuid")


T = TypeVar("T")
Documented = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Generator:
    """The text of one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.names: dict[str, str] = {}  # what the modules import, and from where
        self.used: set[str] = set()
        self.lines: list[str] = []
        self.classes: dict[str, tuple[str, ast.ClassDef]] = {}
        self.sources: dict[str, list[str]] = {}
        self.functions: list[tuple[str, ast.FunctionDef]] = []

    def generate(self) -> str:
        for module in MODULES:
            self._read(module)
        for name, (module, node) in self.classes.items():
            if module in FILES[self.file]:
                self._class(name, module, node)
        for module, function in self.functions:
            if module in FILES[self.file]:
                self._function(module, function)
        return HEAD + self._imports() + "\n".join(self.lines).rstrip() + "\n"

    def _read(self, module: str) -> None:
        text = (CLIENT / f"{module}.py").read_text(encoding="utf-8")
        tree = ast.parse(text)
        self.sources[module] = text.split("\n")
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module != "__future__":
                self.names.update({alias.name: node.module or "" for alias in node.names})
            elif isinstance(node, ast.Import):
                self.names.update({alias.name: alias.name for alias in node.names})
            elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                if _is_value(node):
                    self.names[node.name] = f"msmq_fast.client.{module}"
                else:
                    self.classes[node.name] = (module, node)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.names[node.targets[0].id] = f"msmq_fast.client.{module}"
            elif isinstance(node, ast.FunctionDef) and node.name == "connect":
                self.functions.append((module, node))

    # -- classes

    def _class(self, name: str, module: str, node: ast.ClassDef) -> None:
        methods = list(self._methods(module, node))
        closes = any(method.name == "__aenter__" for _, method in methods)
        base = "ClosingWrapper" if closes else "Wrapper"
        self.used.add(base)
        self.lines += ["", "", f"class {name}({base}[_{module}.{name}]):", *self._docstring(module, node), ""]
        for attribute, annotation in _attributes(node):
            if not attribute.startswith("_") and attribute not in INSIDE:
                self._property(attribute, annotation, None, module)
        for owner, method in methods:
            if (name, method.name) in OVERRIDES:
                self.lines += [*OVERRIDES[name, method.name].rstrip("\n").split("\n"), ""]
                self.used |= {"Iterator", "ReceivedMessage"}
            elif method.name == "__aiter__":
                item = _item(method)
                self._use(item)
                self.used |= {"Iterator", "iterate"}
                self.lines += [f"    def __iter__(self) -> Iterator[{ast.unparse(item)}]:"]
                self.lines += ["        return iterate(self._inner)", ""]
            elif not method.name.startswith("_") and method.name not in INSIDE:
                self._method(owner, method)
        while self.lines[-1] == "":
            self.lines.pop()

    def _methods(
        self, module: str, node: ast.ClassDef
    ) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
        for item in node.body:
            if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
                yield module, item

    def _property(self, name: str, annotation: ast.expr, node: Documented | None, module: str) -> None:
        self._use(annotation)
        value = f"self._inner.{name}"
        shown = ast.unparse(annotation)
        if shown in self.classes:
            value = f"{shown}({value})"
        self.lines += ["    @property", f"    def {name}(self) -> {shown}:"]
        self.lines += (
            self._docstring(module, node)
            if node is not None
            else ['        """See the client with asyncio."""']
        )
        self.lines += [f"        return {value}", ""]

    def _method(self, module: str, method: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        decorators = [ast.unparse(one) for one in method.decorator_list]
        if "classmethod" in decorators or any(one.endswith(".setter") for one in decorators):
            return
        if "property" in decorators:
            self._property(method.name, _some(method.returns), method, module)
            return
        result, wrapped = self._result(_some(method.returns))
        self.lines += [
            *_fold(f"    def {method.name}(", ["self", *self._parameters(method.args)], f") -> {result}:")
        ]
        self.lines += self._docstring(module, method)
        awaited = isinstance(method, ast.AsyncFunctionDef) or ast.unparse(_some(method.returns)).startswith(
            "Opening["
        )
        call = f"self._inner.{method.name}(", self._arguments(method.args), ")"
        self._call(call, awaited=awaited, wrapped=wrapped, returns=result != "None")
        self.lines.append("")

    def _function(self, module: str, function: ast.FunctionDef) -> None:
        result, wrapped = self._result(_some(function.returns))
        self.lines += [
            "",
            "",
            *_fold(f"def {function.name}(", self._parameters(function.args), f") -> {result}:"),
        ]
        self.lines += self._docstring(module, function)
        call = f"_{module}.{function.name}(", self._arguments(function.args), ")"
        before = len(self.lines)
        self._call(call, awaited=True, wrapped=wrapped, returns=True)
        self.lines[before:] = [line[4:] for line in self.lines[before:]]

    def _call(self, call: tuple[str, list[str], str], *, awaited: bool, wrapped: str, returns: bool) -> None:
        head, arguments, tail = call
        runs = "run" if awaited else "on_loop"
        self.used.add(runs)
        opening = f"{runs}(" if awaited else f"{runs}(lambda: "
        line = f"{head}{', '.join(arguments)}{tail}"
        start = "        return " if returns else "        "
        whole = f"{start}{wrapped}({opening}{line}))" if wrapped else f"{start}{opening}{line})"
        if len(whole) <= WIDTH:
            self.lines.append(whole)
            return
        if wrapped:
            start = "        inner = "
        if awaited:
            self.lines += [start + opening, *_fold(f"            {head}", arguments, tail), "        )"]
        else:
            self.lines.append(f"{start}{runs}(")
            self.lines += [*_fold(f"            lambda: {head}", arguments, tail), "        )"]
        if wrapped:
            self.lines.append(f"        return {wrapped}(inner)")

    # -- parts

    def _result(self, returns: ast.expr) -> tuple[str, str]:
        """The annotation of what is returned, and the class that wraps it."""
        shown = ast.unparse(returns)
        if shown.startswith("Opening["):
            shown = shown.removeprefix("Opening[").removesuffix("]")
        else:
            self._use(returns)
        return shown, shown if shown in self.classes else ""

    def _parameters(self, arguments: ast.arguments) -> list[str]:
        plain = [one for one in arguments.args if one.arg != "self"]
        defaults: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults)) + list(
            arguments.defaults
        )
        found = [self._parameter(one, default) for one, default in zip(plain, defaults, strict=True)]
        if arguments.kwonlyargs:
            found.append("*")
        for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            found.append(self._parameter(one, default))
        if arguments.kwarg is not None:
            found.append("**" + self._parameter(arguments.kwarg, None))
        return found

    def _parameter(self, one: ast.arg, default: ast.expr | None) -> str:
        self._use(_some(one.annotation))
        text = f"{one.arg}: {ast.unparse(_some(one.annotation))}"
        if default is None:
            return text
        self._use(default)
        return f"{text} = {_quoted(default)}"

    def _arguments(self, arguments: ast.arguments) -> list[str]:
        found = [self._argument(one) for one in arguments.args if one.arg != "self"]
        found += [f"{one.arg}={self._argument(one)}" for one in arguments.kwonlyargs]
        if arguments.kwarg is not None:
            found.append(f"**{arguments.kwarg.arg}")
        return found

    def _argument(self, one: ast.arg) -> str:
        names = {node.id for node in ast.walk(_some(one.annotation)) if isinstance(node, ast.Name)}
        if names & set(self.classes):
            self.used.add("unwrap")
            return f"unwrap({one.arg})"
        return f"list({one.arg})" if "Iterable" in names else one.arg

    def _docstring(self, module: str, node: Documented) -> list[str]:
        first = node.body[0]
        text = "\n".join(self.sources[module][first.lineno - 1 : _some(first.end_lineno)])
        text = re.sub(r"\basync\s+(with|for)\b", r"\1", text)
        return text.replace("await ", "").split("\n")

    def _use(self, expression: ast.expr) -> None:
        self.used |= {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}

    def _imports(self) -> str:
        modules: dict[str, list[str]] = {}
        for name in sorted(self.used):
            if name in ("ClosingWrapper", "Wrapper", "iterate", "on_loop", "run", "unwrap"):
                modules.setdefault("msmq_fast.client.blocking", []).append(name)
            elif name == "Iterator":
                modules.setdefault("collections.abc", []).append(name)
            elif name in self.names and name not in self.classes:
                modules.setdefault(self.names[name], []).append(name)
        lines = [
            f"import {module}" if modules[module] == [module] else _import(module, modules[module])
            for module in sorted(modules)
            if module in STANDARD
        ]
        lines.sort(key=lambda line: not line.startswith("import"))
        lines.append("")
        made = FILES[self.file]
        lines += [f"from msmq_fast.client import {module} as _{module}" for module in sorted(made)]
        if self.file == "sync":
            modules.setdefault("msmq_fast.client.transaction", []).append("SINGLE_MESSAGE as SINGLE_MESSAGE")
        self._import_classes(modules)
        for module in sorted(one for one in modules if one not in STANDARD):
            lines += [_import(module, [name]) for name in modules[module] if " as " in name]
            plain = [name for name in modules[module] if " as " not in name]
            lines += [_import(module, plain)] if plain else []
        return "\n".join(lines) + "\n"

    def _import_classes(self, modules: dict[str, list[str]]) -> None:
        """Those of other files that a line names; the last file passes all of them on."""
        text = "\n".join(self.lines)
        for file, made in FILES.items():
            if file == self.file:
                continue
            for name, (module, _) in sorted(self.classes.items()):
                if module not in made:
                    continue
                if self.file == "sync":
                    modules.setdefault(f"msmq_fast.client.{file}", []).append(f"{name} as {name}")
                elif re.search(rf"(?<![\w.`]){name}\b(?!`)", text):
                    modules.setdefault(f"msmq_fast.client.{file}", []).append(name)


def _is_value(node: ast.ClassDef) -> bool:
    """An enumeration, a dataclass or an interface that programs pass in: none has a call to wait for."""
    marks = (*node.bases, *node.decorator_list)
    return any(
        isinstance(one, ast.Name) and one.id in ("Enum", "Protocol", "dataclass")
        for mark in marks
        for one in ast.walk(mark)
    )


def _quoted(default: ast.expr) -> str:
    """As ruff writes it."""
    text = ast.unparse(default)
    return text.replace("'", '"') if text.startswith("'") else text


def _attributes(node: ast.ClassDef) -> Iterable[tuple[str, ast.expr]]:
    """Attributes that the constructor sets, with the types that their values tell."""
    for method in node.body:
        if not isinstance(method, ast.FunctionDef) or method.name != "__init__":
            continue
        types = {one.arg: one.annotation for one in (*method.args.args, *method.args.kwonlyargs)}
        for line in method.body:
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Attribute):
                yield line.target.attr, line.annotation
            elif isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Attribute):
                annotation = _told(line.value, types)
                if annotation is not None:
                    yield line.targets[0].attr, annotation


def _told(value: ast.expr, types: dict[str, ast.expr | None]) -> ast.expr | None:
    if isinstance(value, ast.Name):
        return types.get(value.id)
    if isinstance(value, ast.Constant) and isinstance(value.value, int | str):
        return ast.Name(type(value.value).__name__)
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id[0].isupper():
        return value.func
    return None


def _item(method: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.expr:
    """What an asynchronous generator yields."""
    return cast(ast.Subscript, method.returns).slice


def _some(value: T | None) -> T:
    """What strict typing promises: every parameter and every result has an annotation."""
    if value is None:
        raise ValueError("an annotation is missing")
    return value


def _fold(head: str, items: list[str], tail: str) -> list[str]:
    """A call or signature, as ruff wraps it."""
    line = head + ", ".join(items) + tail
    if len(line) <= WIDTH:
        return [line]
    indent = " " * (len(head) - len(head.lstrip()) + 4)
    inner = indent + ", ".join(items)
    if len(inner) <= WIDTH:
        return [head, inner, indent[4:] + tail]
    return [head, *(f"{indent}{item}," for item in items), indent[4:] + tail]


def _import(module: str, names: list[str]) -> str:
    names = sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= WIDTH:
        return line
    return "\n".join((f"from {module} import (", *(f"    {name}," for name in names), ")"))


def target(file: str) -> Path:
    """The path of a file that is made."""
    return CLIENT / f"{file}.py"


def main(arguments: list[str]) -> int:
    """0 if the files are as they would be made, or are made."""
    differ = []
    for file in FILES:
        made = Generator(file).generate()
        if "--write" in arguments:
            target(file).write_text(made, encoding="utf-8")
        elif target(file).read_text(encoding="utf-8") != made:
            differ.append(str(target(file).relative_to(ROOT)))
    if differ:
        print(f"{', '.join(differ)}: not what their modules make of them: python -m tools.syncclient --write")
    return int(bool(differ))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
