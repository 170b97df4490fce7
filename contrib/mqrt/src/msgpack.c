#include "msgpack.h"

#include <stdlib.h>
#include <string.h>

struct mp_reader mp_over(const void *data, size_t size) {
    const uint8_t *bytes = data;
    return (struct mp_reader){.at = bytes, .end = bytes + size, .bad = false};
}

static bool fail(struct mp_reader *from) {
    from->bad = true;
    return false;
}

static bool big_endian(struct mp_reader *from, unsigned width, uint64_t *number) {
    if ((size_t)(from->end - from->at) < width) return fail(from);
    uint64_t value = 0;
    for (unsigned i = 0; i < width; i++) value = value << 8 | from->at[i];
    from->at += width;
    *number = value;
    return true;
}

static bool bytes(struct mp_reader *from, struct mp_value *value, enum mp_type type, uint64_t size) {
    if ((uint64_t)(from->end - from->at) < size) return fail(from);
    value->type = type;
    value->bytes = from->at;
    value->size = (uint32_t)size;
    from->at += size;
    return true;
}

/* Each element has at least one byte: a count above what is left is a lie, found before anything relies on it. */
static bool container(struct mp_reader *from, struct mp_value *value, enum mp_type type, uint64_t count) {
    uint64_t least = type == MP_MAP ? 2 * count : count;
    if ((uint64_t)(from->end - from->at) < least) return fail(from);
    value->type = type;
    value->size = (uint32_t)count;
    return true;
}

static bool signed_number(struct mp_reader *from, struct mp_value *value, unsigned width) {
    uint64_t number;
    if (!big_endian(from, width, &number)) return false;
    uint64_t sign = 1ULL << (8 * width - 1);
    if (number & sign) {
        uint64_t extended = width == 8 ? number : number | ~((sign << 1) - 1);
        value->type = MP_NEGATIVE;
        memcpy(&value->negative, &extended, sizeof extended);
    } else {
        value->type = MP_UINT;
        value->number = number;
    }
    return true;
}

static bool sized(struct mp_reader *from, struct mp_value *value, enum mp_type type, unsigned width) {
    uint64_t size;
    if (!big_endian(from, width, &size)) return false;
    return type == MP_STR || type == MP_BIN ? bytes(from, value, type, size) : container(from, value, type, size);
}

bool mp_next(struct mp_reader *from, struct mp_value *value) {
    *value = (struct mp_value){.type = MP_BAD};
    if (from->bad || from->at == from->end) return fail(from);
    uint8_t head = *from->at++;
    if (head < 0x80) {
        value->type = MP_UINT;
        value->number = head;
        return true;
    }
    if (head < 0x90) return container(from, value, MP_MAP, head & 0x0f);
    if (head < 0xa0) return container(from, value, MP_ARRAY, head & 0x0f);
    if (head < 0xc0) return bytes(from, value, MP_STR, head & 0x1f);
    if (head >= 0xe0) {
        value->type = MP_NEGATIVE;
        value->negative = (int64_t)head - 256;
        return true;
    }
    switch (head) {
    case 0xc0: value->type = MP_NIL; return true;
    case 0xc2:
    case 0xc3:
        value->type = MP_BOOL;
        value->number = head & 1;
        return true;
    case 0xc4: return sized(from, value, MP_BIN, 1);
    case 0xc5: return sized(from, value, MP_BIN, 2);
    case 0xc6: return sized(from, value, MP_BIN, 4);
    case 0xca:
    case 0xcb: {
        uint64_t bits;
        if (!big_endian(from, head == 0xca ? 4 : 8, &bits)) return false;
        value->type = MP_FLOAT;
        return true;
    }
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
        value->type = MP_UINT;
        if (big_endian(from, 1u << (head - 0xcc), &value->number)) return true;
        value->type = MP_BAD;
        return false;
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3: return signed_number(from, value, 1u << (head - 0xd0));
    case 0xd9: return sized(from, value, MP_STR, 1);
    case 0xda: return sized(from, value, MP_STR, 2);
    case 0xdb: return sized(from, value, MP_STR, 4);
    case 0xdc: return sized(from, value, MP_ARRAY, 2);
    case 0xdd: return sized(from, value, MP_ARRAY, 4);
    case 0xde: return sized(from, value, MP_MAP, 2);
    case 0xdf: return sized(from, value, MP_MAP, 4);
    default: return fail(from); /* extension types are not part of the protocol */
    }
}

bool mp_skip(struct mp_reader *from) {
    uint64_t left = 1; /* values to read: bounded, since each container is checked against the bytes left */
    while (left > 0) {
        struct mp_value value;
        if (!mp_next(from, &value)) return false;
        left--;
        if (value.type == MP_ARRAY) left += value.size;
        if (value.type == MP_MAP) left += 2 * (uint64_t)value.size;
    }
    return true;
}

bool mp_is_one_value(const void *data, size_t size) {
    struct mp_reader reader = mp_over(data, size);
    return mp_skip(&reader) && reader.at == reader.end;
}

bool mp_number(struct mp_reader *from, uint64_t most, uint64_t *number) {
    struct mp_value value;
    if (!mp_next(from, &value) || value.type != MP_UINT || value.number > most) return fail(from);
    *number = value.number;
    return true;
}

bool mp_flag(struct mp_reader *from, bool *flag) {
    struct mp_value value;
    if (!mp_next(from, &value) || value.type != MP_BOOL) return fail(from);
    *flag = value.number != 0;
    return true;
}

bool mp_array(struct mp_reader *from, uint32_t *count) {
    struct mp_value value;
    if (!mp_next(from, &value) || value.type != MP_ARRAY) return fail(from);
    *count = value.size;
    return true;
}

bool mp_map(struct mp_reader *from, uint32_t *pairs) {
    struct mp_value value;
    if (!mp_next(from, &value) || value.type != MP_MAP) return fail(from);
    *pairs = value.size;
    return true;
}

bool mp_find(struct mp_reader map, const char *key, struct mp_reader *value) {
    uint32_t pairs;
    size_t length = strlen(key);
    if (!mp_map(&map, &pairs)) return false;
    for (uint32_t i = 0; i < pairs; i++) {
        struct mp_reader before = map;
        struct mp_value name;
        if (!mp_next(&map, &name)) return false;
        if (name.type == MP_STR && name.size == length && memcmp(name.bytes, key, length) == 0) {
            *value = map;
            return true;
        }
        map = before; /* a key may be any value: skip it as a whole */
        if (!mp_skip(&map) || !mp_skip(&map)) return false;
    }
    return false;
}

/* ---- writing */

static uint8_t *grow(struct mp_writer *to, size_t size) {
    if (to->failed) return NULL;
    if (to->room - to->size < size) {
        size_t room = to->room * 2;
        if (room - to->size < size) room = to->size + size;
        uint8_t *data = realloc(to->data, room);
        if (data == NULL) {
            to->failed = true;
            return NULL;
        }
        to->data = data;
        to->room = room;
    }
    uint8_t *place = to->data + to->size;
    to->size += size;
    return place;
}

void mp_begin(struct mp_writer *to, size_t reserved) {
    size_t room = reserved + 256;
    *to = (struct mp_writer){.data = calloc(1, room), .size = reserved, .room = room};
    if (to->data == NULL) *to = (struct mp_writer){.failed = true};
}

void mp_free(struct mp_writer *to) {
    free(to->data);
    *to = (struct mp_writer){.failed = true};
}

static void head(struct mp_writer *to, uint8_t first, uint64_t number, unsigned width) {
    uint8_t *place = grow(to, 1 + width);
    if (place == NULL) return;
    *place++ = first;
    for (unsigned i = width; i-- > 0;) *place++ = (uint8_t)(number >> (8 * i));
}

static void copy(struct mp_writer *to, const void *from, size_t size) {
    uint8_t *place = size > 0 ? grow(to, size) : NULL;
    if (place != NULL) memcpy(place, from, size);
}

void mp_put_nil(struct mp_writer *to) { head(to, 0xc0, 0, 0); }

void mp_put_bool(struct mp_writer *to, bool flag) { head(to, flag ? 0xc3 : 0xc2, 0, 0); }

void mp_put_uint(struct mp_writer *to, uint64_t number) {
    if (number < 0x80) head(to, (uint8_t)number, 0, 0);
    else if (number <= UINT8_MAX) head(to, 0xcc, number, 1);
    else if (number <= UINT16_MAX) head(to, 0xcd, number, 2);
    else if (number <= UINT32_MAX) head(to, 0xce, number, 4);
    else head(to, 0xcf, number, 8);
}

void mp_put_int(struct mp_writer *to, int64_t number) {
    if (number >= 0) mp_put_uint(to, (uint64_t)number);
    else head(to, 0xd3, (uint64_t)number, 8);
}

void mp_put_str(struct mp_writer *to, const char *from, size_t size) {
    if (size < 32) head(to, (uint8_t)(0xa0 | size), 0, 0);
    else if (size <= UINT8_MAX) head(to, 0xd9, size, 1);
    else if (size <= UINT16_MAX) head(to, 0xda, size, 2);
    else head(to, 0xdb, size, 4);
    copy(to, from, size);
}

void mp_put_text(struct mp_writer *to, const char *text) { mp_put_str(to, text, strlen(text)); }

void mp_put_bin(struct mp_writer *to, const void *from, size_t size) {
    if (size <= UINT8_MAX) head(to, 0xc4, size, 1);
    else if (size <= UINT16_MAX) head(to, 0xc5, size, 2);
    else head(to, 0xc6, size, 4);
    copy(to, from, size);
}

void mp_put_array(struct mp_writer *to, uint32_t count) {
    if (count < 16) head(to, (uint8_t)(0x90 | count), 0, 0);
    else head(to, 0xdc, count, 2);
}

void mp_put_map(struct mp_writer *to, uint32_t pairs) {
    if (pairs < 16) head(to, (uint8_t)(0x80 | pairs), 0, 0);
    else head(to, 0xde, pairs, 2);
}

void mp_put_raw(struct mp_writer *to, const struct mp_writer *from) {
    if (from->failed) to->failed = true;
    else copy(to, from->data, from->size);
}
