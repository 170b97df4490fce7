using System.Messaging.Wire;

namespace System.Messaging
{
    /// <summary>
    /// Messages that a transaction sends to one queue in one SEND frame. The transaction writes it when it is full or
    /// something else follows; reading the identifier of one of its messages writes it, too.
    /// </summary>
    internal sealed class SendBatch
    {
        private const int MostMessages = 256;
        private const int MostBytes = 262144; // many frames of a few messages cost the server more

        private readonly Link link;
        private readonly string queueName;
        private readonly int transaction;
        private readonly Packer messages;
        private int count;
        private Call call; // once it is written

        /// <summary>An empty batch; it fills `messages`, which nothing else uses until the frame is written.</summary>
        internal SendBatch(Link link, string queueName, int transaction, Packer messages)
        {
            this.messages = messages;
            this.link = link;
            this.queueName = queueName;
            this.transaction = transaction;
        }

        /// <summary>
        /// Add a message and its packed form. Returns false if it has to go into a new batch; an empty one takes
        /// every message for its queue.
        /// </summary>
        internal bool TryAdd(string name, Packer packed, Message message)
        {
            lock (this)
            {
                if (call != null || name != queueName || count == MostMessages
                    || count > 0 && messages.Length + packed.Length > MostBytes)
                {
                    return false;
                }
                messages.Parts(packed);
                message.Identify(new PendingId(this, count, link.Guid));
                count++;
                return true;
            }
        }

        /// <summary>
        /// Write the frame if it is not written yet; returns its request. Raises LinkLostException,
        /// MessageQueueException.
        /// </summary>
        internal Call Write()
        {
            lock (this)
            {
                if (call == null)
                {
                    long handle = link.SendHandles.Get(queueName).Number;
                    call = link.Start(Packer.Begin(FrameKind.Send).Array(4).Int(handle).Int(MessageQueue.WithIds)
                        .Array(count).Parts(messages).Int(transaction), null);
                }
                return call;
            }
        }
    }

    /// <summary>The identifier of a message whose sending may not be confirmed yet.</summary>
    internal sealed class PendingId
    {
        private readonly Call call; // null: that of the batch
        private readonly SendBatch batch;
        private readonly int index;
        private readonly byte[] manager;

        internal PendingId(Call call, byte[] manager)
        {
            this.call = call;
            this.manager = manager;
        }

        internal PendingId(SendBatch batch, int index, byte[] manager)
        {
            this.batch = batch;
            this.index = index;
            this.manager = manager;
        }

        /// <summary>Wait for the confirmation. Returns the 20 bytes, null if the message was refused.</summary>
        internal byte[] Wait()
        {
            try
            {
                return MessageId.Of(manager, SentReply.Read((call ?? batch.Write()).Wait(), index).Ordinal);
            }
            catch (MessageQueueException)
            {
                return null; // the commit of the transaction raises the error
            }
        }
    }
}
