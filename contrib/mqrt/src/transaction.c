#include "transaction.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "frames.h"
#include "link.h"
#include "text.h"

struct receipt {
    uint32_t queue;
    uint64_t lookup_id;
};

struct transaction {
    ITransaction interface; /* the first member: programs hold its address */
    struct transaction *next;
    ULONG references;
    uint64_t generation;
    uint32_t number;
    GUID identifier;
    bool ended; /* Commit or Abort has begun */
    struct receipt *receipts;
    size_t receipt_count, receipt_room;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list and everything in it */
static struct transaction *live;
static uint32_t numbers;

static const IID IID_IUNKNOWN = {0, 0, 0, {0xC0, 0, 0, 0, 0, 0, 0, 0x46}};
static const IID IID_ITRANSACTION = {0x0FB15084, 0xAF41, 0x11CE, {0xBD, 0x2B, 0x20, 0x4C, 0x4F, 0x4F, 0x50, 0x20}};

static struct transaction *self_of(ITransaction *interface) { return (struct transaction *)interface; }

static HRESULT query(ITransaction *interface, const IID *iid, void **object) {
    if (object == NULL) return E_POINTER;
    *object = NULL;
    if (iid == NULL || (memcmp(iid, &IID_IUNKNOWN, sizeof *iid) != 0 &&
                        memcmp(iid, &IID_ITRANSACTION, sizeof *iid) != 0))
        return E_NOINTERFACE;
    interface->lpVtbl->AddRef(interface);
    *object = interface;
    return S_OK;
}

static ULONG add_reference(ITransaction *interface) {
    pthread_mutex_lock(&lock);
    ULONG count = ++self_of(interface)->references;
    pthread_mutex_unlock(&lock);
    return count;
}

/* Ends the transaction at the server. False: it had ended before. */
static bool end(struct transaction *self, uint8_t frame, HRESULT *result) {
    pthread_mutex_lock(&lock);
    bool first = !self->ended;
    self->ended = true;
    self->receipt_count = 0;
    pthread_mutex_unlock(&lock);
    if (!first) return false;
    struct mp_writer request;
    link_begin(&request);
    mp_put_array(&request, 1);
    mp_put_uint(&request, self->number);
    *result = link_do(self->generation, frame, &request);
    return true;
}

static ULONG release(ITransaction *interface) {
    struct transaction *self = self_of(interface);
    HRESULT ignored; /* the server aborts it anyway if the connection is lost */
    pthread_mutex_lock(&lock);
    ULONG count = --self->references;
    for (struct transaction **place = &live; count == 0 && *place != NULL; place = &(*place)->next) {
        if (*place != self) continue;
        *place = self->next;
        break;
    }
    pthread_mutex_unlock(&lock);
    if (count > 0) return count;
    end(self, F_ABORT, &ignored);
    free(self->receipts);
    free(self);
    return 0;
}

static HRESULT commit(ITransaction *interface, BOOL retaining, DWORD grfTC, DWORD grfRM) {
    (void)grfTC;
    (void)grfRM;
    HRESULT result;
    if (retaining) return XACT_E_CANTRETAIN;
    if (!end(self_of(interface), F_COMMIT, &result)) return XACT_E_NOTRANSACTION;
    if (result == MQ_ERROR_STALE_HANDLE) return XACT_E_ABORTED; /* the connection was lost before */
    if (result == MQ_ERROR_SERVICE_NOT_AVAILABLE) return XACT_E_INDOUBT; /* lost while the server committed */
    return result;
}

static HRESULT roll_back(ITransaction *interface, BOID *reason, BOOL retaining, BOOL asynchronous) {
    (void)reason;
    HRESULT result;
    if (retaining) return XACT_E_CANTRETAIN;
    if (asynchronous) return XACT_E_NOASYNC;
    if (!end(self_of(interface), F_ABORT, &result)) return XACT_E_NOTRANSACTION;
    /* Without its connection the transaction is aborted: that is what the caller wants. */
    return result == MQ_ERROR_STALE_HANDLE || result == MQ_ERROR_SERVICE_NOT_AVAILABLE ? MQ_OK : result;
}

static HRESULT information(ITransaction *interface, XACTTRANSINFO *info) {
    enum { SERIALIZABLE = 0x00100000 };
    if (info == NULL) return E_POINTER;
    *info = (XACTTRANSINFO){.isoLevel = SERIALIZABLE};
    memcpy(&info->uow, &self_of(interface)->identifier, sizeof info->uow);
    return S_OK;
}

static const ITransactionVtbl METHODS = {
    .QueryInterface = query,
    .AddRef = add_reference,
    .Release = release,
    .Commit = commit,
    .Abort = roll_back,
    .GetTransactionInfo = information,
};

static HRESULT begin(struct transaction *self) {
    struct hello hello;
    HRESULT result = link_hello(&hello);
    if (result != MQ_OK) return result;
    struct mp_writer request;
    struct reply reply;
    link_begin(&request);
    mp_put_array(&request, 1);
    mp_put_uint(&request, self->number);
    self->generation = hello.generation;
    result = link_ask(self->generation, F_BEGIN, &request, F_REPLY, &reply);
    if (result == MQ_OK) {
        struct mp_reader reader = mp_over(reply.data, reply.size);
        uint32_t count;
        struct mp_value text;
        if (!mp_array(&reader, &count) || count == 0 || !mp_next(&reader, &text) || text.type != MP_STR ||
            !guid_parse((const char *)text.bytes, text.size, &self->identifier))
            result = MQ_ERROR;
    }
    reply_free(&reply);
    return result == MQ_ERROR_STALE_HANDLE ? MQ_ERROR_SERVICE_NOT_AVAILABLE : result;
}

MQAPI HRESULT APIENTRY MQBeginTransaction(ITransaction **ppTransaction) {
    if (ppTransaction == NULL) return MQ_ERROR_INVALID_PARAMETER;
    *ppTransaction = NULL;
    struct transaction *self = calloc(1, sizeof *self);
    if (self == NULL) return MQ_ERROR_INSUFFICIENT_RESOURCES;
    self->interface.lpVtbl = &METHODS;
    self->references = 1;
    pthread_mutex_lock(&lock);
    if (++numbers == 0) numbers = 1;
    self->number = numbers;
    pthread_mutex_unlock(&lock);
    HRESULT result = begin(self);
    if (result != MQ_OK) {
        free(self);
        return result;
    }
    pthread_mutex_lock(&lock);
    self->next = live;
    live = self;
    pthread_mutex_unlock(&lock);
    *ppTransaction = &self->interface;
    return MQ_OK;
}

HRESULT transaction_scope(ITransaction *given, uint64_t generation, enum scope *scope, uint32_t *number) {
    *scope = given == MQ_SINGLE_MESSAGE ? SINGLE : OUTSIDE;
    *number = 0;
    if (given == MQ_NO_TRANSACTION || given == MQ_SINGLE_MESSAGE) return MQ_OK;
    HRESULT result = MQ_ERROR_TRANSACTION_ENLIST;
    pthread_mutex_lock(&lock);
    for (const struct transaction *one = live; one != NULL; one = one->next) {
        if (&one->interface != given) continue;
        *scope = INSIDE;
        *number = one->number;
        /* A queue of an older connection can be opened again, a transaction of one is aborted. */
        if (one->generation > generation) result = MQ_ERROR_STALE_HANDLE;
        else result = one->ended || one->generation < generation ? MQ_ERROR_TRANSACTION_SEQUENCE : MQ_OK;
        break;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

void transaction_received(uint32_t number, uint64_t generation, uint32_t queue, uint64_t lookup_id) {
    pthread_mutex_lock(&lock);
    struct transaction *one = live;
    while (one != NULL && (one->number != number || one->generation != generation)) one = one->next;
    if (one != NULL && !one->ended) {
        if (one->receipt_count == one->receipt_room) {
            size_t room = one->receipt_room == 0 ? 16 : one->receipt_room * 2;
            struct receipt *receipts = realloc(one->receipts, room * sizeof *receipts);
            if (receipts != NULL) {
                one->receipts = receipts;
                one->receipt_room = room;
            }
        }
        /* Without memory the message cannot be rejected by its id; everything else works. */
        if (one->receipt_count < one->receipt_room)
            one->receipts[one->receipt_count++] = (struct receipt){.queue = queue, .lookup_id = lookup_id};
    }
    pthread_mutex_unlock(&lock);
}

bool transaction_of(uint64_t generation, uint32_t queue, uint64_t lookup_id, uint32_t *number) {
    bool found = false;
    pthread_mutex_lock(&lock);
    for (const struct transaction *one = live; one != NULL && !found; one = one->next) {
        for (size_t i = 0; one->generation == generation && i < one->receipt_count && !found; i++) {
            found = one->receipts[i].queue == queue && one->receipts[i].lookup_id == lookup_id;
            if (found) *number = one->number;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

__attribute__((constructor)) static void prepare(void) { pthread_atfork(before_fork, after_fork, after_fork); }
