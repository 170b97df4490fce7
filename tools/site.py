"""A hook of MkDocs: pages of the site that are kept outside of docs/, and the links to them.

CHANGELOG.md and SECURITY.md stay at the top of the tree, where people and forges look for them. The site
shows them under "Project". The hook rewrites the links between these files and the pages, so a link works in
the tree and in the site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

OUTSIDE = {
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security-policy.md",
    "bench/notebook.md": "project/notebook.md",
}
"""Files by their path in the tree, and their place in the site."""
_LINK = re.compile(r"\]\(([^)\s#]+)(#[^)\s]*)?\)")


def relink(text: str, source: str, page: str) -> str:
    """Returns the Markdown of `source`, a path in the tree, with its links as `page` of the site has them."""

    def target(link: re.Match[str]) -> str:
        if "://" in link[1]:
            return link[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[1]))
        place = OUTSIDE.get(path, path.removeprefix("docs/"))
        return f"]({posixpath.relpath(place, posixpath.dirname(page) or '.')}{link[2] or ''})"

    return _LINK.sub(target, text)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the files of OUTSIDE to the site."""
    root = Path(config.docs_dir).parent
    for source, page in OUTSIDE.items():
        text = (root / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=relink(text, source, page)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrites the links of a page that lead out of docs/."""
    name = page.file.src_uri
    return markdown if name in OUTSIDE.values() else relink(markdown, f"docs/{name}", name)
