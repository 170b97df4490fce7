/* MQLocate…: searches the public queues of the directory.
 *
 * MQLocateBegin reads all queue objects, page by page, keeps those that meet every restriction, and sorts them.
 * MQLocateNext hands the columns of the next ones out. */
#include <stdlib.h>
#include <string.h>

#include "frames.h"
#include "handles.h"
#include "link.h"
#include "props.h"
#include "text.h"

enum { PAGE = 500, MOST_ROWS = 100000, MOST_COLUMNS = 32 };

static const struct attribute {
    uint8_t id; /* of the property, less 100 */
    VARTYPE type;
    const char *key; /* of a directory object */
} KNOWN[] = {
    {PROPID_Q_INSTANCE - 100, VT_CLSID, "Identifier"},
    {PROPID_Q_TYPE - 100, VT_CLSID, "Type"},
    {PROPID_Q_PATHNAME - 100, VT_LPWSTR, "Pathname"},
    {PROPID_Q_JOURNAL - 100, VT_UI1, "Journaling"},
    {PROPID_Q_QUOTA - 100, VT_UI4, "Quota"},
    {PROPID_Q_BASEPRIORITY - 100, VT_I2, "BasePriority"},
    {PROPID_Q_JOURNAL_QUOTA - 100, VT_UI4, "JournalQuota"},
    {PROPID_Q_LABEL - 100, VT_LPWSTR, "Label"},
    {PROPID_Q_CREATE_TIME - 100, VT_I4, "CreateTime"},
    {PROPID_Q_MODIFY_TIME - 100, VT_I4, "ModifyTime"},
    {PROPID_Q_AUTHENTICATE - 100, VT_UI1, "Authentication"},
    {PROPID_Q_TRANSACTION - 100, VT_UI1, "Transactional"},
    {PROPID_Q_PATHNAME_DNS - 100, VT_LPWSTR, "QualifiedPathname"},
    {PROPID_Q_MULTICAST_ADDRESS - 100, VT_LPWSTR, "MulticastAddress"},
};

/* A value of an object or of a restriction, ready to be compared. */
struct cell {
    VARTYPE type;
    int64_t number;
    GUID guid;
    WCHAR *text;
};

struct row {
    struct cell cells[MOST_COLUMNS]; /* the columns, then the sort keys */
};

struct search {
    struct object object;
    uint32_t columns, keys;
    const struct attribute *attribute[MOST_COLUMNS];
    ULONG order[MOST_COLUMNS];
    struct row *rows;
    uint32_t count, room, next;
};

static const struct attribute *attribute_of(PROPID id) {
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) {
        if (KNOWN[i].id + 100u == id) return &KNOWN[i];
    }
    return NULL;
}

static void destroy(struct object *object) {
    struct search *search = (struct search *)object;
    for (uint32_t row = 0; row < search->count; row++) {
        for (uint32_t i = 0; i < search->columns + search->keys; i++) free(search->rows[row].cells[i].text);
    }
    free(search->rows);
    free(search);
}

/* ---- values */

static bool read_cell(struct mp_reader map, const struct attribute *attribute, struct cell *cell) {
    struct mp_reader at;
    struct mp_value value = {.type = MP_NIL};
    *cell = (struct cell){.type = attribute->type};
    if (mp_find(map, attribute->key, &at)) (void)mp_next(&at, &value);
    if (attribute->type == VT_LPWSTR) {
        cell->text = utf16_copy(value.bytes, value.type == MP_STR ? value.size : 0);
        return cell->text != NULL;
    }
    if (attribute->type == VT_CLSID && value.type == MP_STR)
        (void)guid_parse((const char *)value.bytes, value.size, &cell->guid); /* no GUID: zeros */
    else if (value.type == MP_NEGATIVE) cell->number = value.negative;
    else if (value.type == MP_UINT || value.type == MP_BOOL) cell->number = (int64_t)value.number;
    return true;
}

static int compare_text(const WCHAR *one, const WCHAR *other) {
    while (*one != 0 && *one == *other) one++, other++;
    return (*one > *other) - (*one < *other);
}

static int compare(const struct cell *one, const struct cell *other) {
    if (one->type == VT_LPWSTR) return compare_text(one->text, other->text);
    if (one->type == VT_CLSID) return memcmp(&one->guid, &other->guid, sizeof one->guid);
    return (one->number > other->number) - (one->number < other->number);
}

/* The value of a restriction; its text stays the caller's. False: another VARTYPE than that of the property. */
static bool restriction_cell(const MQPROPERTYRESTRICTION *given, const struct attribute *attribute,
                             struct cell *cell) {
    const MQPROPVARIANT *value = &given->prval;
    *cell = (struct cell){.type = attribute->type};
    if (value->vt != attribute->type) return false;
    switch (value->vt) {
    case VT_LPWSTR: cell->text = value->pwszVal; return cell->text != NULL;
    case VT_CLSID:
        if (value->puuid == NULL) return false;
        cell->guid = *value->puuid;
        return true;
    case VT_UI1: cell->number = value->bVal; return true;
    case VT_I2: cell->number = value->iVal; return true;
    case VT_I4: cell->number = value->lVal; return true;
    default: cell->number = value->ulVal; return true;
    }
}

static bool holds(ULONG relation, int order) {
    switch (relation) {
    case PRLT: return order < 0;
    case PRLE: return order <= 0;
    case PRGT: return order > 0;
    case PRGE: return order >= 0;
    case PREQ: return order == 0;
    default: return order != 0;
    }
}

static HRESULT matches(struct mp_reader map, const MQRESTRICTION *restriction, bool *all) {
    *all = true;
    for (ULONG i = 0; restriction != NULL && i < restriction->cRes && *all; i++) {
        const MQPROPERTYRESTRICTION *one = &restriction->paPropRes[i];
        const struct attribute *attribute = attribute_of(one->prop);
        struct cell wanted, found;
        (void)restriction_cell(one, attribute, &wanted); /* checked at the beginning */
        if (!read_cell(map, attribute, &found)) return MQ_ERROR_INSUFFICIENT_RESOURCES;
        *all = holds(one->rel, compare(&found, &wanted));
        free(found.text);
    }
    return MQ_OK;
}

/* ---- reading the directory */

static HRESULT add(struct search *search, struct mp_reader map) {
    if (search->count == search->room) {
        uint32_t room = search->room == 0 ? 64 : search->room * 2;
        struct row *rows = search->count >= MOST_ROWS ? NULL : realloc(search->rows, room * sizeof *rows);
        if (rows == NULL) return MQ_ERROR_INSUFFICIENT_RESOURCES;
        search->rows = rows;
        search->room = room;
    }
    struct row *row = &search->rows[search->count];
    memset(row, 0, sizeof *row);
    search->count++;
    for (uint32_t i = 0; i < search->columns + search->keys; i++) {
        if (!read_cell(map, search->attribute[i], &row->cells[i])) return MQ_ERROR_INSUFFICIENT_RESOURCES;
    }
    return MQ_OK;
}

static HRESULT add_page(struct search *search, const MQRESTRICTION *restriction, struct mp_reader page,
                        uint32_t *count, char after[GUID_TEXT + 1]) {
    if (!mp_array(&page, count)) return MQ_ERROR;
    for (uint32_t i = 0; i < *count; i++) {
        struct mp_value guid = map_text(page, "Identifier");
        bool all = false;
        HRESULT result = matches(page, restriction, &all);
        if (result == MQ_OK && all) result = add(search, page);
        if (result != MQ_OK) return result;
        if (guid.size != GUID_TEXT || memcmp(guid.bytes, after, GUID_TEXT) == 0) return MQ_ERROR;
        memcpy(after, guid.bytes, GUID_TEXT); /* the next page begins after the last object */
        mp_skip(&page);
    }
    return MQ_OK;
}

static HRESULT read_all(struct search *search, const MQRESTRICTION *restriction) {
    char after[GUID_TEXT + 1] = "";
    for (uint32_t count = PAGE; count == PAGE;) {
        struct mp_writer request;
        struct reply reply;
        link_begin(&request);
        mp_put_array(&request, 3);
        mp_put_text(&request, "Queue");
        mp_put_text(&request, after);
        mp_put_uint(&request, PAGE);
        HRESULT result = link_ask(0, F_LIST_DIRECTORY, &request, F_REPLY, &reply);
        if (result == MQ_OK)
            result = add_page(search, restriction, mp_over(reply.data, reply.size), &count, after);
        reply_free(&reply);
        if (result != MQ_OK) return result;
    }
    return MQ_OK;
}

static int compare_rows(const void *one, const void *other, void *of) {
    const struct search *search = of;
    for (uint32_t i = search->columns; i < search->columns + search->keys; i++) {
        int order = compare(&((const struct row *)one)->cells[i], &((const struct row *)other)->cells[i]);
        if (order != 0) return search->order[i] == QUERY_SORTDESCEND ? -order : order;
    }
    return 0;
}

/* ---- the functions */

static HRESULT check_restriction(const MQRESTRICTION *restriction) {
    if (restriction == NULL || restriction->cRes == 0) return MQ_OK;
    if (restriction->paPropRes == NULL || restriction->cRes > MOST_COLUMNS) return MQ_ERROR_INVALID_PARAMETER;
    for (ULONG i = 0; i < restriction->cRes; i++) {
        const MQPROPERTYRESTRICTION *one = &restriction->paPropRes[i];
        const struct attribute *attribute = attribute_of(one->prop);
        struct cell cell;
        if (one->rel > PRNE) return MQ_ERROR_ILLEGAL_RELATION;
        if (attribute == NULL) return MQ_ERROR_ILLEGAL_RESTRICTION_PROPID;
        if (!restriction_cell(one, attribute, &cell)) return MQ_ERROR_ILLEGAL_PROPERTY_VT;
    }
    return MQ_OK;
}

static HRESULT take_columns(struct search *search, const MQCOLUMNSET *columns, const MQSORTSET *sort) {
    ULONG keys = sort == NULL ? 0 : sort->cCol;
    if (columns == NULL || columns->cCol == 0 || columns->aCol == NULL || columns->cCol > MOST_COLUMNS)
        return MQ_ERROR_ILLEGAL_MQCOLUMNS;
    if (keys > MOST_COLUMNS - columns->cCol || (keys > 0 && sort->aCol == NULL)) return MQ_ERROR_ILLEGAL_SORT;
    search->columns = columns->cCol;
    search->keys = keys;
    for (uint32_t i = 0; i < search->columns; i++) {
        search->attribute[i] = attribute_of(columns->aCol[i]);
        if (search->attribute[i] == NULL) return MQ_ERROR_ILLEGAL_PROPID;
    }
    for (ULONG i = 0; i < keys; i++) {
        search->attribute[search->columns + i] = attribute_of(sort->aCol[i].propColumn);
        search->order[search->columns + i] = sort->aCol[i].dwOrder;
        if (search->attribute[search->columns + i] == NULL) return MQ_ERROR_ILLEGAL_SORT_PROPID;
    }
    return MQ_OK;
}

MQAPI HRESULT APIENTRY MQLocateBegin(LPCWSTR lpwcsContext, MQRESTRICTION *pRestriction, MQCOLUMNSET *pColumns,
                                     MQSORTSET *pSort, HANDLE *phEnum) {
    if (phEnum == NULL) return MQ_ERROR_INVALID_PARAMETER;
    *phEnum = NULL;
    if (lpwcsContext != NULL) return MQ_ERROR_ILLEGAL_CONTEXT;
    HRESULT result = check_restriction(pRestriction);
    if (result != MQ_OK) return result;
    struct search *search = calloc(1, sizeof *search);
    if (search == NULL) return MQ_ERROR_INSUFFICIENT_RESOURCES;
    search->object = (struct object){.kind = K_LOCATE, .references = 1, .destroy = destroy};
    result = take_columns(search, pColumns, pSort);
    if (result == MQ_OK) result = read_all(search, pRestriction);
    if (result != MQ_OK) {
        object_release(&search->object);
        return result;
    }
    if (search->keys > 0 && search->count > 0)
        qsort_r(search->rows, search->count, sizeof *search->rows, compare_rows, search);
    *phEnum = handle_new(&search->object);
    return *phEnum == NULL ? MQ_ERROR_INSUFFICIENT_RESOURCES : MQ_OK;
}

static bool give(MQPROPVARIANT *value, struct cell *cell) {
    switch (cell->type) {
    case VT_LPWSTR:
        value->vt = VT_LPWSTR;
        value->pwszVal = cell->text;
        cell->text = NULL; /* now the caller's */
        return true;
    case VT_CLSID:
        value->vt = VT_NULL;
        return value_guid(value, &cell->guid);
    case VT_UI1: value_byte(value, (uint64_t)cell->number); return true;
    case VT_UI4: value_ulong(value, (uint64_t)cell->number); return true;
    case VT_I4: value_time(value, (uint64_t)cell->number); return true;
    default:
        value->vt = VT_I2;
        value->iVal = (SHORT)cell->number;
        return true;
    }
}

/* *pcProps: how many values fit; then how many there are: whole rows only. One thread at a time uses a search. */
MQAPI HRESULT APIENTRY MQLocateNext(HANDLE hEnum, DWORD *pcProps, MQPROPVARIANT aPropVar[]) {
    if (pcProps == NULL || aPropVar == NULL) return MQ_ERROR_INVALID_PARAMETER;
    struct search *search = (struct search *)handle_get(hEnum, K_LOCATE);
    if (search == NULL) return MQ_ERROR_INVALID_HANDLE;
    HRESULT result = *pcProps < search->columns ? MQ_ERROR_RESULT_BUFFER_TOO_SMALL : MQ_OK;
    DWORD given = 0;
    for (; result == MQ_OK && search->next < search->count && *pcProps - given >= search->columns; search->next++) {
        for (uint32_t i = 0; i < search->columns && result == MQ_OK; i++) {
            if (!give(&aPropVar[given++], &search->rows[search->next].cells[i]))
                result = MQ_ERROR_INSUFFICIENT_RESOURCES;
        }
    }
    if (result == MQ_OK) *pcProps = given;
    object_release(&search->object);
    return result;
}

MQAPI HRESULT APIENTRY MQLocateEnd(HANDLE hEnum) {
    struct object *search = handle_take(hEnum, K_LOCATE);
    if (search == NULL) return MQ_ERROR_INVALID_HANDLE;
    object_release(search);
    return MQ_OK;
}
