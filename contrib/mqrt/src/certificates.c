#include "certificates.h"

#include <stdbool.h>
#include <stdlib.h>

#include "frames.h"
#include "link.h"

enum { CERTIFICATE_MOST = 65536 }; /* bytes */

static void destroy_context(struct object *object) { free(object); }

/* The server keeps the private keys and signs: the context only names the certificate. */
static HRESULT context_of(const void *certificate, DWORD size, HANDLE *context) {
    if (context == NULL || (certificate == NULL && size > 0) || size > CERTIFICATE_MOST)
        return MQ_ERROR_INVALID_PARAMETER;
    *context = NULL;
    struct security_context *made = calloc(1, sizeof *made);
    if (made == NULL) return MQ_ERROR_INSUFFICIENT_RESOURCES;
    made->object = (struct object){.kind = K_SECURITY, .references = 1, .destroy = destroy_context};
    made->external = size > 0;
    if (size > 0) md5(certificate, size, made->digest);
    *context = handle_new(&made->object);
    return *context == NULL ? MQ_ERROR_INSUFFICIENT_RESOURCES : MQ_OK;
}

MQAPI HRESULT APIENTRY MQGetSecurityContext(void *lpCertBuffer, DWORD dwCertBufferLength, HANDLE *phSecurityContext) {
    return context_of(lpCertBuffer, dwCertBufferLength, phSecurityContext);
}

MQAPI HRESULT APIENTRY MQGetSecurityContextEx(void *lpCertBuffer, DWORD dwCertBufferLength,
                                              HANDLE *phSecurityContext) {
    return context_of(lpCertBuffer, dwCertBufferLength, phSecurityContext);
}

MQAPI void APIENTRY MQFreeSecurityContext(HANDLE hSecurityContext) {
    struct object *context = handle_take(hSecurityContext, K_SECURITY);
    if (context != NULL) object_release(context);
}

/* Whether the caller has an internal certificate. */
static HRESULT internal_exists(bool *exists) {
    struct mp_writer request;
    struct reply reply;
    link_begin(&request);
    mp_put_array(&request, 1);
    mp_put_text(&request, "");
    HRESULT result = link_ask(0, F_LIST_CERTIFICATES, &request, F_REPLY, &reply);
    struct mp_reader reader = mp_over(reply.data, reply.size);
    uint32_t count = 0;
    *exists = false;
    if (result == MQ_OK && !mp_array(&reader, &count)) result = MQ_ERROR;
    for (uint32_t i = 0; result == MQ_OK && i < count; i++) {
        struct mp_reader at;
        bool internal;
        if (mp_find(reader, "internal", &at) && mp_flag(&at, &internal) && internal) *exists = true;
        mp_skip(&reader);
    }
    reply_free(&reply);
    return result;
}

MQAPI HRESULT APIENTRY MQRegisterCertificate(DWORD dwFlags, void *lpCertBuffer, DWORD dwCertBufferLength) {
    bool external = dwCertBufferLength > 0;
    if (dwFlags & ~(DWORD)(MQCERT_REGISTER_ALWAYS | MQCERT_REGISTER_IF_NOT_EXIST)) return MQ_ERROR_INVALID_PARAMETER;
    if ((external && lpCertBuffer == NULL) || dwCertBufferLength > CERTIFICATE_MOST)
        return MQ_ERROR_INVALID_PARAMETER;
    if (!external && dwFlags & MQCERT_REGISTER_IF_NOT_EXIST) {
        bool exists;
        HRESULT result = internal_exists(&exists);
        if (result != MQ_OK) return result;
        if (exists) return MQ_INFORMATION_INTERNAL_USER_CERT_EXIST;
    }
    struct mp_writer request;
    link_begin(&request);
    mp_put_array(&request, external ? 3 : 1);
    mp_put_text(&request, "");
    if (external) {
        mp_put_bin(&request, lpCertBuffer, dwCertBufferLength);
        mp_put_nil(&request);
    }
    return link_do(0, external ? F_ADD_CERTIFICATE : F_CREATE_CERTIFICATE, &request);
}
