"""Puts very many public queues into the files of a Samba domain whose controller does not run.

1. Samba's own modules write a few computers, each with its mSMQConfiguration, and one queue.
2. The file of the domain is opened without these modules, which cost 60 ms an object: only the key-value
   store is left. Its indexes are taken away, since each addition to one copies the whole list of the objects
   there.
3. All other queues are copies of that queue with names, GUIDs and labels of their own, in one transaction.
4. The indexes are put back, with the schema, so that the store makes all of them anew with the keys that
   Samba looks for.

Copies keep the change number of the first queue: the controller's count of changes is in another file, and
a reading of changes must not find what is above it.

The second part is a program for the interpreter that Debian's python3-samba belongs to.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tests.support.processes.samba import DomainController

PYTHON: Final = "/usr/bin/python3"
COMPUTERS: Final = 40
_SEED: Final = 20
_DOMAIN: Final = "DC=corp,DC=example"
_PLACE: Final = f"CN=Computers,{_DOMAIN}"
_QUEUE: Final = f"CN=orders-0,CN=msmq,CN=BULK0,{_PLACE}"
_OWN: Final = ("distinguishedName", "dn", "objectGUID", "cn", "name", "mSMQLabelEx")
"""Attributes that a copy has of its own."""
_INDEXES: Final = ("@IDXATTR", "@IDXONE")
"""The indexed attributes, and the index of children. That of names stays: its lists have one object each."""


def add_queues(controller: DomainController, count: int, timeout: float = 1_200) -> None:
    """Add `count` queues to COMPUTERS computers. The controller must not run."""
    lines = []
    for number in range(COMPUTERS):
        path = controller.computer(f"BULK{number}")
        lines.append(f"dn: CN=msmq,{path}\nchangetype: add\nobjectClass: mSMQConfiguration\n")
    lines.append(
        f"dn: {_QUEUE}\nchangetype: add\nobjectClass: mSMQQueue\nmSMQLabelEx: Orders of branch 0\n"
        "mSMQQueueQuota: 4711\nmSMQTransactional: TRUE\n"
        "mSMQQueueType:: AAECAwQFBgcICQoLDA0ODw==\n"
    )
    controller.ldif("\n".join(lines), timeout=300)
    subprocess.run(
        [PYTHON, "-P", __file__, str(controller.folder), str(count)],
        check=True, capture_output=True, text=True, timeout=timeout,
    )  # fmt: skip


def _guids(count: int) -> Iterator[bytes]:
    source = random.Random(_SEED)
    for _ in range(count):
        yield source.randbytes(16)


def _fill(folder: Path, count: int) -> None:
    import ldb
    from samba import Ldb, dsdb
    from samba.auth import system_session
    from samba.param import LoadParm
    from samba.samdb import SamDB

    settings = LoadParm(filename_for_non_global_lp=str(folder / "etc" / "smb.conf"))
    private = folder / "private"
    given: dict[str, Any] = {"session_info": system_session(settings), "lp": settings}
    whole = SamDB(url=str(private / "sam.ldb"), **given)
    file = next(path for path in private.glob("sam.ldb.d/*.ldb") if path.stem == _DOMAIN.upper())
    raw = Ldb(str(file), flags=ldb.FLG_NOSYNC, options=["modules:"], **given)
    (first,) = raw.search(_QUEUE, ldb.SCOPE_BASE, attrs=["*"])
    kept: dict[str, Any] = {name: list(first[name]) for name in first if name not in _OWN}
    (indexes,) = raw.search("@INDEXLIST", ldb.SCOPE_BASE)

    def set_indexes(kept: dict[str, list[bytes]]) -> None:
        change = ldb.Message(ldb.Dn(raw, "@INDEXLIST"))
        for name in _INDEXES:
            change[name] = ldb.MessageElement(kept.get(name, []), ldb.FLAG_MOD_REPLACE, name)
        raw.modify(change)

    raw.transaction_start()
    set_indexes({})
    for number, guid in enumerate(_guids(count - 1), start=1):
        name = f"orders-{number}"
        message = ldb.Message(ldb.Dn(raw, f"CN={name},CN=msmq,CN=BULK{number % COMPUTERS},{_PLACE}"))
        own = {"objectGUID": guid, "cn": name, "name": name, "mSMQLabelEx": f"Orders of branch {number}"}
        for attribute, value in {**kept, **own}.items():
            message[attribute] = ldb.MessageElement(value, ldb.FLAG_MOD_ADD, attribute)
        raw.add(message)
    dsdb._dsdb_set_schema_from_ldb(raw, whole, False)  # from now on, keys of indexes are Samba's
    set_indexes({name: list(indexes[name]) for name in _INDEXES})
    raw.transaction_commit()


if __name__ == "__main__":
    _fill(Path(sys.argv[1]), int(sys.argv[2]))
