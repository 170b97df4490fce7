"""KERB_VALIDATION_INFO: the account and the groups in a Kerberos ticket (MS-PAC 2.5)."""

from __future__ import annotations

from msmq_fast.rpc.ndr.types import (
    U8,
    U16,
    U32,
    ArrayOf,
    FixedBytes,
    Range,
    Struct,
    UniquePtr,
    WChars,
    conformant,
    conformant_varying,
)

__all__ = ["KERB_VALIDATION_INFO", "MAX_GROUPS"]

MAX_GROUPS = 2048
"""Elements of each list of groups; Windows issues no ticket for an account in more than 1,015 groups."""

_COUNT = Range(U32, 0, MAX_GROUPS)
_TIME = Struct("FILETIME", {"dwLowDateTime": U32, "dwHighDateTime": U32})
_SID = Struct(
    "RPC_SID",
    {
        "Revision": Range(U8, 1, 1),
        "SubAuthorityCount": Range(U8, 0, 15),
        "IdentifierAuthority": FixedBytes(6),
        "SubAuthority": ArrayOf(U32, conformant("SubAuthorityCount")),
    },
)
_STRING = Struct(
    "RPC_UNICODE_STRING",
    {
        "Length": U16,  # bytes
        "MaximumLength": U16,
        "Buffer": UniquePtr(WChars(conformant_varying(None, None))),
    },
)
_GROUP = Struct("GROUP_MEMBERSHIP", {"RelativeId": U32, "Attributes": U32})
_SID_AND_ATTRIBUTES = Struct("KERB_SID_AND_ATTRIBUTES", {"Sid": UniquePtr(_SID), "Attributes": U32})

KERB_VALIDATION_INFO = Struct(
    "KERB_VALIDATION_INFO",
    {
        "LogonTime": _TIME,
        "LogoffTime": _TIME,
        "KickOffTime": _TIME,
        "PasswordLastSet": _TIME,
        "PasswordCanChange": _TIME,
        "PasswordMustChange": _TIME,
        "EffectiveName": _STRING,
        "FullName": _STRING,
        "LogonScript": _STRING,
        "ProfilePath": _STRING,
        "HomeDirectory": _STRING,
        "HomeDirectoryDrive": _STRING,
        "LogonCount": U16,
        "BadPasswordCount": U16,
        "UserId": U32,
        "PrimaryGroupId": U32,
        "GroupCount": _COUNT,
        "GroupIds": UniquePtr(ArrayOf(_GROUP, conformant("GroupCount"))),
        "UserFlags": U32,
        "UserSessionKey": FixedBytes(16),
        "LogonServer": _STRING,
        "LogonDomainName": _STRING,
        "LogonDomainId": UniquePtr(_SID),
        "Reserved1": FixedBytes(8),
        "UserAccountControl": U32,
        "SubAuthStatus": U32,
        "LastSuccessfulILogon": _TIME,
        "LastFailedILogon": _TIME,
        "FailedILogonCount": U32,
        "Reserved3": U32,
        "SidCount": _COUNT,
        "ExtraSids": UniquePtr(ArrayOf(_SID_AND_ATTRIBUTES, conformant("SidCount"))),
        "ResourceGroupDomainSid": UniquePtr(_SID),
        "ResourceGroupCount": _COUNT,
        "ResourceGroupIds": UniquePtr(ArrayOf(_GROUP, conformant("ResourceGroupCount"))),
    },
)
