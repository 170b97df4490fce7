/* The C interface of Message Queuing for programs on Linux and macOS, served by libmqrt.
 *
 * Names, numbers and layouts are those of the published documentation (Message Queuing reference and MS-MQMQ).
 * WCHAR is UTF-16. C: write literals as u"..." or compile with -fshort-wchar, then L"..." works as on Windows.
 * C++: the same; with -fshort-wchar WCHAR is wchar_t, else char16_t.
 */
#ifndef MSMQ_FAST_MQ_H
#define MSMQ_FAST_MQ_H

#include <stddef.h>
#include <stdint.h>

#include "mqtypes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- property arrays; their layout is fixed by programs that call over P/Invoke */

typedef ULONG PROPID;
typedef PROPID MSGPROPID, QUEUEPROPID, QMPROPID, MGMTPROPID, MQPRIVATEPROPID;
typedef HANDLE QUEUEHANDLE;

typedef struct tagMQMSGPROPS {
    DWORD cProp;
    MSGPROPID *aPropID;
    MQPROPVARIANT *aPropVar;
    HRESULT *aStatus;
} MQMSGPROPS;

typedef struct tagMQQUEUEPROPS {
    DWORD cProp;
    QUEUEPROPID *aPropID;
    MQPROPVARIANT *aPropVar;
    HRESULT *aStatus;
} MQQUEUEPROPS;

typedef struct tagMQQMPROPS {
    DWORD cProp;
    QMPROPID *aPropID;
    MQPROPVARIANT *aPropVar;
    HRESULT *aStatus;
} MQQMPROPS;

typedef struct tagMQMGMTPROPS {
    DWORD cProp;
    MGMTPROPID *aPropID;
    MQPROPVARIANT *aPropVar;
    HRESULT *aStatus;
} MQMGMTPROPS;

typedef struct tagMQPRIVATEPROPS {
    DWORD cProp;
    MQPRIVATEPROPID *aPropID;
    MQPROPVARIANT *aPropVar;
    HRESULT *aStatus;
} MQPRIVATEPROPS;

typedef struct tagMQPROPERTYRESTRICTION {
    ULONG rel;
    PROPID prop;
    MQPROPVARIANT prval;
} MQPROPERTYRESTRICTION;

typedef struct tagMQRESTRICTION {
    ULONG cRes;
    MQPROPERTYRESTRICTION *paPropRes;
} MQRESTRICTION;

typedef struct tagMQCOLUMNSET {
    ULONG cCol;
    PROPID *aCol;
} MQCOLUMNSET;

typedef struct tagMQSORTKEY {
    PROPID propColumn;
    ULONG dwOrder;
} MQSORTKEY;

typedef struct tagMQSORTSET {
    ULONG cCol;
    MQSORTKEY *aCol;
} MQSORTSET;

/* Relations of MQPROPERTYRESTRICTION */
enum { PRLT = 0, PRLE, PRGT, PRGE, PREQ, PRNE };
/* Orders of MQSORTKEY */
enum { QUERY_SORTASCEND = 0, QUERY_SORTDESCEND = 1 };

/* ---- access, share mode, actions */

#define MQ_RECEIVE_ACCESS 0x00000001
#define MQ_SEND_ACCESS 0x00000002
#define MQ_MOVE_ACCESS 0x00000004
#define MQ_PEEK_ACCESS 0x00000020
#define MQ_ADMIN_ACCESS 0x00000080

#define MQ_DENY_NONE 0x00000000
#define MQ_DENY_RECEIVE_SHARE 0x00000001

#define MQ_ACTION_RECEIVE 0x00000000
#define MQ_ACTION_PEEK_CURRENT 0x80000000
#define MQ_ACTION_PEEK_NEXT 0x80000001

#define MQ_LOOKUP_PEEK_CURRENT 0x40000010
#define MQ_LOOKUP_PEEK_NEXT 0x40000011
#define MQ_LOOKUP_PEEK_PREV 0x40000012
#define MQ_LOOKUP_PEEK_FIRST 0x40000014
#define MQ_LOOKUP_PEEK_LAST 0x40000018
#define MQ_LOOKUP_RECEIVE_CURRENT 0x40000020
#define MQ_LOOKUP_RECEIVE_NEXT 0x40000021
#define MQ_LOOKUP_RECEIVE_PREV 0x40000022
#define MQ_LOOKUP_RECEIVE_FIRST 0x40000024
#define MQ_LOOKUP_RECEIVE_LAST 0x40000028
#define MQ_LOOKUP_RECEIVE_ALLOW_PEEK 0x40000120

#define MQ_NO_TRANSACTION ((ITransaction *)0)
#define MQ_MTS_TRANSACTION ((ITransaction *)1)
#define MQ_XA_TRANSACTION ((ITransaction *)2)
#define MQ_SINGLE_MESSAGE ((ITransaction *)3)

#define INFINITE 0xFFFFFFFF
#define LONG_LIVED 0xFFFFFFFE

/* ---- values of message properties */

#define MQMSG_DELIVERY_EXPRESS 0
#define MQMSG_DELIVERY_RECOVERABLE 1

#define MQ_MIN_PRIORITY 0
#define MQ_MAX_PRIORITY 7
#define DEFAULT_M_PRIORITY 3

#define MQMSG_ACKNOWLEDGMENT_NONE 0x00
#define MQMSG_ACKNOWLEDGMENT_POS_ARRIVAL 0x01
#define MQMSG_ACKNOWLEDGMENT_POS_RECEIVE 0x02
#define MQMSG_ACKNOWLEDGMENT_NEG_ARRIVAL 0x04
#define MQMSG_ACKNOWLEDGMENT_NEG_RECEIVE 0x08
#define MQMSG_ACKNOWLEDGMENT_NACK_REACH_QUEUE MQMSG_ACKNOWLEDGMENT_NEG_ARRIVAL
#define MQMSG_ACKNOWLEDGMENT_FULL_REACH_QUEUE \
    (MQMSG_ACKNOWLEDGMENT_NEG_ARRIVAL | MQMSG_ACKNOWLEDGMENT_POS_ARRIVAL)
#define MQMSG_ACKNOWLEDGMENT_NACK_RECEIVE (MQMSG_ACKNOWLEDGMENT_NEG_ARRIVAL | MQMSG_ACKNOWLEDGMENT_NEG_RECEIVE)
#define MQMSG_ACKNOWLEDGMENT_FULL_RECEIVE \
    (MQMSG_ACKNOWLEDGMENT_NEG_ARRIVAL | MQMSG_ACKNOWLEDGMENT_NEG_RECEIVE | MQMSG_ACKNOWLEDGMENT_POS_RECEIVE)

#define MQMSG_JOURNAL_NONE 0
#define MQMSG_DEADLETTER 1
#define MQMSG_JOURNAL 2

#define MQMSG_TRACE_NONE 0
#define MQMSG_SEND_ROUTE_TO_REPORT_QUEUE 1

#define MQMSG_SENDERID_TYPE_NONE 0
#define MQMSG_SENDERID_TYPE_SID 1

#define MQMSG_PRIV_LEVEL_NONE 0x00
#define MQMSG_PRIV_LEVEL_BODY_BASE 0x01
#define MQMSG_PRIV_LEVEL_BODY_ENHANCED 0x03
#define MQMSG_PRIV_LEVEL_BODY_AES 0x05

#define MQMSG_AUTH_LEVEL_NONE 0
#define MQMSG_AUTH_LEVEL_ALWAYS 1
#define MQMSG_AUTH_LEVEL_MSMQ10 2
#define MQMSG_AUTH_LEVEL_SIG10 2
#define MQMSG_AUTH_LEVEL_MSMQ20 4
#define MQMSG_AUTH_LEVEL_SIG20 4
#define MQMSG_AUTH_LEVEL_SIG30 8

#define MQMSG_AUTHENTICATION_NOT_REQUESTED 0
#define MQMSG_AUTHENTICATED_SIG10 1
#define MQMSG_AUTHENTICATED_SIG20 3
#define MQMSG_AUTHENTICATED_SIG30 5

#define MQMSG_NOT_FIRST_IN_XACT 0
#define MQMSG_FIRST_IN_XACT 1
#define MQMSG_NOT_LAST_IN_XACT 0
#define MQMSG_LAST_IN_XACT 1

#define PROPID_M_MSGID_SIZE 20
#define PROPID_M_CORRELATIONID_SIZE 20
#define PROPID_M_XACTID_SIZE 20
#define MQ_MAX_MSG_LABEL_LEN 250
#define MQ_MAX_Q_LABEL_LEN 124
#define MQ_MAX_Q_NAME_LEN 124

#define MQMSG_CLASS_NORMAL 0x0000
#define MQMSG_CLASS_REPORT 0x0001
#define MQMSG_CLASS_ACK_REACH_QUEUE 0x0002
#define MQMSG_CLASS_ACK_RECEIVE 0x4000
#define MQMSG_CLASS_NACK_BAD_DST_Q 0x8000
#define MQMSG_CLASS_NACK_PURGED 0x8001
#define MQMSG_CLASS_NACK_REACH_QUEUE_TIMEOUT 0x8002
#define MQMSG_CLASS_NACK_Q_EXCEED_QUOTA 0x8003
#define MQMSG_CLASS_NACK_ACCESS_DENIED 0x8004
#define MQMSG_CLASS_NACK_HOP_COUNT_EXCEEDED 0x8005
#define MQMSG_CLASS_NACK_BAD_SIGNATURE 0x8006
#define MQMSG_CLASS_NACK_BAD_ENCRYPTION 0x8007
#define MQMSG_CLASS_NACK_COULD_NOT_ENCRYPT 0x8008
#define MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_Q 0x8009
#define MQMSG_CLASS_NACK_NOT_TRANSACTIONAL_MSG 0x800A
#define MQMSG_CLASS_NACK_Q_DELETED 0xC000
#define MQMSG_CLASS_NACK_Q_PURGED 0xC001
#define MQMSG_CLASS_NACK_RECEIVE_TIMEOUT 0xC002
#define MQMSG_CLASS_NACK_RECEIVE_REJECTED 0xC004

/* ---- values of queue properties */

#define MQ_JOURNAL_NONE 0
#define MQ_JOURNAL 1
#define MQ_TRANSACTIONAL_NONE 0
#define MQ_TRANSACTIONAL 1
#define MQ_AUTHENTICATE_NONE 0
#define MQ_AUTHENTICATE 1
#define MQ_PRIV_LEVEL_NONE 0
#define MQ_PRIV_LEVEL_OPTIONAL 1
#define MQ_PRIV_LEVEL_BODY 2

/* ---- objects and actions of management */

#define MO_MACHINE_TOKEN u"MACHINE"
#define MO_QUEUE_TOKEN u"QUEUE"
#define MACHINE_ACTION_CONNECT u"CONNECT"
#define MACHINE_ACTION_DISCONNECT u"DISCONNECT"
#define MACHINE_ACTION_TIDY u"TIDY"
#define QUEUE_ACTION_PAUSE u"PAUSE"
#define QUEUE_ACTION_RESUME u"RESUME"
#define QUEUE_ACTION_EOD_RESEND u"EOD_RESEND"

/* Flag of MQRegisterCertificate: only if there is no internal certificate yet */
#define MQCERT_REGISTER_ALWAYS 0x01
#define MQCERT_REGISTER_IF_NOT_EXIST 0x02

#include "mqerrors.h"
#include "mqpropid.h"

/* ---- transactions */

typedef struct BOID {
    BYTE rgb[16];
} BOID;
typedef BOID XACTUOW;

typedef struct XACTTRANSINFO {
    XACTUOW uow;
    LONG isoLevel;
    ULONG isoFlags;
    DWORD grfTCSupported;
    DWORD grfRMSupported;
    DWORD grfTCSupportedRetaining;
    DWORD grfRMSupportedRetaining;
} XACTTRANSINFO;

#ifdef __cplusplus
} /* an interface is not extern "C" */
struct IUnknown {
    virtual HRESULT QueryInterface(const IID &iid, void **object) = 0;
    virtual ULONG AddRef() = 0;
    virtual ULONG Release() = 0;
};
struct ITransaction : public IUnknown {
    virtual HRESULT Commit(BOOL retaining, DWORD grfTC, DWORD grfRM) = 0;
    virtual HRESULT Abort(BOID *reason, BOOL retaining, BOOL asynchronous) = 0;
    virtual HRESULT GetTransactionInfo(XACTTRANSINFO *info) = 0;
};
extern "C" {
#else
typedef struct ITransaction ITransaction;
typedef struct ITransactionVtbl {
    HRESULT (*QueryInterface)(ITransaction *self, const IID *iid, void **object);
    ULONG (*AddRef)(ITransaction *self);
    ULONG (*Release)(ITransaction *self);
    HRESULT (*Commit)(ITransaction *self, BOOL retaining, DWORD grfTC, DWORD grfRM);
    HRESULT (*Abort)(ITransaction *self, BOID *reason, BOOL retaining, BOOL asynchronous);
    HRESULT (*GetTransactionInfo)(ITransaction *self, XACTTRANSINFO *info);
} ITransactionVtbl;
struct ITransaction {
    const ITransactionVtbl *lpVtbl;
};
#define ITransaction_QueryInterface(self, iid, object) ((self)->lpVtbl->QueryInterface((self), (iid), (object)))
#define ITransaction_AddRef(self) ((self)->lpVtbl->AddRef(self))
#define ITransaction_Release(self) ((self)->lpVtbl->Release(self))
#define ITransaction_Commit(self, a, b, c) ((self)->lpVtbl->Commit((self), (a), (b), (c)))
#define ITransaction_Abort(self, a, b, c) ((self)->lpVtbl->Abort((self), (a), (b), (c)))
#define ITransaction_GetTransactionInfo(self, info) ((self)->lpVtbl->GetTransactionInfo((self), (info)))
#endif

/* ---- functions */

typedef void(APIENTRY *PMQRECEIVECALLBACK)(HRESULT hrStatus, QUEUEHANDLE hSource, DWORD dwTimeout, DWORD dwAction,
                                           MQMSGPROPS *pMessageProps, LPOVERLAPPED lpOverlapped, HANDLE hCursor);

MQAPI HRESULT APIENTRY MQOpenQueue(LPCWSTR lpwcsFormatName, DWORD dwAccess, DWORD dwShareMode, QUEUEHANDLE *phQueue);
MQAPI HRESULT APIENTRY MQCloseQueue(QUEUEHANDLE hQueue);
MQAPI HRESULT APIENTRY MQSendMessage(QUEUEHANDLE hDestinationQueue, MQMSGPROPS *pMessageProps,
                                     ITransaction *pTransaction);
MQAPI HRESULT APIENTRY MQReceiveMessage(QUEUEHANDLE hSource, DWORD dwTimeout, DWORD dwAction,
                                        MQMSGPROPS *pMessageProps, LPOVERLAPPED lpOverlapped,
                                        PMQRECEIVECALLBACK fnReceiveCallback, HANDLE hCursor,
                                        ITransaction *pTransaction);
MQAPI HRESULT APIENTRY MQReceiveMessageByLookupId(QUEUEHANDLE hSource, ULONGLONG ullLookupId, DWORD dwLookupAction,
                                                  MQMSGPROPS *pMessageProps, LPOVERLAPPED lpOverlapped,
                                                  PMQRECEIVECALLBACK fnReceiveCallback, ITransaction *pTransaction);
MQAPI HRESULT APIENTRY MQGetOverlappedResult(LPOVERLAPPED lpOverlapped);
MQAPI HRESULT APIENTRY MQCreateCursor(QUEUEHANDLE hQueue, HANDLE *phCursor);
MQAPI HRESULT APIENTRY MQCloseCursor(HANDLE hCursor);
MQAPI HRESULT APIENTRY MQMoveMessage(QUEUEHANDLE hSourceQueue, QUEUEHANDLE hDestinationQueue, ULONGLONG ullLookupId,
                                     ITransaction *pTransaction);
MQAPI HRESULT APIENTRY MQMarkMessageRejected(QUEUEHANDLE hQueue, ULONGLONG ullLookupId);
MQAPI HRESULT APIENTRY MQPurgeQueue(QUEUEHANDLE hQueue);
MQAPI HRESULT APIENTRY MQBeginTransaction(ITransaction **ppTransaction);

MQAPI HRESULT APIENTRY MQCreateQueue(PSECURITY_DESCRIPTOR pSecurityDescriptor, MQQUEUEPROPS *pQueueProps,
                                     LPWSTR lpwcsFormatName, LPDWORD lpdwFormatNameLength);
MQAPI HRESULT APIENTRY MQDeleteQueue(LPCWSTR lpwcsFormatName);
MQAPI HRESULT APIENTRY MQGetQueueProperties(LPCWSTR lpwcsFormatName, MQQUEUEPROPS *pQueueProps);
MQAPI HRESULT APIENTRY MQSetQueueProperties(LPCWSTR lpwcsFormatName, MQQUEUEPROPS *pQueueProps);
MQAPI HRESULT APIENTRY MQGetQueueSecurity(LPCWSTR lpwcsFormatName, SECURITY_INFORMATION RequestedInformation,
                                          PSECURITY_DESCRIPTOR pSecurityDescriptor, DWORD nLength,
                                          LPDWORD lpnLengthNeeded);
MQAPI HRESULT APIENTRY MQSetQueueSecurity(LPCWSTR lpwcsFormatName, SECURITY_INFORMATION SecurityInformation,
                                          PSECURITY_DESCRIPTOR pSecurityDescriptor);

MQAPI HRESULT APIENTRY MQPathNameToFormatName(LPCWSTR lpwcsPathName, LPWSTR lpwcsFormatName,
                                              LPDWORD lpdwFormatNameLength);
MQAPI HRESULT APIENTRY MQHandleToFormatName(QUEUEHANDLE hQueue, LPWSTR lpwcsFormatName,
                                            LPDWORD lpdwFormatNameLength);
MQAPI HRESULT APIENTRY MQInstanceToFormatName(GUID *pGuid, LPWSTR lpwcsFormatName, LPDWORD lpdwFormatNameLength);
MQAPI HRESULT APIENTRY MQADsPathToFormatName(LPCWSTR lpwcsADsPath, LPWSTR lpwcsFormatName,
                                             LPDWORD lpdwFormatNameLength);

MQAPI HRESULT APIENTRY MQMgmtGetInfo(LPCWSTR pComputerName, LPCWSTR pObjectName, MQMGMTPROPS *pMgmtProps);
MQAPI HRESULT APIENTRY MQMgmtAction(LPCWSTR pComputerName, LPCWSTR pObjectName, LPCWSTR pAction);
MQAPI HRESULT APIENTRY MQGetMachineProperties(LPCWSTR lpwcsMachineName, const GUID *pguidMachineId,
                                              MQQMPROPS *pQMProps);
MQAPI HRESULT APIENTRY MQGetPrivateComputerInformation(LPCWSTR lpwcsComputerName, MQPRIVATEPROPS *pPrivateProps);
MQAPI void APIENTRY MQFreeMemory(void *pvMemory);

MQAPI HRESULT APIENTRY MQLocateBegin(LPCWSTR lpwcsContext, MQRESTRICTION *pRestriction, MQCOLUMNSET *pColumns,
                                     MQSORTSET *pSort, HANDLE *phEnum);
MQAPI HRESULT APIENTRY MQLocateNext(HANDLE hEnum, DWORD *pcProps, MQPROPVARIANT aPropVar[]);
MQAPI HRESULT APIENTRY MQLocateEnd(HANDLE hEnum);

MQAPI HRESULT APIENTRY MQGetSecurityContext(void *lpCertBuffer, DWORD dwCertBufferLength, HANDLE *phSecurityContext);
MQAPI HRESULT APIENTRY MQGetSecurityContextEx(void *lpCertBuffer, DWORD dwCertBufferLength,
                                              HANDLE *phSecurityContext);
MQAPI void APIENTRY MQFreeSecurityContext(HANDLE hSecurityContext);
MQAPI HRESULT APIENTRY MQRegisterCertificate(DWORD dwFlags, void *lpCertBuffer, DWORD dwCertBufferLength);

#ifdef __cplusplus
}
#endif

#endif
