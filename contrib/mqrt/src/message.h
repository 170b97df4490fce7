/* Properties of messages: their types, what a program passes, and what a MESSAGE frame has. */
#ifndef MQRT_MESSAGE_H
#define MQRT_MESSAGE_H

#include "frames.h"
#include "props.h"

enum { MESSAGE_IDS = 76 }; /* the identifiers are below it */

/* The properties of one call by their identifiers. */
struct message_props {
    struct props props;
    MQPROPVARIANT *at[MESSAGE_IDS];
    DWORD index[MESSAGE_IDS];
};

enum direction { TO_SEND, TO_RECEIVE };

/* Sorts the properties by identifier and checks their VARTYPEs; a NULL `given` has none. For receiving, VT_NULL stands
 * for each type of fixed size and becomes that type. Each mistake is in the statuses. The result is that of the first
 * check that fails: MQ_ERROR_INVALID_PARAMETER, MQ_ERROR_TOO_MANY_PROPERTIES, MQ_ERROR_PROPERTY, or for receiving
 * MQ_ERROR_INSUFFICIENT_PROPERTIES if a buffer lacks the property with its length. */
HRESULT message_props(MQMSGPROPS *given, enum direction direction, struct message_props *wanted);

/* Sets the status of the property, if it is there. */
void message_status(struct message_props *wanted, PROPID id, HRESULT status);

/* The limits of the protocol for a read into these buffers; returns how many there are (LIMIT_FIELDS). */
void message_limits(const struct message_props *wanted, uint32_t limits[LIMIT_FIELDS]);

/* A message of a MESSAGE frame; it points into the frame. */
struct message {
    uint64_t number[IN_FIELDS];
    const uint8_t *bytes[IN_FIELDS];
    uint32_t size[IN_FIELDS];
};

/* Positions of a message in a MESSAGE frame */
enum in {
    IN_LOOKUP_ID,
    IN_BODY,
    IN_LABEL,
    IN_DELIVERY,
    IN_PRIORITY,
    IN_BODY_TYPE,
    IN_APP_SPECIFIC,
    IN_CORRELATION_ID,
    IN_EXTENSION,
    IN_RESPONSE_QUEUE,
    IN_ADMIN_QUEUE,
    IN_ACKNOWLEDGE,
    IN_JOURNAL,
    IN_CLASS,
    IN_MESSAGE_ID,
    IN_SENT_TIME,
    IN_ARRIVED_TIME,
    IN_ARRIVAL_SEQ,
    IN_DESTINATION_QUEUE,
    IN_FLAGS,
    IN_SENDER_ID,
    IN_ABORT_COUNT,
    IN_MOVE_COUNT,
    IN_TIME_TO_REACH_QUEUE,
    IN_TIME_TO_BE_RECEIVED,
    IN_REASON,
    IN_TRANSACTION, /* 1: first, 2: last, 4 times the number of the transaction; 0 from a server without it */
};

/* False: the frame is not that of a message. */
bool message_parse(const uint8_t *frame, size_t size, struct message *message);

/* Fills the properties. If a buffer is too small: its error, with all lengths that the message needs. */
HRESULT message_fill(struct message_props *wanted, const struct message *message);

/* Writes the lengths of the parts of a message that a read left in its queue, and marks those that do not fit. */
void message_sizes(struct message_props *wanted, const uint32_t sizes[LIMIT_FIELDS]);

#endif
