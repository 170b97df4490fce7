using System;

namespace System.Messaging.Wire
{
    /// <summary>A queue that one object has open for reading; it is opened again on each new connection.</summary>
    internal sealed class ReadHandle
    {
        private readonly string name;
        private readonly int access;
        private readonly bool denyReceive;
        private Link link;
        private long number;
        private bool closed;
        private bool? transactional;

        internal ReadHandle(string name, int access, bool denyReceive)
        {
            this.name = name;
            this.access = access;
            this.denyReceive = denyReceive;
        }

        ~ReadHandle()
        {
            CloseAtServer();
        }

        /// <summary>
        /// Return the connection and the number of the handle on it. Waits for at most `patience` for a connection.
        /// Raises LinkLostException, MessageQueueException.
        /// </summary>
        internal Link Acquire(TimeSpan patience, out long handle)
        {
            lock (this)
            {
                if (closed)
                    throw new MessageQueueException(MessageQueueErrorCode.OperationCanceled, "the queue was closed");
                Link live = Channel.Live(patience);
                if (link != live)
                {
                    Packer request = Packer.Begin(FrameKind.Open)
                        .Array(3).Text(name).Int(access).Int(denyReceive ? 1 : 0);
                    Unpacker reply = live.Request(request);
                    reply.Array();
                    number = reply.Int();
                    link = live;
                }
                handle = number;
                return live;
            }
        }

        /// <summary>Whether the queue is transactional. Asks the server once.</summary>
        internal bool Transactional(Func<bool> ask)
        {
            if (transactional == null)
                transactional = ask();
            return transactional.Value;
        }

        /// <summary>Forget a handle that the server no longer accepts; the next use opens the queue again.</summary>
        internal void Forget(Link stale)
        {
            lock (this)
            {
                if (link == stale)
                    CloseAtServer();
            }
        }

        /// <summary>Close the handle. Reads that wait end with OperationCanceled.</summary>
        internal void Close()
        {
            lock (this)
            {
                closed = true;
                CloseAtServer();
            }
            GC.SuppressFinalize(this);
        }

        private void CloseAtServer()
        {
            if (link != null && !link.Lost)
                link.Post(Packer.Begin(FrameKind.Close).Array(1).Int(number));
            link = null;
        }
    }
}
