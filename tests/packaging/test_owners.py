"""What is wired after construction is found; the list of exceptions holds nothing that is gone."""

import ast

import pytest

from tools import owners

ENGINE = """
class Engine:
    def __init__(self, on_end: Callable[[], None]) -> None:
        self.on_end = on_end
        self.count = 0
        self.store: Store | None = None

    def run(self) -> None:
        self.count += 1

class Store:
    pass

@dataclass
class Record:
    engine: Engine | None = None
    size: int = 0
"""


def found(lines: str, indent: str = "        ") -> list[str]:
    body = "\n".join(indent + line for line in lines.splitlines())
    source = f"{ENGINE}\nclass User:\n    def use(self, engine, record, store):\n{body}\n"
    trees = {"src/msmq_fast/engine.py": ast.parse(source)}
    types = owners.Types(trees)
    classes = [node for node in trees["src/msmq_fast/engine.py"].body if isinstance(node, ast.ClassDef)]
    return [what for each in classes for _, what in owners._findings(each, types)]


@pytest.mark.parametrize(
    "line",
    [
        "engine.on_end = anything",
        "engine.on_end = None",
        "self.engine.on_end = anything",
        "engine.store = store",
        "engine.unknown = lambda: 1",
        "engine.unknown = self.use",
        "a, engine.on_end = 1, store",
    ],
)
def test_callbacks_and_services_of_another_object_are_found(line: str) -> None:
    assert len(found(line)) == 1


@pytest.mark.parametrize(
    "line",
    [
        "engine.count = 1",
        "engine.store = None",
        "record.size = 2",
        "record.engine = engine",
        "self.on_end = 1",
    ],
)
def test_data_relations_of_records_and_own_attributes_are_free(line: str) -> None:
    assert not found(line)


def test_setters_are_found_by_the_types_of_their_parameters() -> None:
    source = (
        ENGINE
        + """
class User:
    def serve(self, store: "Store | None", size: int) -> None:
        self.store = store

    def grow(self, size: int) -> None:
        self.size = size

    def _keep(self, store: Store) -> None:
        self.store = store
"""
    )
    tree = ast.parse(source)
    types = owners.Types({"src/msmq_fast/user.py": tree})
    user = tree.body[-1]
    assert isinstance(user, ast.ClassDef)
    assert [what for _, what in owners._findings(user, types)] == ["User.serve"]


def test_exceptions_are_all_that_is_found_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert owners.main() == 0
    assert not capsys.readouterr().out
