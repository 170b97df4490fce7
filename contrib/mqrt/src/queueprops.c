/* Queues and their properties: create, delete, get, set. */
#include <stdlib.h>
#include <string.h>

#include "descriptor.h"
#include "frames.h"
#include "link.h"
#include "names.h"
#include "props.h"
#include "text.h"

enum { FIRST = PROPID_Q_INSTANCE, LAST = PROPID_Q_ADS_PATH };
enum use { READ_ONLY, AT_CREATION, CHANGEABLE };

static const struct description {
    VARTYPE type; /* 0: no such property */
    uint8_t use;
    uint8_t longest; /* of a text, in UTF-16 units; 0: any length */
    uint32_t most;      /* for numbers */
    const char *key;    /* of the application protocol */
} KNOWN[LAST - FIRST + 1] = {
    [PROPID_Q_INSTANCE - FIRST] = {VT_CLSID, READ_ONLY, 0, 0, "guid"},
    [PROPID_Q_TYPE - FIRST] = {VT_CLSID, CHANGEABLE, 0, 0, "type"},
    [PROPID_Q_PATHNAME - FIRST] = {VT_LPWSTR, AT_CREATION, 0, 0, "name"},
    [PROPID_Q_JOURNAL - FIRST] = {VT_UI1, CHANGEABLE, 0, 1, "journal"},
    [PROPID_Q_QUOTA - FIRST] = {VT_UI4, CHANGEABLE, 0, UINT32_MAX, "quota_kb"},
    [PROPID_Q_BASEPRIORITY - FIRST] = {VT_I2, CHANGEABLE, 0, 0, "base_priority"},
    [PROPID_Q_JOURNAL_QUOTA - FIRST] = {VT_UI4, CHANGEABLE, 0, UINT32_MAX, "journal_quota_kb"},
    [PROPID_Q_LABEL - FIRST] = {VT_LPWSTR, CHANGEABLE, MQ_MAX_Q_LABEL_LEN, 0, "label"},
    [PROPID_Q_CREATE_TIME - FIRST] = {VT_I4, READ_ONLY, 0, 0, "created"},
    [PROPID_Q_MODIFY_TIME - FIRST] = {VT_I4, READ_ONLY, 0, 0, "modified"},
    [PROPID_Q_AUTHENTICATE - FIRST] = {VT_UI1, CHANGEABLE, 0, 1, "authenticated"},
    [PROPID_Q_PRIV_LEVEL - FIRST] = {VT_UI4, CHANGEABLE, 0, MQ_PRIV_LEVEL_BODY, "privacy_level"},
    [PROPID_Q_TRANSACTION - FIRST] = {VT_UI1, AT_CREATION, 0, 1, "transactional"},
    [PROPID_Q_PATHNAME_DNS - FIRST] = {VT_LPWSTR, READ_ONLY, 0, 0, "name"},
    [PROPID_Q_MULTICAST_ADDRESS - FIRST] = {VT_LPWSTR, CHANGEABLE, 0, 0, "multicast_address"},
    [PROPID_Q_ADS_PATH - FIRST] = {VT_LPWSTR, READ_ONLY, 0, 0, NULL},
};

static const struct description *described(PROPID id) {
    if (id < FIRST || id > LAST || KNOWN[id - FIRST].type == 0) return NULL;
    return &KNOWN[id - FIRST];
}

static bool repeated(const struct props *props, DWORD index) {
    for (DWORD i = 0; i < index; i++) {
        if (props->ids[i] == props->ids[index]) return true;
    }
    return false;
}

/* ---- setting */

static HRESULT settable(PROPID id, const MQPROPVARIANT *value, enum use use) {
    const struct description *known = described(id);
    if (known == NULL) return MQ_INFORMATION_UNSUPPORTED_PROPERTY;
    if (known->use < use) return MQ_ERROR_PROPERTY_NOTALLOWED;
    if (id == PROPID_Q_MULTICAST_ADDRESS && value->vt == VT_EMPTY) return MQ_OK; /* no address */
    if (value->vt != known->type) return MQ_ERROR_ILLEGAL_PROPERTY_VT;
    switch (known->type) {
    case VT_LPWSTR:
        if (value->pwszVal == NULL) return MQ_ERROR_ILLEGAL_PROPERTY_VALUE;
        if (known->longest > 0 && wide_length(value->pwszVal, known->longest + 1u) > known->longest)
            return MQ_ERROR_ILLEGAL_PROPERTY_VALUE;
        return MQ_OK;
    case VT_CLSID: return value->puuid == NULL ? MQ_ERROR_ILLEGAL_PROPERTY_VALUE : MQ_OK;
    case VT_UI1: return value->bVal > known->most ? MQ_ERROR_ILLEGAL_PROPERTY_VALUE : MQ_OK;
    case VT_UI4: return value->ulVal > known->most ? MQ_ERROR_ILLEGAL_PROPERTY_VALUE : MQ_OK;
    default: return MQ_OK;
    }
}

/* False: the text is not UTF-16. */
static bool put_value(struct mp_writer *to, PROPID id, const MQPROPVARIANT *value) {
    const struct description *known = described(id);
    char guid[GUID_TEXT + 1], *text;
    mp_put_text(to, known->key);
    if (value->vt == VT_EMPTY) {
        mp_put_text(to, "");
    } else if (known->type == VT_LPWSTR) {
        if ((text = utf8_of(value->pwszVal, NAME_MOST, NULL)) == NULL) return false;
        mp_put_text(to, text);
        free(text);
    } else if (known->type == VT_CLSID) {
        guid_text(value->puuid, guid);
        mp_put_text(to, guid);
    } else if (known->type == VT_UI1) {
        mp_put_bool(to, value->bVal != 0);
    } else if (known->type == VT_I2) {
        mp_put_int(to, value->iVal);
    } else {
        mp_put_uint(to, value->ulVal);
    }
    return true;
}

/* Checks all properties and writes them as a map. `security`, a self-relative descriptor, may be NULL. */
static HRESULT put_properties(struct mp_writer *to, struct props *props, enum use use, const void *security) {
    uint32_t count = security != NULL;
    bool given[LAST - FIRST + 1] = {false};
    for (DWORD i = 0; i < props->count; i++) {
        PROPID id = props->ids[i];
        HRESULT status = repeated(props, i) ? MQ_INFORMATION_DUPLICATE_PROPERTY
                                            : settable(id, &props->values[i], use);
        props_status(props, i, status);
        if (status == MQ_OK && id != PROPID_Q_PATHNAME) {
            given[id - FIRST] = true;
            count++;
        }
    }
    if (props->error) return MQ_ERROR_PROPERTY;
    mp_put_map(to, count);
    for (DWORD i = 0; i < props->count; i++) {
        PROPID id = props->ids[i];
        if (id < FIRST || id > LAST || !given[id - FIRST] || repeated(props, i)) continue;
        if (!put_value(to, id, &props->values[i])) props_status(props, i, MQ_ERROR_ILLEGAL_PROPERTY_VALUE);
    }
    if (security != NULL) {
        mp_put_text(to, "security");
        mp_put_bin(to, security, descriptor_size(security));
    }
    return props->error ? MQ_ERROR_PROPERTY : MQ_OK;
}

static const MQPROPVARIANT *path_of(const struct props *props) {
    for (DWORD i = 0; i < props->count; i++) {
        if (props->ids[i] == PROPID_Q_PATHNAME) return &props->values[i];
    }
    return NULL;
}

/* The caller has the queue even if the name does not fit: that is a piece of information. */
static HRESULT created(const struct reply *reply, LPWSTR name, LPDWORD length, HRESULT otherwise) {
    struct mp_value text = map_text(mp_over(reply->data, reply->size), "format_name");
    if (text.type != MP_STR) return MQ_ERROR;
    HRESULT result = give_name((const char *)text.bytes, text.size, name, length,
                               MQ_INFORMATION_FORMATNAME_BUFFER_TOO_SMALL);
    return result == MQ_OK ? otherwise : result;
}

MQAPI HRESULT APIENTRY MQCreateQueue(PSECURITY_DESCRIPTOR pSecurityDescriptor, MQQUEUEPROPS *pQueueProps,
                                     LPWSTR lpwcsFormatName, LPDWORD lpdwFormatNameLength) {
    HRESULT result;
    if (pQueueProps == NULL || lpdwFormatNameLength == NULL || lpwcsFormatName == NULL)
        return MQ_ERROR_INVALID_PARAMETER;
    if (pSecurityDescriptor != NULL && descriptor_size(pSecurityDescriptor) == 0)
        return MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR;
    struct props props = PROPS_OF(pQueueProps, &result);
    if (result != MQ_OK) return result;
    const MQPROPVARIANT *path = path_of(&props);
    if (path == NULL) return MQ_ERROR_INSUFFICIENT_PROPERTIES;
    struct mp_writer request, properties;
    mp_begin(&properties, 0);
    result = put_properties(&properties, &props, AT_CREATION, pSecurityDescriptor);
    char *name = result == MQ_OK ? utf8_of(path->pwszVal, NAME_MOST, NULL) : NULL;
    if (result == MQ_OK && (name == NULL || strchr(name, '\\') == NULL)) result = MQ_ERROR_ILLEGAL_QUEUE_PATHNAME;
    if (result == MQ_OK) {
        struct reply reply;
        link_begin(&request);
        mp_put_array(&request, 2);
        mp_put_text(&request, name);
        mp_put_raw(&request, &properties);
        result = link_ask(0, F_CREATE_QUEUE, &request, F_REPLY, &reply);
        if (result == MQ_OK)
            result = created(&reply, lpwcsFormatName, lpdwFormatNameLength, props_result(&props));
        reply_free(&reply);
    }
    free(name);
    mp_free(&properties);
    return result;
}

MQAPI HRESULT APIENTRY MQSetQueueProperties(LPCWSTR lpwcsFormatName, MQQUEUEPROPS *pQueueProps) {
    HRESULT result;
    if (pQueueProps == NULL) return MQ_ERROR_INVALID_PARAMETER;
    struct props props = PROPS_OF(pQueueProps, &result);
    if (result != MQ_OK) return result;
    char *name = format_name(lpwcsFormatName, &result);
    if (name == NULL) return result;
    struct mp_writer request;
    link_begin(&request);
    mp_put_array(&request, 2);
    mp_put_text(&request, name);
    result = put_properties(&request, &props, CHANGEABLE, NULL);
    if (result == MQ_OK) result = link_do(0, F_SET_QUEUE, &request);
    else mp_free(&request);
    free(name);
    return result == MQ_OK ? props_result(&props) : result;
}

MQAPI HRESULT APIENTRY MQDeleteQueue(LPCWSTR lpwcsFormatName) {
    HRESULT result;
    char *name = format_name(lpwcsFormatName, &result);
    if (name == NULL) return result;
    struct mp_writer request;
    link_begin(&request);
    mp_put_array(&request, 1);
    mp_put_text(&request, name);
    free(name);
    return link_do(0, F_DELETE_QUEUE, &request);
}

/* ---- getting */

static HRESULT readable(PROPID id, const MQPROPVARIANT *value) {
    const struct description *known = described(id);
    if (known == NULL || known->key == NULL) return MQ_INFORMATION_UNSUPPORTED_PROPERTY;
    return value->vt == VT_NULL || value->vt == known->type ? MQ_OK : MQ_ERROR_ILLEGAL_PROPERTY_VT;
}

static bool give(MQPROPVARIANT *value, PROPID id, struct mp_reader map) {
    const struct description *known = described(id);
    struct mp_value text = map_text(map, known->key), number;
    struct mp_reader at;
    GUID guid = {0};
    switch (known->type) {
    case VT_LPWSTR: return value_text(value, text.bytes, text.size);
    case VT_CLSID:
        (void)guid_parse((const char *)text.bytes, text.size, &guid); /* no type: zeros */
        return value_guid(value, &guid);
    case VT_UI1: value_byte(value, map_number(map, known->key, 0)); return true;
    case VT_UI4: value_ulong(value, map_number(map, known->key, 0)); return true;
    case VT_I4: value_time(value, map_number(map, known->key, 0)); return true;
    default:
        value->vt = VT_I2;
        value->iVal = 0;
        if (mp_find(map, known->key, &at) && mp_next(&at, &number))
            value->iVal = (SHORT)(number.type == MP_NEGATIVE ? number.negative : (int64_t)number.number);
        return true;
    }
}

static HRESULT give_all(struct props *props, struct mp_reader map) {
    for (DWORD i = 0; i < props->count; i++) {
        if (props->statuses != NULL && props->statuses[i] != MQ_OK) continue;
        if (readable(props->ids[i], &props->values[i]) != MQ_OK) continue;
        if (!give(&props->values[i], props->ids[i], map)) return MQ_ERROR_INSUFFICIENT_RESOURCES;
    }
    return props_result(props);
}

MQAPI HRESULT APIENTRY MQGetQueueProperties(LPCWSTR lpwcsFormatName, MQQUEUEPROPS *pQueueProps) {
    HRESULT result;
    if (pQueueProps == NULL) return MQ_ERROR_INVALID_PARAMETER;
    struct props props = PROPS_OF(pQueueProps, &result);
    if (result != MQ_OK) return result;
    for (DWORD i = 0; i < props.count; i++)
        props_status(&props, i, repeated(&props, i) ? MQ_INFORMATION_DUPLICATE_PROPERTY
                                                    : readable(props.ids[i], &props.values[i]));
    if (props.error) return MQ_ERROR_PROPERTY;
    char *name = format_name(lpwcsFormatName, &result);
    if (name == NULL) return result;
    struct mp_writer request;
    struct reply reply;
    link_begin(&request);
    mp_put_array(&request, 1);
    mp_put_text(&request, name);
    result = link_ask(0, F_GET_QUEUE, &request, F_REPLY, &reply);
    if (result == MQ_OK) result = give_all(&props, mp_over(reply.data, reply.size));
    reply_free(&reply);
    free(name);
    return result;
}
