#include "props.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"

enum { MOST_PROPERTIES = 256 };

struct props props_checked(DWORD count, const PROPID *ids, MQPROPVARIANT *values, HRESULT *statuses,
                           HRESULT *result) {
    struct props props = {.count = count, .ids = ids, .values = values, .statuses = statuses};
    *result = MQ_OK;
    if (count > MOST_PROPERTIES) *result = MQ_ERROR_TOO_MANY_PROPERTIES;
    else if (count > 0 && (ids == NULL || values == NULL)) *result = MQ_ERROR_INVALID_PARAMETER;
    else if (statuses != NULL) memset(statuses, 0, count * sizeof *statuses);
    return props;
}

void props_status(struct props *props, DWORD index, HRESULT status) {
    if (props->statuses != NULL) props->statuses[index] = status;
    if (FAILED(status)) props->error = true;
    else if (status != MQ_OK) props->information = true;
}

HRESULT props_result(const struct props *props) {
    if (props->error) return MQ_ERROR_PROPERTY;
    return props->information ? MQ_INFORMATION_PROPERTY : MQ_OK;
}

bool value_text(MQPROPVARIANT *value, const uint8_t *bytes, size_t size) {
    WCHAR *copy = utf16_copy(bytes, size);
    if (copy == NULL) return false;
    value->vt = VT_LPWSTR;
    value->pwszVal = copy;
    return true;
}

bool value_ascii(MQPROPVARIANT *value, const char *text) {
    return value_text(value, (const uint8_t *)text, strlen(text));
}

bool value_bytes(MQPROPVARIANT *value, const uint8_t *bytes, size_t size) {
    uint8_t *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL) return false;
    if (size > 0) memcpy(copy, bytes, size);
    value->vt = VT_VECTOR | VT_UI1;
    value->caub.cElems = (ULONG)size;
    value->caub.pElems = copy;
    return true;
}

bool value_guid(MQPROPVARIANT *value, const GUID *guid) {
    GUID *to = value->vt == VT_CLSID ? value->puuid : NULL;
    if (to == NULL && (to = malloc(sizeof *to)) == NULL) return false;
    *to = *guid;
    value->vt = VT_CLSID;
    value->puuid = to;
    return true;
}

void value_byte(MQPROPVARIANT *value, uint64_t number) {
    value->vt = VT_UI1;
    value->bVal = (UCHAR)number;
}

void value_word(MQPROPVARIANT *value, uint64_t number) {
    value->vt = VT_UI2;
    value->uiVal = (USHORT)number;
}

void value_ulong(MQPROPVARIANT *value, uint64_t number) {
    value->vt = VT_UI4;
    value->ulVal = number > UINT32_MAX ? UINT32_MAX : (ULONG)number;
}

void value_time(MQPROPVARIANT *value, uint64_t seconds) {
    value->vt = VT_I4;
    value->lVal = seconds > INT32_MAX ? INT32_MAX : (LONG)seconds;
}

bool texts_add(struct texts *texts, const uint8_t *bytes, size_t size) {
    if (texts->count == texts->room) {
        ULONG room = texts->room == 0 ? 16 : texts->room * 2;
        LPWSTR *items = realloc(texts->items, room * sizeof *items);
        if (items == NULL) return false;
        texts->items = items;
        texts->room = room;
    }
    WCHAR *copy = utf16_copy(bytes, size);
    if (copy == NULL) return false;
    texts->items[texts->count++] = copy;
    return true;
}

void texts_free(struct texts *texts) {
    for (ULONG i = 0; i < texts->count; i++) free(texts->items[i]);
    free(texts->items);
    *texts = (struct texts){0};
}

void value_texts(MQPROPVARIANT *value, struct texts *texts) {
    value->vt = VT_VECTOR | VT_LPWSTR;
    value->calpwstr.cElems = texts->count;
    value->calpwstr.pElems = texts->items;
}

uint64_t map_number(struct mp_reader map, const char *key, uint64_t fallback) {
    struct mp_reader at;
    struct mp_value value;
    if (!mp_find(map, key, &at) || !mp_next(&at, &value)) return fallback;
    return value.type == MP_UINT || value.type == MP_BOOL ? value.number : fallback;
}

struct mp_value map_text(struct mp_reader map, const char *key) {
    struct mp_reader at;
    struct mp_value value;
    if (mp_find(map, key, &at) && mp_next(&at, &value) && value.type == MP_STR) return value;
    return (struct mp_value){.type = MP_NIL};
}

bool map_texts(struct mp_reader map, const char *key, struct texts *texts) {
    struct mp_reader at;
    uint32_t count;
    if (!mp_find(map, key, &at) || !mp_array(&at, &count)) return true;
    for (uint32_t i = 0; i < count; i++) {
        struct mp_value value;
        if (!mp_next(&at, &value)) return true;
        if (value.type == MP_STR && !texts_add(texts, value.bytes, value.size)) return false;
        if (value.type == MP_ARRAY || value.type == MP_MAP) return true; /* not a list of texts */
    }
    return true;
}
