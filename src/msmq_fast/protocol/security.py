"""Resources for operators about rights, certificates and keys, like those in `protocol.resources`.

They are a separate module, because few programs need them and creating their classes takes time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from msmq_fast.protocol.resources import Resource

__all__ = [
    "AccessDecision",
    "AccessEntry",
    "AccessList",
    "AccountInfo",
    "CertificateInfo",
    "KeysInfo",
    "PublicKeyInfo",
]


@dataclass(frozen=True, slots=True)
class AccountInfo(Resource):
    """A user or a group; the name is empty if this computer does not know it."""

    sid: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class AccessEntry(Resource):
    """An entry of an access control list."""

    index: int = 0
    type: str = ""
    """Whether the entry grants or denies rights: `allow`, `deny` or `other`."""
    flags: int = 0
    mask: int = 0
    rights: tuple[str, ...] = ()
    text: str = ""
    """The entry in SDDL."""
    sid: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class AccessList(Resource):
    """The access control list of a queue; of the queue manager if `queue` is None."""

    queue: str | None = None
    owner: AccountInfo = field(default=AccountInfo(), metadata={"of": AccountInfo})
    group: AccountInfo = field(default=AccountInfo(), metadata={"of": AccountInfo})
    sddl: str = ""
    descriptor: bytes = b""
    """The security descriptor in its self-relative form (MS-DTYP 2.4.6)."""
    entries: tuple[AccessEntry, ...] | None = field(default=None, metadata={"of": AccessEntry})
    """The entries; None if there is no list: every caller then has all rights."""


@dataclass(frozen=True, slots=True)
class AccessDecision(Resource):
    """Whether an account has rights on a queue or the queue manager, and the access entry or rule that
    decides this.
    """

    queue: str | None = None
    caller: str = ""
    sids: tuple[AccountInfo, ...] = field(default=(), metadata={"of": AccountInfo})
    rights: tuple[str, ...] = ()
    """The requested rights."""
    granted: bool = False
    reason: str = ""
    missing: tuple[str, ...] = ()
    entry: AccessEntry | None = field(default=None, metadata={"of": AccessEntry})
    """The access entry that decides; None if no entry does: `reason` then says why."""
    owner: AccountInfo = field(default=AccountInfo(), metadata={"of": AccountInfo})


@dataclass(frozen=True, slots=True)
class CertificateInfo(Resource):
    """A certificate of a user; `certificate` is DER, times are ISO 8601."""

    user: str = ""
    name: str = ""
    identifier: str = ""
    digest: str = ""
    internal: bool = False
    signs: bool = False
    """Whether the queue manager has the private key of the certificate."""
    registered: bool = False
    certificate: bytes = b""
    subject: str = ""
    issuer: str = ""
    not_before: str = ""
    not_after: str = ""


@dataclass(frozen=True, slots=True)
class PublicKeyInfo(Resource):
    """A public key for one cryptographic provider."""

    provider: str = ""
    bits: int = 0


@dataclass(frozen=True, slots=True)
class KeysInfo(Resource):
    """The public encryption keys of a queue manager; `blob` holds them as an MQDSPUBLICKEYS structure."""

    guid: str = ""
    own: bool = False
    keys: tuple[PublicKeyInfo, ...] = field(default=(), metadata={"of": PublicKeyInfo})
    blob: bytes = b""
