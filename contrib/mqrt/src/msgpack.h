/* The subset of msgpack that the application protocol uses: nil, bool, integers, floats, str, bin, array, map.
 *
 * Reading copies nothing and allocates nothing: values point into the bytes that are read. A reader checks each
 * size against the bytes that are left, and a skip does not recurse, so input may nest to any depth.
 */
#ifndef MQRT_MSGPACK_H
#define MQRT_MSGPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* MP_FLOAT: the library skips the values, which are rates of messages. */
enum mp_type { MP_BAD, MP_NIL, MP_BOOL, MP_UINT, MP_NEGATIVE, MP_FLOAT, MP_STR, MP_BIN, MP_ARRAY, MP_MAP };

struct mp_value {
    enum mp_type type;
    uint64_t number;      /* MP_UINT; MP_BOOL: 0 or 1 */
    int64_t negative;     /* MP_NEGATIVE */
    const uint8_t *bytes; /* MP_STR, MP_BIN */
    uint32_t size;        /* of bytes; MP_ARRAY: elements; MP_MAP: pairs */
};

struct mp_reader {
    const uint8_t *at;
    const uint8_t *end;
    bool bad; /* the input is not valid; every further read fails */
};

struct mp_reader mp_over(const void *data, size_t size);

/* Reads the head of the next value; the elements of an array or map follow. False: the input is not valid. */
bool mp_next(struct mp_reader *from, struct mp_value *value);

/* Skips the next value with everything inside it. */
bool mp_skip(struct mp_reader *from);

/* Whether the input is exactly one value. */
bool mp_is_one_value(const void *data, size_t size);

/* Reads a value of one type, a number of at most `most`, an array or map; false if it is another one. */
bool mp_number(struct mp_reader *from, uint64_t most, uint64_t *number);
bool mp_flag(struct mp_reader *from, bool *flag);
bool mp_array(struct mp_reader *from, uint32_t *count);
bool mp_map(struct mp_reader *from, uint32_t *pairs);

/* Finds a key of the map at `map`; the reader that results is at its value. False: no such key. */
bool mp_find(struct mp_reader map, const char *key, struct mp_reader *value);

struct mp_writer {
    uint8_t *data;
    size_t size;
    size_t room;
    bool failed; /* no memory */
};

void mp_begin(struct mp_writer *to, size_t reserved);
void mp_free(struct mp_writer *to);
void mp_put_nil(struct mp_writer *to);
void mp_put_bool(struct mp_writer *to, bool flag);
void mp_put_uint(struct mp_writer *to, uint64_t number);
void mp_put_int(struct mp_writer *to, int64_t number);
void mp_put_str(struct mp_writer *to, const char *bytes, size_t size);
void mp_put_text(struct mp_writer *to, const char *text);
void mp_put_bin(struct mp_writer *to, const void *bytes, size_t size);
void mp_put_array(struct mp_writer *to, uint32_t count);
void mp_put_map(struct mp_writer *to, uint32_t pairs);
/* Appends what another writer, begun without reserved bytes, has. */
void mp_put_raw(struct mp_writer *to, const struct mp_writer *from);

#endif
