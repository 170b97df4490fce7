#include "transport.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tls.h"

enum { PATIENCE_MS = 10000 }; /* for connecting, and for each read until the hello is answered */

struct transport {
    int fd;
    int patience_ms; /* of a read; -1: no limit */
    struct tls *tls;
};

static bool wait_for(int fd, short events, int timeout_ms) {
    struct pollfd one = {.fd = fd, .events = events};
    int ready;
    do ready = poll(&one, 1, timeout_ms);
    while (ready < 0 && errno == EINTR);
    return ready > 0;
}

static int connected(int family, const struct sockaddr *address, socklen_t size) {
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    if (connect(fd, address, size) == 0) return fd;
    int problem = 0;
    socklen_t length = sizeof problem;
    if (errno == EINPROGRESS && wait_for(fd, POLLOUT, PATIENCE_MS) &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &length) == 0 && problem == 0)
        return fd;
    close(fd);
    return -1;
}

static int connect_path(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = strlen(path);
    if (size == 0 || size >= sizeof address.sun_path) return -1;
    memcpy(address.sun_path, path, size);
    return connected(AF_UNIX, (const struct sockaddr *)&address, sizeof address);
}

static int connect_host(const char *host, const char *port) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    if (getaddrinfo(host, port, &hints, &found) != 0) return -1;
    int fd = -1;
    for (struct addrinfo *one = found; one != NULL && fd < 0; one = one->ai_next)
        fd = connected(one->ai_family, one->ai_addr, one->ai_addrlen);
    freeaddrinfo(found);
    if (fd >= 0) {
        int on = 1; /* best effort: a connection without these options works too */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
    return fd;
}

/* Splits `host:port` or `[host]:port`; false if it is neither. Changes the text. */
static bool split(char *text, char **host, char **port) {
    char *colon = strrchr(text, ':');
    if (colon == NULL || colon == text || colon[1] == 0) return false;
    *colon = 0;
    *host = text;
    *port = colon + 1;
    size_t size = strlen(text);
    if (text[0] == '[' && text[size - 1] == ']') {
        text[size - 1] = 0;
        *host = text + 1;
    } else if (strchr(text, ':') != NULL) {
        return false;
    }
    return (*port)[strspn(*port, "0123456789")] == 0;
}

static struct transport *made(int fd, const char *tls_host) {
    struct transport *transport = fd < 0 ? NULL : calloc(1, sizeof *transport);
    if (transport == NULL) {
        if (fd >= 0) close(fd);
        return NULL;
    }
    transport->fd = fd;
    transport->patience_ms = PATIENCE_MS;
    if (tls_host != NULL && (transport->tls = tls_open(fd, tls_host, PATIENCE_MS)) == NULL) {
        transport_free(transport);
        return NULL;
    }
    return transport;
}

struct transport *transport_open(const char *endpoint) {
    bool tls = strncmp(endpoint, "tls://", 6) == 0;
    if (!tls && strncmp(endpoint, "tcp://", 6) != 0) {
        if (strncmp(endpoint, "unix:", 5) == 0) endpoint += strncmp(endpoint, "unix://", 7) == 0 ? 7 : 5;
        return made(connect_path(endpoint), NULL);
    }
    char *text = strdup(endpoint + 6), *host, *port;
    if (text == NULL) return NULL;
    struct transport *transport = NULL;
    if (split(text, &host, &port)) transport = made(connect_host(host, port), tls ? host : NULL);
    free(text);
    return transport;
}

void transport_established(struct transport *transport) { transport->patience_ms = -1; }

ssize_t transport_read(struct transport *transport, void *to, size_t size) {
    if (transport->tls != NULL) return tls_read(transport->tls, to, size, transport->patience_ms);
    for (;;) {
        ssize_t count = recv(transport->fd, to, size, 0);
        if (count >= 0) return count;
        if (errno == EINTR) continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) return -1;
        if (!wait_for(transport->fd, POLLIN, transport->patience_ms)) return -1;
    }
}

bool transport_write(struct transport *transport, const void *from, size_t size) {
    if (transport->tls != NULL) return tls_write(transport->tls, from, size);
    const char *at = from;
    while (size > 0) {
        ssize_t count = send(transport->fd, at, size, MSG_NOSIGNAL);
        if (count >= 0) {
            at += count;
            size -= (size_t)count;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!wait_for(transport->fd, POLLOUT, -1)) return false;
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

void transport_shutdown(struct transport *transport) { shutdown(transport->fd, SHUT_RDWR); }

void transport_free(struct transport *transport) {
    if (transport->tls != NULL) tls_free(transport->tls);
    close(transport->fd);
    free(transport);
}

void transport_forget(struct transport *transport) { close(transport->fd); }
