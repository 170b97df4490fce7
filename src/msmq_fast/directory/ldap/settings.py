"""The MSMQ Settings objects of a server, one in each of its sites (MS-MQDSSM 3.1.6.1.1.3, 3.1.6.7.1.9): they
tell other servers which queue managers of a site are routers or directory servers.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, Final
from uuid import UUID

from msmq_fast.directory.ldap import names
from msmq_fast.directory.ldap.entries import Entry, PathIndex, encoded
from msmq_fast.directory.ldap.interface import SUBTREE, Link
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult, generic

__all__ = ["SERVICE_TYPE", "SETTLED", "delete_settings", "write_settings"]

_SERVICES: Final = ("RoutingServer", "DirectoryServer", "SupportingServer")
SERVICE_TYPE: Final = frozenset(
    ("RoutingServer", "RemoteAccessServer", "DirectoryServer", "DirectoryServerType")
)
"""The attributes of a queue manager that make its mSMQServiceType."""
SETTLED: Final = SERVICE_TYPE | {*_SERVICES, "SiteIdentifierList"}
"""The attributes of a queue manager on which its MSMQ Settings depend."""

_ATTRIBUTES: Final = {  # of a queue manager → of its settings
    "mSMQRoutingServices": "mSMQRoutingService",
    "mSMQDsServices": "mSMQDsService",
    "mSMQDependentClientServices": "mSMQDependentClientService",
}


def write_settings(
    link: Link, machine: Entry, values: Mapping[str, Any], known: PathIndex, configuration: str
) -> None:
    """Make the objects of a server with these attributes in its sites, and delete those of other sites or of
    one that serves no longer. Raises DirectoryError.
    """
    wanted: dict[str, str] = {}  # the name of the settings → the name of their server
    if any(values.get(name) for name in _SERVICES):
        computer = names.parts(machine.path)[1]
        for site in values.get("SiteIdentifierList") or ():
            path = known.path(site)
            if path is not None:
                server = names.child(computer, f"CN=Servers,{path}")
                wanted[names.child("MSMQ Settings", server)] = server
    kept = {path.casefold() for path in wanted}
    delete_settings(link, machine.identifier, configuration, kept)
    attributes = _attributes(machine, values, known) if wanted else {}
    for path, server in wanted.items():
        _add(link, server, {"objectClass": [b"server"]}, replace=False)
        _add(link, path, attributes, replace=True)


def _attributes(machine: Entry, values: Mapping[str, Any], known: PathIndex) -> dict[str, list[bytes]]:
    try:
        kept = encoded(ObjectType.QUEUE_MANAGER, values, known, creating=True)
    except ValueError as error:
        raise generic(str(error), ObjectType.QUEUE_MANAGER) from None
    attributes = {
        "objectClass": [b"mSMQSettings"],
        "mSMQQMID": [machine.identifier.bytes_le],
        "mSMQServices": kept["mSMQServiceType"],
    }
    for name, attribute in _ATTRIBUTES.items():
        if name in kept:
            attributes[attribute] = kept[name]
    return attributes


def delete_settings(link: Link, machine: UUID, configuration: str, kept: Container[str] = ()) -> None:
    """Delete the objects of a queue manager, except those whose names in lower case are `kept`. Raises
    DirectoryError.
    """
    condition = f"(&(objectClass=mSMQSettings){names.is_equal('mSMQQMID', machine.bytes_le)})"
    found = link.search(configuration, SUBTREE, condition, ["objectGUID"])
    for path in [entry.path for entry in found]:
        if path.casefold() not in kept:
            link.delete(path)


def _add(link: Link, path: str, attributes: Mapping[str, list[bytes]], *, replace: bool) -> None:
    try:
        link.add(path, attributes)
    except DirectoryError as error:
        if error.result is not DirectoryOperationResult.OBJECT_ALREADY_EXISTS:
            raise
        if replace:
            link.delete(path)
            link.add(path, attributes)
