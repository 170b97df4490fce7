"""Tables of the store and names of its meta records; `decode.py` and `src/_native/record.h` hold the record
layouts.

Keys are big-endian, so that LMDB's byte order is the order of numbers. The first byte of every value is its
record version; fixed records are little-endian, cold ones are msgpack.

To store something new, a prefix in META is enough in most cases; leases, stages and subscriptions have one
each. Name it in `MetaName` below, and write it with `Records.set_meta` (qm/records.py) inside a unit.

To add a table, for records that are many or large:

1. Give it the next number in `Table` (decode.py), and describe its key and value there. If it has one record
   for each queue, under the ordinal, add it to `OF_QUEUES` behind `Table`. `make .venv/.built` makes the
   numbers of native code from `Table`, and rebuilds the modules that use them; commit
   src/_native/tablenumbers.pxd, which it writes. `FIRST_TABLES` (tables.pyx) stays as it is.
2. Write it with `services.store.writer.put_record(Table.NAME, key, cold(value))` (`cold` of records.py) in a
   function without a result, passed to `services.records.unit`. Reads find what is durable: a part that needs
   its own writes at once keeps them in memory, and changes that memory when the completion of the unit
   resolves. For a record of a queue, refuse a queue whose `state` is not `QueueState.EXISTING`
   (`QueueDeleted`), and look at the state again when the completion resolves: the queue may be gone by then.

To read the stored values or records back at start:

3. Give the part a method `recover`, which reads with `Records.metas`, or with
   `scan_pages(services.store.tables.scan, Table.NAME)` (paging.py), `decode.queue_key` for an ordinal and
   `decode.cold`. Decode each record by itself and check the type of its value: pass a damaged one to
   `Services.report_corrupt`, and go on. Pass over an ordinal that `QueueRegistry.by_ordinal` does not know:
   its queue was being deleted, and its record goes with it.
4. Make the part in qm/manager.py, whose head has the steps, and add it to the list of parts that `Recovery`
   gets. A part that keeps records of queues in memory forgets them in a handler of `QueueChanges.removed`,
   and, if outgoing queues have such records, also of `OutgoingQueues.removed`. `Records.delete_queue` deletes
   the records in `OF_QUEUES` later, when the messages of the queue are gone; the handler deletes others.

`SCHEMA_VERSION` stays as it is: a server that opens an older store for writing creates the table, and for a
reader it is empty. Only a change of what is stored already needs a step in upgrade.py.
docs/explanation/recovery.md has a row for each thing that is read at start, and for each damage.

No test of the tables needs a change. For a test of the records, `World`
(tests/support/worlds/queue_manager.py) has `finish`, which waits for a completion, `store.scan` for what is
durable, and `crash`, which starts another queue manager from that. Add the operation to `OPERATIONS` in
tests/qm/test_injection.py.
"""

from __future__ import annotations

from typing import Final

from msmq_fast.store.decode import CONTENT_KEY as CONTENT_KEY
from msmq_fast.store.decode import FEED_ENTRY as FEED_ENTRY
from msmq_fast.store.decode import FIRST_HISTORY_ENTRY as FIRST_HISTORY_ENTRY
from msmq_fast.store.decode import HISTORY_ENTRY as HISTORY_ENTRY
from msmq_fast.store.decode import NUMBER_KEY as NUMBER_KEY
from msmq_fast.store.decode import OF_QUEUES as OF_QUEUES
from msmq_fast.store.decode import ORDINAL_KEY as ORDINAL_KEY
from msmq_fast.store.decode import PACK_HEAD as PACK_HEAD
from msmq_fast.store.decode import POSITION as POSITION
from msmq_fast.store.decode import POSITION_KEY as POSITION_KEY
from msmq_fast.store.decode import RECORD_VERSION as RECORD_VERSION
from msmq_fast.store.decode import AckRequest as AckRequest
from msmq_fast.store.decode import EventKind as EventKind
from msmq_fast.store.decode import PositionFlag as PositionFlag
from msmq_fast.store.decode import Table as Table
from msmq_fast.store.decode import Transport as Transport
from msmq_fast.store.decode import chunk_count as chunk_count

SCHEMA_VERSION: Final = 1
LOGGED_SCHEMA_VERSION: Final = 2
"""The schema version while a redo log is in use (src/_native/redostore.h): builds without support for the log
then reject the store.
"""


def outgoing_stream_key(queue: int) -> bytes:
    """Returns the key of an outgoing queue's record in the table SEQUENCE."""
    return b"O" + ORDINAL_KEY.pack(queue)


class MetaName:
    """Keys of the table META. Each value is a version byte and one msgpack value."""

    SCHEMA: Final = b"schema_version"
    GUID: Final = b"qm_guid"  # 16 bytes, as on the wire
    INCARNATION: Final = b"incarnation"  # grows by one when the store was restored or copied
    IDENTITY: Final = b"identity"  # distinguishes the location of the store from a copy, see identity.py
    CLEAN: Final = b"clean_shutdown"
    CREATED: Final = b"created_s"
    LOG_ID: Final = b"log_id"  # 16 bytes, drawn when the store gets its first redo log
    LOG_EPOCH: Final = b"log_epoch"  # grows each time a redo log is put in front of the store
    LOG_APPLIED: Final = b"log_applied"  # number of the last record of the log that LMDB holds
    SEQUENCE_HW: Final = b"seq_hw"
    MESSAGE_ID_HW: Final = b"msgid_hw"
    TX_SEQUENCE_HW: Final = b"txseq_hw"
    TX_TIMESTAMP: Final = b"txseq_timestamp"  # time stamp half of transactional sequence identifiers
    QUEUE_ORDINAL_HW: Final = b"queue_ord_hw"
    PRIVATE_NUMBER_HW: Final = b"privnum_hw"
    JOB: Final = b"job:"  # and 16 bytes: how far an import or a copy got, see qm/operator/jobs.py
    WRITER: Final = b"writer:"  # and a name: the last batch that a writer published, see qm/bulk/staging.py
    SUBSCRIPTION: Final = b"feed_sub:"  # and a name: how far a reader of the feed has come
    DELETED_QUEUE: Final = b"gone_queue:"  # and a queue ordinal: its name, as long as events mean it
    FEED_CALLER: Final = b"feed_caller:"  # and a number: a program that events mean, see qm/feed/callers.py
    LEASE: Final = (
        b"lease:"  # and a queue ordinal and a subscription: its leased messages, see qm/bulk/leases.py
    )
    LEASE_FLOOR: Final = b"lease_floor"  # the least number that a new lease holder may begin with
    SNAPSHOT: Final = b"snapshot_s"  # Unix seconds of the last complete snapshot
    COMPUTER_NAME: Final = b"computer_name"  # under which the queue manager ran last
    HISTORY_SEED: Final = b"history_seed"  # 16 secret bytes: the key of fingerprints in the duplicate history
    SECURITY: Final = b"security"  # descriptor of the queue manager, self-relative
    SECRET: Final = b"secret:"  # and a name: a private key, sealed (KV-13)
    PEER_KEYS: Final = b"peer_keys:"  # and a GUID: MQDSPUBLICKEYS of another queue manager, by hand
    USER_CERTIFICATES: Final = b"user_cert:"  # and a SID: the certificates of a user (KV-14)
