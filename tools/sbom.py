"""Writes the bill of materials of a build: CycloneDX 1.5 as JSON, beside the wheel.

    python -m tools.sbom dist       → dist/msmq_fast-0.1.0.cdx.json

The components are those of the lock file that the Dockerfile installs by default, with the hashes that pip
checks.
One commit gives one file: its time is SOURCE_DATE_EPOCH, its serial number comes from its content.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import tomllib
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

PROJECT = Path(__file__).resolve().parent.parent
DOCKERFILE = PROJECT / "Dockerfile"


def image_lock() -> Path:
    """The lock file that the image installs, unless the build argument PARTS names another one."""
    found = re.search(r"^ARG PARTS=(\w+)$", DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit(f"{DOCKERFILE} has no line ARG PARTS=…")
    return PROJECT / "requirements" / f"{found[1]}.lock"


def components(lock: str) -> list[dict[str, Any]]:
    """One component for each package of a lock file."""
    found = []
    for name, version, rest in re.findall(r"^(\S+?)==([^\s;\\]+)((?:.*\\\n)*.*)$", lock, re.MULTILINE):
        purl = f"pkg:pypi/{name}@{version}"
        # The hashes are those of files of one release, of which a machine installs one.
        hashes = [
            {
                "type": "distribution",
                "url": purl,
                "hashes": [{"alg": "SHA-256", "content": digest}],
            }
            for digest in re.findall(r"--hash=sha256:([0-9a-f]{64})", rest)
        ]
        found.append(
            {
                "type": "library",
                "bom-ref": purl,
                "name": name,
                "version": version,
                "purl": purl,
                "externalReferences": hashes,
            }
        )
    return found


def bill(project: dict[str, Any], lock: str, created: int) -> dict[str, Any]:
    """The whole document."""
    own = f"pkg:pypi/{project['name']}@{project['version']}"
    parts = components(lock)
    content = json.dumps([own, parts], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(created)),
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": project["name"],
                "version": project["version"],
                "purl": own,
                "licenses": [{"license": {"id": project["license"]}}],
            },
        },
        "components": parts,
    }


def main() -> int:
    """Write the file into the folder that is named."""
    folder = Path(sys.argv[1])
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    created = int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    document = bill(project, image_lock().read_text(encoding="utf-8"), created)
    name = f"{project['name'].replace('-', '_')}-{project['version']}.cdx.json"
    (folder / name).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
