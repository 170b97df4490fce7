"""Values of the documented directory contract."""

from __future__ import annotations

from msmq_fast.directory.objecttypes import ObjectType
from tests.support.worlds.directories import OTHER, OWN

SAMPLES = {
    ObjectType.QUEUE_MANAGER: {
        "ComputerName": "BETA",
        "DirectoryServer": True,
        "DirectoryServerType": 3,
        "SiteIdentifierList": (OWN, OTHER),
        "MachineSid": "S-1-5-9",
    },
    ObjectType.QUEUE: {"Pathname": r"BETA\orders", "Label": "Ö", "Type": OTHER, "Security": b"\x01\x00"},
    ObjectType.ENTERPRISE: {"Name": "e", "DefaultTimeToLive": 5, "WeakenedSecurity": True},
    ObjectType.SITE: {"Name": "north", "ForeignSite": False, "PublicSigningKeyList": b"k"},
    ObjectType.ROUTING_LINK: {
        "Site1Identifier": OWN,
        "Site2Identifier": OTHER,
        "ActualCost": 7,
        "SiteGateIdentifierList": (OWN,),
    },
    ObjectType.CONNECTED_NETWORK: {"Name": "lan", "Security": b""},
    ObjectType.USER: {"SecurityIdentifier": "S-1-5-21-1-2-3-1000", "CertificateDigestList": (b"d" * 16,)},
    ObjectType.DISTRIBUTION_LIST: {"Name": "all", "Members": ("DIRECT=OS:a\\b",)},
}
