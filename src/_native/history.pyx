# cython: boundscheck=False, wraparound=False, cdivision=True
"""DuplicateHistory: identifiers of messages that arrived before (MS-MQQB 3.1.1.3, 3.1.5.8.1, 3.1.6.7)."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy
from msmq_fast._native.framing cimport USER_HOPS, parse_user_message

from hashlib import shake_256
from os import urandom

NEW = SIGHTING_NEW
DURABLE = SIGHTING_DURABLE
PENDING = SIGHTING_PENDING


cdef extern from *:
    """
    static inline uint64_t history_mix(uint64_t a, uint64_t b) {
        unsigned __int128 product = (unsigned __int128)a * b;
        return (uint64_t)product ^ (uint64_t)(product >> 64);
    }

    static inline uint64_t history_word(const uint8_t *data) {
        uint64_t word;
        memcpy(&word, data, 8);
        return word;
    }

    /* Two words a step. The last words may have been part of the step before; they go in with the length, so that zeros at the end
     * count. */
    __attribute__((noinline)) static uint64_t history_absorb(uint64_t hash, const uint8_t *data, size_t size, const uint64_t *seed) {
        const uint64_t key = seed[1];
        const uint8_t *end = data + size;
        uint64_t first = 0, last = 0;
        if (size >= 16) {
            for (; end - data > 16; data += 16)
                hash = history_mix(hash ^ history_word(data), key ^ history_word(data + 8));
            first = history_word(end - 16);
            last = history_word(end - 8);
        } else if (size >= 8) {
            first = history_word(data);
            last = history_word(end - 8);
        } else
            memcpy(&first, data, size);
        return history_mix(hash ^ first ^ size, key ^ last ^ seed[0]);
    }

    /* NH (UMAC, RFC 4418 5.2): sums of products of pairs of words, each word plus one of a secret key. Two texts that were chosen without
     * the key have the same sums with a probability of at most 2^-32. */
    enum { HISTORY_STRIDE = 32, HISTORY_BLOCK = 2048, HISTORY_SHORT = 128 };

    #if defined(__x86_64__) && defined(__GNUC__)
    #include <immintrin.h>
    #define HISTORY_WORDS(place) _mm256_loadu_si256((const __m256i *)(place))
    #define HISTORY_ADD(sum, words) _mm256_add_epi64(sum, _mm256_mul_epu32(words, _mm256_srli_epi64(words, 32)))
    #define HISTORY_ONCE(data, key) words = _mm256_add_epi32(HISTORY_WORDS(data), HISTORY_WORDS(key)); sum = HISTORY_ADD(sum, words);
    #define HISTORY_AT(stride) HISTORY_ONCE(data + (stride) * HISTORY_STRIDE, key + (stride) * HISTORY_STRIDE)
    #define HISTORY_TWICE(stride) HISTORY_AT(stride) HISTORY_AT((stride) + 1)
    __attribute__((target("avx2")))
    static void history_sum_wide(const uint8_t *data, size_t size, const uint8_t *key, const uint8_t *last, uint64_t *sums) {
        __m256i sum = _mm256_setzero_si256(), words;
        /* Unrolled by hand: the compiler's own code for what is left costs as much as three strides. */
        for (; size >= 8 * HISTORY_STRIDE; data += 8 * HISTORY_STRIDE, key += 8 * HISTORY_STRIDE, size -= 8 * HISTORY_STRIDE) {
            HISTORY_TWICE(0) HISTORY_TWICE(2) HISTORY_TWICE(4) HISTORY_TWICE(6)
        }
        if (size & 4 * HISTORY_STRIDE) {
            HISTORY_TWICE(0) HISTORY_TWICE(2)
            data += 4 * HISTORY_STRIDE, key += 4 * HISTORY_STRIDE;
        }
        if (size & 2 * HISTORY_STRIDE) {
            HISTORY_TWICE(0)
            data += 2 * HISTORY_STRIDE, key += 2 * HISTORY_STRIDE;
        }
        if (size & HISTORY_STRIDE) {
            HISTORY_ONCE(data, key)
            key += HISTORY_STRIDE;
        }
        if (last) {
            HISTORY_ONCE(last, key)
        }
        _mm256_storeu_si256((__m256i *)sums, sum);
    }
    static inline int history_is_wide(void) { return __builtin_cpu_supports("avx2"); }
    #else
    static inline int history_is_wide(void) { return 0; }
    static void history_sum_wide(const uint8_t *data, size_t size, const uint8_t *key, const uint8_t *last, uint64_t *sums) {}
    #endif

    static void history_stride(const uint8_t *data, const uint8_t *key, uint64_t *sums) {
        uint64_t word, other;
        int lane;
        for (lane = 0; lane < 4; lane++) {
            word = history_word(data + 8 * lane);
            other = history_word(key + 8 * lane);
            sums[lane] += (uint64_t)(uint32_t)(word + other) * (uint32_t)((word >> 32) + (other >> 32));
        }
    }

    __attribute__((noinline)) static void history_sum(const uint8_t *data, size_t size, const uint8_t *key, const uint8_t *last, uint64_t *sums) {
        size_t at;
        memset(sums, 0, 4 * sizeof(*sums));
        for (at = 0; at < size; at += HISTORY_STRIDE)
            history_stride(data + at, key + at, sums);
        if (last)
            history_stride(last, key + at, sums);
    }

    /* All of what may be long; `key` has as many bytes as a block. Where the last stride is not whole, it begins earlier. Little-endian
     * machines with and without wide registers agree. */
    static inline uint64_t history_absorb_all(uint64_t hash, const uint8_t *data, size_t size, const uint64_t *seed, const uint8_t *key, int wide) {
        uint64_t sums[4];
        size_t count, whole;
        const uint8_t *last;
        if (size < HISTORY_SHORT)
            return history_absorb(hash, data, size, seed);
        hash ^= size;
        for (; size; data += count, size -= count) {
            count = size < HISTORY_BLOCK ? size : HISTORY_BLOCK;
            whole = count & ~(size_t)(HISTORY_STRIDE - 1);
            last = count == whole ? NULL : data + count - HISTORY_STRIDE;
            if (wide)
                history_sum_wide(data, whole, key, last, sums);
            else
                history_sum(data, whole, key, last, sums);
            hash = history_mix(history_mix(hash ^ sums[0], seed[1] ^ sums[1]) ^ sums[2], seed[0] ^ sums[3]);
        }
        return hash;
    }
    """
    int history_is_wide() noexcept nogil
    uint64_t history_absorb_all(
        uint64_t hash, const uint8_t* data, size_t size, const uint64_t* seed, const uint8_t* key, bint wide
    ) noexcept nogil
    uint64_t history_mix(uint64_t a, uint64_t b) noexcept nogil
    uint64_t history_absorb(uint64_t hash, const uint8_t* data, size_t size, const uint64_t* seed) noexcept nogil


cdef uint64_t NOT_TOLD = 0xFFFFFFFFFFFFFFFF

cdef enum:
    SEED_SIZE = 16
    NAMES_OFFSET = 64           # of the fields after the fixed part of a UserHeader: queue names, ConnectorType
    PROPERTIES_SIZE = 56        # of a MessagePropertiesHeader without the label, extension and body that follow
    SECURITY_ENCRYPTED = 0x20   # SecurityHeader.Flags.EB


cdef class DuplicateHistory(CommitListener):
    """At most `capacity` messages, each with the time at which it was last seen.

    An accepted express message is remembered at once, a recoverable one as pending until the commit that stores it is durable. If that
    commit fails, the message is forgotten, so that a repetition is accepted. `lifetime` is in seconds. `portable`: avoid instructions that
    only some processors have.

    1. MS-MQQB identifies a message by the GUID of its source and a number. The packet claims both, and nothing proves them: a peer that
       sends messages under the next numbers of another queue manager would cause the real ones to be dropped as duplicates. Therefore a
       message is identified by its identifier *and* a fingerprint of its content. An unauthenticated peer would have to send the same
       message, to the same queue, before its sender does.
    2. The fingerprint is keyed with `seed`, which is stored, so that messages seen before a restart are still recognised.
    3. The fingerprint covers all bytes that every transmission of a message shares, on every route: its sent time, flags, queues,
       properties, label, extension, body, signature and certificate. Hop count, keys and priority may differ between transmissions. An
       encrypted message for this queue manager is identified by its decrypted body (`Receiver.sight` gets the decrypted packet); otherwise
       a peer that knows its label could send another body in its place.
    4. Senders and routers shorten lifetimes in transit, and never lengthen them. Therefore a message that lives longer than the one before
       it is not a repetition. Otherwise a peer that knows all bytes of a message could send a copy that expires at once.
    5. Origins (addresses) share the table. When the table is full, a new entry of an origin that already uses its full share replaces the
       oldest entry of that origin. A new entry of any other origin replaces the oldest entry of the origin with the most entries. So no
       address can displace the entries of others.
    """

    def __cinit__(self, int capacity=10_000, uint32_t lifetime=1_800, bytes seed=None, bint portable=False):
        cdef uint64_t slots = 16
        cdef int32_t index
        if not 1 <= capacity <= 100_000_000:
            raise ValueError("capacity must be between 1 and 100,000,000")
        if seed is None:
            seed = urandom(SEED_SIZE)
        if PyBytes_GET_SIZE(seed) != SEED_SIZE:
            raise ValueError(f"a seed has {SEED_SIZE} bytes")
        memcpy(self._seed, PyBytes_AS_STRING(seed), SEED_SIZE)
        memcpy(self._key, PyBytes_AS_STRING(shake_256(seed).digest(KEY_SIZE)), KEY_SIZE)
        self._wide = not portable and history_is_wide()
        for index in range(ORIGINS):
            self._shares[index].oldest = self._shares[index].newest = -1
        while slots < <uint64_t>capacity * 2:
            slots *= 2
        self._capacity = capacity
        self.lifetime = lifetime
        self._mask = slots - 1
        self._entries = <HistoryEntry*>malloc(capacity * sizeof(HistoryEntry))
        self._slots = <int32_t*>malloc(slots * sizeof(int32_t))
        if self._entries == NULL or self._slots == NULL:
            raise MemoryError
        for index in range(<int32_t>slots):
            self._slots[index] = -1
        for index in range(capacity):
            self._entries[index].newer = index + 1 if index + 1 < capacity else -1
            self._entries[index].generation = 0
        self._free = 0
        self._changes = 1

    def __dealloc__(self):
        free(self._entries)
        free(self._slots)

    def __len__(self) -> int:
        return self._count

    @property
    def capacity(self) -> int:
        """The largest number of identifiers."""
        return self._capacity

    cdef void identify(self, const uint8_t* packet, const UserMessage* m, Identity* identity) noexcept:
        cdef uint64_t hash = history_mix(self._seed[0] ^ m.sent_time, self._seed[1] ^ (m.user_flags & ~<uint32_t>USER_HOPS))
        cdef size_t size = PROPERTIES_SIZE + 2 * <size_t>m.label_chars + m.extension_length
        cdef size_t behind = m.properties_offset + size
        cdef uint64_t[2] words
        memcpy(identity.identifier, packet + 16, 16)
        memcpy(identity.identifier + 16, packet + 56, 4)
        if not (m.transaction_offset or m.security_offset or m.mqf_offset or (m.body_length and m.body_offset != behind)):
            # Names, properties, label, extension and body are contiguous.
            hash = self._absorb(hash, packet + NAMES_OFFSET, behind + m.body_length - NAMES_OFFSET)
        else:
            hash = self._absorb_parts(hash, packet, m, size)
        memcpy(words, identity.identifier, 16)
        hash = history_mix(hash ^ words[0], self._seed[1] ^ words[1] ^ m.message_id)
        identity.fingerprint = hash if hash else 1
        identity.absent = 0
        identity.lifetime = m.time_to_be_received

    cdef uint64_t _absorb_parts(self, uint64_t hash, const uint8_t* packet, const UserMessage* m, size_t size) noexcept:
        # `size` is the size of the properties and of everything between them and the body.
        cdef uint32_t names_end = m.properties_offset
        cdef bint readable = True
        if m.transaction_offset:
            names_end = m.transaction_offset
        elif m.security_offset:
            names_end = m.security_offset
        hash = self._absorb(hash, packet + NAMES_OFFSET, names_end - NAMES_OFFSET)
        if m.security_offset:
            # The body of a message in a stream that still waits for its keys is not readable: see `judge_place`.
            readable = m.transaction_offset == 0 or packet[m.security_offset] & SECURITY_ENCRYPTED == 0
            hash = history_absorb(hash, packet + m.sender_id_offset, m.sender_id_length, self._seed)
            hash = self._absorb(hash, packet + m.signature_offset, m.signature_length)
            hash = self._absorb(hash, packet + m.certificate_offset, m.certificate_length)
        if m.mqf_offset:
            hash = self._absorb(hash, packet + m.mqf_offset, m.size - m.mqf_offset)
        if readable and m.body_offset == m.properties_offset + size:
            size += m.body_length
        elif readable:  # no body, or a message that arrived over HTTP with it
            hash = self._absorb(hash, packet + m.body_offset, m.body_length)
        return self._absorb(hash, packet + m.properties_offset, size)

    cdef inline uint64_t _absorb(self, uint64_t hash, const uint8_t* data, size_t size) noexcept:
        return history_absorb_all(hash, data, size, self._seed, self._key, self._wide)

    cdef inline uint64_t _hash(self, const uint8_t* identifier, uint64_t fingerprint) noexcept:
        # The fingerprint is a keyed hash that includes the identifier.
        cdef uint64_t low, high
        cdef uint32_t ordinal
        if fingerprint:
            return fingerprint
        memcpy(&low, identifier, 8)
        memcpy(&high, identifier + 8, 8)
        memcpy(&ordinal, identifier + 16, 4)
        low = history_mix(low ^ self._seed[0], high ^ self._seed[1])
        return history_mix(low, self._seed[0] ^ ordinal)

    cdef inline int32_t _probe(self, const uint8_t* identifier, uint64_t fingerprint) noexcept:
        cdef uint64_t slot = self._hash(identifier, fingerprint) & self._mask
        cdef int32_t index = self._slots[slot]
        cdef HistoryEntry* entry
        while index >= 0:
            entry = &self._entries[index]
            if entry.fingerprint == fingerprint and memcmp(entry.identifier, identifier, IDENTIFIER_SIZE) == 0:
                return index
            slot = (slot + 1) & self._mask
            index = self._slots[slot]
        return -1

    cdef inline int32_t _find(self, const Identity* identity) noexcept:
        cdef int32_t index = self._probe(identity.identifier, identity.fingerprint)
        if index < 0 and self._unprinted:
            return self._probe(identity.identifier, 0)
        return index

    cdef int32_t _victim(self, uint32_t origin) noexcept:
        # For a full table: returns the entry that a new one of `origin` replaces. At least one origin has a full share.
        cdef int64_t entries = self._capacity
        cdef int32_t most = 0
        cdef int i
        if <int64_t>self._shares[origin].count * self._active >= entries:
            return self._shares[origin].oldest
        if <int64_t>self._shares[self._largest].count * self._active < entries:
            for i in range(ORIGINS):
                if self._shares[i].count > most:
                    most = self._shares[i].count
                    self._largest = i
        return self._shares[self._largest].oldest

    cdef inline void _unlink(self, int32_t index) noexcept:
        cdef HistoryEntry* entry = &self._entries[index]
        cdef Share* share = &self._shares[entry.origin]
        if entry.older >= 0:
            self._entries[entry.older].newer = entry.newer
        else:
            share.oldest = entry.newer
        if entry.newer >= 0:
            self._entries[entry.newer].older = entry.older
        else:
            share.newest = entry.older
        share.count -= 1
        self._active -= share.count == 0

    cdef inline void _link_newest(self, int32_t index) noexcept:
        cdef HistoryEntry* entry = &self._entries[index]
        cdef Share* share = &self._shares[entry.origin]
        entry.older = share.newest
        entry.newer = -1
        if share.newest >= 0:
            self._entries[share.newest].newer = index
        else:
            share.oldest = index
        share.newest = index
        self._active += share.count == 0
        share.count += 1
        self._sightings += 1
        entry.sighting = self._sightings

    cdef void _forget(self, int32_t index) noexcept:
        # Backward-shift deletion keeps every probe sequence without gaps.
        cdef HistoryEntry* entry = &self._entries[index]
        cdef uint64_t hole = self._hash(entry.identifier, entry.fingerprint) & self._mask
        cdef uint64_t slot, home
        self._unprinted -= entry.fingerprint == 0
        while self._slots[hole] != index:
            hole = (hole + 1) & self._mask
        slot = hole
        while True:
            slot = (slot + 1) & self._mask
            if self._slots[slot] < 0:
                break
            entry = &self._entries[self._slots[slot]]
            home = self._hash(entry.identifier, entry.fingerprint) & self._mask
            if ((slot - home) & self._mask) >= ((slot - hole) & self._mask):
                self._slots[hole] = self._slots[slot]
                hole = slot
        self._slots[hole] = -1
        self._unlink(index)
        self._entries[index].generation = 0
        self._entries[index].newer = self._free
        self._free = index
        self._count -= 1
        self._changes += 1

    cdef Sighting sight(self, Identity* identity, uint32_t now) noexcept:
        cdef int32_t index = self._find(identity)
        cdef HistoryEntry* entry
        if index < 0:
            identity.absent = self._changes
            return SIGHTING_NEW
        entry = &self._entries[index]
        if entry.lifetime < identity.lifetime:
            return SIGHTING_NEW
        entry.seen = now
        self._unlink(index)
        self._link_newest(index)
        return SIGHTING_PENDING if entry.generation > self._settled else SIGHTING_DURABLE

    cdef bint knows(self, const Identity* identity) noexcept:
        return self._find(identity) >= 0

    cdef int remember(self, const Identity* identity, uint32_t origin, uint32_t now, Writer writer) except -1:
        cdef int32_t index
        cdef uint64_t slot
        cdef HistoryEntry* entry
        if writer is not None:
            self._attach(writer)
        index = -1 if identity.absent == self._changes else self._find(identity)
        if index >= 0:
            self._unlink(index)
            entry = &self._entries[index]
            if entry.lifetime < identity.lifetime:
                entry.lifetime, entry.origin = identity.lifetime, origin
        else:
            if self._count == self._capacity:
                self._forget(self._victim(origin))
            index = self._free
            self._free = self._entries[index].newer
            entry = &self._entries[index]
            memcpy(entry.identifier, identity.identifier, IDENTIFIER_SIZE)
            entry.fingerprint = identity.fingerprint
            entry.lifetime = identity.lifetime
            entry.origin = origin
            self._unprinted += identity.fingerprint == 0
            slot = self._hash(identity.identifier, identity.fingerprint) & self._mask
            while self._slots[slot] >= 0:
                slot = (slot + 1) & self._mask
            self._slots[slot] = index
            self._count += 1
            self._changes += 1
            if writer is not None:
                writer.undo.add(self, index, NULL, 0, None)
        entry = &self._entries[index]
        entry.seen = now
        entry.generation = 0 if writer is None else self._generation
        self._link_newest(index)
        return 0

    cdef int undone(self, uint64_t token, const void* data, size_t size, object kept) except -1:
        """Undoes one change: removes the entry `token`. NOT_TOLD: forgets that the current batch will be reported."""
        if token == NOT_TOLD:
            self._batch = NULL
        else:
            self._forget(<int32_t>token)
        return 0

    cdef int _attach(self, Writer writer) except -1:
        # A batch that was reported once is not reused before it has ended.
        if self._batch == writer._current and self._generation > self._settled:
            return 0
        writer.notify(self, self._generation + 1)
        writer.undo.add(self, NOT_TOLD, NULL, 0, None)
        self._generation += 1
        self._batch = writer._current
        return 0

    cdef int committed(self, uint64_t token, int status) except -1:
        cdef int32_t index
        if status != 0:
            for index in range(self._capacity):
                if self._entries[index].generation == token:
                    self._forget(index)
        if token > self._settled:
            self._settled = token
        return 0

    cdef int settled(self) except -1:
        return 0

    def fingerprint(self, bytes packet not None) -> int:
        """Returns the fingerprint of a UserMessage packet. Raises ValueError if it is malformed."""
        cdef UserMessage m
        cdef Identity identity
        cdef int fault = parse_user_message(<const uint8_t*>PyBytes_AS_STRING(packet), PyBytes_GET_SIZE(packet), &m)
        if fault:
            raise ValueError(f"not a UserMessage packet (fault {fault})")
        self.identify(<const uint8_t*>PyBytes_AS_STRING(packet), &m, &identity)
        return identity.fingerprint

    def origin(self, bytes name not None) -> int:
        """Returns the number of the origin, that is the share of the table, to which a sender with this name (its address) belongs. Several
        senders may belong to one origin.
        """
        cdef const uint8_t* data = <const uint8_t*>PyBytes_AS_STRING(name)
        return history_absorb(self._seed[1], data, PyBytes_GET_SIZE(name), self._seed) % ORIGINS

    def check(self, bytes identifier not None, uint32_t now, uint64_t fingerprint=0, uint32_t lifetime=0) -> int:
        """Returns whether a message with this identifier (20 bytes) and fingerprint was added before: NEW, DURABLE or PENDING. Unless it is
        NEW, its entry gets the time `now` (Unix seconds).

        `lifetime` is TimeToBeReceived in seconds. A message that was added with a shorter lifetime is a different message.
        """
        cdef Identity identity = make_identity(identifier, fingerprint, lifetime)
        return self.sight(&identity, now)

    def add(
        self, bytes identifier not None, uint32_t now, Writer writer=None, uint64_t fingerprint=0, uint32_t origin=0,
        uint32_t lifetime=0xFFFFFFFF
    ) -> None:
        """Remembers an accepted message that was seen at `now` (Unix seconds). If the table is full, it replaces an old entry.

        With a `writer`, the message is PENDING until the batch that the writer is gathering has ended. If `fingerprint` is 0, as in stores
        of earlier versions, every message with this identifier is a duplicate.
        """
        cdef Identity identity = make_identity(identifier, fingerprint, lifetime)
        if origin >= ORIGINS:
            raise ValueError(f"an origin is a number below {ORIGINS}")
        self.remember(&identity, origin, now, writer)

    def expire(self, uint32_t now) -> int:
        """Forgets messages that were last seen more than `lifetime` seconds before `now`. Returns their number."""
        cdef int expired = 0
        cdef int origin
        cdef Share* share
        for origin in range(ORIGINS):
            share = &self._shares[origin]
            while share.oldest >= 0 and <uint64_t>self._entries[share.oldest].seen + self.lifetime < now:
                self._forget(share.oldest)
                expired += 1
        return expired

    def identifiers_of(self, uint32_t origin) -> list:
        """Like `identifiers`, but only for the messages of one origin."""
        return [found[1:] for found in self._of(origin)] if origin < ORIGINS else []

    def identifiers(self) -> list:
        """Returns a list of (identifier, Unix seconds at which the message was last seen), from the earliest to the latest time."""
        cdef int origin
        found = []
        for origin in range(ORIGINS):
            found += self._of(origin)
        return [each[1:] for each in sorted(found)]

    cdef list _of(self, uint32_t origin):
        # Returns (sighting, identifier, seen) of an origin, the earliest first.
        cdef int32_t index = self._shares[origin].oldest
        cdef HistoryEntry* entry
        found = []
        while index >= 0:
            entry = &self._entries[index]
            found.append((entry.sighting, PyBytes_FromStringAndSize(<char*>entry.identifier, IDENTIFIER_SIZE), entry.seen))
            index = entry.newer
        return found


cdef Identity make_identity(bytes identifier, uint64_t fingerprint, uint32_t lifetime) except *:
    cdef Identity identity
    if PyBytes_GET_SIZE(identifier) != IDENTIFIER_SIZE:
        raise ValueError("a message identifier has 20 bytes")
    memcpy(identity.identifier, PyBytes_AS_STRING(identifier), IDENTIFIER_SIZE)
    identity.fingerprint = fingerprint
    identity.absent = 0
    identity.lifetime = lifetime
    return identity
