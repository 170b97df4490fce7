/* Self-relative security descriptors (MS-DTYP 2.4.6), as programs pass them. */
#ifndef MQRT_DESCRIPTOR_H
#define MQRT_DESCRIPTOR_H

#include <stddef.h>

/* The bytes of a descriptor; 0: it is not a self-relative one. Its parts must lie in the first 64 KiB. The caller
 * passes no size, so the memory is trusted as far as the lengths in it say. */
size_t descriptor_size(const void *descriptor);

/* Keeps the parts of `wanted` (bits of SECURITY_INFORMATION) of a descriptor of `size` bytes in a new one, which is
 * written to `to` if it fits into `room`. Returns its size; 0: `from` is not a descriptor. */
size_t descriptor_parts(const void *from, size_t size, unsigned wanted, void *to, size_t room);

#endif
