# Identifiers of messages that arrived before (MS-MQQB 3.1.5.8.1): a bounded table in the order of the last sighting.

cimport cython
from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t
from msmq_fast._native.batch cimport CommitListener, Writer
from msmq_fast._native.gather cimport Batch
from msmq_fast._native.framing cimport UserMessage


cdef enum:
    IDENTIFIER_SIZE = 20        # source queue manager GUID, then MessageID
    ORIGINS = 1024              # parts into which origins divide the table
    KEY_SIZE = 2048             # of the long key of fingerprints: HISTORY_BLOCK


cdef struct Identity:
    # The identity of a message for duplicate detection. Any peer can claim any identifier, so the fingerprint covers the content.
    uint8_t identifier[IDENTIFIER_SIZE]
    uint64_t fingerprint        # never 0 for a message that arrives
    uint64_t absent             # the state of the table in which the message was not found, 0: none
    uint32_t lifetime           # seconds that the message lives; a copy that lived shorter is not the same message


cdef enum Sighting:
    SIGHTING_NEW = 0
    SIGHTING_DURABLE = 1        # arrived before, and its outcome is durable
    SIGHTING_PENDING = 2        # arrived before; its commit is in progress


cdef struct HistoryEntry:
    uint8_t identifier[IDENTIFIER_SIZE]
    uint32_t seen               # Unix seconds
    uint64_t fingerprint        # 0: entry of a store without fingerprints; matches any content
    uint64_t generation         # 0: durable, express, or a free entry
    uint64_t sighting           # its number
    int32_t older, newer        # neighbours of the same origin in the order of sighting, -1 at the ends
    uint32_t origin
    uint32_t lifetime


cdef struct Share:
    int32_t oldest, newest      # the entries of one origin
    int32_t count


@cython.final
cdef class DuplicateHistory(CommitListener):
    cdef HistoryEntry* _entries
    cdef int32_t* _slots        # hash table: index of an entry, -1 for none
    cdef uint64_t _mask
    cdef int32_t _capacity, _count, _free
    cdef uint64_t _sightings    # number of sightings so far
    cdef uint64_t _changes      # number of changes to the set of identities in the table
    cdef uint64_t _generation   # generation of the newest batch with pending entries
    cdef Batch* _batch          # that batch, unless it has ended
    cdef uint64_t _settled      # every generation up to this one is durable
    cdef uint64_t[2] _seed      # secret: peers cannot compute places in the table or fingerprints
    cdef uint8_t[KEY_SIZE] _key # made of the seed
    cdef bint _wide             # this processor has AVX2
    cdef Share[ORIGINS] _shares
    cdef int32_t _active        # origins with an entry
    cdef uint32_t _largest      # an origin with at least its share of a full table; searched for when needed
    cdef int32_t _unprinted     # entries without a fingerprint
    cdef public uint32_t lifetime
    # Sets the identity of a UserMessage. It is the same for every copy that the sender transmits, whatever its hop count or route. The
    # identity of an encrypted message depends on the decrypted body: pass the decrypted packet if it is for this queue manager.
    cdef void identify(self, const uint8_t* packet, const UserMessage* m, Identity* identity) noexcept
    # Returns whether a message was added before: NEW, DURABLE or PENDING. A known message gets the time of this sighting. Adds nothing.
    cdef Sighting sight(self, Identity* identity, uint32_t now) noexcept
    # Adds a message. With a writer, the entry is kept or lost with its current batch: call it inside the unit that stores the message.
    # `origin`, below ORIGINS, selects the part of the table that it uses.
    cdef int remember(self, const Identity* identity, uint32_t origin, uint32_t now, Writer writer) except -1
    cdef int _attach(self, Writer writer) except -1
    cdef bint knows(self, const Identity* identity) noexcept
    cdef inline int32_t _find(self, const Identity* identity) noexcept
    cdef inline int32_t _probe(self, const uint8_t* identifier, uint64_t fingerprint) noexcept
    cdef inline uint64_t _hash(self, const uint8_t* identifier, uint64_t fingerprint) noexcept
    cdef uint64_t _absorb_parts(self, uint64_t hash, const uint8_t* packet, const UserMessage* m, size_t size) noexcept
    cdef inline uint64_t _absorb(self, uint64_t hash, const uint8_t* data, size_t size) noexcept
    cdef int32_t _victim(self, uint32_t origin) noexcept
    cdef inline void _unlink(self, int32_t index) noexcept
    cdef inline void _link_newest(self, int32_t index) noexcept
    cdef void _forget(self, int32_t index) noexcept
    cdef list _of(self, uint32_t origin)
