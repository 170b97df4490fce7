#ifndef MQRT_SHIMS_H
#define MQRT_SHIMS_H

#include "mq.h"

/* A sentence about an HRESULT; NULL: it is not one of Message Queuing. */
const char *error_text(HRESULT code);

#endif
