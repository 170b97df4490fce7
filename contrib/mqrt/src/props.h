/* Arrays of properties as programs pass them, whatever they describe. */
#ifndef MQRT_PROPS_H
#define MQRT_PROPS_H

#include <stdbool.h>

#include "mq.h"
#include "msgpack.h"

struct props {
    DWORD count;
    const PROPID *ids;
    MQPROPVARIANT *values;
    HRESULT *statuses; /* may be NULL */
    bool error;
    bool information;
};

/* From any of the structures of mq.h; *result is MQ_ERROR_INVALID_PARAMETER for NULL arrays,
 * MQ_ERROR_TOO_MANY_PROPERTIES, or MQ_OK. All statuses become MQ_OK. */
#define PROPS_OF(given, result) \
    props_checked((given)->cProp, (given)->aPropID, (given)->aPropVar, (given)->aStatus, (result))
struct props props_checked(DWORD count, const PROPID *ids, MQPROPVARIANT *values, HRESULT *statuses,
                           HRESULT *result);

/* Sets the status of one property, which decides what props_result() returns. */
void props_status(struct props *props, DWORD index, HRESULT status);

/* MQ_OK, MQ_INFORMATION_PROPERTY or MQ_ERROR_PROPERTY. */
HRESULT props_result(const struct props *props);

/* Values that the library allocates, to be freed by MQFreeMemory; false: no memory. */
bool value_text(MQPROPVARIANT *value, const uint8_t *bytes, size_t size);
bool value_ascii(MQPROPVARIANT *value, const char *text);
bool value_bytes(MQPROPVARIANT *value, const uint8_t *bytes, size_t size);
/* Into the caller's GUID if the value is VT_CLSID with a pointer, else allocated. */
bool value_guid(MQPROPVARIANT *value, const GUID *guid);
void value_byte(MQPROPVARIANT *value, uint64_t number);
void value_word(MQPROPVARIANT *value, uint64_t number);
void value_ulong(MQPROPVARIANT *value, uint64_t number);
void value_time(MQPROPVARIANT *value, uint64_t seconds);

/* A list of texts under construction: VT_VECTOR | VT_LPWSTR. */
struct texts {
    LPWSTR *items;
    ULONG count;
    ULONG room;
};
bool texts_add(struct texts *texts, const uint8_t *bytes, size_t size);
void texts_free(struct texts *texts);
void value_texts(MQPROPVARIANT *value, struct texts *texts);

/* A number or a flag of the map at `map`; `fallback` if it is not there or has another type. */
uint64_t map_number(struct mp_reader map, const char *key, uint64_t fallback);
/* A text; size 0 if it is not there. */
struct mp_value map_text(struct mp_reader map, const char *key);
bool map_texts(struct mp_reader map, const char *key, struct texts *texts);

#endif
