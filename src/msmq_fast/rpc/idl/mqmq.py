"""Types that several interfaces share: MS-MQMQ, appendix A."""

from __future__ import annotations

from msmq_fast.rpc.ndr.types import (
    GUID,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    ArrayOf,
    Bytes,
    FixedBytes,
    NdrType,
    Struct,
    UnionOf,
    UniquePtr,
    conformant,
    wstring,
)

__all__ = [
    "BLOB",
    "CACLSID",
    "CAL",
    "CALPWSTR",
    "CAPROPVARIANT",
    "CAUB",
    "CAUH",
    "CAUI",
    "CAUL",
    "DL_ID",
    "MULTICAST_ID",
    "OBJECTID",
    "PROPVARIANT",
    "QUEUE_FORMAT",
    "XACTUOW",
]

XACTUOW = FixedBytes(16)
"""A structure whose only field is an array of 16 bytes: the identifier of a transaction."""
OBJECTID = Struct("OBJECTID", {"Lineage": GUID, "Uniquifier": U32})
DL_ID = Struct("DL_ID", {"m_DlGuid": GUID, "m_pwzDomain": UniquePtr(wstring())})
MULTICAST_ID = Struct("MULTICAST_ID", {"m_address": U32, "m_port": U32})

QUEUE_FORMAT = Struct(
    "QUEUE_FORMAT",
    {
        "m_qft": U8,
        "m_SuffixAndFlags": U8,
        "m_reserved": U16,
        "name": UnionOf(  # the IDL has no name for it; the comments name the arm of each value of m_qft
            "m_qft",
            U8,
            {
                0: None,
                1: GUID,  # m_gPublicID
                2: OBJECTID,  # m_oPrivateID
                3: UniquePtr(wstring()),  # m_pDirectID
                4: GUID,  # m_gMachineID
                5: GUID,  # m_GConnectorID
                6: DL_ID,  # m_DlID
                7: MULTICAST_ID,  # m_MulticastID
                8: UniquePtr(wstring()),  # m_pDirectSubqueueID
            },
        ),
    },
)


def _counted(name: str, element: NdrType) -> Struct:
    """Declares a structure of a count and that many elements (MS-MQMQ 2.2.16)."""
    return Struct(name, {"cElems": U32, "pElems": UniquePtr(ArrayOf(element, conformant("cElems")))})


BLOB = Struct("BLOB", {"cbSize": U32, "pBlobData": UniquePtr(Bytes(conformant("cbSize")))})
CAUB = Struct("CAUB", {"cElems": U32, "pElems": UniquePtr(Bytes(conformant("cElems")))})
CAUI = _counted("CAUI", U16)
CAL = _counted("CAL", I32)
CAUL = _counted("CAUL", U32)
CAUH = _counted("CAUH", U64)
CACLSID = _counted("CACLSID", GUID)
CALPWSTR = _counted("CALPWSTR", UniquePtr(wstring()))
CAPROPVARIANT: Struct = Struct(
    "CAPROPVARIANT",
    {"cElems": U32, "pElems": UniquePtr(lambda: ArrayOf(PROPVARIANT, conformant("cElems")))},
)

_VT_VECTOR = 0x1000
PROPVARIANT: Struct = Struct(
    "PROPVARIANT",
    {
        "vt": U16,
        "wReserved1": U8,
        "wReserved2": U8,
        "wReserved3": U32,
        "_varUnion": UnionOf(
            "vt",
            U16,
            {
                0: None,  # VT_EMPTY
                1: None,  # VT_NULL
                2: I16,
                3: I32,
                11: I16,  # VT_BOOL: 0 or -1
                16: I8,
                17: U8,
                18: U16,
                19: U32,
                20: I64,
                21: U64,
                31: UniquePtr(wstring()),  # VT_LPWSTR
                65: BLOB,
                72: UniquePtr(GUID),  # VT_CLSID
                _VT_VECTOR | 3: CAL,
                _VT_VECTOR | 12: CAPROPVARIANT,  # VT_VARIANT
                _VT_VECTOR | 17: CAUB,
                _VT_VECTOR | 18: CAUI,
                _VT_VECTOR | 19: CAUL,
                _VT_VECTOR | 21: CAUH,
                _VT_VECTOR | 31: CALPWSTR,
                _VT_VECTOR | 72: CACLSID,
            },
        ),
    },
)
