using System;
using System.Collections.Generic;
using System.ComponentModel;
using System.Diagnostics;
using System.Messaging.Wire;

namespace System.Messaging
{
    /// <summary>
    /// Finds a message by its identifier or by its correlation identifier.
    ///
    /// 1. BROWSE lets the server find the message in the queue; LOOKUP reads it.
    /// 2. If it is not there and the caller waits, or if the queue is on another computer, a cursor passes over the
    ///    messages, and over those that arrive until the time-out.
    /// </summary>
    internal sealed class MessageSearch
    {
        private const int BatchSize = 1000;

        private readonly MessageQueue queue;
        private readonly byte[] wanted;
        private readonly bool byCorrelation;
        private TimeSpan timeout = TimeSpan.Zero;
        private bool waits;

        /// <summary>Raises ArgumentNullException; InvalidOperationException if `id` has not the form of one.</summary>
        internal MessageSearch(MessageQueue queue, string id, bool byCorrelation)
        {
            if (id == null)
                throw new ArgumentNullException(byCorrelation ? "correlationId" : "id");
            this.queue = queue;
            this.byCorrelation = byCorrelation;
            wanted = MessageId.Parse(id);
        }

        internal Message Receive(MessageQueueTransaction transaction, MessageQueueTransactionType type)
        {
            return Find(false, transaction, type);
        }

        internal Message Receive(TimeSpan limit, MessageQueueTransaction transaction, MessageQueueTransactionType type)
        {
            Wait(limit);
            return Find(false, transaction, type);
        }

        internal Message Peek()
        {
            return Find(true, null, MessageQueueTransactionType.None);
        }

        internal Message Peek(TimeSpan limit)
        {
            Wait(limit);
            return Find(true, null, MessageQueueTransactionType.None);
        }

        private void Wait(TimeSpan limit)
        {
            if (limit < TimeSpan.Zero || limit > MessageQueue.InfiniteTimeout)
                throw new ArgumentException("a time-out must be 0 to MessageQueue.InfiniteTimeout", "timeout");
            timeout = limit;
            waits = true;
        }

        private Message Find(bool peek, MessageQueueTransaction transaction, MessageQueueTransactionType type)
        {
            if (!Enum.IsDefined(typeof(MessageQueueTransactionType), type))
                throw new InvalidEnumArgumentException("transactionType", (int)type, typeof(MessageQueueTransactionType));
            bool canBrowse = true;
            try
            {
                for (long? found = Browse(); found != null; found = Browse())
                {
                    try
                    {
                        return queue.LookUp(MessageLookupAction.Current, found.Value, peek, transaction, type);
                    }
                    catch (InvalidOperationException)
                    {
                        continue; // another reader was quicker; there may be another one with this correlation
                    }
                }
            }
            catch (MessageQueueException error)
                when (error.MessageQueueErrorCode == MessageQueueErrorCode.UnsupportedOperation)
            {
                canBrowse = false;
            }
            if (canBrowse && !waits)
                throw NotFound(null);
            return Pass(peek, transaction, type);
        }

        /// <summary>The look-up identifier of the first message that matches; null if there is none.</summary>
        private long? Browse()
        {
            ulong? first = null;
            long after = 0;
            while (true)
            {
                Dictionary<string, object> batch = Channel.Repeat(live => BrowseFrom(after));
                foreach (object each in (List<object>)batch["messages"])
                {
                    ulong id = Convert.ToUInt64(((List<object>)each)[0]);
                    if (first == null || id < first)
                        first = id;
                }
                if (Maps.Flag(batch, "finished"))
                    return first == null ? (long?)null : unchecked((long)first.Value);
                after = Maps.Number(batch, "next");
            }
        }

        private Dictionary<string, object> BrowseFrom(long after)
        {
            long handle;
            Link link = queue.HandleForReading(true).Acquire(Channel.Patience, out handle);
            Packer request = Packer.Begin(FrameKind.Browse).Array(5).Int(handle)
                .Map(1).Text(byCorrelation ? "correlation_id" : "id").Binary(wanted)
                .Int(after).Int(0).Int(BatchSize);
            return (Dictionary<string, object>)link.Request(request).Any();
        }

        private Message Pass(bool peek, MessageQueueTransaction transaction, MessageQueueTransactionType type)
        {
            Stopwatch watch = Stopwatch.StartNew();
            using (Cursor cursor = queue.CreateCursor())
            {
                PeekAction action = PeekAction.Current;
                while (true)
                {
                    Message message;
                    try
                    {
                        message = new ReadRequest(queue, Left(watch), true)
                            .At(cursor, MessageQueue.ActionOf(action)).Run();
                    }
                    catch (MessageQueueException error)
                        when (!waits && error.MessageQueueErrorCode == MessageQueueErrorCode.IOTimeout)
                    {
                        throw NotFound(error);
                    }
                    action = PeekAction.Next;
                    if (!message.Matches(wanted, byCorrelation))
                        continue;
                    if (peek)
                        return message;
                    try
                    {
                        return new ReadRequest(queue, TimeSpan.Zero, false)
                            .At(cursor, MessageQueue.ReceiveCurrent).Within(transaction, type).Run();
                    }
                    catch (MessageQueueException error)
                        when (error.MessageQueueErrorCode == MessageQueueErrorCode.MessageAlreadyReceived)
                    {
                        continue;
                    }
                }
            }
        }

        private TimeSpan Left(Stopwatch watch)
        {
            if (timeout == MessageQueue.InfiniteTimeout)
                return timeout;
            TimeSpan left = timeout - watch.Elapsed;
            return left < TimeSpan.Zero ? TimeSpan.Zero : left;
        }

        private InvalidOperationException NotFound(Exception cause)
        {
            return new InvalidOperationException("no message with the "
                + (byCorrelation ? "correlation identifier " : "identifier ") + MessageId.Text(wanted)
                + " is in the queue", cause);
        }
    }
}
