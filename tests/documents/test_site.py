"""The documentation site builds without a warning, and a link that leads nowhere stops the build."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.long(seconds=15), pytest.mark.needs(modules=["mkdocs", "material"])]

ROOT = Path(__file__).parents[2]


def build(tree: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(tree / "site")],
        cwd=tree,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what the site is made of."""
    for name in ("docs", "tools"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "bench").mkdir()
    for name in ("mkdocs.yml", "CHANGELOG.md", "SECURITY.md", "bench/notebook.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_the_site_builds_with_every_page(tree: Path) -> None:
    done = build(tree)
    assert done.returncode == 0, done.stderr
    pages = {path.relative_to(tree / "docs") for path in (tree / "docs").rglob("*.md")}
    assert len(pages) > 20
    assert [page for page in sorted(pages) if not (tree / "site" / page.with_suffix(".html")).exists()] == []
    changes = (tree / "site" / "project" / "changelog.html").read_text(encoding="utf-8")
    assert 'href="../how-to/security.html#names-from-the-wire"' in changes


@pytest.mark.parametrize("target", ["nowhere.md", "how-to/security.md#nothing-here", "../README.md"])
def test_a_link_that_leads_nowhere_stops_the_build(tree: Path, target: str) -> None:
    page = tree / "docs" / "index.md"
    page.write_text(f"{page.read_text(encoding='utf-8')}\n[lost]({target})\n", encoding="utf-8")
    done = build(tree)
    assert done.returncode == 1
    assert target.removeprefix("../") in done.stderr


def test_a_page_that_the_contents_leave_out_stops_the_build(tree: Path) -> None:
    (tree / "docs" / "how-to" / "forgotten.md").write_text("# Forgotten\n", encoding="utf-8")
    done = build(tree)
    assert done.returncode == 1
    assert "forgotten.md" in done.stderr
