using System;
using System.ComponentModel;
using System.Messaging.Wire;

namespace System.Messaging
{
    public partial class MessageQueue
    {
        internal const int WithIds = 1; // flags of SEND
        private const int SingleTransaction = 4;

        public void Send(object obj)
        {
            Send(obj, null, null, MessageQueueTransactionType.None);
        }

        public void Send(object obj, MessageQueueTransaction transaction)
        {
            Send(obj, null, NotNull(transaction), MessageQueueTransactionType.None);
        }

        public void Send(object obj, MessageQueueTransactionType transactionType)
        {
            Send(obj, null, null, transactionType);
        }

        public void Send(object obj, string label)
        {
            Send(obj, NotNullLabel(label), null, MessageQueueTransactionType.None);
        }

        public void Send(object obj, string label, MessageQueueTransaction transaction)
        {
            Send(obj, NotNullLabel(label), NotNull(transaction), MessageQueueTransactionType.None);
        }

        public void Send(object obj, string label, MessageQueueTransactionType transactionType)
        {
            Send(obj, NotNullLabel(label), null, transactionType);
        }

        private void Send(object obj, string label, MessageQueueTransaction transaction,
            MessageQueueTransactionType type)
        {
            CheckType(type);
            if (((int)accessMode & 2) == 0)
            {
                throw new MessageQueueException(MessageQueueErrorCode.UnsupportedAccessMode,
                    "the queue object was made for reading");
            }
            var message = obj as Message;
            if (message == null)
            {
                message = new Message();
                message.CopyFrom(defaultPropertiesToSend);
                message.Body = obj;
            }
            if (label != null)
                message.Label = label;
            message.Prepare(this);
            if (type == MessageQueueTransactionType.Automatic)
                transaction = AmbientTransaction.Current();
            if (transaction != null && transaction.Pending)
                SendWithin(transaction, message);
            else
                SendAlone(message, WithIds | (type == MessageQueueTransactionType.Single ? SingleTransaction : 0));
        }

        /// <summary>Send and wait until the message is stored.</summary>
        private void SendAlone(Message message, int flags)
        {
            string name = WireName;
            bool again = false;
            while (true)
            {
                Link link = Channel.Live();
                SendHandle handle;
                Call call;
                try
                {
                    handle = link.SendHandles.Get(name);
                    call = link.Start(Frame(handle, flags, message, 0), null);
                }
                catch (LinkLostException) when (link.Lost)
                {
                    continue; // nothing was sent; Live raises the error if the server does not return
                }
                try
                {
                    SentReply.Read(call.Wait(), 0);
                    message.Identify(new PendingId(call, link.Guid));
                    return;
                }
                catch (MessageQueueException error) when (!again && IsStale(error))
                {
                    link.SendHandles.Drop(handle);
                    again = true;
                }
            }
        }

        private void SendWithin(MessageQueueTransaction transaction, Message message)
        {
            Link link = transaction.Link;
            string name = WireName;
            SendHandle handle = link.SendHandles.Get(name);
            if (handle.KnownTransactional)
            {
                transaction.Send(name, message);
                return;
            }
            transaction.Flush();
            Call call = link.Start(Frame(handle, WithIds, message, transaction.Number), null);
            try
            {
                SentReply.Read(call.Wait(), 0);
            }
            catch (MessageQueueException error) when (IsStale(error))
            {
                link.SendHandles.Drop(handle);
                handle = link.SendHandles.Get(name);
                call = link.Start(Frame(handle, WithIds, message, transaction.Number), null);
                SentReply.Read(call.Wait(), 0);
            }
            handle.KnownTransactional = true;
            message.Identify(new PendingId(call, link.Guid));
        }

        private static Packer Frame(SendHandle handle, int flags, Message message, int transaction)
        {
            Packer request = Packer.Begin(FrameKind.Send)
                .Array(transaction == 0 ? 3 : 4).Int(handle.Number).Int(flags).Array(1);
            message.Pack(request);
            return transaction == 0 ? request : request.Int(transaction);
        }

        /// <summary>Whether a handle is of no use: its queue was deleted, and may have been created anew.</summary>
        internal static bool IsStale(MessageQueueException error)
        {
            return error.MessageQueueErrorCode == MessageQueueErrorCode.StaleHandle
                || error.MessageQueueErrorCode == MessageQueueErrorCode.InvalidHandle
                || error.MessageQueueErrorCode == MessageQueueErrorCode.QueueNotAvailable;
        }

        private static MessageQueueTransaction NotNull(MessageQueueTransaction transaction)
        {
            if (transaction == null)
                throw new ArgumentNullException("transaction");
            return transaction;
        }

        private static string NotNullLabel(string label)
        {
            if (label == null)
                throw new ArgumentNullException("label");
            return label;
        }

        private static void CheckType(MessageQueueTransactionType type)
        {
            if (!Enum.IsDefined(typeof(MessageQueueTransactionType), type))
                throw new InvalidEnumArgumentException("transactionType", (int)type, typeof(MessageQueueTransactionType));
        }
    }
}
