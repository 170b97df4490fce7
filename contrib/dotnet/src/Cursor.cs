using System;
using System.Messaging.Wire;

namespace System.Messaging
{
    /// <summary>
    /// A place in a queue. It belongs to one connection; after that was lost, the next operation opens a cursor at the
    /// same place on the new connection. A place in a queue of another computer cannot be found again: operations
    /// then raise MessageQueueException with StaleHandle, and the program makes a new cursor.
    /// </summary>
    public sealed class Cursor : IDisposable
    {
        private readonly object gate = new object();
        private readonly MessageQueue queue;
        private Link link;
        private long number;
        private bool closed;

        // Where the last answer left the cursor: the look-up identifier of the last message that it peeked or received,
        // and whether this is its current message. 0: before the first message.
        private long place;
        private bool current;

        internal Cursor(MessageQueue queue)
        {
            this.queue = queue;
            long handle;
            Acquire(Channel.Patience, out handle);
        }

        ~Cursor()
        {
            Close();
        }

        internal IntPtr Handle => new IntPtr(number);

        /// <summary>Close the cursor; a waiting read ends with OperationCanceled.</summary>
        public void Close()
        {
            lock (gate)
            {
                if (!closed && link != null && !link.Lost)
                    link.Post(Packer.Begin(FrameKind.CursorClose).Array(1).Int(number));
                closed = true;
            }
            GC.SuppressFinalize(this);
        }

        public void Dispose()
        {
            Close();
        }

        /// <summary>
        /// Return the connection and the number of the cursor on it. Waits for at most `patience` for a connection.
        /// Raises LinkLostException, MessageQueueException.
        /// </summary>
        internal Link Acquire(TimeSpan patience, out long handle)
        {
            lock (gate)
            {
                while (true)
                {
                    if (closed)
                        throw new MessageQueueException(MessageQueueErrorCode.InvalidHandle, "the cursor is closed");
                    if (link != null && !link.Lost)
                    {
                        handle = number;
                        return link;
                    }
                    Link live = Channel.Live(patience);
                    try
                    {
                        link = Open(patience);
                    }
                    catch (LinkLostException) when (live.Lost)
                    {
                        continue; // Live raises the error if the server does not return
                    }
                }
            }
        }

        /// <summary>Whether the cursor is at a message, so that it can go to the next one.</summary>
        internal bool HasCurrent
        {
            get
            {
                lock (gate)
                    return current;
            }
        }

        /// <summary>Register the message that a read with this cursor brought.</summary>
        internal void MoveTo(long lookupId, bool received)
        {
            lock (gate)
            {
                place = lookupId;
                current = !received;
            }
        }

        /// <summary>Register that a read found no message in its time: the cursor waits at its place.</summary>
        internal void Wait()
        {
            lock (gate)
                current = false;
        }

        private Link Open(TimeSpan patience)
        {
            long handle;
            Link live = queue.HandleForReading(false).Acquire(patience, out handle);
            Packer request = Packer.Begin(FrameKind.CursorOpen).Array(place == 0 ? 1 : 3).Int(handle);
            if (place != 0)
                request.UInt(unchecked((ulong)place)).Bool(current);
            try
            {
                Unpacker reply = live.Request(request);
                reply.Array();
                number = reply.Int();
                return live;
            }
            catch (MessageQueueException error)
                when (place != 0 && error.MessageQueueErrorCode == MessageQueueErrorCode.UnsupportedOperation)
            {
                throw new MessageQueueException(MessageQueueErrorCode.StaleHandle,
                    "the connection of the cursor was lost; create a new cursor");
            }
        }
    }
}
