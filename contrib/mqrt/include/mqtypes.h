/* The Windows types that the C interface of Message Queuing uses. Include mq.h. */
#ifndef MSMQ_FAST_MQTYPES_H
#define MSMQ_FAST_MQTYPES_H

#include <stdint.h>

#define MQAPI __attribute__((visibility("default")))
#define APIENTRY
#define WINAPI

typedef uint8_t BYTE, UCHAR;
typedef char CHAR;
typedef int16_t SHORT, VARIANT_BOOL;
typedef uint16_t WORD, USHORT, VARTYPE;
typedef int32_t LONG, BOOL, HRESULT, SCODE;
typedef uint32_t DWORD, ULONG, UINT, SECURITY_INFORMATION;
typedef int64_t LONGLONG;
typedef uint64_t ULONGLONG;
typedef uintptr_t ULONG_PTR;
typedef void *HANDLE, *PVOID, *LPVOID, *PSECURITY_DESCRIPTOR, *HLOCAL;
typedef HANDLE *PHANDLE;
typedef DWORD *LPDWORD;

#ifdef __cplusplus
#if __SIZEOF_WCHAR_T__ == 2
typedef wchar_t WCHAR;
#else
typedef char16_t WCHAR;
#endif
#else
typedef uint16_t WCHAR; /* the type of u"x", and of L"x" with -fshort-wchar */
#endif
typedef WCHAR *LPWSTR, *PWSTR, *BSTR;
typedef const WCHAR *LPCWSTR;
typedef char *LPSTR;

#ifndef TRUE
#define TRUE 1
#define FALSE 0
#endif
#define SUCCEEDED(hr) ((HRESULT)(hr) >= 0)
#define FAILED(hr) ((HRESULT)(hr) < 0)

typedef struct _GUID {
    uint32_t Data1;
    uint16_t Data2;
    uint16_t Data3;
    uint8_t Data4[8];
} GUID;
typedef GUID CLSID, IID, UUID;

typedef struct _FILETIME {
    DWORD dwLowDateTime;
    DWORD dwHighDateTime;
} FILETIME;

typedef struct _OVERLAPPED {
    ULONG_PTR Internal;
    ULONG_PTR InternalHigh;
    union {
        struct {
            DWORD Offset;
            DWORD OffsetHigh;
        } Position;
        PVOID Pointer;
    } Place;
    HANDLE hEvent;
} OVERLAPPED, *LPOVERLAPPED;

enum {
    VT_EMPTY = 0,
    VT_NULL = 1,
    VT_I2 = 2,
    VT_I4 = 3,
    VT_R4 = 4,
    VT_R8 = 5,
    VT_CY = 6,
    VT_DATE = 7,
    VT_BSTR = 8,
    VT_ERROR = 10,
    VT_BOOL = 11,
    VT_VARIANT = 12,
    VT_I1 = 16,
    VT_UI1 = 17,
    VT_UI2 = 18,
    VT_UI4 = 19,
    VT_I8 = 20,
    VT_UI8 = 21,
    VT_LPSTR = 30,
    VT_LPWSTR = 31,
    VT_FILETIME = 64,
    VT_BLOB = 65,
    VT_STREAMED_OBJECT = 68,
    VT_STORED_OBJECT = 69,
    VT_CLSID = 72,
    VT_VECTOR = 0x1000,
    VT_ARRAY = 0x2000
};

typedef struct tagMQPROPVARIANT MQPROPVARIANT;

#define MQ_COUNTED(name, type)  \
    typedef struct tag##name {  \
        ULONG cElems;           \
        type *pElems;           \
    } name

MQ_COUNTED(CAUB, UCHAR);
MQ_COUNTED(CAI, SHORT);
MQ_COUNTED(CAUI, USHORT);
MQ_COUNTED(CAL, LONG);
MQ_COUNTED(CAUL, ULONG);
MQ_COUNTED(CAUH, ULONGLONG);
MQ_COUNTED(CACLSID, CLSID);
MQ_COUNTED(CALPWSTR, LPWSTR);
MQ_COUNTED(CAPROPVARIANT, MQPROPVARIANT);
#undef MQ_COUNTED

typedef struct tagBLOB {
    ULONG cbSize;
    BYTE *pBlobData;
} BLOB;

struct tagMQPROPVARIANT {
    VARTYPE vt;
    WORD wReserved1;
    WORD wReserved2;
    WORD wReserved3;
    union {
        UCHAR bVal;
        SHORT iVal;
        USHORT uiVal;
        VARIANT_BOOL boolVal;
        LONG lVal;
        ULONG ulVal;
        SCODE scode;
        ULONGLONG hVal;
        ULONGLONG uhVal;
        float fltVal;
        double dblVal;
        double date;
        FILETIME filetime;
        CLSID *puuid;
        BLOB blob;
        BSTR bstrVal;
        LPSTR pszVal;
        LPWSTR pwszVal;
        CAUB caub;
        CAI cai;
        CAUI caui;
        CAL cal;
        CAUL caul;
        CAUH cauh;
        CACLSID cauuid;
        CALPWSTR calpwstr;
        CAPROPVARIANT capropvar;
    };
};
typedef MQPROPVARIANT PROPVARIANT;

#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
_Static_assert(sizeof(MQPROPVARIANT) == (sizeof(void *) == 8 ? 24 : 16), "the layout of PROPVARIANT");
#endif

/* Bits of SECURITY_INFORMATION */
#define OWNER_SECURITY_INFORMATION 0x00000001
#define GROUP_SECURITY_INFORMATION 0x00000002
#define DACL_SECURITY_INFORMATION 0x00000004
#define SACL_SECURITY_INFORMATION 0x00000008

#endif
