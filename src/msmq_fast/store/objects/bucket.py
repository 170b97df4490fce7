"""A place in object storage. Each failure is a BackupError with one line that names the URL and the cause."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from msmq_fast.store.errors import BackupError
from msmq_fast.store.objects.urls import NAME, checked_url

if TYPE_CHECKING:
    from obstore.store import ObjectStore

__all__ = ["MISSING_EXTRA", "Bucket", "Listed", "ObjectMissing", "require_obstore"]

MISSING_EXTRA: Final = "object storage needs the package obstore: pip install 'msmq-fast[objects]'"

_MOST_NAMES: Final = 10_000
_MOST_OBJECTS: Final = 1_000_000  # below one name
_LONGEST_REASON: Final = 200
# A part of 16 MiB takes minutes on a slow line; a host that does not answer must not hold a server's stop.
_CLIENT: Final = {"connect_timeout": timedelta(seconds=10), "timeout": timedelta(minutes=5)}
_RETRY: Final = {"max_retries": 5, "retry_timeout": timedelta(minutes=2)}
_ALLOW_HTTP: Final = {"s3": "AWS_ALLOW_HTTP", "gs": "GOOGLE_ALLOW_HTTP", "az": "AZURE_ALLOW_HTTP"}
_CREDENTIALS: Final = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
_METADATA_HOSTS: Final = ("169.254.169.254", "metadata.google.internal")


class ObjectMissing(BackupError):
    """There is no object with this path."""


@dataclass(frozen=True, slots=True)
class Listed:
    """An object of a listing."""

    size: int
    modified_s: float


def require_obstore() -> None:
    """Raise BackupError unless the package obstore can be imported."""
    try:
        import obstore  # noqa: F401 - only whether it is there
    except ImportError:
        raise BackupError(MISSING_EXTRA) from None


class Bucket:
    """The objects below one URL. Credentials come from the environment.

    Raises BackupError if the URL is invalid, obstore is not installed, or the directory does not exist.
    """

    def __init__(self, url: str) -> None:
        require_obstore()
        from obstore.store import from_url

        try:
            self.url = checked_url(url)
        except ValueError as error:
            raise BackupError(str(error)) from None
        parts = urlsplit(self.url)
        self._directory = Path(unquote(parts.path)) if parts.scheme == "file" else None
        options: dict[str, Any] = {}
        if self._directory is None:
            # Options replace what the environment says of the client.
            allow = os.environ.get(_ALLOW_HTTP[parts.scheme], "").lower() == "true"
            options = {"client_options": {**_CLIENT, "allow_http": allow}, "retry_config": _RETRY}
        elif not self._directory.is_dir():
            raise BackupError(f"{self.url}: the directory {self._directory} does not exist; create it first")
        with self._translated():
            self._store: ObjectStore = from_url(self.url, **options)

    async def put(self, path: str, data: bytes) -> None:
        """Write an object; it appears as a whole, or not at all."""
        import obstore

        if self._directory is not None:  # for its owner only, as any copy of a store
            first = self._directory / path.partition("/")[0]
            with self._translated():
                first.mkdir(mode=0o700, exist_ok=True)
        with self._translated():
            await obstore.put_async(self._store, path, data, use_multipart=False)

    async def get(self, path: str, largest: int) -> bytes:
        """Return the content of an object.

        Raises ObjectMissing, and BackupError if the object has more than `largest` bytes.
        """
        import obstore

        with self._translated():
            found = await obstore.get_async(self._store, path)
            size = found.meta["size"]
            if size > largest:
                raise BackupError(f"{self.url}/{path} has {size} bytes; at most {largest} are expected")
            return bytes(await found.bytes_async())

    async def names(self) -> list[str]:
        """Return the names of all snapshots, oldest first, the unfinished ones included. What has another
        name is ignored.
        """
        import obstore

        with self._translated():
            found = await obstore.list_with_delimiter_async(self._store)
        names = sorted(name for name in found["common_prefixes"] if NAME.fullmatch(name))
        if len(names) > _MOST_NAMES:
            raise BackupError(f"{self.url} holds {len(names)} snapshots; at most {_MOST_NAMES} are possible")
        return names

    async def objects(self, name: str) -> dict[str, Listed]:
        """Return the objects of a snapshot, by their paths below its name."""
        import obstore

        found: dict[str, Listed] = {}
        with self._translated():
            async for batch in obstore.list(self._store, prefix=f"{name}/", chunk_size=1000):
                for meta in batch:
                    path = meta["path"].removeprefix(f"{name}/")
                    found[path] = Listed(meta["size"], meta["last_modified"].timestamp())
                if len(found) > _MOST_OBJECTS:
                    raise BackupError(f"{self.url}/{name} holds more than {_MOST_OBJECTS} objects")
        return found

    async def delete(self, name: str, paths: Iterable[str]) -> None:
        """Delete objects of a snapshot; one that does not exist is not an error."""
        import obstore

        paths_of = [f"{name}/{path}" for path in paths]
        with self._translated():
            for start in range(0, len(paths_of), 1000):
                await obstore.delete_async(self._store, paths_of[start : start + 1000])

    def forget(self, name: str) -> None:
        """Remove what is left of a snapshot without objects: the directory, for `file` URLs."""
        if self._directory is not None and NAME.fullmatch(name):
            shutil.rmtree(self._directory / name, ignore_errors=True)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

        try:
            yield
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise BackupError(f"{self.url}: access denied ({_code(error) or 'by the server'})") from None
        except FileNotFoundError as error:
            if (_code(error) or "") in _NO_BUCKET:
                raise BackupError(_no_bucket(self.url)) from None
            raise ObjectMissing(f"{self.url}: no such object") from None
        except (BaseError, OSError, ValueError) as error:
            raise BackupError(self._reason(error)) from None

    def _reason(self, error: Exception) -> str:
        text, code = str(error), _code(error)
        if code in _NO_BUCKET:
            return _no_bucket(self.url)
        metadata = (*_METADATA_HOSTS, os.environ.get("AWS_METADATA_ENDPOINT") or _METADATA_HOSTS[0])
        if any(host in text for host in metadata):
            variables = _CREDENTIALS[urlsplit(self.url).scheme]
            return f"{self.url}: no credentials; set those of the service in the environment: {variables}"
        if code in _DENIED:
            return f"{self.url}: access denied ({code})"
        if code is not None:
            return f"{self.url}: {code}"
        # Signed requests carry secrets in the query of their URL, and XML may follow.
        line = re.sub(r"\?[^\s\"')]*", "?…", text.partition("\n")[0]).partition("<?xml")[0]
        return f"{self.url}: {line[:_LONGEST_REASON].strip()}"


_NO_BUCKET: Final = ("NoSuchBucket", "ContainerNotFound")
_DENIED: Final = (  # those of listings, which obstore does not tell apart
    "AccessDenied",
    "AuthenticationFailed",
    "AuthorizationFailure",
    "AuthorizationPermissionMismatch",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
)


def _no_bucket(url: str) -> str:
    return f"{url}: the bucket {urlsplit(url).netloc} does not exist; create it first"


def _code(error: Exception) -> str | None:
    """Return the error code of the service, such as NoSuchBucket."""
    found = re.search(r"<Code>(\w{1,60})</Code>", str(error))
    return found[1] if found else None
