/* The functions of kernel32 that libraries of .NET call beside mqrt.
 *
 * .NET finds them as libkernel32.dll.so, a link to this library. It adds no W to a name on Linux, hence the second
 * name of each. */
#include "shims.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

enum { ALLOCATE_BUFFER = 0x100 };

/* False: "no such handle". System.Messaging then waits by callbacks instead of completion ports, which Linux lacks. */
MQAPI BOOL WINAPI GetHandleInformation(HANDLE handle, DWORD *flags) {
    (void)handle;
    (void)flags;
    return FALSE;
}

/* The name before its first dot. `size`: units of the buffer; then of the name without its NUL. */
MQAPI BOOL WINAPI GetComputerNameW(WCHAR *buffer, DWORD *size) {
    char name[256];
    if (buffer == NULL || size == NULL || gethostname(name, sizeof name) != 0) return FALSE;
    name[sizeof name - 1] = 0;
    size_t length = strcspn(name, ".");
    size_t units = utf16_units((const uint8_t *)name, length);
    DWORD room = *size;
    *size = (DWORD)(room > units ? units : units + 1);
    if (room <= units) return FALSE;
    utf16_write((const uint8_t *)name, length, buffer, units);
    buffer[units] = 0;
    return TRUE;
}

MQAPI BOOL WINAPI GetComputerName(WCHAR *buffer, DWORD *size) { return GetComputerNameW(buffer, size); }

/* The text of an HRESULT of Message Queuing; the source and the arguments do not matter. Returns its length without
 * the NUL, 0 if there is none. */
MQAPI DWORD WINAPI FormatMessageW(DWORD flags, const void *source, DWORD message, DWORD language, WCHAR *buffer,
                                  DWORD size, void *arguments) {
    (void)source;
    (void)language;
    (void)arguments;
    const char *text = error_text((HRESULT)message);
    if (text == NULL || buffer == NULL) return 0;
    size_t length = strlen(text);
    if (flags & ALLOCATE_BUFFER) {
        WCHAR *copy = utf16_copy((const uint8_t *)text, length);
        if (copy == NULL) return 0;
        memcpy(buffer, &copy, sizeof copy); /* `buffer` is the address of a pointer */
        return (DWORD)length;
    }
    if (size <= length) return 0;
    utf16_write((const uint8_t *)text, length, buffer, length);
    buffer[length] = 0;
    return (DWORD)length;
}

MQAPI DWORD WINAPI FormatMessage(DWORD flags, const void *source, DWORD message, DWORD language, WCHAR *buffer,
                                 DWORD size, void *arguments) {
    return FormatMessageW(flags, source, message, language, buffer, size, arguments);
}

MQAPI HLOCAL WINAPI LocalFree(HLOCAL memory) {
    free(memory);
    return NULL;
}
