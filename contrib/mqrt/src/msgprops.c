/* Checks the properties that a program passes for a message. */
#include <string.h>

#include "message.h"
#include "text.h"

enum type { T_NONE, T_UI1, T_UI2, T_UI4, T_UI8, T_BYTES, T_TEXT, T_GUID };
enum { ONLY_SENT = 1, ONLY_RECEIVED = 2, IGNORED = 4, NOT_HERE = 8 };

/* What each property is. `length` is the property that has the length of a buffer. ONLY_…: the property says nothing
 * in the other direction. NOT_HERE: the protocol does not carry it. */
static const struct description {
    uint8_t type;
    uint8_t flags;
    uint8_t length;
} KNOWN[MESSAGE_IDS] = {
    [PROPID_M_CLASS] = {T_UI2, 0, 0},
    [PROPID_M_MSGID] = {T_BYTES, 0, 0},
    [PROPID_M_CORRELATIONID] = {T_BYTES, 0, 0},
    [PROPID_M_PRIORITY] = {T_UI1, 0, 0},
    [PROPID_M_DELIVERY] = {T_UI1, 0, 0},
    [PROPID_M_ACKNOWLEDGE] = {T_UI1, 0, 0},
    [PROPID_M_JOURNAL] = {T_UI1, 0, 0},
    [PROPID_M_APPSPECIFIC] = {T_UI4, 0, 0},
    [PROPID_M_BODY] = {T_BYTES, 0, 0},
    [PROPID_M_BODY_SIZE] = {T_UI4, 0, 0},
    [PROPID_M_LABEL] = {T_TEXT, 0, PROPID_M_LABEL_LEN},
    [PROPID_M_LABEL_LEN] = {T_UI4, 0, 0},
    [PROPID_M_TIME_TO_REACH_QUEUE] = {T_UI4, 0, 0},
    [PROPID_M_TIME_TO_BE_RECEIVED] = {T_UI4, 0, 0},
    [PROPID_M_RESP_QUEUE] = {T_TEXT, 0, PROPID_M_RESP_QUEUE_LEN},
    [PROPID_M_RESP_QUEUE_LEN] = {T_UI4, 0, 0},
    [PROPID_M_ADMIN_QUEUE] = {T_TEXT, 0, PROPID_M_ADMIN_QUEUE_LEN},
    [PROPID_M_ADMIN_QUEUE_LEN] = {T_UI4, 0, 0},
    [PROPID_M_VERSION] = {T_UI4, ONLY_RECEIVED, 0},
    [PROPID_M_SENDERID] = {T_BYTES, ONLY_RECEIVED, PROPID_M_SENDERID_LEN},
    [PROPID_M_SENDERID_LEN] = {T_UI4, 0, 0},
    [PROPID_M_SENDERID_TYPE] = {T_UI4, 0, 0},
    [PROPID_M_PRIV_LEVEL] = {T_UI4, ONLY_SENT, 0},
    [PROPID_M_AUTH_LEVEL] = {T_UI4, ONLY_SENT, 0},
    [PROPID_M_AUTHENTICATED] = {T_UI1, ONLY_RECEIVED, 0},
    [PROPID_M_HASH_ALG] = {T_UI4, ONLY_SENT, 0},
    [PROPID_M_ENCRYPTION_ALG] = {T_UI4, ONLY_SENT, 0},
    [PROPID_M_SENDER_CERT] = {T_BYTES, ONLY_SENT, PROPID_M_SENDER_CERT_LEN},
    [PROPID_M_SENDER_CERT_LEN] = {T_UI4, 0, 0},
    [PROPID_M_SRC_MACHINE_ID] = {T_GUID, ONLY_RECEIVED, 0},
    [PROPID_M_SENTTIME] = {T_UI4, ONLY_RECEIVED, 0},
    [PROPID_M_ARRIVEDTIME] = {T_UI4, ONLY_RECEIVED, 0},
    [PROPID_M_DEST_QUEUE] = {T_TEXT, ONLY_RECEIVED, PROPID_M_DEST_QUEUE_LEN},
    [PROPID_M_DEST_QUEUE_LEN] = {T_UI4, 0, 0},
    [PROPID_M_EXTENSION] = {T_BYTES, 0, PROPID_M_EXTENSION_LEN},
    [PROPID_M_EXTENSION_LEN] = {T_UI4, 0, 0},
    [PROPID_M_SECURITY_CONTEXT] = {T_UI4, ONLY_SENT, 0},
    [PROPID_M_CONNECTOR_TYPE] = {T_GUID, 0, 0},
    [PROPID_M_XACT_STATUS_QUEUE] = {T_TEXT, NOT_HERE, PROPID_M_XACT_STATUS_QUEUE_LEN},
    [PROPID_M_XACT_STATUS_QUEUE_LEN] = {T_UI4, 0, 0},
    [PROPID_M_TRACE] = {T_UI1, NOT_HERE, 0},
    [PROPID_M_BODY_TYPE] = {T_UI4, 0, 0},
    [PROPID_M_DEST_SYMM_KEY] = {T_BYTES, NOT_HERE, PROPID_M_DEST_SYMM_KEY_LEN},
    [PROPID_M_DEST_SYMM_KEY_LEN] = {T_UI4, 0, 0},
    [PROPID_M_SIGNATURE] = {T_BYTES, NOT_HERE, PROPID_M_SIGNATURE_LEN},
    [PROPID_M_SIGNATURE_LEN] = {T_UI4, 0, 0},
    [PROPID_M_PROV_TYPE] = {T_UI4, NOT_HERE, 0},
    [PROPID_M_PROV_NAME] = {T_TEXT, NOT_HERE, PROPID_M_PROV_NAME_LEN},
    [PROPID_M_PROV_NAME_LEN] = {T_UI4, 0, 0},
    [PROPID_M_FIRST_IN_XACT] = {T_UI1, ONLY_RECEIVED, 0},
    [PROPID_M_LAST_IN_XACT] = {T_UI1, ONLY_RECEIVED, 0},
    [PROPID_M_XACTID] = {T_BYTES, ONLY_RECEIVED, 0},
    [PROPID_M_AUTHENTICATED_EX] = {T_UI1, ONLY_RECEIVED, 0},
    [PROPID_M_RESP_FORMAT_NAME] = {T_TEXT, 0, PROPID_M_RESP_FORMAT_NAME_LEN},
    [PROPID_M_RESP_FORMAT_NAME_LEN] = {T_UI4, 0, 0},
    [PROPID_M_DEST_FORMAT_NAME] = {T_TEXT, ONLY_RECEIVED, PROPID_M_DEST_FORMAT_NAME_LEN},
    [PROPID_M_DEST_FORMAT_NAME_LEN] = {T_UI4, 0, 0},
    [PROPID_M_LOOKUPID] = {T_UI8, ONLY_RECEIVED, 0},
    [PROPID_M_SOAP_ENVELOPE] = {T_TEXT, NOT_HERE, PROPID_M_SOAP_ENVELOPE_LEN},
    [PROPID_M_SOAP_ENVELOPE_LEN] = {T_UI4, 0, 0},
    [PROPID_M_COMPOUND_MESSAGE] = {T_BYTES, NOT_HERE, PROPID_M_COMPOUND_MESSAGE_SIZE},
    [PROPID_M_COMPOUND_MESSAGE_SIZE] = {T_UI4, 0, 0},
    [PROPID_M_SOAP_HEADER] = {T_TEXT, NOT_HERE, 0},
    [PROPID_M_SOAP_BODY] = {T_TEXT, NOT_HERE, 0},
    [PROPID_M_DEADLETTER_QUEUE] = {T_TEXT, ONLY_SENT, PROPID_M_DEADLETTER_QUEUE_LEN},
    [PROPID_M_DEADLETTER_QUEUE_LEN] = {T_UI4, 0, 0},
    [PROPID_M_ABORT_COUNT] = {T_UI4, ONLY_RECEIVED, 0},
    [PROPID_M_MOVE_COUNT] = {T_UI4, ONLY_RECEIVED, 0},
};

static const VARTYPE VARTYPES[] = {
    [T_UI1] = VT_UI1,
    [T_UI2] = VT_UI2,
    [T_UI4] = VT_UI4,
    [T_UI8] = VT_UI8,
    [T_BYTES] = VT_VECTOR | VT_UI1,
    [T_TEXT] = VT_LPWSTR,
    [T_GUID] = VT_CLSID,
};

/* The status of a value in isolation. */
static HRESULT checked(PROPID id, MQPROPVARIANT *value, enum direction direction) {
    enum type type = KNOWN[id].type;
    bool fixed = type == T_UI1 || type == T_UI2 || type == T_UI4 || type == T_UI8;
    if (direction == TO_RECEIVE && fixed && value->vt == VT_NULL) {
        value->vt = VARTYPES[type];
        value->uhVal = 0; /* a length without a value is the length 0 */
    }
    bool wide_context = id == PROPID_M_SECURITY_CONTEXT && value->vt == VT_UI8; /* of 64-bit programs */
    if (value->vt != VARTYPES[type] && !wide_context) return MQ_ERROR_ILLEGAL_PROPERTY_VT;
    if (type == T_BYTES) {
        bool is_id = id == PROPID_M_MSGID || id == PROPID_M_CORRELATIONID || id == PROPID_M_XACTID;
        if (value->caub.pElems == NULL && value->caub.cElems > 0) return MQ_ERROR_ILLEGAL_PROPERTY_VALUE;
        if (is_id && value->caub.cElems < PROPID_M_MSGID_SIZE) return MQ_ERROR_ILLEGAL_PROPERTY_SIZE;
    }
    if (type == T_GUID && value->puuid == NULL) return MQ_ERROR_ILLEGAL_PROPERTY_VALUE;
    if (type == T_TEXT && direction == TO_SEND && value->pwszVal == NULL) return MQ_ERROR_ILLEGAL_PROPERTY_VALUE;
    return MQ_OK;
}

static HRESULT relevance(PROPID id, enum direction direction) {
    uint8_t flags = KNOWN[id].flags;
    if (flags & NOT_HERE) return MQ_INFORMATION_UNSUPPORTED_PROPERTY;
    if (direction == TO_SEND && flags & ONLY_RECEIVED) return MQ_INFORMATION_PROPERTY_IGNORED;
    if (direction == TO_RECEIVE && flags & ONLY_SENT) return MQ_INFORMATION_UNSUPPORTED_PROPERTY;
    return MQ_OK;
}

/* A buffer for text needs the property that has its length; without a pointer the length must be 0. */
static HRESULT with_lengths(struct message_props *wanted) {
    for (PROPID id = 0; id < MESSAGE_IDS; id++) {
        PROPID length = KNOWN[id].length;
        if (wanted->at[id] == NULL || length == 0) continue;
        if (wanted->at[length] == NULL) return MQ_ERROR_INSUFFICIENT_PROPERTIES;
        if (KNOWN[id].type == T_TEXT && wanted->at[id]->pwszVal == NULL && wanted->at[length]->ulVal > 0)
            message_status(wanted, id, MQ_ERROR_ILLEGAL_PROPERTY_VALUE);
    }
    return MQ_OK;
}

HRESULT message_props(MQMSGPROPS *given, enum direction direction, struct message_props *wanted) {
    memset(wanted, 0, sizeof *wanted);
    if (given == NULL) return MQ_OK;
    HRESULT result;
    wanted->props = PROPS_OF(given, &result);
    if (result != MQ_OK) return result;
    for (DWORD i = 0; i < wanted->props.count; i++) {
        PROPID id = wanted->props.ids[i];
        HRESULT status;
        if (id >= MESSAGE_IDS || KNOWN[id].type == T_NONE) status = MQ_INFORMATION_UNSUPPORTED_PROPERTY;
        else if (wanted->at[id] != NULL) status = MQ_INFORMATION_DUPLICATE_PROPERTY;
        else {
            status = checked(id, &wanted->props.values[i], direction);
            wanted->at[id] = &wanted->props.values[i];
            wanted->index[id] = i;
            if (status == MQ_OK) status = relevance(id, direction);
        }
        props_status(&wanted->props, i, status);
    }
    if (wanted->props.error) return MQ_ERROR_PROPERTY;
    if (direction == TO_RECEIVE && (result = with_lengths(wanted)) != MQ_OK) return result;
    return wanted->props.error ? MQ_ERROR_PROPERTY : MQ_OK;
}

void message_status(struct message_props *wanted, PROPID id, HRESULT status) {
    if (wanted->at[id] != NULL) props_status(&wanted->props, wanted->index[id], status);
}

static uint32_t bytes_limit(const MQPROPVARIANT *buffer) { return buffer == NULL ? INFINITE : buffer->caub.cElems; }

/* A buffer of n units has room for n - 1 and a NUL. */
static uint32_t text_limit(const MQPROPVARIANT *buffer, const MQPROPVARIANT *length) {
    if (buffer == NULL) return INFINITE;
    return length->ulVal == 0 ? 0 : length->ulVal - 1;
}

static uint32_t smaller(uint32_t one, uint32_t other) { return one < other ? one : other; }

void message_limits(const struct message_props *wanted, uint32_t limits[LIMIT_FIELDS]) {
    MQPROPVARIANT *const *at = wanted->at;
    limits[0] = bytes_limit(at[PROPID_M_BODY]);
    limits[1] = text_limit(at[PROPID_M_LABEL], at[PROPID_M_LABEL_LEN]);
    limits[2] = bytes_limit(at[PROPID_M_EXTENSION]);
    limits[3] = smaller(text_limit(at[PROPID_M_RESP_QUEUE], at[PROPID_M_RESP_QUEUE_LEN]),
                        text_limit(at[PROPID_M_RESP_FORMAT_NAME], at[PROPID_M_RESP_FORMAT_NAME_LEN]));
    limits[4] = text_limit(at[PROPID_M_ADMIN_QUEUE], at[PROPID_M_ADMIN_QUEUE_LEN]);
    limits[5] = smaller(text_limit(at[PROPID_M_DEST_QUEUE], at[PROPID_M_DEST_QUEUE_LEN]),
                        text_limit(at[PROPID_M_DEST_FORMAT_NAME], at[PROPID_M_DEST_FORMAT_NAME_LEN]));
    limits[6] = bytes_limit(at[PROPID_M_SENDERID]);
}
