"""The interface qmcomm: MS-MQMP, appendix A."""

from __future__ import annotations

from uuid import UUID

from msmq_fast.rpc.idl.mqmq import OBJECTID, PROPVARIANT, QUEUE_FORMAT, XACTUOW
from msmq_fast.rpc.ndr.operations import In, InOut, InterfaceTable, Op, Out
from msmq_fast.rpc.ndr.types import (
    GUID,
    I32,
    U8,
    U16,
    U32,
    ArrayOf,
    Bytes,
    ContextHandle,
    FullPtr,
    NdrType,
    Ptr,
    Range,
    Struct,
    UnionOf,
    UniquePtr,
    WChars,
    conformant,
    conformant_varying,
    wstring,
)

__all__ = [
    "CREATE_REMOTE_CURSOR",
    "OBJECT_FORMAT",
    "PCTX_OPENREMOTE_HANDLE_TYPE",
    "QMCOMM",
    "RPC_INT_XACT_HANDLE",
    "RPC_QUEUE_HANDLE",
    "TRANSFER_BUFFER_V1",
    "TRANSFER_RECEIVE",
    "TRANSFER_SEND",
]

PCTX_OPENREMOTE_HANDLE_TYPE = ContextHandle("PCTX_OPENREMOTE_HANDLE_TYPE")
RPC_QUEUE_HANDLE = ContextHandle("RPC_QUEUE_HANDLE")
RPC_INT_XACT_HANDLE = ContextHandle("RPC_INT_XACT_HANDLE")

_PTR_U8, _PTR_U16, _PTR_U32 = UniquePtr(U8), UniquePtr(U16), UniquePtr(U32)
_SECURITY_DESCRIPTOR_SIZE = Range(U32, 0, 524288)


def _to_pointer(kind: NdrType) -> Ptr:
    """`kind **`: a pointer to a pointer."""
    return UniquePtr(UniquePtr(kind))


CREATE_REMOTE_CURSOR = Struct(
    "CACCreateRemoteCursor", {"hCursor": U32, "srv_hACQueue": U32, "cli_pQMQueue": U32}
)
TRANSFER_SEND = Struct(
    "Send", {"pAdminQueueFormat": UniquePtr(QUEUE_FORMAT), "pResponseQueueFormat": UniquePtr(QUEUE_FORMAT)}
)
TRANSFER_RECEIVE = Struct(
    "Receive",
    {
        "RequestTimeout": U32,
        "Action": U32,
        "Asynchronous": U32,
        "Cursor": U32,
        "ulResponseFormatNameLen": Range(U32, 0, 1024),
        "ppResponseFormatName": _to_pointer(WChars(conformant("ulResponseFormatNameLen"))),
        "pulResponseFormatNameLenProp": _PTR_U32,
        "ulAdminFormatNameLen": Range(U32, 0, 1024),
        "ppAdminFormatName": _to_pointer(WChars(conformant("ulAdminFormatNameLen"))),
        "pulAdminFormatNameLenProp": _PTR_U32,
        "ulDestFormatNameLen": Range(U32, 0, 1024),
        "ppDestFormatName": _to_pointer(WChars(conformant("ulDestFormatNameLen"))),
        "pulDestFormatNameLenProp": _PTR_U32,
        "ulOrderingFormatNameLen": Range(U32, 0, 1024),
        "ppOrderingFormatName": _to_pointer(WChars(conformant("ulOrderingFormatNameLen"))),
        "pulOrderingFormatNameLenProp": _PTR_U32,
    },
)
TRANSFER_BUFFER_V1 = Struct(
    "CACTransferBufferV1",
    {
        "uTransferType": Range(U32, 0, 2),
        "transfer": UnionOf(  # the IDL has no name for it
            "uTransferType", U32, {0: TRANSFER_SEND, 1: TRANSFER_RECEIVE, 2: CREATE_REMOTE_CURSOR}
        ),
        "pClass": _PTR_U16,
        "ppMessageID": _to_pointer(OBJECTID),
        "ppCorrelationID": _to_pointer(Bytes(conformant_varying(20, 20))),
        "pSentTime": _PTR_U32,
        "pArrivedTime": _PTR_U32,
        "pPriority": _PTR_U8,
        "pDelivery": _PTR_U8,
        "pAcknowledge": _PTR_U8,
        "pAuditing": _PTR_U8,
        "pApplicationTag": _PTR_U32,
        "ppBody": _to_pointer(
            Bytes(conformant_varying("ulAllocBodyBufferInBytes", "ulBodyBufferSizeInBytes"))
        ),
        "ulBodyBufferSizeInBytes": U32,
        "ulAllocBodyBufferInBytes": U32,
        "pBodySize": _PTR_U32,
        "ppTitle": _to_pointer(
            WChars(conformant_varying("ulTitleBufferSizeInWCHARs", "ulTitleBufferSizeInWCHARs"))
        ),
        "ulTitleBufferSizeInWCHARs": U32,
        "pulTitleBufferSizeInWCHARs": _PTR_U32,
        "ulAbsoluteTimeToQueue": U32,
        "pulRelativeTimeToQueue": _PTR_U32,
        "ulRelativeTimeToLive": U32,
        "pulRelativeTimeToLive": _PTR_U32,
        "pTrace": _PTR_U8,
        "pulSenderIDType": _PTR_U32,
        "ppSenderID": _to_pointer(Bytes(conformant("uSenderIDLen"))),
        "pulSenderIDLenProp": _PTR_U32,
        "pulPrivLevel": _PTR_U32,
        "ulAuthLevel": U32,
        "pAuthenticated": _PTR_U8,
        "pulHashAlg": _PTR_U32,
        "pulEncryptAlg": _PTR_U32,
        "ppSenderCert": _to_pointer(Bytes(conformant("ulSenderCertLen"))),
        "ulSenderCertLen": U32,
        "pulSenderCertLenProp": _PTR_U32,
        "ppwcsProvName": _to_pointer(WChars(conformant("ulProvNameLen"))),
        "ulProvNameLen": U32,
        "pulAuthProvNameLenProp": _PTR_U32,
        "pulProvType": _PTR_U32,
        "fDefaultProvider": I32,
        "ppSymmKeys": _to_pointer(Bytes(conformant("ulSymmKeysSize"))),
        "ulSymmKeysSize": U32,
        "pulSymmKeysSizeProp": _PTR_U32,
        "bEncrypted": U8,
        "bAuthenticated": U8,
        "uSenderIDLen": U16,
        "ppSignature": _to_pointer(Bytes(conformant("ulSignatureSize"))),
        "ulSignatureSize": U32,
        "pulSignatureSizeProp": _PTR_U32,
        "ppSrcQMID": _to_pointer(GUID),
        "pUow": UniquePtr(XACTUOW),
        "ppMsgExtension": _to_pointer(
            Bytes(conformant_varying("ulMsgExtensionBufferInBytes", "ulMsgExtensionBufferInBytes"))
        ),
        "ulMsgExtensionBufferInBytes": U32,
        "pMsgExtensionSize": _PTR_U32,
        "ppConnectorType": _to_pointer(GUID),
        "pulBodyType": _PTR_U32,
        "pulVersion": _PTR_U32,
    },
)
OBJECT_FORMAT = Struct(
    "OBJECT_FORMAT",
    {
        "ObjType": Range(U32, 1, 2),
        "pQueueFormat": UnionOf("ObjType", U32, {1: UniquePtr(QUEUE_FORMAT)}),
    },
)

_OBJECT_FORMAT = In("pObjectFormat", OBJECT_FORMAT)
_REMOTE_QUEUE_NAME = InOut("lplpRemoteQueueName", FullPtr(UniquePtr(wstring())))
_PROPERTIES = ArrayOf(U32, conformant("cp"))
_VARIANTS = ArrayOf(PROPVARIANT, conformant("cp"))
_TRANSACTION = InOut("phIntXact", RPC_INT_XACT_HANDLE)
_QUEUE = In("hQueue", RPC_QUEUE_HANDLE)

QMCOMM = InterfaceTable(
    "qmcomm",
    UUID("fdb3a030-065f-11d1-bb9b-00a024ea5525"),
    (1, 0),
    [
        Op(0, "opnum0", obsolete=True),
        Op(1, "get_remote_queue_name", [In("pQueue", U32), _REMOTE_QUEUE_NAME], returns=U32),
        Op(
            2,
            "open_remote_queue",
            [
                Out("pphContext", PCTX_OPENREMOTE_HANDLE_TYPE),
                Out("pdwContext", U32),
                In("pQueueFormat", UniquePtr(QUEUE_FORMAT)),
                In("dwCallingProcessID", U32),
                In("dwDesiredAccess", U32),
                In("dwShareMode", U32),
                In("pLicGuid", GUID),
                In("dwMQS", U32),
                Out("dwpQueue", U32),
                Out("phQueue", U32),
            ],
            returns=U32,
        ),
        Op(3, "close_remote_queue_context", [InOut("pphContext", PCTX_OPENREMOTE_HANDLE_TYPE)]),
        Op(
            4,
            "create_remote_cursor",
            [In("ptb1", TRANSFER_BUFFER_V1), In("hQueue", U32), Out("phCursor", U32)],
            returns=U32,
        ),
        Op(5, "opnum5", obsolete=True),
        Op(
            6,
            "create_object_internal",
            [
                In("dwObjectType", U32),
                In("lpwcsPathName", wstring()),
                In("SDSize", _SECURITY_DESCRIPTOR_SIZE),
                In("pSecurityDescriptor", UniquePtr(Bytes(conformant("SDSize")))),
                In("cp", Range(U32, 1, 128)),
                In("aProp", _PROPERTIES),
                In("apVar", _VARIANTS),
            ],
            returns=U32,
        ),
        Op(
            7,
            "set_object_security_internal",
            [
                _OBJECT_FORMAT,
                In("SecurityInformation", U32),
                In("SDSize", _SECURITY_DESCRIPTOR_SIZE),
                In("pSecurityDescriptor", UniquePtr(Bytes(conformant("SDSize")))),
            ],
            returns=U32,
        ),
        Op(
            8,
            "get_object_security_internal",
            [
                _OBJECT_FORMAT,
                In("RequestedInformation", U32),
                Out("pSecurityDescriptor", Bytes(conformant("nLength"))),
                In("nLength", _SECURITY_DESCRIPTOR_SIZE),
                Out("lpnLengthNeeded", U32),
            ],
            returns=U32,
        ),
        Op(9, "delete_object", [_OBJECT_FORMAT], returns=U32),
        Op(
            10,
            "get_object_properties",
            [
                _OBJECT_FORMAT,
                In("cp", Range(U32, 1, 128)),
                In("aProp", _PROPERTIES),
                InOut("apVar", _VARIANTS),
            ],
            returns=U32,
        ),
        Op(
            11,
            "set_object_properties",
            [
                _OBJECT_FORMAT,
                In("cp", Range(U32, 1, 128)),
                In("aProp", UniquePtr(_PROPERTIES)),
                In("apVar", UniquePtr(_VARIANTS)),
            ],
            returns=U32,
        ),
        Op(
            12,
            "object_path_to_object_format",
            [In("lpwcsPathName", wstring()), InOut("pObjectFormat", OBJECT_FORMAT)],
            returns=U32,
        ),
        Op(13, "opnum13", obsolete=True),
        Op(
            14,
            "get_tm_whereabouts",
            [
                In("cbBufSize", Range(U32, 0, 131072)),
                Out("pbWhereabouts", Bytes(conformant("cbBufSize"))),
                Out("pcbWhereabouts", U32),
            ],
            returns=U32,
        ),
        Op(
            15,
            "enlist_transaction",
            [
                In("pUow", XACTUOW),
                In("cbCookie", Range(U32, 0, 131072)),
                In("pbCookie", Bytes(conformant("cbCookie"))),
            ],
            returns=U32,
        ),
        Op(
            16,
            "enlist_internal_transaction",
            [In("pUow", XACTUOW), Out("phIntXact", RPC_INT_XACT_HANDLE)],
            returns=U32,
        ),
        Op(17, "commit_transaction", [_TRANSACTION], returns=U32),
        Op(18, "abort_transaction", [_TRANSACTION], returns=U32),
        Op(
            19,
            "open_queue_internal",
            [
                In("pQueueFormat", QUEUE_FORMAT),
                In("dwDesiredAccess", U32),
                In("dwShareMode", U32),
                In("hRemoteQueue", U32),
                _REMOTE_QUEUE_NAME,
                In("dwpQueue", U32),
                In("pLicGuid", GUID),
                In("lpClientName", wstring()),
                Out("pdwQMContext", U32),
                Out("phQueue", RPC_QUEUE_HANDLE),
                In("dwRemoteProtocol", U32),
                In("dwpRemoteContext", U32),
            ],
            returns=U32,
        ),
        Op(20, "close_handle", [InOut("phQueue", RPC_QUEUE_HANDLE)], returns=U32),
        Op(21, "opnum21", obsolete=True),
        Op(22, "close_cursor", [_QUEUE, In("hCursor", U32)], returns=U32),
        Op(
            23,
            "set_cursor_properties",
            [In("hProxy", RPC_QUEUE_HANDLE), In("hCursor", U32), In("hRemoteCursor", U32)],
            returns=U32,
        ),
        Op(24, "opnum24", obsolete=True),
        Op(25, "opnum25", obsolete=True),
        Op(
            26,
            "handle_to_format_name",
            [
                _QUEUE,
                In("dwFormatNameRPCBufferLen", Range(U32, 0, 524288)),
                InOut(
                    "lpwcsFormatName",
                    UniquePtr(
                        WChars(conformant_varying("dwFormatNameRPCBufferLen", "dwFormatNameRPCBufferLen"))
                    ),
                ),
                InOut("pdwLength", U32),
            ],
            returns=U32,
        ),
        Op(27, "purge_queue", [_QUEUE], returns=U32),
        Op(
            28,
            "query_qm_registry_internal",
            [In("dwQueryType", U32), Out("lplpMQISServer", UniquePtr(wstring()))],
            returns=U32,
        ),
        Op(29, "opnum29", obsolete=True),
        Op(30, "opnum30", obsolete=True),
        Op(31, "get_rtqm_server_port", [In("fIP", U32)], returns=U32),
        Op(32, "opnum32", obsolete=True),
        Op(33, "opnum33", obsolete=True),
        Op(34, "opnum34", obsolete=True),
    ],
)
