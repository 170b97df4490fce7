#include "tls.h"

#ifdef MQRT_TLS

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

/* An SSL object serves one thread at a time. The socket does not block, so the lock is held for short steps only and
 * a reader that waits in poll() does not stop a writer. */
struct tls {
    int fd;
    SSL *ssl;
    SSL_CTX *context;
    pthread_mutex_t lock;
};

/* OpenSSL writes with write(): a closed connection must not end the program by SIGPIPE. */
struct pipe_guard {
    sigset_t before;
    bool was_pending;
};

static struct pipe_guard guard_pipe(void) {
    struct pipe_guard guard;
    sigset_t pipe, pending;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&pending);
    guard.was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe, &guard.before);
    return guard;
}

static void release_pipe(const struct pipe_guard *guard) {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    if (!guard->was_pending) {
        const struct timespec now = {0};
        while (sigtimedwait(&pipe, NULL, &now) < 0 && errno == EINTR) {
        }
    }
    pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
}

enum step { HANDSHAKE, READ, WRITE };

/* One step; waits for the socket as often as OpenSSL asks. Returns the result of OpenSSL, 0 at the end, or -1. */
static int perform(struct tls *tls, enum step step, void *data, int size, int timeout_ms) {
    for (;;) {
        struct pipe_guard guard = guard_pipe();
        pthread_mutex_lock(&tls->lock);
        ERR_clear_error();
        int done = step == HANDSHAKE ? SSL_connect(tls->ssl)
                   : step == READ    ? SSL_read(tls->ssl, data, size)
                                     : SSL_write(tls->ssl, data, size);
        int wanted = done > 0 ? SSL_ERROR_NONE : SSL_get_error(tls->ssl, done);
        pthread_mutex_unlock(&tls->lock);
        release_pipe(&guard);
        if (wanted == SSL_ERROR_NONE) return done;
        if (wanted == SSL_ERROR_ZERO_RETURN) return 0;
        if (wanted != SSL_ERROR_WANT_READ && wanted != SSL_ERROR_WANT_WRITE) return -1;
        struct pollfd one = {.fd = tls->fd, .events = wanted == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT};
        int ready;
        do ready = poll(&one, 1, timeout_ms);
        while (ready < 0 && errno == EINTR);
        if (ready <= 0) return -1;
    }
}

static bool expects(SSL *ssl, const char *host) {
    unsigned char address[16];
    if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT); /* only the subjectAltName has names */
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

struct tls *tls_open(int fd, const char *host, int timeout_ms) {
    struct tls *tls = calloc(1, sizeof *tls);
    if (tls == NULL) return NULL;
    tls->fd = fd;
    pthread_mutex_init(&tls->lock, NULL);
    tls->context = SSL_CTX_new(TLS_client_method());
    if (tls->context != NULL) {
        SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION);
        SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
        SSL_CTX_set_mode(tls->context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        if (SSL_CTX_set_default_verify_paths(tls->context) == 1) tls->ssl = SSL_new(tls->context);
    }
    if (tls->ssl == NULL || !expects(tls->ssl, host) || SSL_set_fd(tls->ssl, fd) != 1 ||
        perform(tls, HANDSHAKE, NULL, 0, timeout_ms) != 1) {
        tls_free(tls);
        return NULL;
    }
    return tls;
}

enum { LARGEST = 1 << 30 };

ssize_t tls_read(struct tls *tls, void *to, size_t size, int timeout_ms) {
    return perform(tls, READ, to, size > LARGEST ? LARGEST : (int)size, timeout_ms);
}

bool tls_write(struct tls *tls, const void *from, size_t size) {
    char *at = (char *)(uintptr_t)from;
    while (size > 0) {
        int done = perform(tls, WRITE, at, size > LARGEST ? LARGEST : (int)size, -1);
        if (done <= 0) return false;
        at += done;
        size -= (size_t)done;
    }
    return true;
}

void tls_free(struct tls *tls) {
    SSL_free(tls->ssl);
    SSL_CTX_free(tls->context);
    pthread_mutex_destroy(&tls->lock);
    free(tls);
}

#else

struct tls *tls_open(int fd, const char *host, int timeout_ms) {
    (void)fd;
    (void)host;
    (void)timeout_ms;
    return NULL;
}

ssize_t tls_read(struct tls *tls, void *to, size_t size, int timeout_ms) {
    (void)tls;
    (void)to;
    (void)size;
    (void)timeout_ms;
    return -1;
}

bool tls_write(struct tls *tls, const void *from, size_t size) {
    (void)tls;
    (void)from;
    (void)size;
    return false;
}

void tls_free(struct tls *tls) { (void)tls; }

#endif
