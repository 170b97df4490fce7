/* A PGM host made of OpenPGM (libpgm): `send` multicasts APDUs from stdin, `receive` prints those that come.
 *
 *   peer send    ADDRESS;GROUP PORT RATE        stdin: 4 octets of length in network order, then the APDU, and so on
 *   peer receive ADDRESS;GROUP PORT COUNT       stdout: the same; ends after COUNT
 *
 * A sender stays until stdin is closed and LINGER seconds are over, to repair. Errors end with 1 and a line on stderr.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <errno.h>
#include <pgm/pgm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define LARGEST 65536
#define LINGER 10
#define TPDU 1500

static void fail(const char *what, pgm_error_t *error)
{
    fprintf(stderr, "%s: %s\n", what, error ? error->message : "failed");
    exit(1);
}

static void set(pgm_sock_t *sock, int option, int value)
{
    if (!pgm_setsockopt(sock, IPPROTO_PGM, option, &value, sizeof value)) {
        fprintf(stderr, "option %#x\n", option);
        exit(1);
    }
}

static pgm_sock_t *open_socket(const char *network, int port, int sending, int rate)
{
    pgm_error_t *error = NULL;
    pgm_sock_t *sock = NULL;
    struct pgm_addrinfo_t *info = NULL;
    struct pgm_sockaddr_t address;
    struct pgm_interface_req_t interface;
    int spm[] = {pgm_secs(1), pgm_secs(1), pgm_secs(2), pgm_secs(4), pgm_secs(8)};

    if (!pgm_init(&error))
        fail("pgm_init", error);
    if (!pgm_getaddrinfo(network, NULL, &info, &error))
        fail("pgm_getaddrinfo", error);
    if (!pgm_socket(&sock, AF_INET, SOCK_SEQPACKET, IPPROTO_PGM, &error))
        fail("pgm_socket", error);
    set(sock, PGM_IP_ROUTER_ALERT, 1);
    set(sock, PGM_MTU, TPDU);
    if (sending) {
        set(sock, PGM_SEND_ONLY, 1);
        set(sock, PGM_TXW_SQNS, 65536);
        set(sock, PGM_TXW_MAX_RTE, rate);
        set(sock, PGM_AMBIENT_SPM, pgm_secs(1) / 2);
        if (!pgm_setsockopt(sock, IPPROTO_PGM, PGM_HEARTBEAT_SPM, spm, sizeof spm))
            fail("PGM_HEARTBEAT_SPM", NULL);
    } else {
        set(sock, PGM_RECV_ONLY, 1);
        set(sock, PGM_RXW_SQNS, 65536);
        set(sock, PGM_PEER_EXPIRY, pgm_secs(300));
        set(sock, PGM_SPMR_EXPIRY, pgm_msecs(250));
        set(sock, PGM_NAK_BO_IVL, pgm_msecs(50));
        set(sock, PGM_NAK_RPT_IVL, pgm_msecs(750));
        set(sock, PGM_NAK_RDATA_IVL, pgm_secs(2));
        set(sock, PGM_NAK_DATA_RETRIES, 50);
        set(sock, PGM_NAK_NCF_RETRIES, 50);
    }
    memset(&address, 0, sizeof address);
    address.sa_port = port;
    address.sa_addr.sport = 0;
    if (!pgm_gsi_create_from_string(&address.sa_addr.gsi, network, -1))
        fail("pgm_gsi_create_from_string", NULL);
    memset(&interface, 0, sizeof interface);
    interface.ir_interface = info->ai_recv_addrs[0].gsr_interface;
    interface.ir_scope_id = 0;
    if (!pgm_bind3(sock, &address, sizeof address, &interface, sizeof interface, &interface, sizeof interface, &error))
        fail("pgm_bind3", error);
    for (unsigned i = 0; i < info->ai_recv_addrs_len; i++)
        pgm_setsockopt(sock, IPPROTO_PGM, PGM_JOIN_GROUP, &info->ai_recv_addrs[i], sizeof(struct group_req));
    pgm_setsockopt(sock, IPPROTO_PGM, PGM_SEND_GROUP, &info->ai_send_addrs[0], sizeof(struct group_req));
    set(sock, PGM_MULTICAST_LOOP, 0);
    set(sock, PGM_MULTICAST_HOPS, 16);
    set(sock, PGM_NOBLOCK, 1);
    if (!pgm_connect(sock, &error))
        fail("pgm_connect", error);
    pgm_freeaddrinfo(info);
    return sock;
}

/* Waits until the socket can be used, for at most 50 ms. */
static void rest(pgm_sock_t *sock, short events)
{
    struct pollfd descriptors[8];
    int count = 8;

    memset(descriptors, 0, sizeof descriptors);
    if (pgm_poll_info(sock, descriptors, &count, events) >= 0)
        poll(descriptors, count, events & POLLOUT ? 1 : 50);
}

/* Reading drives NAKs, repairs and heartbeats. */
static int receive(pgm_sock_t *sock, char *buffer, size_t *size)
{
    pgm_error_t *error = NULL;
    int status = pgm_recv(sock, buffer, LARGEST, 0, size, &error);

    if (status == PGM_IO_STATUS_ERROR)
        fail("pgm_recv", error);
    if (status == PGM_IO_STATUS_RESET) {
        fprintf(stderr, "reset: data was lost\n");
        exit(1);
    }
    return status;
}

static void send_all(pgm_sock_t *sock)
{
    static char apdu[LARGEST], sink[LARGEST];
    uint32_t size;
    size_t unused;
    time_t end;

    while (fread(&size, sizeof size, 1, stdin) == 1) {
        size = ntohl(size);
        if (size > LARGEST || fread(apdu, size, 1, stdin) != 1)
            fail("stdin", NULL);
        for (;;) {
            int status = pgm_send(sock, apdu, size, &unused);
            if (status == PGM_IO_STATUS_NORMAL)
                break;
            if (status == PGM_IO_STATUS_ERROR)
                fail("pgm_send", NULL);
            receive(sock, sink, &unused);
            rest(sock, POLLOUT);
        }
        receive(sock, sink, &unused);
    }
    for (end = time(NULL) + LINGER; time(NULL) < end; rest(sock, POLLIN))
        receive(sock, sink, &unused);
}

static void receive_all(pgm_sock_t *sock, long count)
{
    static char apdu[LARGEST];
    size_t size;
    uint32_t length;

    while (count > 0) {
        int status = receive(sock, apdu, &size);
        if (status == PGM_IO_STATUS_NORMAL) {
            length = htonl(size);
            fwrite(&length, sizeof length, 1, stdout);
            fwrite(apdu, size, 1, stdout);
            count--;
        } else {
            rest(sock, POLLIN);
        }
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int sending = argc == 5 && strcmp(argv[1], "send") == 0;
    pgm_sock_t *sock;

    if (argc != 5)
        return 2;
    sock = open_socket(argv[2], atoi(argv[3]), sending, atoi(argv[4]));
    fprintf(stderr, "ready\n");
    if (sending)
        send_all(sock);
    else
        receive_all(sock, atol(argv[4]));
    pgm_close(sock, TRUE);
    return 0;
}
