/* Certificates that sign messages. */
#ifndef MQRT_CERTIFICATES_H
#define MQRT_CERTIFICATES_H

#include "handles.h"
#include "md5.h"

/* What MQGetSecurityContext made: the certificate of each send. */
struct security_context {
    struct object object;
    int external; /* 0: the internal certificate of the caller */
    uint8_t digest[MD5_SIZE];
};

#endif
