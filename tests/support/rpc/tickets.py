"""Kerberos tickets with a PAC, made without a key distribution centre by impacket: as a domain controller
makes them, and as an attacker might that got hold of one.
"""

from __future__ import annotations

import datetime
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DOMAIN_SID = "S-1-5-21-11-22-33"
REALM = "CORP.EXAMPLE"
SERVICE = "host/alpha.corp.example"
_AES256 = 18
_KEY_USAGE_TICKET = 2
_NOW = datetime.datetime.now(datetime.UTC).replace(microsecond=0)


@dataclass
class Logon:
    """What a PAC says: by default alice of CORP, in Domain Users and in the group 1103."""

    user: str = "alice"
    domain: str = "CORP"
    domain_sid: str = DOMAIN_SID
    rid: int = 1102
    primary: int = 513
    groups: list[int] = field(default_factory=lambda: [513, 1103])
    extra: list[str] = field(default_factory=list)
    resource_domain: str = ""
    resource_groups: list[int] = field(default_factory=list)

    def encoded(self) -> bytes:
        """KERB_VALIDATION_INFO as impacket writes it."""
        from impacket.dcerpc.v5.dtypes import NULL
        from impacket.dcerpc.v5.nrpc import GROUP_MEMBERSHIP
        from impacket.krb5.pac import KERB_SID_AND_ATTRIBUTES, VALIDATION_INFO

        def memberships(rids: list[int]) -> list[Any]:
            found = []
            for rid in rids:
                one = GROUP_MEMBERSHIP()
                one["RelativeId"], one["Attributes"] = rid, 7
                found.append(one)
            return found

        whole = VALIDATION_INFO()
        info = whole["Data"]
        for name in (
            "LogonTime", "LogoffTime", "KickOffTime", "PasswordLastSet", "PasswordCanChange",
            "PasswordMustChange", "LastSuccessfulILogon", "LastFailedILogon",
        ):  # fmt: skip
            info[name]["dwLowDateTime"], info[name]["dwHighDateTime"] = 0xFFFFFFFF, 0x7FFFFFFF
        for name in ("FullName", "LogonScript", "ProfilePath", "HomeDirectory", "HomeDirectoryDrive"):
            info[name] = ""
        info["EffectiveName"], info["LogonServer"], info["LogonDomainName"] = self.user, "DC1", self.domain
        info["UserId"], info["PrimaryGroupId"] = self.rid, self.primary
        info["GroupCount"], info["GroupIds"] = len(self.groups), memberships(self.groups)
        info["UserFlags"] = (0x20 if self.extra else 0) | (0x200 if self.resource_domain else 0)
        info["UserSessionKey"] = bytes(16)
        info["LogonDomainId"].fromCanonical(self.domain_sid)
        info["LMKey"] = bytes(8)
        info["UserAccountControl"] = 0x210
        for name in ("LogonCount", "BadPasswordCount", "SubAuthStatus", "FailedILogonCount", "Reserved3"):
            info[name] = 0
        if self.extra:
            found = []
            for text in self.extra:
                one = KERB_SID_AND_ATTRIBUTES()
                one["Sid"].fromCanonical(text)
                one["Attributes"] = 7
                found.append(one)
            info["SidCount"], info["ExtraSids"] = len(found), found
        else:
            info["SidCount"], info["ExtraSids"] = 0, NULL
        if self.resource_domain:
            info["ResourceGroupDomainSid"].fromCanonical(self.resource_domain)
            info["ResourceGroupCount"] = len(self.resource_groups)
            info["ResourceGroupIds"] = memberships(self.resource_groups)
        else:
            info["ResourceGroupDomainSid"] = NULL
            info["ResourceGroupCount"], info["ResourceGroupIds"] = 0, NULL
        made: bytes = whole.getData() + whole.getDataReferents()
        return made


class Domain:
    """A domain with a service, whose key is in `keytab`. Its tickets go into a credentials cache."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = bytes(range(32))
        self.keytab = folder / "service.keytab"
        self.keytab.write_bytes(_keytab(SERVICE, REALM, self.key))
        self.config = folder / "krb5.conf"
        self.config.write_text(
            f"[libdefaults]\ndefault_realm = {REALM}\ndns_lookup_kdc = false\ndns_lookup_realm = false\n"
            f"rdns = false\ndns_canonicalize_hostname = false\n[domain_realm]\n.corp.example = {REALM}\n"
        )

    def pac(self, logon: Logon, *, client: str = "", key: bytes | None = None) -> bytes:
        """A PAC signed with the key of the service, or another `key`, for the ticket of `client`."""
        from impacket.krb5.pac import (
            PAC_CLIENT_INFO,
            PAC_CLIENT_INFO_TYPE,
            PAC_LOGON_INFO,
            PAC_PRIVSVR_CHECKSUM,
            PAC_SERVER_CHECKSUM,
            PAC_SIGNATURE_DATA,
            sign_pac,
        )

        about = PAC_CLIENT_INFO()
        about["ClientId"] = (int(_NOW.timestamp()) + 11_644_473_600) * 10_000_000
        about["Name"] = (client or logon.user).encode("utf-16-le")
        about["NameLength"] = len(about["Name"])
        buffers = {PAC_LOGON_INFO: logon.encoded(), PAC_CLIENT_INFO_TYPE: about.getData()}
        for kind in (PAC_SERVER_CHECKSUM, PAC_PRIVSVR_CHECKSUM):
            signature = PAC_SIGNATURE_DATA()
            signature["SignatureType"], signature["Signature"] = 16, bytes(12)  # HMAC-SHA1-96 with AES-256
            buffers[kind] = signature.getData()
        signed: bytes = sign_pac(buffers, aes_key=key or self.key).getData()
        return signed

    def ticket(self, pac: bytes | None, user: str = "alice", realm: str = REALM) -> Path:
        """A credentials cache with a ticket of `user` for the service. `pac` is its authorization data."""
        from impacket.krb5.ccache import CCache

        session = bytes(range(100, 132))
        part = _enc_ticket_part(user, realm, session, pac)
        from impacket.krb5.crypto import Key, _enctype_table

        sealed = _enctype_table[_AES256].encrypt(Key(_AES256, self.key), _KEY_USAGE_TICKET, part, None)
        cache = self.folder / f"{user}.ccache"
        cache.write_bytes(_ccache(user, realm, session, _ticket(sealed)))
        assert CCache.loadFile(str(cache)) is not None
        return cache


def _keytab(principal: str, realm: str, key: bytes) -> bytes:
    """Version 2 of the keytab format of MIT Kerberos."""
    names = principal.split("/")
    entry = struct.pack(">H", len(names))
    for text in (realm, *names):
        entry += struct.pack(">H", len(text)) + text.encode()
    entry += struct.pack(">IIBHH", 1, int(_NOW.timestamp()), 2, _AES256, len(key)) + key
    return b"\x05\x02" + struct.pack(">i", len(entry)) + entry


def _times() -> tuple[str, str]:
    return _NOW.strftime("%Y%m%d%H%M%SZ"), (_NOW + datetime.timedelta(hours=8)).strftime("%Y%m%d%H%M%SZ")


def _enc_ticket_part(user: str, realm: str, session: bytes, pac: bytes | None) -> bytes:
    from impacket.krb5.asn1 import AD_IF_RELEVANT, EncTicketPart, seq_set
    from impacket.krb5.types import Principal
    from pyasn1.codec.der import encoder

    begins, ends = _times()
    part = EncTicketPart()
    part["flags"] = "01000000101000010000000000000000"
    part["key"]["keytype"], part["key"]["keyvalue"] = _AES256, session
    part["crealm"] = realm
    seq_set(part, "cname", Principal(user, type=1).components_to_asn1)
    part["transited"]["tr-type"], part["transited"]["contents"] = 0, ""
    part["authtime"], part["starttime"], part["endtime"] = begins, begins, ends
    if pac is not None:
        inner = AD_IF_RELEVANT()
        inner[0]["ad-type"], inner[0]["ad-data"] = 128, pac
        part["authorization-data"][0]["ad-type"] = 1
        part["authorization-data"][0]["ad-data"] = encoder.encode(inner)
    made: bytes = encoder.encode(part)
    return made


def _ticket(sealed: bytes) -> bytes:
    from impacket.krb5.asn1 import Ticket, seq_set
    from impacket.krb5.types import Principal
    from pyasn1.codec.der import encoder

    ticket = Ticket()
    ticket["tkt-vno"], ticket["realm"] = 5, REALM
    seq_set(ticket, "sname", Principal(SERVICE, type=2).components_to_asn1)
    ticket["enc-part"]["etype"], ticket["enc-part"]["kvno"], ticket["enc-part"]["cipher"] = _AES256, 1, sealed
    made: bytes = encoder.encode(ticket)
    return made


def _ccache(user: str, realm: str, session: bytes, ticket: bytes) -> bytes:
    """Version 4 of the credentials cache format of MIT Kerberos, with one ticket."""

    def counted(data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + data

    def principal(name: str, realm: str, kind: int) -> bytes:
        names = name.split("/")
        return struct.pack(">II", kind, len(names)) + b"".join(
            counted(text.encode()) for text in (realm, *names)
        )

    begin, end = int(_NOW.timestamp()), int(_NOW.timestamp()) + 8 * 3600
    return (
        b"\x05\x04" + struct.pack(">H", 0) + principal(user, realm, 1)
        + principal(user, realm, 1) + principal(SERVICE, REALM, 2)
        + struct.pack(">H", _AES256) + counted(session)
        + struct.pack(">IIII", begin, begin, end, end) + b"\0" + struct.pack(">I", 0x50A10000)
        + struct.pack(">II", 0, 0) + counted(ticket) + counted(b"")
    )  # fmt: skip
