"""Circles of imports are found, those for type checking included."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import circles

FOR_TYPES = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    "


def package(root: Path, **sources: str) -> Path:
    """A package `p` with these modules; `a_b` is the module `b` in the sub-package `a`."""
    for name, source in sources.items():
        path = root.joinpath("p", *name.split("_")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    return root


def found(root: Path) -> list[list[str]]:
    return circles.circles(circles.graph(root, "p"))


@pytest.mark.parametrize(
    "line",
    [
        "from p.a import X",
        "from p import a",
        "import p.a",
        FOR_TYPES + "from p.a import X",
        "def late():\n    from p.a import X",
    ],
)
def test_two_modules_that_import_each_other(tmp_path: Path, line: str) -> None:
    assert found(package(tmp_path, a="from p.b import Y", b=line)) == [["p.a", "p.b"]]


def test_longer_circles_and_several_of_them(tmp_path: Path) -> None:
    root = package(
        tmp_path,
        a="from p import b",
        b="from p.c import d",
        c_d="import p.a\nimport p.e",
        e="from p.f import X",
        f="from p.e import Y\nfrom p.g import Z",
        g="import sys",
    )
    assert found(root) == [["p.a", "p.b", "p.c.d"], ["p.e", "p.f"]]


def test_no_circle_where_several_ways_lead_to_one_module(tmp_path: Path) -> None:
    root = package(tmp_path, a="import p.b\nimport p.c", b="import p.d", c="import p.d\nimport p.b", d="")
    assert found(root) == []


def test_what_is_printed_names_the_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = package(tmp_path, a="import p.b", b="import p.c", c="import p.a\nimport p.b")
    assert circles.main(root, "p") == 1
    assert "3 modules import each other: p.a -> p.b -> p.c -> p.a" in capsys.readouterr().out


def test_the_package_has_no_circle(capsys: pytest.CaptureFixture[str]) -> None:
    assert circles.main() == 0
    assert not capsys.readouterr().out
