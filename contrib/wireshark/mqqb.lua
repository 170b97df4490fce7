-- Wireshark dissector of the Message Queuing Binary Protocol (MS-MQQB, MS-MQMQ): TCP 1801 and UDP 3527.
-- Install: copy into the folder that "Help, About, Folders" calls "Personal Lua Plugins", or pass
-- `-X lua_script:mqqb.lua`. Sessions on other ports are found by their first packet.

local mqqb = Proto("mqqb", "Message Queuing Binary Protocol")
local ping = Proto("mqqb_ping", "Message Queuing Binary Protocol Ping")

local LIMIT = 0x400000
local PING_SIGNATURE = 0x5548
local ORDERING_LABEL = "QM Ordering Ack"
local ORDER_QUEUE = 4

---------------------------------------------------------------------------------------------------- tables

local packet_types = { [1] = "SessionAck", [2] = "EstablishConnection", [3] = "ConnectionParameters" }
local deliveries = { [0] = "express", [1] = "recoverable" }
local queue_types = {
    [0] = "none",
    [1] = "same as the administration queue",
    [2] = "private queue of the source",
    [3] = "private queue of the destination",
    [4] = "private queue at the administration queue's host",
    [5] = "public queue",
    [6] = "private queue of another host",
    [7] = "direct name",
}
local classes = {
    [0x0000] = "NORMAL",
    [0x0001] = "REPORT",
    [0x0002] = "ACK_REACH_QUEUE",
    [0x00FF] = "ORDER_ACK",
    [0x4000] = "ACK_RECEIVE",
    [0x8000] = "NACK_BAD_DST_Q",
    [0x8001] = "NACK_DELETED",
    [0x8002] = "NACK_REACH_QUEUE_TIMEOUT",
    [0x8003] = "NACK_Q_EXCEED_QUOTA",
    [0x8004] = "NACK_ACCESS_DENIED",
    [0x8005] = "NACK_HOP_COUNT_EXCEEDED",
    [0x8006] = "NACK_BAD_SIGNATURE",
    [0x8007] = "NACK_BAD_ENCRYPTION",
    [0x8008] = "NACK_COULD_NOT_ENCRYPT",
    [0x8009] = "NACK_NOT_TRANSACTIONAL_Q",
    [0x800A] = "NACK_NOT_TRANSACTIONAL_MSG",
    [0x800B] = "NACK_UNSUPPORTED_CRYPTO_PROVIDER",
    [0x800C] = "NACK_SOURCE_COMPUTER_GUID_CHANGED",
    [0xC000] = "NACK_Q_DELETED",
    [0xC001] = "NACK_Q_PURGED",
    [0xC002] = "NACK_RECEIVE_TIMEOUT",
    [0xC003] = "NACK_RECEIVE_TIMEOUT_AT_SENDER",
    [0xC004] = "NACK_RECEIVE_REJECTED",
}
local privacy_levels = { [0] = "none", [1] = "40 bits", [3] = "128 bits", [5] = "AES" }
local hashes = {
    [0x8001] = "MD2",
    [0x8002] = "MD4",
    [0x8003] = "MD5",
    [0x8004] = "SHA-1",
    [0x800C] = "SHA-256",
    [0x800E] = "SHA-512",
}
local ciphers = {
    [0x6602] = "RC2",
    [0x6801] = "RC4",
    [0x660E] = "AES-128",
    [0x660F] = "AES-192",
    [0x6610] = "AES-256",
}
local sender_types = { [0] = "none", [1] = "SID", [2] = "queue manager GUID" }
local signature_types = { [0] = "none", [1] = "MSMQ 1.0", [3] = "MSMQ 2.0", [5] = "MSMQ 3.0" }
local debug_types = { [0] = "no queue", [1] = "public queue" }
local element_types = { [1] = "public", [2] = "private", [3] = "direct", [6] = "distribution list" }
local sections = {
    [0x0064] = "destination",
    [0x00C8] = "administration",
    [0x012C] = "response",
    [0x015E] = "signature",
}

local faults = {
    VERSION = "BaseHeader.VersionNumber is not 0x10",
    SIGNATURE = "BaseHeader.Signature is not LIOR",
    PACKET_SIZE = "BaseHeader.PacketSize is out of range",
    PACKET_TYPE = "InternalHeader.PT names no packet type",
    ESTABLISH_SIZE = "an EstablishConnection packet does not have 572 bytes",
    PARAMETERS_SIZE = "a ConnectionParameters packet does not have 32 bytes",
    SESSION_ACK_SIZE = "a SessionAck packet does not have 36 bytes",
    SESSION_ACK_NO_HEADER = "a SessionAck packet without BaseHeader.Flags.SH",
    USER_SIZE = "the UserHeader runs past the end of the packet",
    DESTINATION_TYPE = "UserHeader.Flags.DQ is not 0, 3, 5 or 7",
    ADMIN_TYPE = "UserHeader.Flags.AQ is 1 or 4",
    DELIVERY = "UserHeader.Flags.DM is not 0 or 1",
    TRANSACTION_EXPRESS = "a TransactionHeader in an express message",
    NO_PROPERTIES = "UserHeader.Flags.MP is clear",
    QUEUE_NAME_SIZE = "a queue name runs past the end of the packet",
    QUEUE_NAME = "a direct queue name has an odd length or no NUL",
    TRANSACTION_SIZE = "the TransactionHeader runs past the end of the packet",
    SECURITY_SIZE = "the SecurityHeader runs past the end of the packet",
    SENDER_ID = "a SecurityID where SecurityHeader.Flags.ST says none",
    CERTIFICATE_SIZE = "SecurityHeader.SenderCertSize is larger than 0xFFFF",
    PROVIDER_SIZE = "SecurityHeader.ProviderInfoSize is too small for its content",
    PROPERTIES_SIZE = "the MessagePropertiesHeader runs past the end of the packet",
    LABEL_LENGTH = "the label is longer than 250 characters or than the packet",
    EXTENSION_SIZE = "ExtensionSize runs past the end of the packet",
    BODY_SIZE = "MessageSize runs past the end of the packet",
    DEBUG_SIZE = "the DebugHeader runs past the end of the packet",
    DEBUG_TYPE = "DebugHeader.Flags.QT is not 0 or 1",
    ENVELOPE_SIZE = "the SRMPEnvelopeHeader runs past the end of the packet",
    COMPOUND_SIZE = "the CompoundMessageHeader contradicts itself or runs past the packet",
    SOAP_SECTION = "a SoapHeader section has the wrong identifier",
    SOAP_SIZE = "the SoapHeader runs past the end of the packet",
    MQF_SECTION = "a MultiQueueFormatHeader section has the wrong identifier",
    MQF_SIZE = "the MultiQueueFormatHeader runs past the end of the packet",
    MQF_ELEMENT = "a MultiQueueFormatHeader element is unknown or too long",
    LENGTH_MISMATCH = "the headers do not add up to BaseHeader.PacketSize",
}

---------------------------------------------------------------------------------------------------- fields

local f = {}

local function field(kind, name, label, ...)
    f[name] = ProtoField[kind]("mqqb." .. name, label, ...)
end

local function flag(name, label, width, mask)
    f[name] = ProtoField.bool("mqqb." .. name, label, width, nil, mask)
end

field("uint8", "version", "Version", base.HEX)
field("uint8", "reserved", "Reserved", base.HEX)
field("uint16", "flags", "Flags", base.HEX)
field("uint16", "flags.priority", "Priority (PR)", base.DEC, nil, 0x0007)
flag("flags.internal", "Internal packet (IN)", 16, 0x0008)
flag("flags.session", "SessionHeader present (SH)", 16, 0x0010)
flag("flags.debug", "DebugHeader present (DH)", 16, 0x0020)
flag("flags.trace", "Traced (TR)", 16, 0x0100)
field("string", "signature", "Signature")
field("uint32", "size", "Packet size", base.DEC)
field("uint32", "time_to_reach_queue", "Time to reach queue (s)", base.DEC)

field("uint16", "internal.reserved", "Reserved", base.HEX)
field("uint16", "internal.flags", "Flags", base.HEX)
field("uint16", "internal.type", "Packet type (PT)", base.DEC, packet_types, 0x000F)
flag("internal.refused", "Connection refused (CS)", 16, 0x0010)

field("guid", "establish.client", "Client GUID")
field("guid", "establish.server", "Server GUID")
field("uint32", "establish.timestamp", "Time since start (ms)", base.DEC)
field("uint16", "establish.system", "Operating system", base.HEX)
flag("establish.system.no_ping", "No ping was sent (SE)", 16, 0x0100)
flag("establish.system.server", "Server (OS)", 16, 0x0200)
flag("establish.system.quality", "Quality of service (QS)", 16, 0x0400)
field("uint16", "establish.reserved", "Reserved", base.HEX)
field("bytes", "establish.padding", "Padding")

field("uint32", "parameters.recoverable_ack_timeout", "Recoverable ack timeout (ms)", base.DEC)
field("uint32", "parameters.ack_timeout", "Ack timeout (ms)", base.DEC)
field("uint16", "parameters.reserved", "Reserved", base.HEX)
field("uint16", "parameters.window", "Window size", base.DEC)

field("uint16", "session.ack", "Messages acknowledged", base.DEC)
field("framenum", "session.ack.frame", "Acknowledged up to the message in frame", base.NONE, frametype.ACK)
field("uint16", "session.recoverable_ack", "First recoverable message acknowledged", base.DEC)
field("uint32", "session.recoverable_flags", "Recoverable messages acknowledged, bits", base.HEX)
field("string", "session.recoverable_list", "Recoverable messages acknowledged")
field("uint16", "session.messages", "Messages sent", base.DEC)
field("uint16", "session.recoverable", "Recoverable messages sent", base.DEC)
field("uint16", "session.window", "Window size", base.DEC)
field("uint16", "session.reserved", "Reserved", base.HEX)

field("uint32", "number", "Number in this direction", base.DEC)
field("uint32", "recoverable_number", "Number among the recoverable messages", base.DEC)

field("guid", "user.source", "Source queue manager")
field("guid", "user.manager", "Destination queue manager")
field("uint32", "user.time_to_be_received", "Time to be received (s)", base.DEC)
field("uint32", "user.sent", "Sent (s since 1970)", base.DEC)
field("absolute_time", "user.sent_time", "Sent", base.UTC)
field("uint32", "user.message_id", "Message id", base.DEC)
field("uint32", "user.flags", "Flags", base.HEX)
field("uint32", "user.flags.hops", "Routing servers passed (RC)", base.DEC, nil, 0x0000001F)
field("uint32", "user.flags.delivery", "Delivery (DM)", base.DEC, deliveries, 0x00000060)
flag("user.flags.journal_negative", "Dead letter (JN)", 32, 0x00000100)
flag("user.flags.journal_positive", "Journal (JP)", 32, 0x00000200)
field("uint32", "user.flags.destination", "Destination queue (DQ)", base.DEC, queue_types, 0x00001C00)
field("uint32", "user.flags.admin", "Administration queue (AQ)", base.DEC, queue_types, 0x0000E000)
field("uint32", "user.flags.response", "Response queue (RQ)", base.DEC, queue_types, 0x00070000)
flag("user.flags.security", "SecurityHeader present (SH)", 32, 0x00080000)
flag("user.flags.transaction", "TransactionHeader present (TH)", 32, 0x00100000)
flag("user.flags.properties", "MessagePropertiesHeader present (MP)", 32, 0x00200000)
flag("user.flags.connector", "Connector type present (CQ)", 32, 0x00400000)
flag("user.flags.multi_queue", "MultiQueueFormatHeader present (MQ)", 32, 0x00800000)
flag("user.flags.http", "Came over HTTP (AH)", 32, 0x02000000)
flag("user.flags.soap", "SoapHeader present (HH)", 32, 0x10000000)
field("string", "user.destination", "Destination queue")
field("string", "user.admin", "Administration queue")
field("string", "user.response", "Response queue")
field("guid", "user.connector", "Connector type")

field("uint32", "transaction.flags", "Flags", base.HEX)
flag("transaction.flags.connector", "Connector queue manager present (CG)", 32, 0x00000001)
flag("transaction.flags.final_ack", "FinalAck required (FA)", 32, 0x00000002)
flag("transaction.flags.first", "First message of the transaction (FM)", 32, 0x00000004)
flag("transaction.flags.last", "Last message of the transaction (LM)", 32, 0x00000008)
field("uint32", "transaction.id", "Transaction (ID)", base.DEC, nil, 0x00FFFFF0)
field("uint64", "transaction.sequence_id", "Sequence id", base.HEX)
field("uint32", "transaction.sequence_ordinal", "Sequence ordinal", base.DEC)
field("uint32", "transaction.sequence_timestamp", "Sequence time stamp", base.DEC)
field("uint32", "transaction.number", "Number in the sequence", base.DEC)
field("uint32", "transaction.previous", "Number of the message before", base.DEC)
field("guid", "transaction.connector", "Connector queue manager")

field("uint16", "security.flags", "Flags", base.HEX)
field("uint16", "security.flags.sender_type", "Sender id type (ST)", base.DEC, sender_types, 0x000F)
flag("security.flags.authenticated", "Authenticated (AU)", 16, 0x0010)
flag("security.flags.encrypted", "Body encrypted (EB)", 16, 0x0020)
flag("security.flags.default_provider", "Default provider (DE)", 16, 0x0040)
flag("security.flags.security_data", "Security data present (AI)", 16, 0x0080)
field("uint16", "security.flags.signature_type", "Signature type (AS)", base.DEC, signature_types, 0x0F00)
field("uint16", "security.sender_id_size", "Sender id size", base.DEC)
field("uint16", "security.key_size", "Encryption key size", base.DEC)
field("uint16", "security.signature_size", "Signature size", base.DEC)
field("uint32", "security.certificate_size", "Sender certificate size", base.DEC)
field("uint32", "security.provider_size", "Provider information size", base.DEC)
field("bytes", "security.sender_id", "Sender id")
field("string", "security.sid", "Sender")
field("bytes", "security.key", "Encryption key")
field("bytes", "security.signature", "Signature")
field("bytes", "security.certificate", "Sender certificate")
field("bytes", "security.provider", "Provider information")

field("uint8", "properties.flags", "Acknowledgments wanted", base.HEX)
flag("properties.flags.arrival", "On arrival (PA)", 8, 0x01)
flag("properties.flags.receive", "On receive (PR)", 8, 0x02)
flag("properties.flags.no_arrival", "When it does not arrive (NA)", 8, 0x04)
flag("properties.flags.no_receive", "When it is not received (NR)", 8, 0x08)
field("uint8", "properties.label_length", "Label length", base.DEC)
field("uint16", "properties.class", "Class", base.HEX, classes)
field("bytes", "properties.correlation_id", "Correlation id")
field("uint32", "properties.body_type", "Body type", base.DEC)
field("uint32", "properties.application_tag", "Application tag", base.DEC)
field("uint32", "properties.body_size", "Body size", base.DEC)
field("uint32", "properties.allocation_size", "Allocated body size", base.DEC)
field("uint32", "properties.privacy_level", "Privacy level", base.DEC, privacy_levels)
field("uint32", "properties.hash", "Hash algorithm", base.HEX, hashes)
field("uint32", "properties.cipher", "Encryption algorithm", base.HEX, ciphers)
field("uint32", "properties.extension_size", "Extension size", base.DEC)
field("string", "properties.label", "Label")
field("bytes", "properties.extension", "Extension")
field("bytes", "properties.body", "Body")

field("uint16", "debug.flags", "Flags", base.HEX)
field("uint16", "debug.flags.type", "Queue (QT)", base.DEC, debug_types, 0x0003)
field("uint16", "debug.reserved", "Reserved", base.HEX)
field("guid", "debug.queue", "Report queue")

field("uint16", "envelope.id", "Header id", base.HEX)
field("string", "envelope.text", "Envelope")
field("uint16", "compound.id", "Header id", base.HEX)
field("uint32", "compound.http_size", "HTTP body size", base.DEC)
field("uint32", "compound.body_size", "Message body size", base.DEC)
field("uint32", "compound.body_offset", "Message body offset", base.DEC)
field("bytes", "compound.data", "HTTP body")

field("uint16", "soap.section", "Section", base.HEX)
field("uint32", "soap.length", "Characters", base.DEC)
field("string", "soap.header", "SOAP header")
field("string", "soap.body", "SOAP body")

field("uint32", "multi.size", "Header size", base.DEC)
field("uint16", "multi.section", "Section", base.HEX, sections)
field("uint32", "multi.count", "Elements", base.DEC)
field("uint16", "multi.type", "Element type", base.DEC, element_types)
field("string", "multi.destination", "Destination")
field("string", "multi.admin", "Administration queue")
field("string", "multi.response", "Response queue")
field("uint32", "multi.signature_size", "Signature size", base.DEC)
field("bytes", "multi.signature", "Signature")

field("string", "ordering", "Acknowledgment")
field("uint32", "ordering.ordinal", "Sequence ordinal", base.DEC)
field("uint32", "ordering.timestamp", "Sequence time stamp", base.DEC)
field("uint32", "ordering.number", "Number acknowledged", base.DEC)
field("uint32", "ordering.previous", "Number of the message before", base.DEC)
field("guid", "ordering.source", "Source queue manager")
field("uint32", "ordering.message_id", "Message id", base.DEC)
field("framenum", "ordering.frame", "Acknowledges the message in frame", base.NONE, frametype.ACK)

mqqb.fields = f

local e = {
    malformed = ProtoExpert.new("mqqb.malformed", "Malformed packet", expert.group.MALFORMED, expert.severity.ERROR),
    count = ProtoExpert.new("mqqb.count_mismatch", "Count of messages sent is wrong", expert.group.SEQUENCE, expert.severity.WARN),
    unsent = ProtoExpert.new("mqqb.ack_unsent", "Acknowledges a message that was not sent", expert.group.SEQUENCE, expert.severity.WARN),
    refused = ProtoExpert.new("mqqb.refused", "The session is refused", expert.group.RESPONSE_CODE, expert.severity.NOTE),
    range = ProtoExpert.new("mqqb.out_of_range", "Value out of its range", expert.group.PROTOCOL, expert.severity.WARN),
}
mqqb.experts = { e.malformed, e.count, e.unsent, e.refused, e.range }

local tcp_stream = Field.new("tcp.stream")

---------------------------------------------------------------------------------------------------- helpers

local function bits(value, first, count)
    return math.floor(value / 2 ^ first) % 2 ^ count
end

local function has(value, bit)
    return bits(value, bit, 1) == 1
end

local function align4(value)
    return value + (-value) % 4
end

local function fault(rule)
    error({ rule = rule }, 0)
end

local Cursor = {}
Cursor.__index = Cursor

local function cursor(tvb, at, size)
    return setmetatable({ tvb = tvb, at = at, size = size }, Cursor)
end

function Cursor:need(count, rule)
    if count > self.size - self.at then
        fault(rule)
    end
end

-- The next bytes, or nil for none.
function Cursor:take(count, rule)
    self:need(count, rule)
    local start = self.at
    self.at = start + count
    if count > 0 then
        return self.tvb(start, count)
    end
end

function Cursor:pad(rule)
    self:take(align4(self.at) - self.at, rule)
end

-- Adds a field to the tree, if there is a tree, and returns the new item.
local function show(tree, name, range, value)
    if tree and range then
        if value ~= nil then
            return tree:add_le(f[name], range, value)
        end
        return tree:add_le(f[name], range)
    end
end

-- An item for a header; its length is set when the header was walked.
local function open(tree, cur, name)
    if tree and cur.at < cur.size then
        return tree:add(mqqb, cur.tvb(cur.at, cur.size - cur.at), name)
    end
end

local function close(item, cur, start)
    if item then
        item:set_len(cur.at - start)
    end
end

local function u16(range)
    return range:le_uint()
end

local u32 = u16

local function text(range)
    if not range or range:len() < 2 then
        return ""
    end
    local units = range:len() - range:len() % 2
    for at = 0, units - 2, 2 do
        if range(at, 2):le_uint() == 0 then
            units = at
            break
        end
    end
    return units > 0 and range(0, units):le_ustring() or ""
end

local function guid(range)
    return string.format(
        "%08x-%04x-%04x-%s-%s",
        range(0, 4):le_uint(), range(4, 2):le_uint(), range(6, 2):le_uint(),
        tostring(range(8, 2):bytes()):lower(), tostring(range(10, 6):bytes()):lower()
    )
end

local function sid(range)
    if range:len() < 8 or range:len() ~= 8 + 4 * range(1, 1):uint() then
        return nil
    end
    local parts = { "S", tostring(range(0, 1):uint()), tostring(range(2, 6):uint64()) }
    for index = 1, range(1, 1):uint() do
        parts[#parts + 1] = string.format("%.0f", range(4 + 4 * index, 4):le_uint())
    end
    return table.concat(parts, "-")
end

---------------------------------------------------------------------------------------------------- sessions

-- What was counted in each TCP stream and direction, and what was found out about each packet when it was
-- seen for the first time: packets are dissected again in any order.
local streams, known

function mqqb.init()
    streams, known = {}, {}
end

local function direction(pinfo)
    return tostring(pinfo.src) .. " " .. pinfo.src_port .. " " .. tostring(pinfo.dst) .. " " .. pinfo.dst_port
end

local function opposite(pinfo)
    return tostring(pinfo.dst) .. " " .. pinfo.dst_port .. " " .. tostring(pinfo.src) .. " " .. pinfo.src_port
end

local function side(name)
    local number = tcp_stream()
    number = number and number.value or 0
    streams[number] = streams[number] or {}
    local stream = streams[number]
    stream[name] = stream[name] or { messages = 0, recoverable = 0, frames = {}, transactional = {}, whole = false }
    return stream[name]
end

local function remember(pinfo, key, found)
    local frame = pinfo.number
    known[frame] = known[frame] or {}
    if known[frame][key] == nil then
        known[frame][key] = found()
    end
    return known[frame][key]
end

local function count_message(pinfo, key, message)
    return remember(pinfo, key, function()
        local mine = side(direction(pinfo))
        mine.messages = mine.messages + 1
        if message.delivery == 1 then
            mine.recoverable = mine.recoverable + 1
        end
        mine.frames[mine.messages % 65536] = pinfo.number
        if message.sequence then
            mine.transactional[message.sequence] = mine.transactional[message.sequence] or pinfo.number
        end
        return { number = mine.messages, recoverable = message.delivery == 1 and mine.recoverable or nil }
    end)
end

-- What a SessionHeader says, compared with what was counted.
local function check_header(pinfo, key, ack, messages, recoverable)
    return remember(pinfo, key, function()
        local mine, theirs = side(direction(pinfo)), side(opposite(pinfo))
        local result = { frame = ack > 0 and theirs.frames[ack] or nil }
        if mine.whole then
            result.mismatch = messages ~= mine.messages % 65536 or recoverable ~= mine.recoverable % 65536
        end
        if theirs.whole then
            result.unsent = (theirs.messages - ack) % 65536 >= 32768
        end
        return result
    end)
end

---------------------------------------------------------------------------------------------------- headers

local function base_header(cur, tree)
    local start, item = cur.at, open(tree, cur, "BaseHeader")
    local range = cur:take(16, "PACKET_SIZE")
    show(item, "version", range(0, 1))
    show(item, "reserved", range(1, 1))
    local flags = show(item, "flags", range(2, 2))
    for _, name in ipairs({ "priority", "internal", "session", "debug", "trace" }) do
        show(flags, "flags." .. name, range(2, 2))
    end
    show(item, "signature", range(4, 4), range(4, 4):string())
    show(item, "size", range(8, 4))
    show(item, "time_to_reach_queue", range(12, 4))
    close(item, cur, start)
end

local function session_header(cur, tree, pinfo, key)
    local start, item = cur.at, open(tree, cur, "SessionHeader")
    local range = cur:take(16, "LENGTH_MISMATCH")
    close(item, cur, start)
    if not item then
        return
    end
    local ack, base_number, flags = u16(range(0, 2)), u16(range(2, 2)), u32(range(4, 4))
    local found = check_header(pinfo, key, ack, u16(range(8, 2)), u16(range(10, 2)))
    local ack_item = show(item, "session.ack", range(0, 2))
    if found.unsent then
        ack_item:add_proto_expert_info(e.unsent)
    end
    if found.frame then
        show(item, "session.ack.frame", range(0, 2), found.frame):set_generated()
    end
    show(item, "session.recoverable_ack", range(2, 2))
    show(item, "session.recoverable_flags", range(4, 4))
    if base_number > 0 then
        local numbers = {}
        for bit = 0, 31 do
            if has(flags, bit) then
                numbers[#numbers + 1] = (base_number + bit) % 65536
            end
        end
        show(item, "session.recoverable_list", range(2, 6), table.concat(numbers, " ")):set_generated()
    end
    local sent = show(item, "session.messages", range(8, 2))
    show(item, "session.recoverable", range(10, 2))
    if found.mismatch then
        sent:add_proto_expert_info(e.count)
    end
    local window = show(item, "session.window", range(12, 2))
    if u16(range(12, 2)) == 0 then
        window:add_proto_expert_info(e.range, "a window of 0")
    end
    show(item, "session.reserved", range(14, 2))
    item:append_text(string.format(", %d acknowledged", ack))
end

local function establish(cur, tree, pinfo, refused)
    local start, item = cur.at, open(tree, cur, "EstablishConnectionHeader")
    local range = cur:take(552, "ESTABLISH_SIZE")
    show(item, "establish.client", range(0, 16))
    show(item, "establish.server", range(16, 16))
    show(item, "establish.timestamp", range(32, 4))
    local system = show(item, "establish.system", range(36, 2))
    for _, name in ipairs({ "no_ping", "server", "quality" }) do
        show(system, "establish.system." .. name, range(36, 2))
    end
    show(item, "establish.reserved", range(38, 2))
    show(item, "establish.padding", range(40, 512))
    close(item, cur, start)
    side(direction(pinfo)).whole = true
    return refused and "EstablishConnection, refused" or "EstablishConnection"
end

local function parameters(cur, tree, _, refused)
    local start, item = cur.at, open(tree, cur, "ConnectionParametersHeader")
    local range = cur:take(12, "PARAMETERS_SIZE")
    local recoverable, ack = u32(range(0, 4)), u32(range(4, 4))
    local first = show(item, "parameters.recoverable_ack_timeout", range(0, 4))
    if recoverable < 500 or recoverable > 120000 then
        first:add_proto_expert_info(e.range, "RecoverableAckTimeout is not between 500 and 120000")
    end
    local second = show(item, "parameters.ack_timeout", range(4, 4))
    if ack < 20000 or ack > 120000 then
        second:add_proto_expert_info(e.range, "AckTimeout is not between 20000 and 120000")
    end
    show(item, "parameters.reserved", range(8, 2))
    show(item, "parameters.window", range(10, 2))
    close(item, cur, start)
    return (refused and "ConnectionParameters, refused" or "ConnectionParameters")
        .. string.format(", window %d", u16(range(10, 2)))
end

local function session_ack(cur, tree, pinfo, _, key)
    local ack = cur.tvb(cur.at, 2):le_uint()
    session_header(cur, tree, pinfo, key)
    return string.format("SessionAck, %d acknowledged", ack)
end

local internals = {
    [1] = { dissect = session_ack, size = 36, rule = "SESSION_ACK_SIZE" },
    [2] = { dissect = establish, size = 572, rule = "ESTABLISH_SIZE" },
    [3] = { dissect = parameters, size = 32, rule = "PARAMETERS_SIZE" },
}

local function internal_packet(cur, tree, pinfo, key, base_flags)
    local start, item = cur.at, open(tree, cur, "InternalHeader")
    local range = cur:take(4, "PACKET_SIZE")
    local flags = u16(range(2, 2))
    show(item, "internal.reserved", range(0, 2))
    local flags_item = show(item, "internal.flags", range(2, 2))
    show(flags_item, "internal.type", range(2, 2))
    local refused = show(flags_item, "internal.refused", range(2, 2))
    close(item, cur, start)
    local packet = internals[bits(flags, 0, 4)]
    if not packet then
        fault("PACKET_TYPE")
    end
    if cur.size ~= packet.size then
        fault(packet.rule)
    end
    if packet == internals[1] and not has(base_flags, 4) then
        fault("SESSION_ACK_NO_HEADER")
    end
    if has(flags, 4) and refused then
        refused:add_proto_expert_info(e.refused)
    end
    return packet.dissect(cur, tree, pinfo, has(flags, 4), key)
end

-- One queue name of the UserHeader as a format name.
local function queue_name(cur, tree, name, kind, hosts)
    local start, written, range = cur.at, nil, nil
    if kind == 7 then
        local count = u16(cur:take(2, "QUEUE_NAME_SIZE"))
        range = cur:take(count, "QUEUE_NAME_SIZE")
        cur:take((start - cur.at) % 4, "QUEUE_NAME_SIZE")
        if count < 2 or count % 2 == 1 or u16(range(count - 2, 2)) ~= 0 then
            fault("QUEUE_NAME")
        end
        written = "DIRECT=" .. text(range)
    elseif kind == 5 then
        written = "PUBLIC=" .. guid(cur:take(16, "QUEUE_NAME_SIZE"))
    elseif kind == 6 then
        range = cur:take(20, "QUEUE_NAME_SIZE")
        written = string.format("PRIVATE=%s\\%08x", guid(range(0, 16)), u32(range(16, 4)))
    elseif kind >= 2 then
        range = cur:take(4, "QUEUE_NAME_SIZE")
        written = string.format("PRIVATE=%s\\%08x", hosts[kind] or "administration queue's host", u32(range))
    end
    if written then
        show(tree, "user." .. name, cur.tvb(start, cur.at - start), written)
    end
    return written
end

local user_flags = {
    "hops", "delivery", "journal_negative", "journal_positive", "destination", "admin", "response", "security",
    "transaction", "properties", "connector", "multi_queue", "http", "soap",
}

local function user_header(cur, tree)
    local start, item = cur.at, open(tree, cur, "UserHeader")
    local range = cur:take(48, "USER_SIZE")
    local flags = u32(range(44, 4))
    local message = {
        source = guid(range(0, 16)), manager = guid(range(16, 16)), id = u32(range(40, 4)), flags = flags,
        delivery = bits(flags, 5, 2), destination_type = bits(flags, 10, 3),
    }
    show(item, "user.source", range(0, 16))
    show(item, "user.manager", range(16, 16))
    show(item, "user.time_to_be_received", range(32, 4))
    show(item, "user.sent", range(36, 4))
    show(item, "user.sent_time", range(36, 4), NSTime.new(u32(range(36, 4)), 0))
    show(item, "user.message_id", range(40, 4))
    local flags_item = show(item, "user.flags", range(44, 4))
    for _, name in ipairs(user_flags) do
        show(flags_item, "user.flags." .. name, range(44, 4))
    end
    local destination, admin = message.destination_type, bits(flags, 13, 3)
    if message.delivery > 1 then
        fault("DELIVERY")
    elseif destination == 1 or destination == 2 or destination == 4 or destination == 6 then
        fault("DESTINATION_TYPE")
    elseif admin == 1 or admin == 4 then
        fault("ADMIN_TYPE")
    elseif has(flags, 20) and message.delivery == 0 then
        fault("TRANSACTION_EXPRESS")
    elseif not has(flags, 21) then
        fault("NO_PROPERTIES")
    end
    local hosts = { [2] = message.source, [3] = message.manager }
    message.destination = queue_name(cur, item, "destination", destination, hosts)
    message.admin = queue_name(cur, item, "admin", admin, hosts)
    queue_name(cur, item, "response", bits(flags, 16, 3), hosts)
    if has(flags, 22) then
        show(item, "user.connector", cur:take(16, "USER_SIZE"))
    end
    close(item, cur, start)
    return message
end

local function sequence_key(range)
    return string.format("%.0f:%.0f:%.0f", u32(range(0, 4)), u32(range(4, 4)), u32(range(8, 4)))
end

local function transaction_header(cur, tree, message)
    local start, item = cur.at, open(tree, cur, "TransactionHeader")
    local range = cur:take(20, "TRANSACTION_SIZE")
    local flags = show(item, "transaction.flags", range(0, 4))
    for _, name in ipairs({ "flags.connector", "flags.final_ack", "flags.first", "flags.last", "id" }) do
        show(flags, "transaction." .. name, range(0, 4))
    end
    show(item, "transaction.sequence_id", range(4, 8))
    show(item, "transaction.sequence_ordinal", range(4, 4))
    show(item, "transaction.sequence_timestamp", range(8, 4))
    show(item, "transaction.number", range(12, 4))
    show(item, "transaction.previous", range(16, 4))
    message.sequence = sequence_key(range(4, 12))
    message.number = u32(range(12, 4))
    if has(u32(range(0, 4)), 0) then
        show(item, "transaction.connector", cur:take(16, "TRANSACTION_SIZE"))
    end
    close(item, cur, start)
end

local function security_header(cur, tree)
    local start, item = cur.at, open(tree, cur, "SecurityHeader")
    local range = cur:take(16, "SECURITY_SIZE")
    local flags = u16(range(0, 2))
    local flags_item = show(item, "security.flags", range(0, 2))
    for _, name in ipairs({
        "sender_type", "authenticated", "encrypted", "default_provider", "security_data", "signature_type",
    }) do
        show(flags_item, "security.flags." .. name, range(0, 2))
    end
    show(item, "security.sender_id_size", range(2, 2))
    show(item, "security.key_size", range(4, 2))
    show(item, "security.signature_size", range(6, 2))
    show(item, "security.certificate_size", range(8, 4))
    show(item, "security.provider_size", range(12, 4))
    local certificate, provider = u32(range(8, 4)), u32(range(12, 4))
    if bits(flags, 0, 4) == 0 and u16(range(2, 2)) > 0 then
        fault("SENDER_ID")
    elseif certificate > 65535 then
        fault("CERTIFICATE_SIZE")
    elseif provider > 0 and provider < 6 then
        fault("PROVIDER_SIZE")
    end
    local sizes = { u16(range(2, 2)), u16(range(4, 2)), u16(range(6, 2)), certificate, provider }
    for index, name in ipairs({ "sender_id", "key", "signature", "certificate", "provider" }) do
        local data = cur:take(sizes[index], "SECURITY_SIZE")
        show(item, "security." .. name, data)
        if item and index == 1 and data and bits(flags, 0, 4) == 1 and sid(data) then
            show(item, "security.sid", data, sid(data)):set_generated()
        end
        cur:pad("SECURITY_SIZE")
    end
    close(item, cur, start)
end

local function properties_header(cur, tree, message)
    local start, item = cur.at, open(tree, cur, "MessagePropertiesHeader")
    local range = cur:take(56, "PROPERTIES_SIZE")
    local flags = show(item, "properties.flags", range(0, 1))
    for _, name in ipairs({ "arrival", "receive", "no_arrival", "no_receive" }) do
        show(flags, "properties.flags." .. name, range(0, 1))
    end
    local label, extension, body = range(1, 1):uint(), u32(range(52, 4)), u32(range(32, 4))
    message.class = u16(range(2, 2))
    show(item, "properties.label_length", range(1, 1))
    show(item, "properties.class", range(2, 2))
    show(item, "properties.correlation_id", range(4, 20))
    show(item, "properties.body_type", range(24, 4))
    show(item, "properties.application_tag", range(28, 4))
    show(item, "properties.body_size", range(32, 4))
    show(item, "properties.allocation_size", range(36, 4))
    show(item, "properties.privacy_level", range(40, 4))
    show(item, "properties.hash", range(44, 4))
    show(item, "properties.cipher", range(48, 4))
    show(item, "properties.extension_size", range(52, 4))
    if label > 250 then
        fault("LABEL_LENGTH")
    end
    range = cur:take(2 * label, "LABEL_LENGTH")
    message.label = text(range)
    show(item, "properties.label", range, message.label)
    show(item, "properties.extension", cur:take(extension, "EXTENSION_SIZE"))
    message.body = cur:take(body, "BODY_SIZE")
    message.body_size = body
    show(item, "properties.body", message.body)
    cur:pad("BODY_SIZE")
    close(item, cur, start)
end

local function debug_header(cur, tree)
    local start, item = cur.at, open(tree, cur, "DebugHeader")
    local range = cur:take(4, "DEBUG_SIZE")
    local kind = bits(u16(range(0, 2)), 0, 2)
    show(show(item, "debug.flags", range(0, 2)), "debug.flags.type", range(0, 2))
    show(item, "debug.reserved", range(2, 2))
    if kind > 1 then
        fault("DEBUG_TYPE")
    elseif kind == 1 then
        show(item, "debug.queue", cur:take(16, "DEBUG_SIZE"))
    end
    close(item, cur, start)
end

local function srmp_headers(cur, tree)
    local start, item = cur.at, open(tree, cur, "SRMPEnvelopeHeader")
    local range = cur:take(8, "ENVELOPE_SIZE")
    show(item, "envelope.id", range(0, 2))
    range = cur:take(2 * u32(range(4, 4)), "ENVELOPE_SIZE")
    show(item, "envelope.text", range, text(range))
    cur:pad("ENVELOPE_SIZE")
    close(item, cur, start)
    start, item = cur.at, open(tree, cur, "CompoundMessageHeader")
    range = cur:take(16, "COMPOUND_SIZE")
    show(item, "compound.id", range(0, 2))
    show(item, "compound.http_size", range(4, 4))
    show(item, "compound.body_size", range(8, 4))
    show(item, "compound.body_offset", range(12, 4))
    local size = u32(range(4, 4))
    show(item, "compound.data", cur:take(size, "COMPOUND_SIZE"))
    cur:pad("COMPOUND_SIZE")
    if u32(range(8, 4)) + u32(range(12, 4)) > size then
        fault("COMPOUND_SIZE")
    end
    close(item, cur, start)
end

local function soap_section(cur, item, id, name)
    local range = cur:take(8, "SOAP_SIZE")
    show(item, "soap.section", range(0, 2))
    show(item, "soap.length", range(4, 4))
    if u16(range(0, 2)) ~= id then
        fault("SOAP_SECTION")
    end
    range = cur:take(2 * u32(range(4, 4)), "SOAP_SIZE")
    show(item, name, range, text(range))
end

local function soap_header(cur, tree)
    local start, item = cur.at, open(tree, cur, "SoapHeader")
    soap_section(cur, item, 0x0320, "soap.header")
    cur:need(8, "SOAP_SIZE")
    if u16(cur.tvb(cur.at, 2)) ~= 0x0384 then
        cur:pad("SOAP_SIZE") -- some senders pad the first section, some do not
    end
    soap_section(cur, item, 0x0384, "soap.body")
    cur:pad("SOAP_SIZE")
    close(item, cur, start)
end

-- One element of a MultiQueueFormatHeader as a format name.
local function element(cur, item, name)
    cur:need(4, "MQF_ELEMENT")
    local start = cur.at
    local kind, written = u16(cur:take(2, "MQF_ELEMENT")), nil
    if kind == 3 then
        local first = cur.at
        repeat
            local unit = cur:take(2, "MQF_ELEMENT")
        until u16(unit) == 0
        written = "DIRECT=" .. text(cur.tvb(first, cur.at - first))
    elseif element_types[kind] then
        cur:pad("MQF_ELEMENT")
        local range = cur:take(kind == 2 and 20 or 16, "MQF_ELEMENT")
        if kind == 2 then
            written = string.format("PRIVATE=%s\\%08x", guid(range(0, 16)), u32(range(16, 4)))
        else
            written = (kind == 1 and "PUBLIC=" or "DL=") .. guid(range)
        end
    else
        fault("MQF_ELEMENT")
    end
    show(item, "multi.type", cur.tvb(start, 2))
    show(item, name, cur.tvb(start, cur.at - start), written)
end

local function multi_queue_header(cur, tree)
    local start, item = cur.at, open(tree, cur, "MultiQueueFormatHeader")
    local lists = { { 0x0064, "multi.destination" }, { 0x00C8, "multi.admin" }, { 0x012C, "multi.response" } }
    for _, list in ipairs(lists) do
        local first = cur.at
        local range = cur:take(12, "MQF_SIZE")
        local size = u32(range(0, 4))
        show(item, "multi.size", range(0, 4))
        show(item, "multi.section", range(4, 2))
        show(item, "multi.count", range(8, 4))
        if size < 12 or first + align4(size) > cur.size then
            fault("MQF_SIZE")
        elseif u16(range(4, 2)) ~= list[1] then
            fault("MQF_SECTION")
        end
        local inner = cursor(cur.tvb, cur.at, first + size)
        for _ = 1, u32(range(8, 4)) do
            element(inner, item, list[2])
        end
        cur.at = first + align4(size)
    end
    local range = cur:take(8, "MQF_SIZE")
    show(item, "multi.section", range(0, 2))
    show(item, "multi.signature_size", range(4, 4))
    if u16(range(0, 2)) ~= 0x015E then
        fault("MQF_SECTION")
    end
    show(item, "multi.signature", cur:take(u32(range(4, 4)), "MQF_SIZE"))
    cur:pad("MQF_SIZE")
    close(item, cur, start)
end

-- OrderAck and FinalAck are UserMessages to the queue order_queue$.
local function ordering(message)
    if message.label ~= ORDERING_LABEL or message.body_size ~= 36 or not message.destination then
        return nil
    end
    local direct = message.destination_type == 7 and message.destination:lower():match("\\private%$\\order_queue%$$")
    local private = message.destination_type == 3
        and tonumber(message.destination:match("\\(%x+)$"), 16) == ORDER_QUEUE
    if not (direct or private) then
        return nil
    end
    if message.class == 0x00FF then
        return "OrderAck"
    end
    return message.class >= 0x4000 and "FinalAck" or nil
end

local function ordering_body(kind, tree, message, pinfo)
    local range = message.body
    local item = show(tree, "ordering", range, kind)
    show(item, "ordering.ordinal", range(0, 4))
    show(item, "ordering.timestamp", range(4, 4))
    show(item, "ordering.number", range(8, 4))
    show(item, "ordering.previous", range(12, 4))
    if kind == "FinalAck" then
        show(item, "ordering.source", range(16, 16))
        show(item, "ordering.message_id", range(32, 4))
    end
    local frame = side(opposite(pinfo)).transactional[sequence_key(range(0, 12))]
    if frame then
        show(item, "ordering.frame", range(0, 12), frame):set_generated()
    end
end

-- Walks the headers between BaseHeader and SessionHeader; `tree` may be nil.
local function user_headers(cur, tree, base_flags)
    local message = user_header(cur, tree)
    if has(message.flags, 20) then
        transaction_header(cur, tree, message)
    end
    if has(message.flags, 19) then
        security_header(cur, tree)
    end
    properties_header(cur, tree, message)
    if has(base_flags, 5) then
        debug_header(cur, tree)
    end
    if has(message.flags, 25) then
        srmp_headers(cur, tree)
    end
    if has(message.flags, 28) then
        soap_header(cur, tree)
    end
    if has(message.flags, 23) then
        multi_queue_header(cur, tree)
    end
    return message
end

local function describe(kind, message)
    local words = { kind, string.format("%.0f", message.id) }
    if message.class ~= 0 then
        words[#words + 1] = classes[message.class] or string.format("class 0x%04x", message.class)
    end
    if message.number then
        words[#words + 1] = string.format("#%.0f", message.number)
    end
    words[#words + 1] = "to " .. (message.destination or "no queue")
    return table.concat(words, " ")
end

local function user_message(cur, tree, pinfo, key, base_flags, wire_size)
    local message = user_headers(cur, tree, base_flags)
    local left = cur.size - cur.at
    if left ~= 0 and not (has(base_flags, 4) and left == 16) then
        fault("LENGTH_MISMATCH")
    end
    local found = count_message(pinfo, key, message)
    tree:add(f["number"], found.number):set_generated()
    if found.recoverable then
        tree:add(f["recoverable_number"], found.recoverable):set_generated()
    end
    local kind = ordering(message)
    if kind then
        ordering_body(kind, tree, message, pinfo)
    end
    if has(base_flags, 4) then
        cur.size = wire_size
        session_header(cur, tree, pinfo, key .. " header")
    end
    return describe(kind or "UserMessage", message)
end

---------------------------------------------------------------------------------------------------- streams

-- What is wrong with as much of a BaseHeader as is there.
local function base_fault(tvb, at, left)
    if tvb(at, 1):uint() ~= 0x10 then
        return "VERSION"
    end
    local count = math.min(left - 4, 4)
    if count > 0 and tvb(at + 4, count):string() ~= ("LIOR"):sub(1, count) then
        return "SIGNATURE"
    end
    if left >= 12 then
        local size = tvb(at + 8, 4):le_uint()
        if size < 20 or size > LIMIT then
            return "PACKET_SIZE"
        end
    end
end

-- Bytes of the packet on the wire; nil while that cannot be said. PacketSize does not count the SessionHeader
-- of a UserMessage, but some senders count it: only the headers themselves tell.
local function wire_size(tvb, at, left)
    if left < 16 then
        return nil
    end
    local flags, size = tvb(at + 2, 2):le_uint(), tvb(at + 8, 4):le_uint()
    if has(flags, 3) or not has(flags, 4) or left < size then
        return size
    end
    local cur = cursor(tvb(at, size):tvb(), 16, size)
    local sound = pcall(user_headers, cur, nil, flags)
    return (sound and cur.at == size) and size + 16 or size
end

local function dissect_packet(tvb, pinfo, tree, key)
    local item = tree:add(mqqb, tvb())
    local flags, size = tvb(2, 2):le_uint(), tvb(8, 4):le_uint()
    local cur = cursor(tvb, 0, size)
    local sound, result = pcall(function()
        base_header(cur, item)
        if has(flags, 3) then
            return internal_packet(cur, item, pinfo, key, flags)
        end
        return user_message(cur, item, pinfo, key, flags, tvb:len())
    end)
    if sound then
        item:append_text(", " .. result)
        return result
    end
    if type(result) ~= "table" then
        error(result, 0)
    end
    item:add_proto_expert_info(e.malformed, result.rule .. ": " .. faults[result.rule])
    return "Malformed: " .. faults[result.rule]
end

local function dissect_stream(tvb, pinfo, tree)
    local at, length, lines = 0, tvb:len(), {}
    pinfo.cols.protocol = "MQQB"
    while at < length do
        local left = length - at
        local rule = base_fault(tvb, at, left)
        if rule then
            local item = tree:add(mqqb, tvb(at, left))
            item:add_proto_expert_info(e.malformed, rule .. ": " .. faults[rule])
            lines[#lines + 1] = "Malformed: " .. faults[rule]
            break
        end
        local wanted = wire_size(tvb, at, left)
        if not wanted or wanted > left then
            pinfo.desegment_offset = at
            pinfo.desegment_len = wanted and wanted - left or DESEGMENT_ONE_MORE_SEGMENT
            break
        end
        local key = string.format("%d %d %d", tvb:offset(), length, at)
        lines[#lines + 1] = dissect_packet(tvb(at, wanted):tvb(), pinfo, tree, key)
        at = at + wanted
    end
    if #lines > 0 then
        pinfo.cols.info = table.concat(lines, "; ")
    end
    return length
end

mqqb.dissector = dissect_stream

local function find_session(tvb, pinfo, tree)
    if tvb:len() < 16 or tvb(0, 1):uint() ~= 0x10 or tvb(4, 4):string() ~= "LIOR" then
        return false
    end
    pinfo.conversation = mqqb
    dissect_stream(tvb, pinfo, tree)
    return true
end

---------------------------------------------------------------------------------------------------- ping

local p = {
    flags = ProtoField.uint16("mqqb_ping.flags", "Flags", base.HEX),
    client = ProtoField.bool("mqqb_ping.flags.client", "Not a server (RC)", 16, nil, 0x0001),
    refused = ProtoField.bool("mqqb_ping.flags.refused", "A session would be refused (RF)", 16, nil, 0x0002),
    signature = ProtoField.uint16("mqqb_ping.signature", "Signature", base.HEX),
    cookie = ProtoField.uint32("mqqb_ping.cookie", "Cookie", base.DEC),
    manager = ProtoField.guid("mqqb_ping.manager", "Queue manager"),
}
ping.fields = p

local function is_ping(tvb)
    return tvb:len() == 24 and tvb(2, 2):le_uint() == PING_SIGNATURE
end

function ping.dissector(tvb, pinfo, tree)
    if not is_ping(tvb) then
        return 0
    end
    pinfo.cols.protocol = "MQQB Ping"
    local item = tree:add(ping, tvb())
    local flags = item:add_le(p.flags, tvb(0, 2))
    flags:add_le(p.client, tvb(0, 2))
    flags:add_le(p.refused, tvb(0, 2))
    item:add_le(p.signature, tvb(2, 2))
    item:add_le(p.cookie, tvb(4, 4))
    item:add_le(p.manager, tvb(8, 16))
    pinfo.cols.info = string.format("Ping, cookie %.0f", tvb(4, 4):le_uint())
    return 24
end

local function find_ping(tvb, pinfo, tree)
    if not is_ping(tvb) then
        return false
    end
    return ping.dissector(tvb, pinfo, tree) > 0
end

DissectorTable.get("tcp.port"):add(1801, mqqb)
DissectorTable.get("udp.port"):add(3527, ping)
mqqb:register_heuristic("tcp", find_session)
ping:register_heuristic("udp", find_ping)
