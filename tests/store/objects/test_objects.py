"""Snapshots in object storage: up, down, and all that can be wrong on the way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from msmq_fast.store.backup import Manifest
from msmq_fast.store.errors import BackupError
from msmq_fast.store.identity import DATA_NAME
from msmq_fast.store.objects import catalogue, upload
from msmq_fast.store.objects.bucket import Bucket
from msmq_fast.store.objects.catalogue import MANIFEST, ObjectManifest, name_of
from msmq_fast.store.objects.download import pull, stored
from msmq_fast.store.objects.upload import UNFINISHED_S, prune, push
from msmq_fast.store.objects.urls import checked_url, split_name
from tests.store.objects.conftest import GUID, OTHER, OWNER, Maker

pytestmark = pytest.mark.needs(modules=("obstore", "moto"))

NAME = f"20270115T080000Z-{OWNER}-00000000"
"""The name of a snapshot that no test makes."""
_Result = TypeVar("_Result")


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload, "PART_SIZE", 30_000)


def done(url: str, work: Callable[[Bucket], Awaitable[_Result]]) -> _Result:
    async def run() -> _Result:
        return await work(Bucket(url))

    return asyncio.run(run())


def name_at(directory: Path) -> str:
    """The name of the snapshot in a directory."""
    return name_of(Manifest.read(directory))


def listing(url: str) -> dict[str, int]:
    async def look(bucket: Bucket) -> dict[str, int]:
        names = await bucket.names()
        return {
            f"{name}/{path}": entry.size
            for name in names
            for path, entry in (await bucket.objects(name)).items()
        }

    return done(url, look)


def edit(url: str, name: str, change: Callable[[dict[str, Any]], Any]) -> None:
    """Replace the manifest by what `change` makes of it."""

    async def run(bucket: Bucket) -> None:
        content = json.loads(await bucket.get(f"{name}/{MANIFEST}", 1 << 20))
        changed = change(content)
        data = changed if isinstance(changed, bytes) else json.dumps(content).encode()
        await bucket.put(f"{name}/{MANIFEST}", data)

    done(url, run)


def test_what_comes_back_is_what_was_sent(url: str, snapshot: Maker, tmp_path: Path) -> None:
    source, sent = snapshot(), []
    assert done(url, lambda bucket: push(source, bucket, sent.append)) == name_at(source)
    assert sum(sent) == 100_000
    sizes = listing(url)
    assert sorted(sizes.values(), reverse=True)[:4] == [30_000, 30_000, 30_000, 10_000]
    target = tmp_path / "back"
    name, manifest = done(url, lambda bucket: pull(bucket, None, target))
    assert (name, manifest) == (name_of(manifest), Manifest.read(source))
    assert (target / DATA_NAME).read_bytes() == (source / DATA_NAME).read_bytes()
    assert Manifest.read(target) == manifest
    assert {entry.name for entry in target.iterdir()} == {DATA_NAME, "manifest.json"}
    assert target.stat().st_mode & 0o077 == (target / DATA_NAME).stat().st_mode & 0o077 == 0


def test_an_empty_snapshot_and_one_of_whole_parts(url: str, snapshot: Maker, tmp_path: Path) -> None:
    for number, size in enumerate((0, 60_000)):
        source = snapshot(created_s=1_800_000_000 + number, size=size)
        name = done(url, lambda bucket, source=source: push(source, bucket))
        target = tmp_path / f"back-{size}"
        done(url, lambda bucket, name=name, target=target: pull(bucket, name, target))
        assert (target / DATA_NAME).read_bytes() == (source / DATA_NAME).read_bytes()


def test_the_same_snapshot_is_not_stored_twice(url: str, snapshot: Maker) -> None:
    source = snapshot()
    done(url, lambda bucket: push(source, bucket))
    with pytest.raises(BackupError, match=f"already holds the snapshot {name_at(source)}"):
        done(url, lambda bucket: push(source, bucket))


class Broken(Exception):
    """Stands for the end of the process."""


def interrupted_after(count: int) -> Callable[[int], None]:
    """Progress that ends the transfer after so many parts."""
    seen: Iterator[int] = iter(range(count))

    def progress(*_: int) -> None:
        if next(seen, None) is None:
            raise Broken

    return progress


def test_an_interrupted_upload_is_invisible_and_is_continued(
    url: str, snapshot: Maker, tmp_path: Path
) -> None:
    source = snapshot(size=300_000)
    with pytest.raises(Broken):
        done(url, lambda bucket: push(source, bucket, interrupted_after(4)))
    begun = listing(url)
    assert 4 <= len(begun) < 10
    (entry,) = done(url, stored)
    name = name_at(source)
    assert (entry.name, entry.manifest, entry.problem) == (name, None, "unfinished")
    with pytest.raises(BackupError, match=r"holds no complete snapshot$"):
        done(url, lambda bucket: pull(bucket, None, tmp_path / "back"))
    with pytest.raises(BackupError, match=f"holds no complete snapshot {name}"):
        done(url, lambda bucket: pull(bucket, name, tmp_path / "back"))
    assert not (tmp_path / "back").exists()

    async def again(bucket: Bucket) -> list[str]:
        written: list[str] = []
        put = bucket.put

        async def noted(path: str, data: bytes) -> None:
            written.append(path)
            await put(path, data)

        bucket.put = noted  # type: ignore[method-assign]
        await push(source, bucket)
        return written

    written = done(url, again)
    assert not set(written) & set(begun)
    assert len(written) == 10 - len(begun) + 1
    assert written[-1] == f"{name}/{MANIFEST}"
    done(url, lambda bucket: pull(bucket, None, tmp_path / "back"))


def test_an_interrupted_download_is_continued(url: str, snapshot: Maker, tmp_path: Path) -> None:
    source, target = snapshot(size=300_000), tmp_path / "back"
    done(url, lambda bucket: push(source, bucket))
    with pytest.raises(Broken):
        done(url, lambda bucket: pull(bucket, None, target, interrupted_after(4)))
    with pytest.raises(BackupError, match="does not hold a complete backup"):
        Manifest.read(target)
    draft = target / f"{DATA_NAME}.part"
    draft.write_bytes(draft.read_bytes()[:70_000] + b"torn")

    async def again(bucket: Bucket) -> int:
        fetched, get = [], bucket.get

        async def noted(path: str, largest: int) -> bytes:
            fetched.append(path)
            return await get(path, largest)

        bucket.get = noted  # type: ignore[method-assign]
        await pull(bucket, None, target)
        return len(fetched)

    assert done(url, again) == 1 + 8  # the manifest, and the parts that are not in the draft
    assert (target / DATA_NAME).read_bytes() == (source / DATA_NAME).read_bytes()
    with pytest.raises(BackupError, match="exists already"):
        done(url, lambda bucket: pull(bucket, None, target))


def test_a_damaged_source_is_never_marked_as_complete(url: str, snapshot: Maker) -> None:
    source = snapshot()
    (source / DATA_NAME).write_bytes(b"x" * 100_000)
    with pytest.raises(BackupError, match="is damaged"):
        done(url, lambda bucket: push(source, bucket))
    assert done(url, stored)[0].manifest is None


@pytest.mark.parametrize("damage", [b"", b"y" * 30_000, b"y" * 29_999, b"y" * 30_001, None])
def test_a_damaged_part_is_named_and_nothing_is_restored(
    url: str, snapshot: Maker, tmp_path: Path, damage: bytes | None
) -> None:
    name = done(url, lambda bucket: push(snapshot(), bucket))
    path = next(path for path in listing(url) if "/000001-" in path).partition("/")[2]
    if damage is None:
        done(url, lambda bucket: bucket.delete(name, [path]))
    else:
        done(url, lambda bucket: bucket.put(f"{name}/{path}", damage))
    target = tmp_path / "back"
    with pytest.raises(BackupError, match=r"part 1 (is missing|differs)|at most 30000 are expected"):
        done(url, lambda bucket: pull(bucket, None, target))
    assert not (target / DATA_NAME).exists()
    assert not (target / "manifest.json").exists()


BAD: list[Callable[[dict[str, Any]], Any]] = [
    lambda content: b"",
    lambda content: b"{",
    lambda content: b"[]",
    lambda content: b"\xff\xfe",
    lambda content: b"[" * 100_000,
    lambda content: json.dumps(content).encode()[:-40],
    lambda content: content.pop("parts"),
    lambda content: content.pop("sha256"),
    lambda content: content.update(format=2),
    lambda content: content.update(size=-1),
    lambda content: content.update(size=True),
    lambda content: content.update(size=1 << 70),
    lambda content: content.update(size=40_000),
    lambda content: content.update(created_s=1 << 62),
    lambda content: content.update(created_s=1),
    lambda content: content.update(qm_guid="../../../../etc"),
    lambda content: content.update(qm_guid=OTHER),
    lambda content: content.update(part_size=0),
    lambda content: content.update(part_size=1 << 40),
    lambda content: content.update(parts="x"),
    lambda content: content["parts"].pop(),
    lambda content: content["parts"].__setitem__(0, "../../../../../etc/passwd"),
    lambda content: content["parts"].__setitem__(0, "A" * 64),
    lambda content: content["parts"].__setitem__(0, 7),
]


def test_a_hostile_or_truncated_manifest_gets_one_line(url: str, snapshot: Maker, tmp_path: Path) -> None:
    name = done(url, lambda bucket: push(snapshot(), bucket))
    kept: list[dict[str, Any]] = []
    edit(url, name, lambda content: kept.append(dict(content)))
    for number, change in enumerate(BAD):
        edit(url, name, change)
        with pytest.raises(BackupError) as caught:
            done(url, lambda bucket: pull(bucket, None, tmp_path / "back"))
        text = str(caught.value)
        assert f"the manifest of the snapshot {name} is damaged: " in text, number
        assert "\n" not in text
        assert len(text) < 300
        assert not (tmp_path / "back").exists()
        assert [(entry.manifest, entry.problem) for entry in done(url, stored)] == [(None, text)], number
        good = json.dumps(kept[0]).encode()
        done(url, lambda bucket, good=good: bucket.put(f"{name}/{MANIFEST}", good))


def test_names_that_no_snapshot_has_are_ignored(url: str, snapshot: Maker) -> None:
    async def hostile(bucket: Bucket) -> None:
        for name in ("evil", f"{NAME}x", "20270115T080000Z-..", f"x{NAME}"):
            await bucket.put(f"{name}/{MANIFEST}", b"{}")

    done(url, hostile)
    name = done(url, lambda bucket: push(snapshot(), bucket))
    assert [entry.name for entry in done(url, stored)] == [name]
    assert done(url, lambda bucket: prune(bucket, 0, 2e9)) == [name]


def test_the_newest_are_kept_of_each_queue_manager(url: str, snapshot: Maker) -> None:
    names = []
    for guid in (GUID, OTHER):
        for hour in range(4):
            source = snapshot(1_800_000_000 + 3600 * hour, 100, guid)
            names.append(done(url, lambda bucket, source=source: push(source, bucket)))
    assert done(url, lambda bucket: prune(bucket, 3, 0, OWNER)) == names[:1]
    done(url, lambda bucket: prune(bucket, 2, 0))
    assert [entry.name for entry in done(url, stored)] == sorted(names[2:4] + names[6:])


def test_two_snapshots_of_one_second_are_both_stored(url: str, snapshot: Maker, tmp_path: Path) -> None:
    sources = {name_at(source): source for source in (snapshot(), snapshot())}
    for name, source in sources.items():
        assert done(url, lambda bucket, source=source: push(source, bucket)) == name
    for name, source in sources.items():
        target = tmp_path / name
        done(url, lambda bucket, name=name, target=target: pull(bucket, name, target))
        assert (target / DATA_NAME).read_bytes() == (source / DATA_NAME).read_bytes()


def test_unfinished_snapshots_are_deleted_after_a_day(url: str, snapshot: Maker) -> None:
    source = snapshot(size=300_000)
    unfinished = name_at(source)
    with pytest.raises(Broken):
        done(url, lambda bucket: push(source, bucket, interrupted_after(3)))
    whole = name_at(later := snapshot(1_800_000_001))
    done(url, lambda bucket: push(later, bucket))

    async def modified(bucket: Bucket) -> float:
        return max(entry.modified_s for entry in (await bucket.objects(unfinished)).values())

    last = done(url, modified)
    assert done(url, lambda bucket: prune(bucket, 1, last + UNFINISHED_S - 1)) == []
    assert done(url, lambda bucket: prune(bucket, 1, last + UNFINISHED_S)) == [unfinished]
    assert [entry.name for entry in done(url, stored)] == [whole]


def test_without_a_name_the_snapshots_belong_to_one_queue_manager(
    url: str, snapshot: Maker, tmp_path: Path
) -> None:
    names = [done(url, lambda bucket, guid=guid: push(snapshot(guid=guid), bucket)) for guid in (GUID, OTHER)]
    with pytest.raises(BackupError, match="snapshots of 2 queue managers; name one"):
        done(url, lambda bucket: pull(bucket, None, tmp_path / "back"))
    done(url, lambda bucket: pull(bucket, names[0], tmp_path / "back"))


def test_a_manifest_says_what_it_is() -> None:
    manifest = Manifest(2, GUID, 1, 1, 1_800_000_000, 5, "0" * 64)
    held = ObjectManifest(manifest, 3, ("1" * 64, "2" * 64))
    assert ObjectManifest.from_json(held.to_json(), NAME) == held
    assert [held.size_of(number) for number in range(2)] == [3, 2]
    assert catalogue.part_name(1, "2" * 64) == f"parts/000001-{'2' * 64}"


@pytest.mark.parametrize(
    ("text", "place", "name"),
    [
        ("s3://bucket", "s3://bucket", None),
        ("s3://bucket/", "s3://bucket", None),
        (f"s3://bucket/{NAME}", "s3://bucket", NAME),
        (f"gs://bucket/a b/{NAME}/", "gs://bucket/a b", NAME),
        ("az://container/path", "az://container/path", None),
        ("file:///backup/mq1", "file:///backup/mq1", None),
    ],
)
def test_a_url_names_a_place_or_a_snapshot_in_it(text: str, place: str, name: str | None) -> None:
    assert split_name(text.rstrip("/")) == (place, name)
    assert checked_url(text) == text.rstrip("/")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bucket",
        "s3://",
        "s3:///path",
        "http://host/path",
        "file://host/path",
        "file:///",
        "file://relative",
        "s3://key:secret@bucket/path",
        "s3://bucket/path?sig=secret",
        "s3://bucket/path#x",
        "s3://bucket/../other",
        "s3://bucket/a/./b",
        "s3://bucket/a\nb",
        "file:///a\\b",
        "s3://bucket/" + "x" * 1000,
        f"file:///{NAME}",
    ],
)
def test_other_urls_get_one_line_without_their_secrets(text: str) -> None:
    with pytest.raises(ValueError, match=r"^expected a URL such as s3://[^\n]*$") as caught:
        split_name(text)
    assert "secret" not in str(caught.value)
