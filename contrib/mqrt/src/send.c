#include <stdlib.h>
#include <string.h>

#include "certificates.h"
#include "handles.h"
#include "link.h"
#include "message.h"
#include "names.h"
#include "text.h"
#include "transaction.h"

enum { LABEL_MOST = 249, ANY = 0 };

/* Properties whose values have a range. */
static const struct {
    uint8_t id;
    uint32_t most;
} RANGES[] = {
    {PROPID_M_PRIORITY, MQ_MAX_PRIORITY},
    {PROPID_M_DELIVERY, MQMSG_DELIVERY_RECOVERABLE},
    {PROPID_M_ACKNOWLEDGE, 15},
    {PROPID_M_JOURNAL, MQMSG_DEADLETTER | MQMSG_JOURNAL},
    {PROPID_M_SENDERID_TYPE, MQMSG_SENDERID_TYPE_SID},
    {PROPID_M_AUTH_LEVEL, MQMSG_AUTH_LEVEL_SIG30},
    {PROPID_M_PRIV_LEVEL, MQMSG_PRIV_LEVEL_BODY_AES},
};

static uint32_t number_of(const struct message_props *given, PROPID id, uint32_t fallback) {
    const MQPROPVARIANT *value = given->at[id];
    if (value == NULL) return fallback;
    if (value->vt == VT_UI1) return value->bVal;
    return value->vt == VT_UI2 ? value->uiVal : value->ulVal;
}

static HRESULT checked(struct message_props *given) {
    for (size_t i = 0; i < sizeof RANGES / sizeof *RANGES; i++) {
        if (number_of(given, RANGES[i].id, 0) > RANGES[i].most)
            message_status(given, RANGES[i].id, MQ_ERROR_ILLEGAL_PROPERTY_VALUE);
    }
    uint32_t privacy = number_of(given, PROPID_M_PRIV_LEVEL, 0);
    if (privacy == 2 || privacy == 4) message_status(given, PROPID_M_PRIV_LEVEL, MQ_ERROR_ILLEGAL_PROPERTY_VALUE);
    static const uint8_t not_offered[] = {PROPID_M_SOAP_HEADER, PROPID_M_SOAP_BODY, PROPID_M_COMPOUND_MESSAGE};
    for (size_t i = 0; i < sizeof not_offered; i++) /* without them the message would be another one */
        message_status(given, not_offered[i], MQ_ERROR_PROPERTY_NOTALLOWED);
    if (given->props.error) return MQ_ERROR_PROPERTY;
    if (given->at[PROPID_M_RESP_QUEUE] != NULL && given->at[PROPID_M_RESP_FORMAT_NAME] != NULL)
        return MQ_ERROR_PROPERTIES_CONFLICT;
    if (given->at[PROPID_M_CLASS] != NULL && given->at[PROPID_M_CONNECTOR_TYPE] == NULL)
        return MQ_ERROR_MISSING_CONNECTOR_TYPE;
    const MQPROPVARIANT *label = given->at[PROPID_M_LABEL];
    return label != NULL && wide_length(label->pwszVal, LABEL_MOST + 1) > LABEL_MOST ? MQ_ERROR_LABEL_TOO_LONG
                                                                                     : MQ_OK;
}

static void put_text(struct mp_writer *to, struct message_props *given, PROPID id, size_t most) {
    const MQPROPVARIANT *value = given->at[id];
    size_t size = 0;
    char *text = value == NULL ? NULL : utf8_of(value->pwszVal, most, &size);
    if (value != NULL && text == NULL) message_status(given, id, MQ_ERROR_ILLEGAL_PROPERTY_VALUE);
    if (size > 0) mp_put_str(to, text, size);
    else mp_put_nil(to); /* an empty name is none */
    free(text);
}

static void put_bytes(struct mp_writer *to, const struct message_props *given, PROPID id, size_t most) {
    const MQPROPVARIANT *value = given->at[id];
    if (value == NULL) mp_put_nil(to);
    else mp_put_bin(to, value->caub.pElems, most != ANY && value->caub.cElems > most ? most : value->caub.cElems);
}

static uint32_t authentication(uint32_t level) {
    enum { NONE, SIGNED_10, SIGNED_20 };
    if (level == MQMSG_AUTH_LEVEL_NONE) return NONE;
    return level == MQMSG_AUTH_LEVEL_SIG10 ? SIGNED_10 : SIGNED_20;
}

/* The digest of the certificate that signs; nil for the internal one. */
static void put_certificate(struct mp_writer *to, struct message_props *given) {
    const MQPROPVARIANT *context = given->at[PROPID_M_SECURITY_CONTEXT];
    const MQPROPVARIANT *certificate = given->at[PROPID_M_SENDER_CERT];
    uint8_t digest[MD5_SIZE];
    if (context != NULL) {
        uint64_t number = context->vt == VT_UI8 ? context->uhVal : context->ulVal;
        struct security_context *made = (struct security_context *)handle_get((HANDLE)(uintptr_t)number, K_SECURITY);
        if (made == NULL) {
            message_status(given, PROPID_M_SECURITY_CONTEXT, MQ_ERROR_BAD_SECURITY_CONTEXT);
            mp_put_nil(to);
            return;
        }
        if (made->external) mp_put_bin(to, made->digest, MD5_SIZE);
        else mp_put_nil(to);
        object_release(&made->object);
    } else if (certificate != NULL && certificate->caub.cElems > 0) {
        md5(certificate->caub.pElems, certificate->caub.cElems, digest);
        mp_put_bin(to, digest, MD5_SIZE);
    } else {
        mp_put_nil(to);
    }
}

/* In the order of the positions of the protocol. */
static void put_message(struct mp_writer *to, struct message_props *given) {
    bool new_name = given->at[PROPID_M_RESP_FORMAT_NAME] != NULL;
    mp_put_array(to, OUT_FIELDS);
    put_bytes(to, given, PROPID_M_BODY, ANY);
    put_text(to, given, PROPID_M_LABEL, LABEL_MOST);
    mp_put_uint(to, number_of(given, PROPID_M_DELIVERY, MQMSG_DELIVERY_EXPRESS));
    mp_put_uint(to, number_of(given, PROPID_M_PRIORITY, DEFAULT_M_PRIORITY));
    mp_put_uint(to, number_of(given, PROPID_M_BODY_TYPE, 0));
    mp_put_uint(to, number_of(given, PROPID_M_APPSPECIFIC, 0));
    put_bytes(to, given, PROPID_M_CORRELATIONID, PROPID_M_CORRELATIONID_SIZE);
    put_bytes(to, given, PROPID_M_EXTENSION, ANY);
    put_text(to, given, new_name ? PROPID_M_RESP_FORMAT_NAME : PROPID_M_RESP_QUEUE, NAME_MOST);
    put_text(to, given, PROPID_M_ADMIN_QUEUE, NAME_MOST);
    mp_put_uint(to, number_of(given, PROPID_M_ACKNOWLEDGE, MQMSG_ACKNOWLEDGMENT_NONE));
    mp_put_uint(to, number_of(given, PROPID_M_JOURNAL, MQMSG_JOURNAL_NONE));
    mp_put_uint(to, number_of(given, PROPID_M_TIME_TO_REACH_QUEUE, LONG_LIVED));
    mp_put_uint(to, number_of(given, PROPID_M_TIME_TO_BE_RECEIVED, INFINITE));
    mp_put_uint(to, number_of(given, PROPID_M_CLASS, MQMSG_CLASS_NORMAL));
    put_text(to, given, PROPID_M_DEADLETTER_QUEUE, NAME_MOST);
    mp_put_uint(to, authentication(number_of(given, PROPID_M_AUTH_LEVEL, MQMSG_AUTH_LEVEL_NONE)));
    mp_put_uint(to, number_of(given, PROPID_M_PRIV_LEVEL, MQMSG_PRIV_LEVEL_NONE));
    mp_put_uint(to, number_of(given, PROPID_M_HASH_ALG, 0));
    mp_put_uint(to, number_of(given, PROPID_M_ENCRYPTION_ALG, 0));
    put_certificate(to, given);
    mp_put_bool(to, number_of(given, PROPID_M_SENDERID_TYPE, MQMSG_SENDERID_TYPE_SID) == MQMSG_SENDERID_TYPE_SID);
}

/* SENT is [count, refusals, ordinals]: the refusal of the one message, or its ordinal. */
static HRESULT outcome(const struct reply *reply, uint32_t *ordinal) {
    struct mp_reader reader = mp_over(reply->data, reply->size);
    uint32_t count, refusals, ordinals, parts;
    uint64_t number;
    if (!mp_array(&reader, &count) || count < 3 || !mp_number(&reader, 1, &number) || !mp_array(&reader, &refusals))
        return MQ_ERROR;
    if (refusals > 0) {
        if (!mp_array(&reader, &parts) || parts < 2 || !mp_number(&reader, 0, &number) ||
            !mp_number(&reader, UINT32_MAX, &number))
            return MQ_ERROR;
        return FAILED((HRESULT)(uint32_t)number) ? (HRESULT)(uint32_t)number : MQ_ERROR;
    }
    if (number != 1 || !mp_array(&reader, &ordinals) || ordinals != 1 || !mp_number(&reader, UINT32_MAX, &number))
        return MQ_ERROR;
    *ordinal = (uint32_t)number;
    return MQ_OK;
}

/* The identifier is the GUID of the queue manager and the ordinal, little-endian. */
static void give_id(const struct message_props *given, uint32_t ordinal) {
    const MQPROPVARIANT *id = given->at[PROPID_M_MSGID];
    struct hello hello;
    if (id == NULL || link_hello(&hello) != MQ_OK) return;
    memcpy(id->caub.pElems, &hello.guid, sizeof hello.guid);
    for (unsigned i = 0; i < 4; i++) id->caub.pElems[sizeof hello.guid + i] = (uint8_t)(ordinal >> (8 * i));
}

static HRESULT send_to(const struct queue *queue, struct message_props *given, ITransaction *transaction) {
    enum scope scope;
    uint32_t number, ordinal;
    HRESULT result = transaction_scope(transaction, queue->generation, &scope, &number);
    if (result != MQ_OK || (result = checked(given)) != MQ_OK) return result;
    struct mp_writer request;
    link_begin(&request);
    mp_put_array(&request, scope == INSIDE ? 4 : 3);
    mp_put_uint(&request, queue->number);
    mp_put_uint(&request, SEND_IDS | (scope == SINGLE ? SEND_SINGLE : 0));
    mp_put_array(&request, 1);
    put_message(&request, given);
    if (scope == INSIDE) mp_put_uint(&request, number);
    if (given->props.error) {
        mp_free(&request);
        return MQ_ERROR_PROPERTY;
    }
    struct reply reply;
    result = link_ask(queue->generation, F_SEND, &request, F_SENT, &reply);
    if (result == MQ_OK) result = outcome(&reply, &ordinal);
    reply_free(&reply);
    if (result != MQ_OK) return result;
    give_id(given, ordinal);
    return props_result(&given->props);
}

MQAPI HRESULT APIENTRY MQSendMessage(QUEUEHANDLE hDestinationQueue, MQMSGPROPS *pMessageProps,
                                     ITransaction *pTransaction) {
    struct message_props given;
    struct queue *queue;
    if (pMessageProps == NULL) return MQ_ERROR_INVALID_PARAMETER;
    HRESULT result = queue_get(hDestinationQueue, MQ_SEND_ACCESS, &queue);
    if (result != MQ_OK) return result;
    result = message_props(pMessageProps, TO_SEND, &given);
    if (result == MQ_OK) result = send_to(queue, &given, pTransaction);
    object_release(&queue->object);
    return result;
}
