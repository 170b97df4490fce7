/* Text: UTF-16 of callers, UTF-8 of the protocol, GUIDs. */
#ifndef MQRT_TEXT_H
#define MQRT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "mq.h"

enum { GUID_TEXT = 36 }; /* characters of a GUID without braces */

/* Units before the NUL, at most `most`; `most` also if there is no NUL among so many. */
size_t wide_length(const WCHAR *text, size_t most);

/* UTF-8 with a NUL, to be freed; `size` may be NULL. NULL: the text is longer than `most` units, has half of a
 * surrogate pair, or there is no memory. */
char *utf8_of(const WCHAR *text, size_t most, size_t *size);

/* Number of UTF-16 units of UTF-8 text. */
size_t utf16_units(const uint8_t *bytes, size_t size);

/* Writes at most `room` units, without a NUL; returns how many the text has. What is not UTF-8 becomes U+FFFD. */
size_t utf16_write(const uint8_t *bytes, size_t size, WCHAR *to, size_t room);

/* A copy with a NUL that MQFreeMemory frees; NULL: no memory. */
WCHAR *utf16_copy(const uint8_t *bytes, size_t size);

/* Whether ASCII letters apart the texts are equal, or `text` begins with `prefix`. */
bool wide_is(const WCHAR *text, const char *ascii);
bool wide_begins(const WCHAR *text, const char *prefix);

void guid_text(const GUID *guid, char text[GUID_TEXT + 1]);
bool guid_parse(const char *text, size_t size, GUID *guid);

#endif
