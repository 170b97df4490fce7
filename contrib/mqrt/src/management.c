/* Management: MQMgmtGetInfo and MQMgmtAction for this queue manager and its queues. */
#include <stdlib.h>
#include <string.h>

#include "computer.h"
#include "frames.h"
#include "link.h"
#include "names.h"
#include "props.h"
#include "text.h"

enum { PAGE = 500, MOST_QUEUES = 1 << 20 };

static bool is_outgoing(struct mp_reader map) {
    struct mp_value kind = map_text(map, "kind");
    return kind.size == 8 && memcmp(kind.bytes, "outgoing", 8) == 0;
}

/* An array of queue maps: adds the names of those that count. */
static bool add_names(struct mp_reader queues, const char *key, bool only_active, struct texts *texts,
                      uint32_t *count) {
    if (!mp_array(&queues, count)) return false;
    for (uint32_t i = 0; i < *count; i++) {
        struct mp_value name = map_text(queues, key);
        bool counts = !only_active || map_number(queues, "messages", 0) > 0 || is_outgoing(queues);
        if (name.type == MP_STR && counts && !texts_add(texts, name.bytes, name.size)) return false;
        if (!mp_skip(&queues)) return false;
    }
    return true;
}

/* All queues of a kind, page by page: a reply with all of them might be longer than a frame. */
static HRESULT list(const char *kind, const char *key, bool only_active, struct texts *texts) {
    for (uint32_t offset = 0, count = PAGE; count == PAGE && offset < MOST_QUEUES; offset += PAGE) {
        struct mp_writer request;
        struct reply reply;
        struct mp_reader queues;
        link_begin(&request);
        mp_put_array(&request, 7);
        mp_put_text(&request, kind);
        mp_put_text(&request, "");
        mp_put_text(&request, "");
        mp_put_text(&request, "name");
        mp_put_bool(&request, false);
        mp_put_uint(&request, PAGE);
        mp_put_uint(&request, offset);
        HRESULT result = link_ask(0, F_PAGE_QUEUES, &request, F_REPLY, &reply);
        if (result == MQ_OK && (!mp_find(mp_over(reply.data, reply.size), "queues", &queues) ||
                                !add_names(queues, key, only_active, texts, &count)))
            result = MQ_ERROR;
        reply_free(&reply);
        if (result != MQ_OK) return result;
    }
    return MQ_OK;
}

static HRESULT give_list(MQPROPVARIANT *value, const char *kind, const char *key, bool only_active) {
    struct texts texts = {0};
    HRESULT result = list(kind, key, only_active, &texts);
    if (result == MQ_OK) value_texts(value, &texts);
    else texts_free(&texts);
    return result;
}

static HRESULT give_bytes_in_all(MQPROPVARIANT *value) {
    struct mp_writer request;
    struct reply reply;
    link_begin(&request);
    mp_put_array(&request, 0);
    HRESULT result = link_ask(0, F_STATS, &request, F_REPLY, &reply);
    if (result == MQ_OK) {
        value->vt = VT_UI8;
        value->uhVal = map_number(mp_over(reply.data, reply.size), "bytes", 0);
    }
    reply_free(&reply);
    return result;
}

static HRESULT memory(bool given) { return given ? MQ_OK : MQ_ERROR_INSUFFICIENT_RESOURCES; }

static HRESULT give_of_machine(MQPROPVARIANT *value, PROPID id, const struct hello *hello) {
    switch (id) {
    case PROPID_MGMT_MSMQ_ACTIVEQUEUES: return give_list(value, "all", "format_name", true);
    case PROPID_MGMT_MSMQ_PRIVATEQ: return give_list(value, "user", "name", false);
    case PROPID_MGMT_MSMQ_DSSERVER: return memory(value_ascii(value, ""));
    case PROPID_MGMT_MSMQ_CONNECTED: return memory(value_ascii(value, "CONNECTED"));
    case PROPID_MGMT_MSMQ_TYPE: return memory(value_ascii(value, hello->server));
    case PROPID_MGMT_MSMQ_BYTES_IN_ALL_QUEUES: return give_bytes_in_all(value);
    default: return MQ_INFORMATION_UNSUPPORTED_PROPERTY;
    }
}

/* ---- one queue */

static bool begins(struct mp_value text, const char *prefix) {
    size_t size = strlen(prefix);
    return text.size >= size && memcmp(text.bytes, prefix, size) == 0;
}

static const char *type_of(struct mp_reader map, struct mp_value name) {
    struct mp_value kind = map_text(map, "kind");
    if (begins(name, "PUBLIC=")) return "PUBLIC";
    if (begins(name, "MULTICAST=")) return "MULTICAST";
    if (begins(kind, "connector")) return "CONNECTOR";
    return begins(kind, "queue") || begins(kind, "subqueue") || begins(kind, "outgoing") ? "PRIVATE" : "MACHINE";
}

/* The states of the documentation for those of the application protocol. */
static const char *state_of(struct mp_value state) {
    static const char *const states[][2] = {
        {"inactive", "INACTIVE"},           {"waiting", "WAITING"}, {"connected", "CONNECTED"},
        {"disconnecting", "DISCONNECTING"}, {"locked", "LOCKED"},   {"need_validate", "NEED VALIDATION"},
        {"onhold", "ONHOLD"},               {"on_hold", "ONHOLD"},  {"paused", "ONHOLD"},
        {"disconnected", "DISCONNECTED"},
    };
    if (state.type != MP_STR) return "LOCAL CONNECTION";
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        if (state.size == strlen(states[i][0]) && begins(state, states[i][0])) return states[i][1];
    }
    return "WAITING";
}

static HRESULT give_texts(MQPROPVARIANT *value, struct mp_reader map, const char *key) {
    struct texts texts = {0};
    if (!map_texts(map, key, &texts)) {
        texts_free(&texts);
        return MQ_ERROR_INSUFFICIENT_RESOURCES;
    }
    value_texts(value, &texts);
    return MQ_OK;
}

/* The protocol has QUEUE;SUBQUEUE, programs expect SUBQUEUE. */
static HRESULT give_subqueues(MQPROPVARIANT *value, struct mp_reader map, bool names) {
    struct texts texts = {0};
    HRESULT result = map_texts(map, "subqueues", &texts) ? MQ_OK : MQ_ERROR_INSUFFICIENT_RESOURCES;
    if (result != MQ_OK || !names) {
        if (result == MQ_OK) value_ulong(value, texts.count);
        texts_free(&texts);
        return result;
    }
    for (ULONG i = 0; i < texts.count; i++) {
        WCHAR *text = texts.items[i];
        size_t length = wide_length(text, SIZE_MAX), begin = length;
        while (begin > 0 && text[begin - 1] != ';') begin--;
        memmove(text, text + begin, (length - begin + 1) * sizeof *text);
    }
    value_texts(value, &texts);
    return MQ_OK;
}

static const char *transactional(struct mp_reader map) {
    struct mp_reader at;
    bool flag;
    if (!mp_find(map, "transactional", &at) || !mp_flag(&at, &flag)) return "UNKNOWN";
    return flag ? "YES" : "NO";
}

static const struct {
    uint8_t id;
    const char *key;
} NUMBERS[] = {
    {PROPID_MGMT_QUEUE_MESSAGE_COUNT, "messages"},
    {PROPID_MGMT_QUEUE_BYTES_IN_QUEUE, "bytes"},
    {PROPID_MGMT_QUEUE_JOURNAL_MESSAGE_COUNT, "journal_messages"},
    {PROPID_MGMT_QUEUE_BYTES_IN_JOURNAL, "journal_bytes"},
    {PROPID_MGMT_QUEUE_EOD_LAST_ACK_COUNT, "last_ack_count"},
    {PROPID_MGMT_QUEUE_EOD_NO_READ_COUNT, "no_read_count"},
    {PROPID_MGMT_QUEUE_EOD_NO_ACK_COUNT, "no_ack_count"},
    {PROPID_MGMT_QUEUE_EOD_RESEND_INTERVAL, "resend_interval"},
    {PROPID_MGMT_QUEUE_EOD_RESEND_COUNT, "resend_count"},
};

static HRESULT give_of_queue(MQPROPVARIANT *value, PROPID id, struct mp_reader map) {
    struct mp_value name = map_text(map, "format_name"), path = map_text(map, "name");
    switch (id) {
    case PROPID_MGMT_QUEUE_PATHNAME: return memory(value_text(value, path.bytes, path.size));
    case PROPID_MGMT_QUEUE_FORMATNAME: return memory(value_text(value, name.bytes, name.size));
    case PROPID_MGMT_QUEUE_TYPE: return memory(value_ascii(value, type_of(map, name)));
    case PROPID_MGMT_QUEUE_LOCATION: return memory(value_ascii(value, is_outgoing(map) ? "REMOTE" : "LOCAL"));
    case PROPID_MGMT_QUEUE_XACT: return memory(value_ascii(value, transactional(map)));
    case PROPID_MGMT_QUEUE_FOREIGN: return memory(value_ascii(value, is_outgoing(map) ? "UNKNOWN" : "NO"));
    case PROPID_MGMT_QUEUE_STATE: return memory(value_ascii(value, state_of(map_text(map, "state"))));
    case PROPID_MGMT_QUEUE_NEXTHOPS: return give_texts(value, map, "next_hops");
    case PROPID_MGMT_QUEUE_EOD_LAST_ACK_TIME: value_time(value, map_number(map, "last_ack_time", 0)); return MQ_OK;
    case PROPID_MGMT_QUEUE_EOD_RESEND_TIME: value_time(value, map_number(map, "resend_time", 0)); return MQ_OK;
    case PROPID_MGMT_QUEUE_SUBQUEUE_COUNT: return give_subqueues(value, map, false);
    case PROPID_MGMT_QUEUE_SUBQUEUE_NAMES: return give_subqueues(value, map, true);
    default: break;
    }
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++) {
        if (NUMBERS[i].id != id) continue;
        value_ulong(value, map_number(map, NUMBERS[i].key, 0));
        return MQ_OK;
    }
    return MQ_INFORMATION_UNSUPPORTED_PROPERTY;
}

static HRESULT ask_queue(uint8_t frame, const char *name, struct reply *reply) {
    struct mp_writer request;
    link_begin(&request);
    mp_put_array(&request, 1);
    mp_put_text(&request, name);
    return link_ask(0, frame, &request, F_REPLY, reply);
}

/* The map of a queue of this computer, else of the outgoing queue of that name. */
static HRESULT show(const char *name, struct reply *reply) {
    HRESULT result = ask_queue(F_GET_QUEUE, name, reply);
    if (result != MQ_ERROR_QUEUE_NOT_FOUND && result != MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION) return result;
    reply_free(reply);
    return ask_queue(F_SHOW_OUTGOING, name, reply);
}

/* What follows "QUEUE=" in the name of an object; NULL: it names something else. */
static LPCWSTR queue_of(LPCWSTR object) {
    return wide_begins(object, "QUEUE=") ? object + strlen("QUEUE=") : NULL;
}

/* Gives all properties; the first error that concerns them all ends it. */
static HRESULT give_all(struct props *props, const struct hello *hello, const struct mp_reader *map) {
    for (DWORD i = 0; i < props->count; i++) {
        MQPROPVARIANT *value = &props->values[i];
        HRESULT status = map == NULL ? give_of_machine(value, props->ids[i], hello)
                                     : give_of_queue(value, props->ids[i], *map);
        if (FAILED(status)) return status;
        props_status(props, i, status);
    }
    return props_result(props);
}

static HRESULT local(LPCWSTR computer, struct hello *hello) {
    HRESULT result = link_hello(hello);
    if (result != MQ_OK) return result;
    return is_this_computer(computer, hello) ? MQ_OK : MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE;
}

MQAPI HRESULT APIENTRY MQMgmtGetInfo(LPCWSTR pComputerName, LPCWSTR pObjectName, MQMGMTPROPS *pMgmtProps) {
    HRESULT result;
    struct hello hello;
    if (pObjectName == NULL || pMgmtProps == NULL) return MQ_ERROR_INVALID_PARAMETER;
    struct props props = PROPS_OF(pMgmtProps, &result);
    if (result != MQ_OK) return result;
    bool machine = wide_is(pObjectName, "MACHINE");
    LPCWSTR queue = queue_of(pObjectName);
    if (!machine && queue == NULL) return MQ_ERROR_INVALID_PARAMETER;
    for (DWORD i = 0; i < props.count; i++) {
        if (props.values[i].vt != VT_NULL) props_status(&props, i, MQ_ERROR_ILLEGAL_PROPERTY_VT);
    }
    if (props.error) return MQ_ERROR_PROPERTY;
    if ((result = local(pComputerName, &hello)) != MQ_OK) return result;
    if (machine) return give_all(&props, &hello, NULL);
    char *name = format_name(queue, &result);
    if (name == NULL) return result;
    struct reply reply;
    result = show(name, &reply);
    free(name);
    if (result == MQ_OK) {
        struct mp_reader map = mp_over(reply.data, reply.size);
        result = give_all(&props, &hello, &map);
    }
    reply_free(&reply);
    return result;
}

MQAPI HRESULT APIENTRY MQMgmtAction(LPCWSTR pComputerName, LPCWSTR pObjectName, LPCWSTR pAction) {
    HRESULT result;
    struct hello hello;
    if (pObjectName == NULL || pAction == NULL) return MQ_ERROR_INVALID_PARAMETER;
    LPCWSTR queue = queue_of(pObjectName);
    uint8_t frame = wide_is(pAction, "PAUSE")        ? F_PAUSE_OUTGOING
                    : wide_is(pAction, "RESUME")     ? F_RESUME_OUTGOING
                    : wide_is(pAction, "EOD_RESEND") ? F_KICK_OUTGOING
                                                     : 0;
    bool of_machine = wide_is(pAction, "CONNECT") || wide_is(pAction, "DISCONNECT") || wide_is(pAction, "TIDY");
    if (wide_is(pObjectName, "MACHINE") ? !of_machine : queue == NULL || frame == 0)
        return MQ_ERROR_INVALID_PARAMETER;
    if ((result = local(pComputerName, &hello)) != MQ_OK) return result;
    if (of_machine) /* TIDY: message files are not used, so there is nothing to tidy */
        return wide_is(pAction, "TIDY") ? MQ_OK : MQ_ERROR_UNSUPPORTED_OPERATION;
    char *name = format_name(queue, &result);
    if (name == NULL) return result;
    struct reply reply;
    result = ask_queue(frame, name, &reply);
    reply_free(&reply);
    free(name);
    return result;
}
