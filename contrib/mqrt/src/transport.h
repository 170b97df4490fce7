/* A stream to the queue manager: a Unix socket, TCP, or TLS over TCP. */
#ifndef MQRT_TRANSPORT_H
#define MQRT_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct transport;

/* Connects to `endpoint`: a path, unix:/path, tcp://host:port or tls://host:port. Reads time out until
 * transport_established(). NULL: no connection. */
struct transport *transport_open(const char *endpoint);
void transport_established(struct transport *transport);

/* One thread may read while another one writes. Returns the number of bytes, 0 at the end, -1 for an error. */
ssize_t transport_read(struct transport *transport, void *to, size_t size);
bool transport_write(struct transport *transport, const void *from, size_t size);

/* Ends the stream: a waiting read of another thread returns. */
void transport_shutdown(struct transport *transport);

/* No thread may be in a call of this transport. */
void transport_free(struct transport *transport);

/* Closes the descriptor alone, in the child of a fork(): the stream is the parent's. */
void transport_forget(struct transport *transport);

#endif
