/* Transactions of programs: objects with the ITransaction interface. */
#ifndef MQRT_TRANSACTION_H
#define MQRT_TRANSACTION_H

#include <stdbool.h>

#include "mq.h"

/* What the transaction argument of a call means. */
enum scope { OUTSIDE, SINGLE, INSIDE };

/* Examines the argument without touching memory of others: an object is known by its address.
 * MQ_ERROR_TRANSACTION_ENLIST: MTS, XA, or an object that MQBeginTransaction did not make.
 * MQ_ERROR_TRANSACTION_SEQUENCE: its end has begun, or its connection is lost. MQ_ERROR_STALE_HANDLE: it is newer than
 * the queue, which is of the connection `generation`. With INSIDE, `number` is that of the protocol. */
HRESULT transaction_scope(ITransaction *given, uint64_t generation, enum scope *scope, uint32_t *number);

/* Remembers that the transaction received a message, for MQMarkMessageRejected. */
void transaction_received(uint32_t number, uint64_t generation, uint32_t queue, uint64_t lookup_id);

/* The transaction that received the message; false if none did. */
bool transaction_of(uint64_t generation, uint32_t queue, uint64_t lookup_id, uint32_t *number);

#endif
