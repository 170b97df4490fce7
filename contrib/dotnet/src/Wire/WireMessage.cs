using System.Collections.Generic;

namespace System.Messaging.Wire
{
    /// <summary>The fields of a received message: section 5.1 of the protocol.</summary>
    internal sealed class WireMessage
    {
        internal long LookupId;
        internal byte[] Body;
        internal string Label;
        internal bool Recoverable;
        internal int Priority;
        internal int BodyType;
        internal int AppSpecific;
        internal byte[] CorrelationId;
        internal byte[] Extension;
        internal string ResponseQueue;
        internal string AdminQueue;
        internal int Acknowledge;
        internal int Journal;
        internal int Class;
        internal byte[] Id;
        internal long SentTime;
        internal long ArrivedTime;
        internal string DestinationQueue;
        internal int Flags;
        internal byte[] SenderId;
        internal uint TimeToReachQueue;
        internal uint TimeToBeReceived;
        internal uint Transaction; // 1: first, 2: last, 4 times the number of the transaction

        internal bool Transactional => (Flags & 1) != 0;

        internal bool Authenticated => (Flags & 2) != 0;

        internal static WireMessage Read(Unpacker reader)
        {
            int count = reader.Array();
            if (count < 26)
                throw new WireFormatException("a message has too few fields");
            var message = new WireMessage
            {
                LookupId = reader.Int(),
                Body = reader.Binary(),
                Label = reader.Text(),
                Recoverable = reader.Int() == 1,
                Priority = (int)reader.Int(),
                BodyType = unchecked((int)reader.UInt()),
                AppSpecific = unchecked((int)reader.UInt()),
                CorrelationId = reader.Binary(),
                Extension = reader.Binary(),
                ResponseQueue = reader.Text(),
                AdminQueue = reader.Text(),
                Acknowledge = (int)reader.Int(),
                Journal = (int)reader.Int(),
                Class = (int)reader.Int(),
                Id = reader.Binary(),
                SentTime = reader.Int(),
                ArrivedTime = reader.Int(),
            };
            reader.UInt(); // arrival sequence
            message.DestinationQueue = reader.Text();
            message.Flags = (int)reader.Int();
            message.SenderId = reader.Binary();
            reader.UInt(); // abort count
            reader.UInt(); // move count
            message.TimeToReachQueue = (uint)reader.UInt();
            message.TimeToBeReceived = (uint)reader.UInt();
            reader.UInt(); // reason
            if (count > 26)
                message.Transaction = (uint)reader.UInt();
            return message;
        }
    }

    /// <summary>Access to the values of a map in a reply.</summary>
    internal static class Maps
    {
        internal static string Text(Dictionary<string, object> map, string key)
        {
            object value;
            return map.TryGetValue(key, out value) ? value as string : null;
        }

        internal static long Number(Dictionary<string, object> map, string key)
        {
            object value;
            if (!map.TryGetValue(key, out value))
                return 0;
            if (value is long)
                return (long)value;
            return value is double ? (long)(double)value : 0;
        }

        internal static bool Flag(Dictionary<string, object> map, string key)
        {
            object value;
            return map.TryGetValue(key, out value) && value is bool && (bool)value;
        }
    }
}
