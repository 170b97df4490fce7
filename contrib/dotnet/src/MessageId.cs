using System;
using System.Collections.Generic;
using System.Globalization;
using System.Messaging.Wire;

namespace System.Messaging
{
    /// <summary>Identifiers of 20 bytes: a GUID and a number, written `guid\number`.</summary>
    internal static class MessageId
    {
        internal const int Size = 20;

        internal static string Text(byte[] id)
        {
            var guid = new byte[16];
            Buffer.BlockCopy(id, 0, guid, 0, 16);
            uint number = (uint)(id[16] | id[17] << 8 | id[18] << 16 | id[19] << 24);
            return new Guid(guid).ToString() + "\\" + number.ToString(CultureInfo.InvariantCulture);
        }

        internal static byte[] Of(byte[] manager, uint ordinal)
        {
            var id = new byte[Size];
            Buffer.BlockCopy(manager, 0, id, 0, 16);
            id[16] = (byte)ordinal;
            id[17] = (byte)(ordinal >> 8);
            id[18] = (byte)(ordinal >> 16);
            id[19] = (byte)(ordinal >> 24);
            return id;
        }

        /// <summary>Parse `guid\number`. Raises InvalidOperationException.</summary>
        internal static byte[] Parse(string text)
        {
            int slash = text.IndexOf('\\');
            Guid guid;
            uint number;
            if (slash < 0 || !Guid.TryParse(text.Substring(0, slash), out guid)
                || !uint.TryParse(text.Substring(slash + 1), NumberStyles.None, CultureInfo.InvariantCulture, out number))
            {
                throw new InvalidOperationException("'" + text
                    + "' is not a message identifier: it must have the form guid\\number");
            }
            return Of(guid.ToByteArray(), number);
        }

        internal static bool Same(byte[] one, byte[] other)
        {
            for (int index = 0; index < Size; index++)
            {
                if (one[index] != other[index])
                    return false;
            }
            return true;
        }
    }

    /// <summary>The reply to a SEND.</summary>
    internal sealed class SentReply
    {
        internal uint Ordinal { get; private set; }

        /// <summary>
        /// Read the reply for the message with this index in the frame. Raises MessageQueueException if a message was
        /// refused.
        /// </summary>
        internal static SentReply Read(Unpacker reader, int index)
        {
            int count = reader.Array();
            reader.UInt();
            var refusals = (List<object>)reader.Any();
            if (refusals.Count > 0)
            {
                var refusal = (List<object>)refusals[0];
                throw new MessageQueueException(
                    unchecked((int)Convert.ToInt64(refusal[1], CultureInfo.InvariantCulture)),
                    (string)refusal[2], (string)refusal[3]);
            }
            var reply = new SentReply();
            if (count > 2 && reader.Array() > index)
            {
                for (int skipped = 0; skipped < index; skipped++)
                    reader.UInt();
                reply.Ordinal = (uint)reader.UInt();
            }
            return reply;
        }
    }
}
