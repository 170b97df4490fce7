"""What is installed: floors and locks without known holes, and the bill of materials."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tools import lock, sbom

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))


def advisories() -> list[dict[str, str]]:
    listed = tomllib.loads((ROOT / "requirements" / "advisories.toml").read_text())["advisory"]
    assert all(entry.keys() == {"package", "id", "fixed", "about"} for entry in listed)
    return listed


def floors() -> list[Requirement]:
    """Every requirement of pyproject.toml."""
    parts = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = parts["project"]
    lines = [*parts["build-system"]["requires"], *project["dependencies"]]
    lines += [line for extra in project["optional-dependencies"].values() for line in extra]
    return [Requirement(line) for line in lines]


def holes(requirement: Requirement, listed: list[dict[str, str]]) -> list[str]:
    """The advisories that the oldest version of a requirement is open to."""
    stated = [Version(part.version) for part in requirement.specifier if part.operator in (">=", "==", "~=")]
    floor = max(stated, default=Version("0"))
    name = canonicalize_name(requirement.name)
    return [
        f"{requirement} allows {floor}: {entry['id']} is repaired in {entry['fixed']}"
        for entry in listed
        if entry["package"] == name and floor < Version(entry["fixed"])
    ]


def pinned(path: Path) -> dict[str, list[Requirement]]:
    found: dict[str, list[Requirement]] = {}
    for line in lock.pins(path.read_text()).splitlines():
        requirement = Requirement(line)
        found.setdefault(requirement.name, []).append(requirement)
    return found


def test_no_floor_is_below_an_advisory():
    listed = advisories()
    assert [problem for requirement in floors() for problem in holes(requirement, listed)] == []


def test_a_floor_below_an_advisory_is_found():
    listed = [{"package": "h11", "id": "CVE-2025-43859", "fixed": "0.16.0", "about": ""}]
    assert holes(Requirement("h11>=0.14"), listed)
    assert holes(Requirement("H11"), listed)
    assert not holes(Requirement("h11>=0.16"), listed)


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_no_locked_version_is_below_an_advisory(path):
    found = pinned(path)
    for entry in advisories():
        for requirement in found.get(entry["package"], []):
            assert not holes(requirement, [entry])


@pytest.mark.parametrize("name", sorted(lock.FILES))
def test_a_lock_serves_what_pyproject_asks_for(name):
    found = pinned(ROOT / "requirements" / f"{name}.lock")
    wanted = [Requirement(line) for line in lock.requirements(lock.FILES[name]).splitlines()]
    assert wanted
    for requirement in wanted:
        pins = found[canonicalize_name(requirement.name)]
        versions = [next(iter(pin.specifier)).version for pin in pins]
        assert all(requirement.specifier.contains(version) for version in versions), requirement


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.name)
def test_a_lock_pins_by_hash_and_names_no_server(path):
    text = path.read_text()
    entries = re.split(r"\n(?=\S)", text.partition("\n")[2].rstrip())
    assert all(re.fullmatch(r"\S+==.*(\\\n    --hash=sha256:[0-9a-f]{64} ?)+", entry) for entry in entries)
    assert "://" not in text


def test_all_locks_agree():
    whole = dict(pinned(ROOT / "requirements" / "lint.lock"))
    for path in LOCKS:
        for name, pins in pinned(path).items():
            held = whole.setdefault(name, pins)  # browsers and generated requests have packages of their own
            assert {pin.specifier for pin in pins} <= {pin.specifier for pin in held}, path.name


def test_the_bill_of_materials_lists_what_the_image_installs(tmp_path):
    subprocess.run([sys.executable, "-m", "tools.sbom", tmp_path], cwd=ROOT, check=True)
    (path,) = tmp_path.glob("msmq_fast-*.cdx.json")
    document = json.loads(path.read_text())
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", document["serialNumber"])
    listed = {(part["name"], part["version"]) for part in document["components"]}
    # The Dockerfile of this commit: `--requirement "requirements/${PARTS}.lock"`, with the default of PARTS.
    (parts,) = re.findall(r"^ARG PARTS=(\w+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    installed = pinned(ROOT / "requirements" / f"{parts}.lock")
    assert {"lmdb", "obstore"} <= installed.keys()
    assert listed == {
        (name, next(iter(pin.specifier)).version) for name, pins in installed.items() for pin in pins
    }
    digests = {
        digest["content"]
        for part in document["components"]
        for file in part["externalReferences"]
        for digest in file["hashes"]
    }
    text = (ROOT / "requirements" / f"{parts}.lock").read_text()
    assert digests == set(re.findall(r"sha256:([0-9a-f]{64})", text))


def test_the_same_commit_gives_the_same_bill():
    text = (ROOT / "requirements" / "image.lock").read_text()
    project = {"name": "msmq-fast", "version": "1", "license": "Apache-2.0"}
    assert sbom.bill(project, text, 1) == sbom.bill(project, text, 1)
    assert sbom.bill(project, text, 1)["metadata"]["timestamp"] == "1970-01-01T00:00:01Z"


@pytest.mark.parametrize(
    ("wheel", "pythons"),
    [
        ("pure-1-py3-none-any.whl", lock.PYTHONS),
        ("pure-1-py2.py3-none-any.whl", lock.PYTHONS),
        ("pure-1-py312-none-any.whl", ("3.12", "3.13")),
        ("pure-1-py314-none-any.whl", ()),
        ("stable-1-cp311-abi3-manylinux_2_17_x86_64.whl", lock.PYTHONS),
        ("native-1-cp312-cp312-manylinux_2_17_x86_64.whl", ("3.12",)),
        ("native-1-cp312-cp312-win_amd64.whl", ()),
    ],
)
def test_a_lock_has_the_wheels_that_pip_would_take(wheel, pythons):
    """Else pip builds the source archive, with a build tool that no lock may have."""
    assert tuple(python for python in lock.PYTHONS if lock.serves(wheel, python, "x86_64")) == tuple(pythons)
