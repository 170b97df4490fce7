using System;
using System.Collections.Generic;
using System.Messaging.Wire;

namespace System.Messaging
{
    /// <summary>
    /// An internal transaction. Sends to queues that are known to accept them do not wait for the server, and those
    /// that follow each other quickly share a frame; if the server refuses one, the next operation or Commit raises
    /// the error, and the transaction is aborted.
    /// </summary>
    public class MessageQueueTransaction : IDisposable
    {
        private const int MostUnconfirmed = 16; // frames; bounds what the server has to keep of an endless transaction
        private const int Pause = 20; // milliseconds; a send after a longer pause goes to the server at once

        private readonly object gate = new object();
        private readonly Queue<Call> unconfirmed = new Queue<Call>();
        private Link link;
        private int number;
        private SendBatch batch; // what was sent, but not written yet; null: nothing
        private Packer packed; // the message that is being sent
        private Packer packedBatch; // the messages of the batch
        private int lastSend; // Environment.TickCount
        private MessageQueueTransactionStatus status = MessageQueueTransactionStatus.Initialized;

        public MessageQueueTransactionStatus Status
        {
            get
            {
                lock (gate)
                {
                    return status == MessageQueueTransactionStatus.Pending && link.Lost
                        ? MessageQueueTransactionStatus.Aborted : status;
                }
            }
        }

        /// <summary>Begin the transaction. Raises InvalidOperationException if it is pending.</summary>
        public void Begin()
        {
            lock (gate)
            {
                if (status == MessageQueueTransactionStatus.Pending)
                    throw new InvalidOperationException("the transaction has begun already");
                while (true)
                {
                    link = Channel.Live();
                    number = link.NextTransaction();
                    unconfirmed.Clear();
                    batch = null;
                    try
                    {
                        unconfirmed.Enqueue(link.Start(Packer.Begin(FrameKind.Begin).Array(1).Int(number), null));
                        break;
                    }
                    catch (LinkLostException)
                    {
                        continue; // Live raises the error if the server does not return
                    }
                }
                status = MessageQueueTransactionStatus.Pending;
            }
        }

        /// <summary>
        /// Commit; returns when the commit is durable. Raises InvalidOperationException if the transaction is not
        /// pending, MessageQueueException if nothing was carried out.
        /// </summary>
        public void Commit()
        {
            lock (gate)
            {
                NeedPending();
                Flush();
                try
                {
                    Confirm(0);
                    status = MessageQueueTransactionStatus.Aborted; // if the commit fails
                    link.Request(Packer.Begin(FrameKind.Commit).Array(1).Int(number));
                    status = MessageQueueTransactionStatus.Committed;
                }
                catch (MessageQueueException)
                {
                    AbortNow();
                    throw;
                }
            }
        }

        /// <summary>Abort. Raises InvalidOperationException if the transaction is not pending.</summary>
        public void Abort()
        {
            lock (gate)
            {
                NeedPending();
                AbortNow();
            }
        }

        /// <summary>Abort the transaction if it is pending.</summary>
        public void Dispose()
        {
            Dispose(true);
            GC.SuppressFinalize(this);
        }

        protected virtual void Dispose(bool disposing)
        {
            lock (gate)
            {
                if (status != MessageQueueTransactionStatus.Pending)
                    return;
                if (disposing)
                    AbortNow();
                else
                    link.Post(Packer.Begin(FrameKind.Abort).Array(1).Int(number)); // the finalizer must not wait
            }
        }

        ~MessageQueueTransaction()
        {
            Dispose(false);
        }

        /// <summary>Whether operations take part in this transaction.</summary>
        internal bool Pending => status == MessageQueueTransactionStatus.Pending;

        /// <summary>The connection of the transaction. Raises LinkLostException.</summary>
        internal Link Link
        {
            get
            {
                if (link.Lost)
                    throw new LinkLostException("the connection to the queue manager was lost: the transaction is aborted");
                return link;
            }
        }

        internal int Number => number;

        /// <summary>
        /// Send a message without waiting for the reply to a queue that accepted one in a transaction before. The
        /// server aborts a transaction that is idle for minutes: only what follows quickly waits for its batch.
        /// Raises MessageQueueException.
        /// </summary>
        internal void Send(string queueName, Message message)
        {
            lock (gate)
            {
                message.Pack(Packer.ForParts(ref packed));
                int now = Environment.TickCount;
                bool quick = unchecked(now - lastSend) <= Pause;
                lastSend = now;
                if (batch == null || !batch.TryAdd(queueName, packed, message))
                {
                    Flush();
                    batch = new SendBatch(Link, queueName, number, Packer.ForParts(ref packedBatch));
                    batch.TryAdd(queueName, packed, message);
                }
                if (!quick)
                    Flush();
            }
        }

        /// <summary>
        /// Write what was sent so far, so that what follows is behind it. Raises MessageQueueException; the
        /// transaction is aborted then.
        /// </summary>
        internal void Flush()
        {
            lock (gate)
            {
                if (batch == null)
                    return;
                try
                {
                    unconfirmed.Enqueue(batch.Write());
                    batch = null;
                    if (unconfirmed.Count > MostUnconfirmed)
                        Confirm(MostUnconfirmed / 2);
                }
                catch (MessageQueueException)
                {
                    AbortNow();
                    throw;
                }
            }
        }

        /// <summary>The first phase of a commit in two phases. Raises MessageQueueException.</summary>
        internal void Prepare()
        {
            lock (gate)
            {
                NeedPending();
                Flush();
                Confirm(0);
                Link.Request(Packer.Begin(FrameKind.Prepare).Array(1).Int(number));
            }
        }

        /// <summary>Wait for replies until at most `left` are missing. Raises the error of the first refusal.</summary>
        private void Confirm(int left)
        {
            while (unconfirmed.Count > left)
            {
                try
                {
                    Unpacker reply = unconfirmed.Dequeue().Wait(out FrameKind kind);
                    if (kind == FrameKind.Sent)
                        SentReply.Read(reply, 0);
                }
                catch (MessageQueueException error) when (MessageQueue.IsStale(error))
                {
                    link.SendHandles.ForgetTransactional(); // a repeated transaction opens the queue again
                    throw;
                }
            }
        }

        private void AbortNow()
        {
            status = MessageQueueTransactionStatus.Aborted;
            unconfirmed.Clear();
            SendBatch last = batch;
            batch = null;
            packedBatch = null; // it stays with a batch that cannot be written
            try
            {
                try
                {
                    last?.Write(); // its messages have identifiers, as those before
                }
                finally
                {
                    link.Request(Packer.Begin(FrameKind.Abort).Array(1).Int(number));
                }
            }
            catch (MessageQueueException)
            {
                return; // the server has ended the transaction already
            }
        }

        private void NeedPending()
        {
            if (status != MessageQueueTransactionStatus.Pending)
                throw new InvalidOperationException("the transaction has not begun");
        }
    }
}
