#include "names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "frames.h"
#include "handles.h"
#include "link.h"
#include "props.h"
#include "text.h"

char *format_name(LPCWSTR name, HRESULT *result) {
    static const char *const prefixes[] = {"DIRECT=",  "PRIVATE=",   "PUBLIC=",   "DL=",
                                           "MACHINE=", "CONNECTOR=", "MULTICAST="};
    *result = MQ_ERROR_INVALID_PARAMETER;
    if (name == NULL) return NULL;
    *result = MQ_ERROR_ILLEGAL_FORMATNAME;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (!wide_begins(name, prefixes[i])) continue;
        char *text = utf8_of(name, NAME_MOST, NULL);
        if (text != NULL) *result = MQ_OK;
        return text;
    }
    return NULL;
}

HRESULT give_name(const char *name, size_t size, LPWSTR buffer, LPDWORD length, HRESULT too_small) {
    size_t needed = utf16_units((const uint8_t *)name, size) + 1;
    DWORD room = *length;
    *length = (DWORD)needed;
    if (room < needed) return too_small;
    if (buffer == NULL) return MQ_ERROR_INVALID_PARAMETER;
    utf16_write((const uint8_t *)name, size, buffer, needed - 1);
    buffer[needed - 1] = 0;
    return MQ_OK;
}

MQAPI HRESULT APIENTRY MQHandleToFormatName(QUEUEHANDLE hQueue, LPWSTR lpwcsFormatName,
                                            LPDWORD lpdwFormatNameLength) {
    if (lpdwFormatNameLength == NULL) return MQ_ERROR_INVALID_PARAMETER;
    struct queue *queue;
    HRESULT result = queue_get(hQueue, ~0u, &queue);
    if (result != MQ_OK) return result;
    result = give_name(queue->name, strlen(queue->name), lpwcsFormatName, lpdwFormatNameLength,
                       MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL);
    object_release(&queue->object);
    return result;
}

MQAPI HRESULT APIENTRY MQInstanceToFormatName(GUID *pGuid, LPWSTR lpwcsFormatName, LPDWORD lpdwFormatNameLength) {
    if (pGuid == NULL || lpdwFormatNameLength == NULL) return MQ_ERROR_INVALID_PARAMETER;
    char name[sizeof "PUBLIC=" + GUID_TEXT] = "PUBLIC=";
    guid_text(pGuid, name + strlen("PUBLIC="));
    return give_name(name, strlen(name), lpwcsFormatName, lpdwFormatNameLength,
                     MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL);
}

MQAPI HRESULT APIENTRY MQADsPathToFormatName(LPCWSTR lpwcsADsPath, LPWSTR lpwcsFormatName,
                                             LPDWORD lpdwFormatNameLength) {
    if (lpwcsADsPath == NULL || lpwcsFormatName == NULL || lpdwFormatNameLength == NULL)
        return MQ_ERROR_INVALID_PARAMETER;
    return MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION; /* there is no Active Directory to ask */
}

/* A path is MACHINE\NAME, MACHINE\private$\NAME or MACHINE\system$;NAME; a public one has no $ in its second part. */
static HRESULT kind_of_path(const char *path, bool *public) {
    const char *second = strchr(path, '\\');
    if (second == NULL || second == path || second[1] == 0) return MQ_ERROR_ILLEGAL_QUEUE_PATHNAME;
    bool private = strncasecmp(second, "\\private$\\", 10) == 0, system = strncasecmp(second, "\\system$;", 9) == 0;
    *public = !private && !system;
    if ((private && second[10] == 0) || (system && second[9] == 0)) return MQ_ERROR_ILLEGAL_QUEUE_PATHNAME;
    return *public && strchr(second + 1, '\\') != NULL ? MQ_ERROR_ILLEGAL_QUEUE_PATHNAME : MQ_OK;
}

static HRESULT ask_directory(const char *path, LPWSTR buffer, LPDWORD length) {
    struct mp_writer request;
    struct reply reply;
    link_begin(&request);
    mp_put_array(&request, 1);
    mp_put_text(&request, path);
    HRESULT result = link_ask(0, F_GET_QUEUE, &request, F_REPLY, &reply);
    if (result == MQ_OK) {
        struct mp_value name = map_text(mp_over(reply.data, reply.size), "format_name");
        result = name.type != MP_STR ? MQ_ERROR
                                     : give_name((const char *)name.bytes, name.size, buffer, length,
                                                 MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL);
    }
    reply_free(&reply);
    return result;
}

MQAPI HRESULT APIENTRY MQPathNameToFormatName(LPCWSTR lpwcsPathName, LPWSTR lpwcsFormatName,
                                              LPDWORD lpdwFormatNameLength) {
    if (lpwcsPathName == NULL || lpdwFormatNameLength == NULL) return MQ_ERROR_INVALID_PARAMETER;
    char *path = utf8_of(lpwcsPathName, NAME_MOST, NULL);
    if (path == NULL) return MQ_ERROR_ILLEGAL_QUEUE_PATHNAME;
    bool public = false;
    HRESULT result = kind_of_path(path, &public);
    if (result == MQ_OK && public) result = ask_directory(path, lpwcsFormatName, lpdwFormatNameLength);
    else if (result == MQ_OK) {
        char *name = NULL;
        if (asprintf(&name, "DIRECT=OS:%s", path) < 0) name = NULL;
        result = name == NULL ? MQ_ERROR_INSUFFICIENT_RESOURCES
                              : give_name(name, strlen(name), lpwcsFormatName, lpdwFormatNameLength,
                                          MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL);
        free(name);
    }
    free(path);
    return result;
}
