from typing import Any

class BadPacket(ValueError):
    code: int
    def __init__(self, code: int) -> None: ...

class ParsedMessage:
    packet: bytes
    size: int
    wire_size: int
    base_flags: int
    priority: int
    delivery: int
    time_to_reach_queue: int
    time_to_be_received: int
    sent_time: int
    message_id: int
    user_flags: int
    dest_type: int
    admin_type: int
    response_type: int
    ack_flags: int
    message_class: int
    dest_offset: int
    dest_length: int
    admin_offset: int
    admin_length: int
    response_offset: int
    response_length: int
    connector_offset: int
    transaction_offset: int
    security_offset: int
    sender_id_offset: int
    sender_id_length: int
    encryption_key_offset: int
    encryption_key_length: int
    signature_offset: int
    signature_length: int
    certificate_offset: int
    certificate_length: int
    provider_offset: int
    provider_length: int
    properties_offset: int
    label_offset: int
    label_chars: int
    extension_offset: int
    extension_length: int
    body_offset: int
    body_length: int
    body_type: int
    app_specific: int
    debug_offset: int
    envelope_offset: int
    compound_offset: int
    soap_offset: int
    mqf_offset: int
    session_offset: int
    def fields(self) -> dict[str, Any]: ...
    @property
    def body(self) -> memoryview: ...
    @property
    def extension(self) -> memoryview: ...
    @property
    def label(self) -> str: ...
    @property
    def correlation_id(self) -> bytes: ...
    @property
    def source(self) -> bytes: ...
    @property
    def destination_manager(self) -> bytes: ...
    @property
    def destination(self) -> memoryview: ...
    @property
    def admin(self) -> memoryview: ...
    @property
    def response(self) -> memoryview: ...
    @property
    def sender_id(self) -> memoryview: ...
    def kept(self) -> bytes: ...

def parse(data: bytes | bytearray | memoryview) -> ParsedMessage: ...
