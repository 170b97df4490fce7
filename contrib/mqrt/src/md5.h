/* MD5 (RFC 1321): the name of a certificate in the application protocol, not a protection of anything. */
#ifndef MQRT_MD5_H
#define MQRT_MD5_H

#include <stddef.h>
#include <stdint.h>

enum { MD5_SIZE = 16 };

void md5(const uint8_t *data, size_t size, uint8_t digest[MD5_SIZE]);

#endif
