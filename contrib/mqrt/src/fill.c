/* Fills the properties of a program from a message. */
#include <string.h>

#include "message.h"
#include "text.h"

enum shape { NUMBER, BYTES, TEXT, TEXT_OR_NIL, BYTES_OR_NIL };

static const uint8_t SHAPES[IN_FIELDS] = {
    [IN_BODY] = BYTES,
    [IN_LABEL] = TEXT,
    [IN_CORRELATION_ID] = BYTES,
    [IN_EXTENSION] = BYTES,
    [IN_RESPONSE_QUEUE] = TEXT_OR_NIL,
    [IN_ADMIN_QUEUE] = TEXT_OR_NIL,
    [IN_MESSAGE_ID] = BYTES,
    [IN_DESTINATION_QUEUE] = TEXT_OR_NIL,
    [IN_SENDER_ID] = BYTES_OR_NIL,
};

enum { FIRST_VERSION = 21 }; /* positions that every server sends: up to the sender id */

static bool has_shape(const struct mp_value *value, enum shape shape) {
    switch (shape) {
    case NUMBER: return value->type == MP_UINT;
    case BYTES: return value->type == MP_BIN;
    case TEXT: return value->type == MP_STR;
    case TEXT_OR_NIL: return value->type == MP_STR || value->type == MP_NIL;
    case BYTES_OR_NIL: return value->type == MP_BIN || value->type == MP_NIL;
    }
    return false;
}

bool message_parse(const uint8_t *frame, size_t size, struct message *message) {
    struct mp_reader reader = mp_over(frame, size);
    uint32_t count;
    *message = (struct message){0};
    message->number[IN_TIME_TO_REACH_QUEUE] = LONG_LIVED;
    message->number[IN_TIME_TO_BE_RECEIVED] = INFINITE;
    if (!mp_array(&reader, &count) || count < FIRST_VERSION) return false;
    for (uint32_t i = 0; i < count && i < IN_FIELDS; i++) {
        struct mp_value value;
        if (!mp_next(&reader, &value) || !has_shape(&value, SHAPES[i])) return false;
        message->number[i] = value.number;
        message->bytes[i] = value.bytes;
        message->size[i] = value.size;
    }
    return message->size[IN_MESSAGE_ID] == PROPID_M_MSGID_SIZE &&
           message->size[IN_CORRELATION_ID] == PROPID_M_CORRELATIONID_SIZE;
}

static void give_number(struct message_props *wanted, PROPID id, uint64_t number) {
    MQPROPVARIANT *value = wanted->at[id];
    if (value == NULL) return;
    if (value->vt == VT_UI1) value->bVal = (UCHAR)number;
    else if (value->vt == VT_UI2) value->uiVal = (USHORT)number;
    else if (value->vt == VT_UI4) value->ulVal = number > UINT32_MAX ? UINT32_MAX : (ULONG)number;
    else value->uhVal = number;
}

static void give_bytes(struct message_props *wanted, PROPID id, const uint8_t *bytes, size_t size) {
    MQPROPVARIANT *value = wanted->at[id];
    if (value == NULL) return;
    if (size > 0) memcpy(value->caub.pElems, bytes, size);
}

/* Parts of a message whose buffers may be too small: the buffer, its length, and the part of the message. */
static const struct part {
    uint8_t buffer;
    uint8_t length;
    uint8_t field;
    uint8_t limit; /* its place among the limits of the protocol */
    bool text;
    HRESULT too_small;
} PARTS[] = {
    {PROPID_M_BODY, PROPID_M_BODY_SIZE, IN_BODY, 0, false, MQ_ERROR_BUFFER_OVERFLOW},
    {PROPID_M_LABEL, PROPID_M_LABEL_LEN, IN_LABEL, 1, true, MQ_ERROR_LABEL_BUFFER_TOO_SMALL},
    {PROPID_M_EXTENSION, PROPID_M_EXTENSION_LEN, IN_EXTENSION, 2, false, MQ_ERROR_BUFFER_OVERFLOW},
    {PROPID_M_RESP_QUEUE, PROPID_M_RESP_QUEUE_LEN, IN_RESPONSE_QUEUE, 3, true, MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL},
    {PROPID_M_RESP_FORMAT_NAME, PROPID_M_RESP_FORMAT_NAME_LEN, IN_RESPONSE_QUEUE, 3, true,
     MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL},
    {PROPID_M_ADMIN_QUEUE, PROPID_M_ADMIN_QUEUE_LEN, IN_ADMIN_QUEUE, 4, true, MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL},
    {PROPID_M_DEST_QUEUE, PROPID_M_DEST_QUEUE_LEN, IN_DESTINATION_QUEUE, 5, true,
     MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL},
    {PROPID_M_DEST_FORMAT_NAME, PROPID_M_DEST_FORMAT_NAME_LEN, IN_DESTINATION_QUEUE, 5, true,
     MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL},
    {PROPID_M_SENDERID, PROPID_M_SENDERID_LEN, IN_SENDER_ID, 6, false, MQ_ERROR_SENDERID_BUFFER_TOO_SMALL},
};
enum { PART_COUNT = sizeof PARTS / sizeof *PARTS };

/* The length that a buffer needs, as the property with the length tells it: units with the NUL, or bytes. A message
 * without a queue name has the length 0; a label has its NUL always. What is empty fits everywhere: the limits of the
 * protocol do not tell a buffer without room for the NUL from one with it, and the message would be lost. */
static size_t needed(const struct part *part, size_t size) {
    if (!part->text) return size;
    return size == 0 && part->buffer != PROPID_M_LABEL ? 0 : size + 1;
}

/* Writes all lengths; the error of the first buffer that is too small, or MQ_OK. */
static HRESULT give_lengths(struct message_props *wanted, const uint32_t sizes[LIMIT_FIELDS]) {
    HRESULT result = MQ_OK;
    for (const struct part *part = PARTS; part < PARTS + PART_COUNT; part++) {
        const MQPROPVARIANT *buffer = wanted->at[part->buffer];
        size_t size = needed(part, sizes[part->limit]);
        if (buffer != NULL) {
            size_t room = part->text ? wanted->at[part->length]->ulVal : buffer->caub.cElems;
            if (size > room && sizes[part->limit] > 0) {
                message_status(wanted, part->buffer, part->too_small);
                if (result == MQ_OK) result = part->too_small;
            }
        }
        give_number(wanted, part->length, size);
    }
    return result;
}

void message_sizes(struct message_props *wanted, const uint32_t sizes[LIMIT_FIELDS]) {
    (void)give_lengths(wanted, sizes);
}

/* Parts that no MESSAGE frame carries are empty. */
static void give_nothing(struct message_props *wanted) {
    static const uint8_t lengths[] = {
        PROPID_M_SENDER_CERT_LEN, PROPID_M_XACT_STATUS_QUEUE_LEN, PROPID_M_DEST_SYMM_KEY_LEN,
        PROPID_M_SIGNATURE_LEN,   PROPID_M_PROV_NAME_LEN,         PROPID_M_SOAP_ENVELOPE_LEN,
        PROPID_M_COMPOUND_MESSAGE_SIZE, PROPID_M_DEADLETTER_QUEUE_LEN,
    };
    static const uint8_t numbers[] = {
        PROPID_M_PRIV_LEVEL, PROPID_M_AUTH_LEVEL, PROPID_M_HASH_ALG,         PROPID_M_ENCRYPTION_ALG,
        PROPID_M_TRACE,      PROPID_M_PROV_TYPE,  PROPID_M_SECURITY_CONTEXT,
    };
    static const GUID no_type;
    for (size_t i = 0; i < sizeof lengths; i++) give_number(wanted, lengths[i], 0);
    for (size_t i = 0; i < sizeof numbers; i++) give_number(wanted, numbers[i], 0);
    if (wanted->at[PROPID_M_CONNECTOR_TYPE] != NULL) *wanted->at[PROPID_M_CONNECTOR_TYPE]->puuid = no_type;
}

/* The identifier of a transaction is the GUID of its source, with which message identifiers begin, and its number. */
static void give_transaction(struct message_props *wanted, const struct message *message) {
    uint64_t transaction = message->number[IN_TRANSACTION];
    uint8_t identifier[PROPID_M_XACTID_SIZE] = {0};
    give_number(wanted, PROPID_M_FIRST_IN_XACT, transaction & 1 ? MQMSG_FIRST_IN_XACT : MQMSG_NOT_FIRST_IN_XACT);
    give_number(wanted, PROPID_M_LAST_IN_XACT, transaction & 2 ? MQMSG_LAST_IN_XACT : MQMSG_NOT_LAST_IN_XACT);
    if (message->number[IN_FLAGS] & MESSAGE_TRANSACTIONAL) {
        memcpy(identifier, message->bytes[IN_MESSAGE_ID], sizeof(GUID));
        for (unsigned i = 0; i < 4; i++) identifier[sizeof(GUID) + i] = (uint8_t)(transaction >> (2 + 8 * i));
    }
    give_bytes(wanted, PROPID_M_XACTID, identifier, sizeof identifier);
}

static void give_part(struct message_props *wanted, const struct part *part, const struct message *message) {
    const uint8_t *bytes = message->bytes[part->field];
    size_t size = message->size[part->field];
    if (!part->text) {
        give_bytes(wanted, part->buffer, bytes, size);
        return;
    }
    const MQPROPVARIANT *buffer = wanted->at[part->buffer];
    if (buffer == NULL || buffer->pwszVal == NULL) return;
    size_t units = utf16_units(bytes, size);
    utf16_write(bytes, size, buffer->pwszVal, units);
    buffer->pwszVal[units] = 0;
}

HRESULT message_fill(struct message_props *wanted, const struct message *message) {
    enum { PACKET_VERSION = 0x10 };
    static const struct {
        uint8_t id;
        uint8_t field;
    } numbers[] = {
        {PROPID_M_CLASS, IN_CLASS},
        {PROPID_M_PRIORITY, IN_PRIORITY},
        {PROPID_M_DELIVERY, IN_DELIVERY},
        {PROPID_M_ACKNOWLEDGE, IN_ACKNOWLEDGE},
        {PROPID_M_JOURNAL, IN_JOURNAL},
        {PROPID_M_APPSPECIFIC, IN_APP_SPECIFIC},
        {PROPID_M_TIME_TO_REACH_QUEUE, IN_TIME_TO_REACH_QUEUE},
        {PROPID_M_TIME_TO_BE_RECEIVED, IN_TIME_TO_BE_RECEIVED},
        {PROPID_M_SENTTIME, IN_SENT_TIME},
        {PROPID_M_ARRIVEDTIME, IN_ARRIVED_TIME},
        {PROPID_M_BODY_TYPE, IN_BODY_TYPE},
        {PROPID_M_LOOKUPID, IN_LOOKUP_ID},
        {PROPID_M_ABORT_COUNT, IN_ABORT_COUNT},
        {PROPID_M_MOVE_COUNT, IN_MOVE_COUNT},
    };
    /* A queue name of no more than a NUL has no room: the lengths of the buffers are needed before they change. */
    DWORD rooms[PART_COUNT];
    uint32_t sizes[LIMIT_FIELDS];
    for (size_t i = 0; i < PART_COUNT; i++) {
        const struct part *part = &PARTS[i];
        rooms[i] = wanted->at[part->length] == NULL ? 0 : wanted->at[part->length]->ulVal;
        sizes[part->limit] = part->text
                                 ? (uint32_t)utf16_units(message->bytes[part->field], message->size[part->field])
                                 : message->size[part->field];
    }
    HRESULT result = give_lengths(wanted, sizes);
    if (result != MQ_OK) return result;
    for (size_t i = 0; i < PART_COUNT; i++) {
        if (!PARTS[i].text || rooms[i] > 0) give_part(wanted, &PARTS[i], message);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        give_number(wanted, numbers[i].id, message->number[numbers[i].field]);
    give_bytes(wanted, PROPID_M_MSGID, message->bytes[IN_MESSAGE_ID], PROPID_M_MSGID_SIZE);
    give_bytes(wanted, PROPID_M_CORRELATIONID, message->bytes[IN_CORRELATION_ID], PROPID_M_CORRELATIONID_SIZE);
    bool authenticated = message->number[IN_FLAGS] & MESSAGE_AUTHENTICATED;
    give_number(wanted, PROPID_M_AUTHENTICATED, authenticated);
    give_number(wanted, PROPID_M_AUTHENTICATED_EX,
                authenticated ? MQMSG_AUTHENTICATED_SIG10 : MQMSG_AUTHENTICATION_NOT_REQUESTED);
    give_number(wanted, PROPID_M_SENDERID_TYPE,
                message->size[IN_SENDER_ID] > 0 ? MQMSG_SENDERID_TYPE_SID : MQMSG_SENDERID_TYPE_NONE);
    give_number(wanted, PROPID_M_VERSION, PACKET_VERSION);
    if (wanted->at[PROPID_M_SRC_MACHINE_ID] != NULL) /* the first part of the message identifier */
        memcpy(wanted->at[PROPID_M_SRC_MACHINE_ID]->puuid, message->bytes[IN_MESSAGE_ID], sizeof(GUID));
    give_transaction(wanted, message);
    give_nothing(wanted);
    return props_result(&wanted->props);
}
