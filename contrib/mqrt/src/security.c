#include <stdlib.h>
#include <string.h>

#include "descriptor.h"
#include "frames.h"
#include "link.h"
#include "names.h"
#include "props.h"

enum { KNOWN_PARTS = OWNER_SECURITY_INFORMATION | GROUP_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION |
                     SACL_SECURITY_INFORMATION };

MQAPI HRESULT APIENTRY MQGetQueueSecurity(LPCWSTR lpwcsFormatName, SECURITY_INFORMATION RequestedInformation,
                                          PSECURITY_DESCRIPTOR pSecurityDescriptor, DWORD nLength,
                                          LPDWORD lpnLengthNeeded) {
    HRESULT result;
    if (lpnLengthNeeded == NULL || (pSecurityDescriptor == NULL && nLength > 0)) return MQ_ERROR_INVALID_PARAMETER;
    if (RequestedInformation & SACL_SECURITY_INFORMATION) return MQ_ERROR_PRIVILEGE_NOT_HELD; /* there is no SACL */
    if (RequestedInformation & ~(DWORD)KNOWN_PARTS) return MQ_ERROR_INVALID_PARAMETER;
    char *name = format_name(lpwcsFormatName, &result);
    if (name == NULL) return result;
    struct mp_writer request;
    struct reply reply;
    struct mp_reader at;
    struct mp_value value;
    link_begin(&request);
    mp_put_array(&request, 1);
    mp_put_text(&request, name);
    free(name);
    result = link_ask(0, F_SHOW_ACL, &request, F_REPLY, &reply);
    if (result == MQ_OK) {
        size_t needed = 0;
        if (mp_find(mp_over(reply.data, reply.size), "descriptor", &at) && mp_next(&at, &value) &&
            value.type == MP_BIN)
            needed = descriptor_parts(value.bytes, value.size, RequestedInformation, pSecurityDescriptor, nLength);
        *lpnLengthNeeded = (DWORD)needed;
        if (needed == 0) result = MQ_ERROR;
        else if (needed > nLength) result = MQ_ERROR_SECURITY_DESCRIPTOR_TOO_SMALL;
    }
    reply_free(&reply);
    return result;
}

MQAPI HRESULT APIENTRY MQSetQueueSecurity(LPCWSTR lpwcsFormatName, SECURITY_INFORMATION SecurityInformation,
                                          PSECURITY_DESCRIPTOR pSecurityDescriptor) {
    HRESULT result;
    if (SecurityInformation & ~(DWORD)KNOWN_PARTS || pSecurityDescriptor == NULL) return MQ_ERROR_INVALID_PARAMETER;
    if (SecurityInformation & SACL_SECURITY_INFORMATION) return MQ_ERROR_PRIVILEGE_NOT_HELD;
    size_t given = descriptor_size(pSecurityDescriptor);
    if (given == 0) return MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR;
    char *name = format_name(lpwcsFormatName, &result);
    if (name == NULL) return result;
    size_t size = descriptor_parts(pSecurityDescriptor, given, SecurityInformation, NULL, 0);
    void *parts = malloc(size);
    result = parts == NULL ? MQ_ERROR_INSUFFICIENT_RESOURCES : MQ_OK;
    if (result == MQ_OK) {
        descriptor_parts(pSecurityDescriptor, given, SecurityInformation, parts, size);
        struct mp_writer request;
        link_begin(&request);
        mp_put_array(&request, 2);
        mp_put_text(&request, name);
        mp_put_map(&request, 1);
        mp_put_text(&request, "security");
        mp_put_bin(&request, parts, size);
        result = link_do(0, F_SET_QUEUE, &request);
    }
    free(parts);
    free(name);
    return result;
}
