"""Definitions of queues as Windows exports them."""

from __future__ import annotations

# fmt: off
HEADINGS = [
    "AccessMode", "Authenticate", "BasePriority", "CanRead", "CanWrite", "Category", "CreateTime",
    "DefaultPropertiesToSend", "DenySharedReceive", "EncryptionRequired", "FormatName", "Formatter",
    "Id", "Label", "LastModifyTime", "Path", "MaximumJournalSize", "MachineName", "MaximumQueueSize",
    "MessageReadPropertyFilter", "MulticastAddress", "QueueName", "ReadHandle", "SynchronizingObject",
    "Transactional", "UseJournalQueue", "WriteHandle", "Site", "Container",
]
# fmt: on
TYPE = "#TYPE System.Messaging.MessageQueue"
ORDERS = {
    "AccessMode": "SendAndReceive",
    "Authenticate": "False",
    "BasePriority": "0",
    "CanRead": "True",
    "Category": "00000000-0000-0000-0000-000000000000",
    "CreateTime": "21.11.2026 10:03:11",
    "EncryptionRequired": "Optional",
    "FormatName": r"DIRECT=OS:FACTORY\private$\orders",
    "Label": 'Bestellungen; "neu"',
    "MaximumJournalSize": "4294967295",
    "MachineName": "FACTORY",
    "MaximumQueueSize": "2048",
    "MulticastAddress": "",
    "Path": r"FACTORY\private$\orders",
    "QueueName": r"private$\orders",
    "Transactional": "True",
    "UseJournalQueue": "True",
}
PUBLIC = ORDERS | {
    "FormatName": "PUBLIC=1f9ba97b-77f5-4c1f-b2a5-5ba6c5d4a5ee",
    "Label": "",
    "Path": r"FACTORY\Prices",
    "QueueName": "Prices",
    "Transactional": "False",
    "MulticastAddress": "234.1.1.1:8001",
    "BasePriority": "-7",
    "EncryptionRequired": "Body",
    "Category": "1F9BA97B-77F5-4C1F-B2A5-5BA6C5D4A5EE",
}


def exported(*rows: dict[str, str], separator: str = ",", typed: bool = True) -> str:
    """A file of Export-Csv: every value quoted, quotes doubled."""

    def line(values: list[str]) -> str:
        return separator.join('"' + value.replace('"', '""') + '"' for value in values)

    lines = [TYPE] if typed else []
    lines += [line(HEADINGS), *(line([row.get(name, "") for name in HEADINGS]) for row in rows)]
    return "\r\n".join(lines) + "\r\n"


JSON = {
    "AccessMode": 3,
    "Authenticate": False,
    "BasePriority": 0,
    "CreateTime": "/Date(1700000000000)/",
    "EncryptionRequired": 1,
    "Formatter": {"TargetTypes": [], "TargetTypeNames": []},
    "Label": 'Bestellungen; "neu"',
    "MaximumJournalSize": 4294967295,
    "MaximumQueueSize": 2048,
    "Category": "00000000-0000-0000-0000-000000000000",
    "MulticastAddress": None,
    "Path": r"FACTORY\private$\orders",
    "QueueName": r"private$\orders",
    "Transactional": True,
    "UseJournalQueue": True,
}
