using System;
using System.Diagnostics;
using System.Messaging.Wire;

namespace System.Messaging
{
    /// <summary>A request for one message: the first one of the queue, or one at a cursor.</summary>
    internal sealed class ReadRequest
    {
        private readonly MessageQueue queue;
        private readonly bool peek;
        private readonly uint timeout; // milliseconds
        private readonly Stopwatch watch = Stopwatch.StartNew();
        private readonly MessageParts parts;
        private MessageQueueTransaction transaction;
        private bool single;
        private Cursor cursor;
        private int action; // of CURSOR_READ
        private Link link;
        private ReadHandle reading;
        private bool openedAnew;

        /// <summary>A read of the first message. Raises ArgumentException.</summary>
        internal ReadRequest(MessageQueue queue, TimeSpan timeout, bool peek)
        {
            if (timeout < TimeSpan.Zero || timeout > MessageQueue.InfiniteTimeout)
                throw new ArgumentException("a time-out must be 0 to MessageQueue.InfiniteTimeout", "timeout");
            this.queue = queue;
            this.peek = peek;
            this.timeout = timeout == MessageQueue.InfiniteTimeout ? uint.MaxValue : (uint)timeout.TotalMilliseconds;
            parts = queue.MessageReadPropertyFilter.Parts;
        }

        internal bool IsPeek => peek;

        internal ReadRequest Within(MessageQueueTransaction given, MessageQueueTransactionType type)
        {
            MessageQueueTransaction within =
                type == MessageQueueTransactionType.Automatic ? AmbientTransaction.Current() : given;
            transaction = within != null && within.Pending ? within : null;
            single = type == MessageQueueTransactionType.Single;
            return this;
        }

        internal ReadRequest At(Cursor place, int cursorAction)
        {
            cursor = place;
            action = cursorAction;
            return this;
        }

        /// <summary>Read and wait. Raises MessageQueueException.</summary>
        internal Message Run()
        {
            while (true)
            {
                Call call = Start(null);
                try
                {
                    return Finish(call);
                }
                catch (MessageQueueException error) when (MayRepeat(error))
                {
                    continue;
                }
            }
        }

        /// <summary>Send the request. Raises MessageQueueException.</summary>
        internal Call Start(Action<Call> completed)
        {
            while (true)
            {
                long handle;
                link = Open(out handle);
                if (transaction != null && transaction.Link != link)
                    throw new LinkLostException("the transaction belongs to a connection that was lost");
                try
                {
                    return link.Start(Frame(handle), completed);
                }
                catch (LinkLostException error) when (MayRepeat(error))
                {
                    continue;
                }
            }
        }

        /// <summary>The message that a completed call brought. Raises MessageQueueException.</summary>
        internal Message Finish(Call call)
        {
            WireMessage found;
            try
            {
                found = WireMessage.Read(call.Wait());
            }
            catch (MessageQueueException error)
                when (cursor != null && error.MessageQueueErrorCode == MessageQueueErrorCode.IOTimeout)
            {
                cursor.Wait();
                throw;
            }
            if (cursor != null)
                cursor.MoveTo(found.LookupId, action == MessageQueue.ReceiveCurrent);
            var message = new Message(found, parts);
            message.SetFormatterOf(queue);
            return message;
        }

        /// <summary>
        /// Whether the request is to be sent again: outside of a transaction, if the connection was lost before the
        /// time-out, or if the queue was deleted since it was opened. A peek with a cursor, whose place is known, is
        /// also repeated after the time-out, so that a program that passes over a queue gets to its end.
        /// </summary>
        internal bool MayRepeat(MessageQueueException error)
        {
            if (transaction != null)
                return false;
            if (error is LinkLostException)
                return link.Lost && (Left() > 0 || cursor != null && peek);
            if (cursor != null || openedAnew || !MessageQueue.IsStale(error))
                return false;
            openedAnew = true;
            reading.Forget(link);
            return true;
        }

        private Link Open(out long handle)
        {
            TimeSpan patience = TimeSpan.FromMilliseconds(Math.Max(Left(), 1000));
            if (cursor != null)
                return cursor.Acquire(peek ? Channel.Patience : patience, out handle);
            reading = queue.HandleForReading(peek);
            if (single && !reading.Transactional(() => queue.IsTransactionalOrRemote()))
            {
                throw new MessageQueueException(MessageQueueErrorCode.TransactionUsage,
                    "the queue is not transactional");
            }
            return reading.Acquire(patience, out handle);
        }

        private Packer Frame(long handle)
        {
            int count = transaction == null ? 3 : 4;
            Packer request;
            if (cursor != null)
                request = Packer.Begin(FrameKind.CursorRead).Array(count).Int(handle).UInt(Left()).Int(action);
            else
                request = Packer.Begin(FrameKind.Receive).Array(count).Int(handle).UInt(Left()).Bool(peek);
            return transaction == null ? request : request.Int(transaction.Number);
        }

        /// <summary>The milliseconds that are left.</summary>
        private uint Left()
        {
            if (timeout == uint.MaxValue || timeout == 0)
                return timeout;
            long passed = watch.ElapsedMilliseconds;
            return passed >= timeout ? 0 : timeout - (uint)passed;
        }
    }
}
