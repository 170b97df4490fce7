"""Checks that nothing is wired after construction: python -m tools.owners

A callback, a service or an engine is an argument of a constructor. If it is assigned to the object later, the
order of construction becomes a protocol that no type states. The check reports, in src/msmq_fast:

1. `x.name = …`, where x is not self, and `name` is declared as a Callable anywhere in the package, or as an
   engine: a Protocol, or a class that is neither a record (dataclass, tuple, enumeration) nor an exception;
2. the same with any `name` if the value is a function: a lambda, a local function, or a method of self;
3. setters: public methods that assign a parameter of such a type to an attribute of self.

Fields with data are free, and so are relations between records, such as the session of a link. The check
finds types by the name of the attribute. The findings that remain are in tools/owners.txt, one `path target`
a line. A line that matches nothing is an error, too.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tools.statements import statements

ROOT = Path(__file__).resolve().parent.parent
EXCEPTIONS = Path(__file__).with_suffix(".txt")
_RECORDS = ("dataclass", "NamedTuple", "TypedDict", "Enum", "Flag", "Exception", "Error")
_FOREIGN = r"parser\.\w+Handler|context\.sni_callback|logger\.parent"  # expat, ssl and logging want it so
# Data, though a class elsewhere has the name.
_RELATIONS = r".*\.(caller|journal|transaction|queues|feed|handles|sent)|m\.acknowledge"
_FREE = re.compile(f"({_FOREIGN}|{_RELATIONS})$")
_NO_ENGINES = re.compile(
    r"/packet/|/_native/"
)  # what is on the wire; native attributes that are no callables

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _names(node: ast.AST | None) -> set[str]:
    """The names in an annotation, those in quotes included; a collection is not what it contains."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _names(ast.parse(node.value, mode="eval").body)
    if isinstance(node, ast.BinOp):
        return _names(node.left) | _names(node.right)
    if isinstance(node, ast.Subscript | ast.Call):
        return _names(getattr(node, "func", None) or getattr(node, "value", None))
    name = getattr(node, "attr", getattr(node, "id", None))
    return set() if name is None else {name}


def _targets(node: ast.AST) -> list[ast.Attribute]:
    found = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    flat = [part for each in found for part in (each.elts if isinstance(each, ast.Tuple) else [each])]
    return [each for each in flat if isinstance(each, ast.Attribute)]


def _arguments(function: Function) -> dict[str, ast.AST | None]:
    return {arg.arg: arg.annotation for arg in (*function.args.args, *function.args.kwonlyargs)}


def _is_record(node: ast.ClassDef) -> bool:
    names = set().union(*map(_names, (*node.decorator_list, *node.bases)))
    return any(name.endswith(_RECORDS) for name in names)


def _declared(node: ast.ClassDef) -> Iterator[tuple[str, set[str]]]:
    """The attributes of a class, each with the names in its type."""
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            yield each.target.id, _names(each.annotation)
        elif isinstance(each, ast.FunctionDef) and each.name == "__init__":
            types = _arguments(each)
            for inner in statements(each):
                value = getattr(inner, "value", None)
                type_ = getattr(inner, "annotation", None) or types.get(getattr(value, "id", ""))
                for target in _targets(inner):
                    yield target.attr, _names(type_ or (value if isinstance(value, ast.Call) else None))


class Types:
    """What the package declares: which types are functions or engines, and which attributes have them."""

    def __init__(self, trees: dict[str, ast.Module]) -> None:
        self.wired = {"Callable"}
        every = [(path, node) for path, tree in trees.items() for node in statements(tree)]
        for node in (node for _, node in every if isinstance(node, ast.Assign)):
            if ast.unparse(node.value).startswith("Callable["):
                self.wired.add(ast.unparse(node.targets[0]))
        functions = set(self.wired)
        classes = [(path, node) for path, node in every if isinstance(node, ast.ClassDef)]
        engines = (node for path, node in classes if not _NO_ENGINES.search(path))
        self.wired |= {node.name for node in engines if not _is_record(node)}
        attributes = [(node, name, type_) for _, node in classes for name, type_ in _declared(node)]
        fields = {name for node, name, type_ in attributes if type_ & self.wired and _is_record(node)}
        self.functions = {name for _, name, type_ in attributes if type_ & functions}
        self.engines = {name for _, name, type_ in attributes if type_ & self.wired} - fields


def _of_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("self", "cls")


def _is_function(value: ast.AST, methods: set[str], local: set[str]) -> bool:
    name = ast.unparse(value)
    return isinstance(value, ast.Lambda) or name in local or name.removeprefix("self.") in methods - {name}


def _findings(owner: ast.ClassDef | ast.Module, types: Types) -> Iterator[tuple[int, str]]:
    own = [each for each in owner.body if isinstance(each, Function)]
    methods = {each.name for each in own if not each.decorator_list}
    setters: list[tuple[int, str]] = []
    for function in own:
        inside = [each for each in statements(function) if not isinstance(each, ast.AugAssign)]
        local = {each.name for each in inside if isinstance(each, Function) and each is not function}
        arguments = _arguments(function)
        for node in inside:
            value = getattr(node, "value", None) or ast.Constant(None)
            for target in _targets(node):
                name = ast.unparse(target)
                if not _of_self(target):
                    engine = target.attr in types.engines and not isinstance(value, ast.Constant)
                    called = target.attr in types.functions or _is_function(value, methods, local)
                    if (engine or called) and not _FREE.match(name):
                        yield node.lineno, name
                elif isinstance(value, ast.Name) and _names(arguments.get(value.id)) & types.wired:
                    setters.append((node.lineno, f"{getattr(owner, 'name', '')}.{function.name}"))
    yield from (each for each in setters if "._" not in each[1])


def main() -> int:
    """Prints what is wired late and not excepted; 1 if there is any, or an exception that matches nothing."""
    files = sorted((ROOT / "src" / "msmq_fast").rglob("*.py*"))
    sources = {str(path.relative_to(ROOT)): path for path in files if path.suffix in (".py", ".pyi")}
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in sources.items()}
    types = Types(trees)
    found: dict[str, int] = {}
    for path, tree in trees.items():
        for node in (each for each in statements(tree) if isinstance(each, ast.ClassDef | ast.Module)):
            found |= {f"{path} {what}": line for line, what in _findings(node, types)}
    excepted = set(EXCEPTIONS.read_text(encoding="utf-8").split("\n")) - {""}
    for each in found.keys() - excepted:
        path, what = each.split(" ")
        print(f"{path}:{found[each]}: {what} is assigned after construction: pass it to the constructor")
    for each in excepted - found.keys():
        print(f"tools/owners.txt: nothing matches {each!r}: remove the line")
    return int(found.keys() != excepted)


if __name__ == "__main__":
    sys.exit(main())
