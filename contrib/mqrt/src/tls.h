/* TLS by OpenSSL. Without OpenSSL at build time (MQRT_TLS undefined) tls_open() returns NULL. */
#ifndef MQRT_TLS_H
#define MQRT_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct tls;

/* The handshake on a connected, non-blocking socket; the server must prove the name `host`. NULL: it did not. */
struct tls *tls_open(int fd, const char *host, int timeout_ms);
ssize_t tls_read(struct tls *tls, void *to, size_t size, int timeout_ms);
bool tls_write(struct tls *tls, const void *from, size_t size);
void tls_free(struct tls *tls);

#endif
