/* Format names and path names. */
#ifndef MQRT_NAMES_H
#define MQRT_NAMES_H

#include "mq.h"

enum { NAME_MOST = 32768 }; /* UTF-16 units of a name, or of a list of names */

/* A format name in UTF-8, to be freed. NULL with MQ_ERROR_ILLEGAL_FORMATNAME or
 * MQ_ERROR_INVALID_PARAMETER (no name). */
char *format_name(LPCWSTR name, HRESULT *result);

/* Writes a format name with its NUL into the buffer of a caller; `length` becomes what it needs in units.
 * `too_small` if it does not fit. */
HRESULT give_name(const char *name, size_t size, LPWSTR buffer, LPDWORD length, HRESULT too_small);

#endif
