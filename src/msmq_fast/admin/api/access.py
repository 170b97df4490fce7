"""Operations on access lists, certificates and public keys. Without `queue`: those of the queue manager."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Final

from msmq_fast.admin.api.errors import bad_request
from msmq_fast.admin.api.operation import QUEUE, Call, Operation, Parameter
from msmq_fast.admin.api.schema import anything, array, choice, decoded, of, record, text
from msmq_fast.protocol.security import AccessDecision, AccessList, CertificateInfo, KeysInfo

__all__ = ["OPERATIONS"]

_LIST: Final = of(AccessList)
_ACCOUNT: Final = text("user, group, SID, `everyone` or `anonymous`; empty: the caller", most=256, default="")
_RIGHTS: Final = text("rights separated by commas, such as `send,peek`", most=1024, default="")
_EDITS: Final = ("grant", "deny", "revoke", "own", "set")
_USER: Final = Parameter("user", text("user or SID; empty: the caller", most=256, default=""))
_GUID: Final = text("GUID of the other queue manager", least=1, most=64)
_OF_QUEUE: Final = Parameter("queue", QUEUE.schema)


def _plain(content: dict[str, Any]) -> dict[str, Any]:
    """Return an access list as the command line prints it: the bytes of the descriptor as digits."""
    return {key: value.hex() if isinstance(value, bytes) else value for key, value in content.items()}


async def _show(call: Call) -> dict[str, Any]:
    return _plain((await call.client.admin.access.get(call.query["queue"])).as_map())


async def _edit(call: Call) -> dict[str, Any]:
    access, name, body, expected = call.client.admin.access, call.query["queue"], call.body, call.expected
    action, account, rights = body["action"], body["account"], body["rights"]
    if action in ("grant", "deny") and not rights:
        raise bad_request(f"{action} needs rights")
    match action:
        case "grant":
            found = await access.grant(name, account, rights, expected=expected)
        case "deny":
            found = await access.deny(name, account, rights, expected=expected)
        case "revoke":
            found = await access.revoke(name, account, rights, expected=expected)
        case "own":
            found = await access.set_owner(name, account, expected=expected)
        case _:
            found = await access.set(name, body.get("descriptor", ""), expected=expected)
    return _plain(found.as_map())


async def _explain(call: Call) -> dict[str, Any]:
    query = call.query
    decision = await call.client.admin.access.explain(query["queue"], query["account"], query["rights"])
    return _plain(decision.as_map())


async def _certificates(call: Call) -> list[dict[str, Any]]:
    return [_certificate(one) for one in await call.client.admin.certificates.all(call.query["user"])]


def _certificate(info: CertificateInfo) -> dict[str, Any]:
    shown = info.as_map()
    shown["certificate_b64"] = b64encode(shown.pop("certificate")).decode()
    return shown


async def _create_certificate(call: Call) -> dict[str, Any]:
    return _certificate(await call.client.admin.certificates.create(call.query["user"]))


async def _add_certificate(call: Call) -> dict[str, Any]:
    body = call.body
    key = body["private_key"].encode() if "private_key" in body else None
    content = decoded(body["certificate_b64"], "certificate_b64")
    return _certificate(await call.client.admin.certificates.add(content, key, call.query["user"]))


async def _remove_certificate(call: Call) -> dict[str, Any]:
    identifier = call.path["identifier"]
    await call.client.admin.certificates.remove(identifier, call.query["user"])
    return {"removed": identifier}


async def _keys(call: Call) -> list[dict[str, Any]]:
    return [_keys_of(one) for one in await call.client.admin.keys.all()]


def _keys_of(info: KeysInfo) -> dict[str, Any]:
    shown = info.as_map()
    shown["blob_b64"] = b64encode(shown.pop("blob")).decode()
    return shown


async def _add_keys(call: Call) -> dict[str, Any]:
    guid = call.body["guid"]
    await call.client.admin.keys.add(guid, decoded(call.body["blob_b64"], "blob_b64"))
    return {"imported": guid}


async def _remove_keys(call: Call) -> dict[str, Any]:
    await call.client.admin.keys.remove(call.path["guid"])
    return {"forgotten": call.path["guid"]}


_LARGEST: Final = 1 << 20  # characters of a certificate or of keys

OPERATIONS: Final = [
    Operation(
        "access.show",
        "GET",
        "/access",
        "Show the access list of a queue, or of the queue manager",
        _show,
        _LIST,
        verb="acl show",
        parameters=(_OF_QUEUE,),
        version=lambda shown: shown["sddl"],
    ),
    Operation(
        "access.edit",
        "PATCH",
        "/access",
        "Grant, deny or revoke rights, set the owner, or replace the list",
        _edit,
        _LIST,
        verb="acl grant",
        about="`set` replaces owner and entries with those of `descriptor` (SDDL); it ignores `account`.",
        parameters=(_OF_QUEUE,),
        body=record(
            "AccessEdit",
            {
                "action": choice(_EDITS, "what to change"),
                "account": _ACCOUNT,
                "rights": _RIGHTS,
                "descriptor": text("a security descriptor in SDDL", most=65_536),
            },
            "action",
        ),
        locked_by="access.show",
    ),
    Operation(
        "access.explain",
        "GET",
        "/access/explain",
        "Tell whether an account has rights, and which entry decides",
        _explain,
        of(AccessDecision),
        verb="acl explain",
        parameters=(_OF_QUEUE, Parameter("account", _ACCOUNT), Parameter("rights", _RIGHTS)),
    ),
    Operation(
        "certificates.list",
        "GET",
        "/certificates",
        "List the certificates of a user",
        _certificates,
        array(anything("Certificate", "the fields of `certificate list --json`")),
        verb="certificate list",
        parameters=(_USER,),
    ),
    Operation(
        "certificates.create",
        "POST",
        "/certificates",
        "Make an internal certificate for a user; it replaces the previous one",
        _create_certificate,
        anything("Certificate", "the fields of `certificate list --json`"),
        verb="certificate create",
        parameters=(_USER,),
        status=201,
    ),
    Operation(
        "certificates.add",
        "POST",
        "/certificates/external",
        "Register an external certificate",
        _add_certificate,
        anything("Certificate", "the fields of `certificate list --json`"),
        verb="certificate register",
        parameters=(_USER,),
        body=record(
            "NewCertificate",
            {
                "certificate_b64": text("X.509 certificate (PEM or DER) in base64", least=1, most=_LARGEST),
                "private_key": text("its private key in PEM, with which the server signs", most=_LARGEST),
            },
            "certificate_b64",
        ),
        status=201,
    ),
    Operation(
        "certificates.remove",
        "DELETE",
        "/certificates/{identifier}",
        "Remove a certificate and its private key",
        _remove_certificate,
        record("RemovedCertificate", {"removed": text()}),
        verb="certificate remove",
        path_parameters=(Parameter("identifier", text("GUID of the certificate", least=1, most=64)),),
        parameters=(_USER,),
    ),
    Operation(
        "keys.list",
        "GET",
        "/keys",
        "List the public keys of this queue manager and of others",
        _keys,
        array(anything("Keys", "the fields of `peer-key list --json`")),
        verb="peer-key list",
    ),
    Operation(
        "keys.add",
        "POST",
        "/keys",
        "Add the public keys of another queue manager",
        _add_keys,
        record("AddedKeys", {"imported": text()}),
        verb="peer-key add",
        body=record(
            "NewKeys",
            {
                "guid": _GUID,
                "blob_b64": text("its MQDSPUBLICKEYS structure in base64", least=1, most=_LARGEST),
            },
            "guid",
            "blob_b64",
        ),
        status=201,
    ),
    Operation(
        "keys.remove",
        "DELETE",
        "/keys/{guid}",
        "Remove keys that were added",
        _remove_keys,
        record("RemovedKeys", {"forgotten": text()}),
        verb="peer-key remove",
        path_parameters=(Parameter("guid", _GUID),),
    ),
]
