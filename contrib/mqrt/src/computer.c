/* Properties of computers. */
#include "computer.h"

#include <stdlib.h>
#include <string.h>

#include "frames.h"
#include "names.h"
#include "props.h"
#include "text.h"

enum { COMPUTER_MOST = 255 }; /* UTF-16 units of a computer name */

bool is_this_computer(LPCWSTR name, const struct hello *hello) {
    if (name == NULL || *name == 0) return true;
    return wide_is(name, ".") || wide_is(name, "localhost") || wide_is(name, hello->name);
}

struct computer {
    GUID identifier;
    char name[256];
    bool here;
};

static HRESULT show_directory(const char *name, struct computer *found) {
    struct mp_writer request;
    struct reply reply;
    link_begin(&request);
    mp_put_array(&request, 2);
    mp_put_text(&request, "QueueManager");
    mp_put_text(&request, name);
    HRESULT result = link_ask(0, F_SHOW_DIRECTORY, &request, F_REPLY, &reply);
    if (result == MQ_OK) {
        struct mp_reader map = mp_over(reply.data, reply.size);
        struct mp_value guid = map_text(map, "Identifier"), path = map_text(map, "ComputerName");
        if (path.size >= sizeof found->name || !guid_parse((const char *)guid.bytes, guid.size, &found->identifier))
            result = MQ_ERROR;
        else if (path.size > 0) memcpy(found->name, path.bytes, path.size);
    }
    reply_free(&reply);
    return result;
}

/* This computer from the hello, others from the directory. */
static HRESULT find(LPCWSTR name, const GUID *identifier, struct computer *found) {
    struct hello hello;
    HRESULT result = link_hello(&hello);
    if (result != MQ_OK) return result;
    *found = (struct computer){0};
    bool own = identifier == NULL ? is_this_computer(name, &hello)
                                  : memcmp(identifier, &hello.guid, sizeof *identifier) == 0;
    if (own) {
        found->identifier = hello.guid;
        found->here = true;
        memcpy(found->name, hello.name, sizeof found->name);
        return MQ_OK;
    }
    char guid[GUID_TEXT + 1];
    if (identifier != NULL) {
        guid_text(identifier, guid);
        return show_directory(guid, found);
    }
    char *text = utf8_of(name, COMPUTER_MOST, NULL);
    if (text == NULL) return MQ_ERROR_INVALID_PARAMETER;
    result = show_directory(text, found);
    free(text);
    return result;
}

/* MQDSPUBLICKEYS of this computer */
static HRESULT give_keys(MQPROPVARIANT *value) {
    struct mp_writer request;
    struct reply reply;
    uint32_t count;
    link_begin(&request);
    mp_put_array(&request, 0);
    HRESULT result = link_ask(0, F_SHOW_KEYS, &request, F_REPLY, &reply);
    if (result == MQ_OK) {
        struct mp_reader reader = mp_over(reply.data, reply.size), at;
        struct mp_value blob;
        result = MQ_ERROR_PUBLIC_KEY_DOES_NOT_EXIST;
        if (!mp_array(&reader, &count)) count = 0;
        for (uint32_t i = 0; i < count && result == MQ_ERROR_PUBLIC_KEY_DOES_NOT_EXIST; i++) {
            bool own = map_number(reader, "own", 0) != 0;
            if (own && mp_find(reader, "blob", &at) && mp_next(&at, &blob) && blob.type == MP_BIN)
                result = value_bytes(value, blob.bytes, blob.size) ? MQ_OK : MQ_ERROR_INSUFFICIENT_RESOURCES;
            mp_skip(&reader);
        }
    }
    reply_free(&reply);
    return result;
}

static HRESULT give(MQPROPVARIANT *value, PROPID id, const struct computer *computer) {
    const uint8_t *name = (const uint8_t *)computer->name;
    switch (id) {
    case PROPID_QM_MACHINE_ID:
        if (value->vt != VT_NULL && value->vt != VT_CLSID) return MQ_ERROR_ILLEGAL_PROPERTY_VT;
        return value_guid(value, &computer->identifier) ? MQ_OK : MQ_ERROR_INSUFFICIENT_RESOURCES;
    case PROPID_QM_PATHNAME:
    case PROPID_QM_PATHNAME_DNS:
        if (value->vt != VT_NULL) return MQ_ERROR_ILLEGAL_PROPERTY_VT;
        return value_text(value, name, strlen(computer->name)) ? MQ_OK : MQ_ERROR_INSUFFICIENT_RESOURCES;
    case PROPID_QM_ENCRYPTION_PK:
    case PROPID_QM_ENCRYPTION_PK_BASE:
    case PROPID_QM_ENCRYPTION_PK_ENHANCED:
        if (value->vt != VT_NULL) return MQ_ERROR_ILLEGAL_PROPERTY_VT;
        return computer->here ? give_keys(value) : MQ_INFORMATION_UNSUPPORTED_PROPERTY;
    default: return MQ_INFORMATION_UNSUPPORTED_PROPERTY; /* sites and connections: without meaning in a workgroup */
    }
}

MQAPI HRESULT APIENTRY MQGetMachineProperties(LPCWSTR lpwcsMachineName, const GUID *pguidMachineId,
                                              MQQMPROPS *pQMProps) {
    HRESULT result;
    struct computer computer;
    if (pQMProps == NULL || (lpwcsMachineName != NULL && pguidMachineId != NULL)) return MQ_ERROR_INVALID_PARAMETER;
    struct props props = PROPS_OF(pQMProps, &result);
    if (result != MQ_OK || (result = find(lpwcsMachineName, pguidMachineId, &computer)) != MQ_OK) return result;
    for (DWORD i = 0; i < props.count; i++) props_status(&props, i, give(&props.values[i], props.ids[i], &computer));
    return props_result(&props);
}

MQAPI HRESULT APIENTRY MQGetPrivateComputerInformation(LPCWSTR lpwcsComputerName, MQPRIVATEPROPS *pPrivateProps) {
    enum { VERSION = 0x06030000 }; /* MSMQ 6.3, whose protocols the server speaks */
    HRESULT result;
    struct hello hello;
    if (pPrivateProps == NULL) return MQ_ERROR_INVALID_PARAMETER;
    if (lpwcsComputerName != NULL) return MQ_ERROR_INVALID_PARAMETER; /* as documented: of this computer only */
    struct props props = PROPS_OF(pPrivateProps, &result);
    if (result != MQ_OK || (result = link_hello(&hello)) != MQ_OK) return result;
    for (DWORD i = 0; i < props.count; i++) {
        MQPROPVARIANT *value = &props.values[i];
        VARTYPE type = props.ids[i] == PROPID_PC_VERSION      ? VT_UI4
                       : props.ids[i] == PROPID_PC_DS_ENABLED ? VT_BOOL
                                                              : VT_EMPTY;
        if (type == VT_EMPTY) {
            props_status(&props, i, MQ_INFORMATION_UNSUPPORTED_PROPERTY);
        } else if (value->vt != VT_NULL && value->vt != type) {
            props_status(&props, i, MQ_ERROR_ILLEGAL_PROPERTY_VT);
        } else if (type == VT_UI4) {
            value_ulong(value, VERSION);
        } else {
            value->vt = VT_BOOL;
            value->boolVal = FALSE; /* no Active Directory */
        }
    }
    return props_result(&props);
}
