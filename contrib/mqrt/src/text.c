#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLACEMENT = 0xFFFD };

size_t wide_length(const WCHAR *text, size_t most) {
    size_t length = 0;
    while (length < most && text[length] != 0) length++;
    return length;
}

char *utf8_of(const WCHAR *text, size_t most, size_t *size) {
    size_t units = wide_length(text, most + 1), used = 0;
    if (units > most) return NULL;
    char *result = malloc(3 * units + 1);
    if (result == NULL) return NULL;
    for (size_t i = 0; i < units; i++) {
        uint32_t point = text[i];
        if (point >= 0xD800 && point < 0xE000) {
            uint32_t low = i + 1 < units ? text[i + 1] : 0;
            if (point >= 0xDC00 || low < 0xDC00 || low > 0xDFFF) {
                free(result);
                return NULL;
            }
            point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
            i++;
            result[used++] = (char)(0xF0 | point >> 18);
            result[used++] = (char)(0x80 | (point >> 12 & 0x3F));
            result[used++] = (char)(0x80 | (point >> 6 & 0x3F));
            result[used++] = (char)(0x80 | (point & 0x3F));
        } else if (point < 0x80) {
            result[used++] = (char)point;
        } else if (point < 0x800) {
            result[used++] = (char)(0xC0 | point >> 6);
            result[used++] = (char)(0x80 | (point & 0x3F));
        } else {
            result[used++] = (char)(0xE0 | point >> 12);
            result[used++] = (char)(0x80 | (point >> 6 & 0x3F));
            result[used++] = (char)(0x80 | (point & 0x3F));
        }
    }
    result[used] = 0;
    if (size != NULL) *size = used;
    return result;
}

/* One code point, and how many bytes it has. A surrogate in three bytes stays what it is: labels of other hosts may
 * have halves of pairs. */
static uint32_t decode(const uint8_t *bytes, size_t left, size_t *used) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint8_t first = bytes[0];
    size_t width = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 0;
    *used = 1;
    if (width == 1) return first;
    if (width == 0 || width > left || first > 0xF4) return REPLACEMENT;
    uint32_t point = first & (0xFFu >> (width + 1));
    for (size_t i = 1; i < width; i++) {
        if ((bytes[i] & 0xC0) != 0x80) return REPLACEMENT;
        point = point << 6 | (bytes[i] & 0x3F);
    }
    if (point < least[width] || point > 0x10FFFF) return REPLACEMENT;
    *used = width;
    return point;
}

size_t utf16_write(const uint8_t *bytes, size_t size, WCHAR *to, size_t room) {
    size_t units = 0;
    for (size_t at = 0, used; at < size; at += used) {
        uint32_t point = decode(bytes + at, size - at, &used);
        if (point >= 0x10000) {
            if (units < room) to[units] = (WCHAR)(0xD800 + ((point - 0x10000) >> 10));
            if (units + 1 < room) to[units + 1] = (WCHAR)(0xDC00 + (point & 0x3FF));
            units += 2;
        } else {
            if (units < room) to[units] = (WCHAR)point;
            units++;
        }
    }
    return units;
}

size_t utf16_units(const uint8_t *bytes, size_t size) { return utf16_write(bytes, size, NULL, 0); }

WCHAR *utf16_copy(const uint8_t *bytes, size_t size) {
    size_t units = utf16_units(bytes, size);
    WCHAR *copy = calloc(units + 1, sizeof *copy);
    if (copy != NULL) utf16_write(bytes, size, copy, units);
    return copy;
}

static unsigned folded(unsigned unit) { return unit >= 'a' && unit <= 'z' ? unit - 'a' + 'A' : unit; }

bool wide_begins(const WCHAR *text, const char *prefix) {
    for (size_t i = 0; prefix[i] != 0; i++) {
        if (folded(text[i]) != folded((unsigned char)prefix[i])) return false;
    }
    return true;
}

bool wide_is(const WCHAR *text, const char *ascii) {
    return wide_begins(text, ascii) && text[strlen(ascii)] == 0;
}

void guid_text(const GUID *guid, char text[GUID_TEXT + 1]) {
    const uint8_t *tail = guid->Data4;
    snprintf(text, GUID_TEXT + 1, "%08x-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x", guid->Data1, guid->Data2,
             guid->Data3, tail[0], tail[1], tail[2], tail[3], tail[4], tail[5], tail[6], tail[7]);
}

static bool hexadecimal(const char *text, size_t digits, uint64_t *number) {
    uint64_t value = 0;
    for (size_t i = 0; i < digits; i++) {
        unsigned char digit = (unsigned char)text[i];
        unsigned nibble;
        if (digit >= '0' && digit <= '9') nibble = digit - '0';
        else if (digit >= 'a' && digit <= 'f') nibble = digit - 'a' + 10;
        else if (digit >= 'A' && digit <= 'F') nibble = digit - 'A' + 10;
        else return false;
        value = value << 4 | nibble;
    }
    *number = value;
    return true;
}

bool guid_parse(const char *text, size_t size, GUID *guid) {
    if (size >= 2 && text[0] == '{' && text[size - 1] == '}') {
        text++;
        size -= 2;
    }
    uint64_t first, second, third, fourth, fifth;
    if (size != GUID_TEXT || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-') return false;
    if (!hexadecimal(text, 8, &first) || !hexadecimal(text + 9, 4, &second) ||
        !hexadecimal(text + 14, 4, &third) || !hexadecimal(text + 19, 4, &fourth) ||
        !hexadecimal(text + 24, 12, &fifth))
        return false;
    *guid = (GUID){.Data1 = (uint32_t)first, .Data2 = (uint16_t)second, .Data3 = (uint16_t)third};
    guid->Data4[0] = (uint8_t)(fourth >> 8);
    guid->Data4[1] = (uint8_t)fourth;
    for (int i = 0; i < 6; i++) guid->Data4[2 + i] = (uint8_t)(fifth >> (8 * (5 - i)));
    return true;
}
