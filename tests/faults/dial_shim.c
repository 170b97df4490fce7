/* Writes down where a process connects, sends datagrams, and which names it looks up: one line each in the file
   that the environment variable DIALLED names. Unix sockets do not count. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

static void note(const char *what, const char *whom) {
    const char *path = getenv("DIALLED");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (file) {
        fprintf(file, "%s %s\n", what, whom ? whom : "-");
        fclose(file);
    }
}

static void note_address(const char *what, const struct sockaddr *to) {
    char text[INET6_ADDRSTRLEN] = "?";
    if (to == NULL || (to->sa_family != AF_INET && to->sa_family != AF_INET6))
        return;
    if (to->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)to)->sin_addr, text, sizeof text);
    else
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)to)->sin6_addr, text, sizeof text);
    note(what, text);
}

int connect(int fd, const struct sockaddr *to, socklen_t size) {
    int (*real)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "connect");
    note_address("connect", to);
    return real(fd, to, size);
}

ssize_t sendto(int fd, const void *data, size_t length, int flags, const struct sockaddr *to, socklen_t size) {
    ssize_t (*real)(int, const void *, size_t, int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "sendto");
    note_address("sendto", to);
    return real(fd, data, length, flags, to, size);
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = dlsym(RTLD_NEXT, "getaddrinfo");
    note("getaddrinfo", host);
    return real(host, service, hints, found);
}
