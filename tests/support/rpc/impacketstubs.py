"""The interfaces for impacket's NDR engine, written down from the IDL of the documents.

`CALLS` maps an interface and opnum to the fields of its request and of its response. Names are those of the
IDL; unions without a name are called as in our tables, and so is what is returned: `result`.

impacket's engine deviates in some places, which the classes here correct: NDR64 has a gap at the end of
structures (MS-RPCE 2.2.5.3.4.1); the arm of a union has its own alignment in NDR, not four; a structure has
the alignment of the arms of the unions in it; the pointers in an array have eight bytes in NDR64; and the
maximum count of an array that is a parameter has four bytes in NDR, which the alignment of its elements must
know.
"""

from __future__ import annotations

from typing import Any

from impacket.dcerpc.v5.dtypes import GUID, STR, WSTR
from impacket.dcerpc.v5.ndr import (
    NDR,
    NDRENUM,
    NDRHYPER,
    NDRLONG,
    NDRPOINTER,
    NDRSHORT,
    NDRSMALL,
    NDRSTRUCT,
    NDRUHYPER,
    NDRULONG,
    NDRUNION,
    NDRUSHORT,
    NDRUSMALL,
    NDRUniConformantArray,
    NDRUniConformantVaryingArray,
    NDRUniFixedArray,
    NDRUniVaryingArray,
)

Fields = tuple[tuple[str, Any], ...]


class Struct(NDRSTRUCT):
    """A structure, with the gap at its end in NDR64."""

    def getAlignment(self) -> int:
        arms = [field.arm_align for field in self.fields.values() if isinstance(field, Union)]
        return max([NDRSTRUCT.getAlignment(self), *(8 if self._isNDR64 else align for align in arms)])

    def getData(self, soFar: int = 0) -> bytes:
        data = NDRSTRUCT.getData(self, soFar)
        return data + b"\xcd" * self._gap(soFar + len(data))

    def fromString(self, data: bytes, offset: int = 0) -> int:
        size = NDRSTRUCT.fromString(self, data, offset)
        return size + self._gap(offset + size)

    def _gap(self, end: int) -> int:
        last = self.fields[self.structure[-1][0]]
        if isinstance(last, Array) and last.fields["Data"]:
            return 0  # here an array comes with what its pointers point to, and ends aligned before that
        return -end % self.getAlignment() if self._isNDR64 else 0


class Union(NDRUNION):
    """A union whose arms have their own alignment in NDR; the largest is `arm_align`."""

    notAlign = True
    arm_align = 4


class Nothing(NDR):
    """An arm without members."""

    align = 1
    structure = ()


class Handle(NDRSTRUCT):
    """A context handle."""

    structure = (("attributes", "<L=0"), ("uuid", '16s=b""'))

    def getAlignment(self) -> int:
        return 4


class Sixteen(NDRUniFixedArray):
    """`unsigned char [16]`"""

    def getDataLen(self, data: bytes, offset: int = 0) -> int:
        return 16


def pointer(target: Any) -> Any:
    return type("Pointer", (NDRPOINTER,), {"referent": (("Data", target),)})


class Array(NDRUniConformantArray):
    """A conformant array."""

    def getAlignment(self) -> int:
        if isinstance(self.item, str):
            return int(NDRUniConformantArray.getAlignment(self))
        return int(self.item(isNDR64=self._isNDR64).getAlignment())


def array(item: Any) -> Any:
    return type("Conformant", (Array,), {"item": item})


def varying(item: Any) -> Any:
    return type("ConformantVarying", (NDRUniConformantVaryingArray,), {"item": item})


def struct(name: str, fields: Fields) -> Any:
    return type(name, (Struct,), {"structure": fields})


def union(name: str, tag: Any, arms: dict[int, Any], arm_align: int = 4) -> Any:
    named = {value: ("arm", Nothing if arm is None else arm) for value, arm in arms.items()}
    header = (("tag", tag),)
    members = {"commonHdr": header, "commonHdr64": header, "union": named, "arm_align": arm_align}
    return type(name, (Union,), members)


U8, U16, U32, U64 = NDRUSMALL, NDRUSHORT, NDRULONG, NDRUHYPER
P8, P16, P32 = pointer(U8), pointer(U16), pointer(U32)
BYTES, WCHARS = array("c"), array("<H")
PP_BYTES, PP_WCHARS = pointer(pointer(BYTES)), pointer(pointer(WCHARS))
PP_VARYING_BYTES, PP_VARYING_WCHARS = pointer(pointer(varying("c"))), pointer(pointer(varying("<H")))
PP_GUID = pointer(pointer(GUID))
RESULT = (("result", U32),)

# MS-MQMQ
OBJECTID = struct("OBJECTID", (("Lineage", GUID), ("Uniquifier", U32)))
DL_ID = struct("DL_ID", (("m_DlGuid", GUID), ("m_pwzDomain", pointer(WSTR))))
MULTICAST_ID = struct("MULTICAST_ID", (("m_address", U32), ("m_port", U32)))
QUEUE_NAME = union(
    "QUEUE_NAME",
    U8,
    {
        0: None,
        1: GUID,
        2: OBJECTID,
        3: pointer(WSTR),
        4: GUID,
        5: GUID,
        6: DL_ID,
        7: MULTICAST_ID,
        8: pointer(WSTR),
    },
)
QUEUE_FORMAT = struct(
    "QUEUE_FORMAT",
    (("m_qft", U8), ("m_SuffixAndFlags", U8), ("m_reserved", U16), ("name", QUEUE_NAME)),
)


def counted(item: Any) -> Any:
    return struct("CA", (("cElems", U32), ("pElems", pointer(array(item)))))


class PropVariantArray(Array):
    """`item` is set below, since the type is recursive."""


class PropVariants(PropVariantArray):
    """A parameter."""

    def getData(self, soFar: int = 0) -> bytes:
        data: bytes = PropVariantArray.getData(self, soFar if self._isNDR64 else soFar + 4)
        return data


VARIANT_VALUE = union(
    "VARIANT_VALUE",
    U16,
    {
        0: None,
        1: None,
        2: NDRSHORT,
        3: NDRLONG,
        11: NDRSHORT,
        16: NDRSMALL,
        17: U8,
        18: U16,
        19: U32,
        20: NDRHYPER,
        21: U64,
        31: pointer(WSTR),
        65: struct("BLOB", (("cbSize", U32), ("pBlobData", pointer(BYTES)))),
        72: pointer(GUID),
        0x1003: counted(NDRLONG),
        0x100C: struct("CAPROPVARIANT", (("cElems", U32), ("pElems", pointer(PropVariantArray)))),
        0x1011: counted("c"),
        0x1012: counted(U16),
        0x1013: counted(U32),
        0x1015: counted(U64),
        0x101F: counted(pointer(WSTR)),
        0x1048: counted(GUID),
    },
    arm_align=8,
)
PROPVARIANT = struct(
    "PROPVARIANT",
    (
        ("vt", U16),
        ("wReserved1", U8),
        ("wReserved2", U8),
        ("wReserved3", U32),
        ("_varUnion", VARIANT_VALUE),
    ),
)
PropVariantArray.item = PROPVARIANT

# MS-MQQP
REMOTEREADDESC = struct(
    "REMOTEREADDESC",
    (
        ("hRemoteQueue", U32),
        ("hCursor", U32),
        ("ulAction", U32),
        ("ulTimeout", U32),
        ("dwSize", U32),
        ("dwQueue", U32),
        ("dwRequestID", U32),
        ("Reserved", U32),
        ("dwArriveTime", U32),
        ("eAckNack", NDRENUM),
        ("lpBuffer", pointer(varying("c"))),
    ),
)
REMOTEREADDESC2 = struct(
    "REMOTEREADDESC2", (("pRemoteReadDesc", pointer(REMOTEREADDESC)), ("SequentialId", U64))
)
QM2QM: dict[int, tuple[Fields, Fields]] = {
    0: (
        (("lpRemoteReadDesc", REMOTEREADDESC),),
        (("pphContext", Handle), ("lpRemoteReadDesc", REMOTEREADDESC), *RESULT),
    ),
    1: ((("pphContext", Handle), ("dwAck", U32)), (("pphContext", Handle), *RESULT)),
    2: (
        (("pLicGuid", GUID), ("dwMQS", U32), ("hQueue", U32), ("pQueue", U32), ("dwpContext", U32)),
        (("phContext", Handle), *RESULT),
    ),
    3: ((("pphContext", Handle),), (("pphContext", Handle), *RESULT)),
    4: ((("hQueue", U32), ("hCursor", U32)), RESULT),
    5: ((("hQueue", U32), ("pQueue", U32), ("dwRequestID", U32)), RESULT),
    6: ((("hQueue", U32),), RESULT),
    7: ((("dwPortType", U32),), RESULT),
    8: ((), (("pMajor", U8), ("pMinor", U8), ("pBuildNumber", U16))),
    9: (
        (("lpRemoteReadDesc2", REMOTEREADDESC2),),
        (("pphContext", Handle), ("lpRemoteReadDesc2", REMOTEREADDESC2), *RESULT),
    ),
    10: (
        (("LookupId", U64), ("lpRemoteReadDesc2", REMOTEREADDESC2)),
        (("pphContext", Handle), ("lpRemoteReadDesc2", REMOTEREADDESC2), *RESULT),
    ),
}

# MS-MQRR
SECTION_BUFFER = struct(
    "SectionBuffer",
    (
        ("SectionBufferType", NDRENUM),
        ("SectionSizeAlloc", U32),
        ("SectionSize", U32),
        ("pSectionBuffer", pointer(BYTES)),
    ),
)
_OPEN: Fields = (
    ("pQueueFormat", QUEUE_FORMAT),
    ("dwAccess", U32),
    ("dwShareMode", U32),
    ("pClientId", GUID),
    ("fNonRoutingServer", NDRLONG),
    ("Major", U8),
    ("Minor", U8),
    ("BuildNumber", U16),
    ("fWorkgroup", NDRLONG),
)
_START: Fields = (
    ("phContext", Handle),
    ("LookupId", U64),
    ("hCursor", U32),
    ("ulAction", U32),
    ("ulTimeout", U32),
    ("dwRequestId", U32),
    ("dwMaxBodySize", U32),
    ("dwMaxCompoundMessageSize", U32),
)
_STARTED: Fields = (
    ("pdwArriveTime", U32),
    ("pSequenceId", U64),
    ("pdwNumberOfSections", U32),
    ("ppPacketSections", pointer(array(SECTION_BUFFER))),
    *RESULT,
)
_END: Fields = (("phContext", Handle), ("dwAck", U32), ("dwRequestId", U32))
REMOTE_READ: dict[int, tuple[Fields, Fields]] = {
    0: ((), RESULT),
    2: (_OPEN, (("pphContext", Handle),)),
    3: ((("pphContext", Handle),), (("pphContext", Handle), *RESULT)),
    4: ((("phContext", Handle),), (("phCursor", U32), *RESULT)),
    5: ((("phContext", Handle), ("hCursor", U32)), RESULT),
    6: ((("phContext", Handle),), RESULT),
    7: (_START, _STARTED),
    8: ((("phContext", Handle), ("dwRequestId", U32)), RESULT),
    9: (_END, RESULT),
    10: (
        (("phContextFrom", Handle), ("ullContextTo", U64), ("LookupId", U64), ("pTransactionId", Sixteen)),
        RESULT,
    ),
    11: (_OPEN, (("pMoveContext", U64), ("pphContext", Handle))),
    12: (
        (
            ("pTransactionId", Sixteen),
            ("cbPropagationToken", U32),
            ("pbPropagationToken", BYTES),
            ("pQueueFormat", QUEUE_FORMAT),
        ),
        RESULT,
    ),
    13: ((*_START, ("pTransactionId", Sixteen)), _STARTED),
    14: ((("phContext", Handle), ("LookupId", U64), ("usClass", U16)), RESULT),
    15: (_END, RESULT),
}

# MS-MQMP
CREATE_CURSOR = struct(
    "CACCreateRemoteCursor", (("hCursor", U32), ("srv_hACQueue", U32), ("cli_pQMQueue", U32))
)
SEND = struct(
    "Send", (("pAdminQueueFormat", pointer(QUEUE_FORMAT)), ("pResponseQueueFormat", pointer(QUEUE_FORMAT)))
)
RECEIVE = struct(
    "Receive",
    (
        ("RequestTimeout", U32),
        ("Action", U32),
        ("Asynchronous", U32),
        ("Cursor", U32),
        ("ulResponseFormatNameLen", U32),
        ("ppResponseFormatName", PP_WCHARS),
        ("pulResponseFormatNameLenProp", P32),
        ("ulAdminFormatNameLen", U32),
        ("ppAdminFormatName", PP_WCHARS),
        ("pulAdminFormatNameLenProp", P32),
        ("ulDestFormatNameLen", U32),
        ("ppDestFormatName", PP_WCHARS),
        ("pulDestFormatNameLenProp", P32),
        ("ulOrderingFormatNameLen", U32),
        ("ppOrderingFormatName", PP_WCHARS),
        ("pulOrderingFormatNameLenProp", P32),
    ),
)
TRANSFER_V1 = struct(
    "CACTransferBufferV1",
    (
        ("uTransferType", U32),
        ("transfer", union("TRANSFER", U32, {0: SEND, 1: RECEIVE, 2: CREATE_CURSOR})),
        ("pClass", P16),
        ("ppMessageID", pointer(pointer(OBJECTID))),
        ("ppCorrelationID", PP_VARYING_BYTES),
        ("pSentTime", P32),
        ("pArrivedTime", P32),
        ("pPriority", P8),
        ("pDelivery", P8),
        ("pAcknowledge", P8),
        ("pAuditing", P8),
        ("pApplicationTag", P32),
        ("ppBody", PP_VARYING_BYTES),
        ("ulBodyBufferSizeInBytes", U32),
        ("ulAllocBodyBufferInBytes", U32),
        ("pBodySize", P32),
        ("ppTitle", PP_VARYING_WCHARS),
        ("ulTitleBufferSizeInWCHARs", U32),
        ("pulTitleBufferSizeInWCHARs", P32),
        ("ulAbsoluteTimeToQueue", U32),
        ("pulRelativeTimeToQueue", P32),
        ("ulRelativeTimeToLive", U32),
        ("pulRelativeTimeToLive", P32),
        ("pTrace", P8),
        ("pulSenderIDType", P32),
        ("ppSenderID", PP_BYTES),
        ("pulSenderIDLenProp", P32),
        ("pulPrivLevel", P32),
        ("ulAuthLevel", U32),
        ("pAuthenticated", P8),
        ("pulHashAlg", P32),
        ("pulEncryptAlg", P32),
        ("ppSenderCert", PP_BYTES),
        ("ulSenderCertLen", U32),
        ("pulSenderCertLenProp", P32),
        ("ppwcsProvName", PP_WCHARS),
        ("ulProvNameLen", U32),
        ("pulAuthProvNameLenProp", P32),
        ("pulProvType", P32),
        ("fDefaultProvider", NDRLONG),
        ("ppSymmKeys", PP_BYTES),
        ("ulSymmKeysSize", U32),
        ("pulSymmKeysSizeProp", P32),
        ("bEncrypted", U8),
        ("bAuthenticated", U8),
        ("uSenderIDLen", U16),
        ("ppSignature", PP_BYTES),
        ("ulSignatureSize", U32),
        ("pulSignatureSizeProp", P32),
        ("ppSrcQMID", PP_GUID),
        ("pUow", pointer(Sixteen)),
        ("ppMsgExtension", PP_VARYING_BYTES),
        ("ulMsgExtensionBufferInBytes", U32),
        ("pMsgExtensionSize", P32),
        ("ppConnectorType", PP_GUID),
        ("pulBodyType", P32),
        ("pulVersion", P32),
    ),
)
TRANSFER_V2 = struct(
    "CACTransferBufferV2",
    (
        ("old", TRANSFER_V1),
        ("pbFirstInXact", P8),
        ("pbLastInXact", P8),
        ("ppXactID", pointer(pointer(OBJECTID))),
    ),
)
OBJECT_FORMAT = struct(
    "OBJECT_FORMAT",
    (("ObjType", U32), ("pQueueFormat", union("OBJECT", U32, {1: pointer(QUEUE_FORMAT)}))),
)
_FORMAT = ("pObjectFormat", OBJECT_FORMAT)
_NAME = ("lplpRemoteQueueName", pointer(pointer(WSTR)))
_VARIANTS = ("apVar", PropVariants)
_TRANSACTION: Fields = (("phIntXact", Handle),)
QMCOMM: dict[int, tuple[Fields, Fields]] = {
    1: ((("pQueue", U32), _NAME), (_NAME, *RESULT)),
    2: (
        (
            ("pQueueFormat", pointer(QUEUE_FORMAT)),
            ("dwCallingProcessID", U32),
            ("dwDesiredAccess", U32),
            ("dwShareMode", U32),
            ("pLicGuid", GUID),
            ("dwMQS", U32),
        ),
        (("pphContext", Handle), ("pdwContext", U32), ("dwpQueue", U32), ("phQueue", U32), *RESULT),
    ),
    3: ((("pphContext", Handle),), (("pphContext", Handle),)),
    4: ((("ptb1", TRANSFER_V1), ("hQueue", U32)), (("phCursor", U32), *RESULT)),
    6: (
        (
            ("dwObjectType", U32),
            ("lpwcsPathName", WSTR),
            ("SDSize", U32),
            ("pSecurityDescriptor", pointer(BYTES)),
            ("cp", U32),
            ("aProp", array(U32)),
            _VARIANTS,
        ),
        RESULT,
    ),
    7: (
        (
            _FORMAT,
            ("SecurityInformation", U32),
            ("SDSize", U32),
            ("pSecurityDescriptor", pointer(BYTES)),
        ),
        RESULT,
    ),
    8: (
        (_FORMAT, ("RequestedInformation", U32), ("nLength", U32)),
        (("pSecurityDescriptor", BYTES), ("lpnLengthNeeded", U32), *RESULT),
    ),
    9: ((_FORMAT,), RESULT),
    10: ((_FORMAT, ("cp", U32), ("aProp", array(U32)), _VARIANTS), (_VARIANTS, *RESULT)),
    11: (
        (
            _FORMAT,
            ("cp", U32),
            ("aProp", pointer(array(U32))),
            ("apVar", pointer(PropVariantArray)),
        ),
        RESULT,
    ),
    12: ((("lpwcsPathName", WSTR), _FORMAT), (_FORMAT, *RESULT)),
    14: ((("cbBufSize", U32),), (("pbWhereabouts", BYTES), ("pcbWhereabouts", U32), *RESULT)),
    15: ((("pUow", Sixteen), ("cbCookie", U32), ("pbCookie", BYTES)), RESULT),
    16: ((("pUow", Sixteen),), (*_TRANSACTION, *RESULT)),
    17: (_TRANSACTION, (*_TRANSACTION, *RESULT)),
    18: (_TRANSACTION, (*_TRANSACTION, *RESULT)),
    19: (
        (
            ("pQueueFormat", QUEUE_FORMAT),
            ("dwDesiredAccess", U32),
            ("dwShareMode", U32),
            ("hRemoteQueue", U32),
            _NAME,
            ("dwpQueue", U32),
            ("pLicGuid", GUID),
            ("lpClientName", WSTR),
            ("dwRemoteProtocol", U32),
            ("dwpRemoteContext", U32),
        ),
        (_NAME, ("pdwQMContext", U32), ("phQueue", Handle), *RESULT),
    ),
    20: ((("phQueue", Handle),), (("phQueue", Handle), *RESULT)),
    22: ((("hQueue", Handle), ("hCursor", U32)), RESULT),
    23: ((("hProxy", Handle), ("hCursor", U32), ("hRemoteCursor", U32)), RESULT),
    26: (
        (
            ("hQueue", Handle),
            ("dwFormatNameRPCBufferLen", U32),
            ("lpwcsFormatName", pointer(varying("<H"))),
            ("pdwLength", U32),
        ),
        (("lpwcsFormatName", pointer(varying("<H"))), ("pdwLength", U32), *RESULT),
    ),
    27: ((("hQueue", Handle),), RESULT),
    28: ((("dwQueryType", U32),), (("lplpMQISServer", pointer(WSTR)), *RESULT)),
    31: ((("fIP", U32),), RESULT),
}
_MESSAGE_ID = ("pMessageID", pointer(OBJECTID))
QMCOMM2: dict[int, tuple[Fields, Fields]] = {
    0: ((("pQueueFormat", QUEUE_FORMAT), ("ptb", TRANSFER_V2), _MESSAGE_ID), (_MESSAGE_ID, *RESULT)),
    1: ((("hQueue", Handle), ("ptb", TRANSFER_V2), _MESSAGE_ID), (_MESSAGE_ID, *RESULT)),
    2: ((("hQMContext", U32), ("ptb", TRANSFER_V2)), (("ptb", TRANSFER_V2), *RESULT)),
    3: ((("hQueue", Handle), ("pcc", CREATE_CURSOR)), (("pcc", CREATE_CURSOR), *RESULT)),
}

# MS-MQMR
MGMT_OBJECT = struct(
    "MGMT_OBJECT",
    (("type", NDRENUM), ("object", union("OBJECT", NDRENUM, {2: pointer(QUEUE_FORMAT), 1: U32, 3: U32}))),
)
QMMGMT: dict[int, tuple[Fields, Fields]] = {
    0: (
        (("pObjectFormat", MGMT_OBJECT), ("cp", U32), ("aProp", array(U32)), ("apVar", PropVariants)),
        (("apVar", PropVariants), *RESULT),
    ),
    1: ((("pObjectFormat", MGMT_OBJECT), ("lpwszAction", WSTR)), RESULT),
}

# C706 appendices O and Q
TWR = struct("twr_t", (("tower_length", U32), ("tower_octet_string", BYTES)))
IF_ID = struct("RPC_IF_ID", (("uuid", GUID), ("vers_major", U16), ("vers_minor", U16)))
ENTRY = struct("ept_entry_t", (("object", GUID), ("tower", pointer(TWR)), ("annotation", NDRUniVaryingArray)))
EPM: dict[int, tuple[Fields, Fields]] = {
    2: (
        (
            ("inquiry_type", U32),
            ("object", pointer(GUID)),
            ("Ifid", pointer(IF_ID)),
            ("vers_option", U32),
            ("entry_handle", Handle),
            ("max_ents", U32),
        ),
        (("entry_handle", Handle), ("num_ents", U32), ("entries", varying(ENTRY)), ("status", U32)),
    ),
    3: (
        (
            ("obj", pointer(GUID)),
            ("map_tower", pointer(TWR)),
            ("entry_handle", Handle),
            ("max_towers", U32),
        ),
        (("entry_handle", Handle), ("num_towers", U32), ("ITowers", varying(pointer(TWR))), ("status", U32)),
    ),
    4: ((("entry_handle", Handle),), (("entry_handle", Handle), ("status", U32))),
}
IF_ID_VECTOR = struct("rpc_if_id_vector_t", (("count", U32), ("if_id", array(pointer(IF_ID)))))
MGMT: dict[int, tuple[Fields, Fields]] = {
    0: ((), (("if_id_vector", pointer(IF_ID_VECTOR)), ("status", U32))),
    1: ((("count", U32),), (("count", U32), ("statistics", array(U32)), ("status", U32))),
    2: ((), (("status", U32), *RESULT)),
    3: ((), (("status", U32),)),
    4: ((("authn_proto", U32), ("princ_name_size", U32)), (("princ_name", STR), ("status", U32))),
}

CALLS = {
    "qm2qm": QM2QM,
    "RemoteRead": REMOTE_READ,
    "qmcomm": QMCOMM,
    "qmcomm2": QMCOMM2,
    "qmmgmt": QMMGMT,
    "epm": EPM,
    "mgmt": MGMT,
}
