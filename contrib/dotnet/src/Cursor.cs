using System;
using System.Messaging.Wire;

namespace System.Messaging
{
    /// <summary>
    /// A place in a queue. It belongs to one connection: after that was lost, operations with the cursor raise
    /// MessageQueueException with StaleHandle, and the program makes a new cursor.
    /// </summary>
    public sealed class Cursor : IDisposable
    {
        private readonly Link link;
        private readonly long number;
        private bool closed;

        internal Cursor(MessageQueue queue)
        {
            long handle;
            link = queue.HandleForReading(false).Acquire(Channel.Patience, out handle);
            Unpacker reply = link.Request(Packer.Begin(FrameKind.CursorOpen).Array(1).Int(handle));
            reply.Array();
            number = reply.Int();
        }

        ~Cursor()
        {
            Close();
        }

        internal IntPtr Handle => new IntPtr(number);

        /// <summary>Close the cursor; a waiting read ends with OperationCanceled.</summary>
        public void Close()
        {
            if (!closed && link != null && !link.Lost)
                link.Post(Packer.Begin(FrameKind.CursorClose).Array(1).Int(number));
            closed = true;
            GC.SuppressFinalize(this);
        }

        public void Dispose()
        {
            Close();
        }

        /// <summary>Return the connection and the number of the cursor on it. Raises MessageQueueException.</summary>
        internal Link Acquire(out long handle)
        {
            if (closed)
                throw new MessageQueueException(MessageQueueErrorCode.InvalidHandle, "the cursor is closed");
            if (link.Lost)
            {
                throw new MessageQueueException(MessageQueueErrorCode.StaleHandle,
                    "the connection of the cursor was lost; create a new cursor");
            }
            handle = number;
            return link;
        }
    }
}
