#include "descriptor.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "mq.h"

enum { HEADER = 20, MOST = 65536, PARTS = 4, SELF_RELATIVE = 0x8000 };

/* In the order of their offsets in the header */
static const unsigned BITS[PARTS] = {OWNER_SECURITY_INFORMATION, GROUP_SECURITY_INFORMATION,
                                     SACL_SECURITY_INFORMATION, DACL_SECURITY_INFORMATION};
/* SE_SACL_PRESENT and the like go with their lists */
static const uint16_t CONTROLS[PARTS] = {0x0001, 0x0002, 0x2830, 0x140C};

static uint32_t u32(const uint8_t *at) {
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint16_t u16(const uint8_t *at) { return (uint16_t)(at[0] | at[1] << 8); }

/* The size of the part at an offset; 0: it does not lie within `size`. */
static size_t part_size(const uint8_t *descriptor, size_t size, unsigned part) {
    size_t offset = u32(descriptor + 4 + 4 * part), least = 8; /* of a SID and of an ACL */
    if (offset < HEADER || offset > size || size - offset < least) return 0;
    const uint8_t *at = descriptor + offset;
    size_t length = part < 2 ? 8 + 4 * (size_t)at[1] : u16(at + 2);
    return length < least || length > size - offset ? 0 : length;
}

static bool has_part(const uint8_t *descriptor, unsigned part) { return u32(descriptor + 4 + 4 * part) != 0; }

size_t descriptor_size(const void *given) {
    const uint8_t *descriptor = given;
    size_t end = HEADER;
    if (descriptor[0] != 1 || !(u16(descriptor + 2) & SELF_RELATIVE)) return 0;
    for (unsigned part = 0; part < PARTS; part++) {
        if (!has_part(descriptor, part)) continue;
        size_t length = part_size(descriptor, MOST, part);
        if (length == 0) return 0;
        size_t stop = u32(descriptor + 4 + 4 * part) + length;
        if (stop > end) end = stop;
    }
    return end;
}

static void put32(uint8_t *at, size_t value) {
    for (unsigned i = 0; i < 4; i++) at[i] = (uint8_t)(value >> (8 * i));
}

size_t descriptor_parts(const void *given, size_t size, unsigned wanted, void *to, size_t room) {
    const uint8_t *from = given;
    if (size < HEADER || from[0] != 1) return 0;
    uint8_t header[HEADER] = {1};
    size_t total = HEADER;
    uint16_t control = SELF_RELATIVE;
    for (unsigned part = 0; part < PARTS; part++) {
        if (!(wanted & BITS[part])) continue;
        control |= u16(from + 2) & CONTROLS[part];
        if (!has_part(from, part)) continue;
        size_t length = part_size(from, size, part);
        if (length == 0) return 0;
        put32(header + 4 + 4 * part, total);
        total += (length + 3) & ~(size_t)3;
    }
    header[2] = (uint8_t)control;
    header[3] = (uint8_t)(control >> 8);
    if (total > room) return total;
    uint8_t *out = to;
    memset(out, 0, total);
    memcpy(out, header, HEADER);
    for (unsigned part = 0; part < PARTS; part++) {
        if (has_part(header, part))
            memcpy(out + u32(header + 4 + 4 * part), from + u32(from + 4 + 4 * part), part_size(from, size, part));
    }
    return total;
}
