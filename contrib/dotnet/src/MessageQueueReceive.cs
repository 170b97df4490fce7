using System;
using System.Messaging.Wire;

namespace System.Messaging
{
    public partial class MessageQueue
    {
        private const int PeekCurrent = 0; // actions of CURSOR_READ
        private const int PeekNext = 1;
        internal const int ReceiveCurrent = 2;

        public Message Receive()
        {
            return Receive(InfiniteTimeout);
        }

        public Message Receive(TimeSpan timeout)
        {
            return new ReadRequest(this, timeout, false).Run();
        }

        public Message Receive(MessageQueueTransaction transaction)
        {
            return Receive(InfiniteTimeout, transaction);
        }

        public Message Receive(MessageQueueTransactionType transactionType)
        {
            return Receive(InfiniteTimeout, transactionType);
        }

        public Message Receive(TimeSpan timeout, MessageQueueTransaction transaction)
        {
            return new ReadRequest(this, timeout, false)
                .Within(NotNull(transaction), MessageQueueTransactionType.None).Run();
        }

        public Message Receive(TimeSpan timeout, MessageQueueTransactionType transactionType)
        {
            CheckType(transactionType);
            return new ReadRequest(this, timeout, false).Within(null, transactionType).Run();
        }

        public Message Receive(TimeSpan timeout, Cursor cursor)
        {
            return new ReadRequest(this, timeout, false).At(NotNull(cursor), ReceiveCurrent).Run();
        }

        public Message Receive(TimeSpan timeout, Cursor cursor, MessageQueueTransaction transaction)
        {
            return new ReadRequest(this, timeout, false).At(NotNull(cursor), ReceiveCurrent)
                .Within(NotNull(transaction), MessageQueueTransactionType.None).Run();
        }

        public Message Receive(TimeSpan timeout, Cursor cursor, MessageQueueTransactionType transactionType)
        {
            CheckType(transactionType);
            return new ReadRequest(this, timeout, false).At(NotNull(cursor), ReceiveCurrent)
                .Within(null, transactionType).Run();
        }

        public Message Peek()
        {
            return Peek(InfiniteTimeout);
        }

        public Message Peek(TimeSpan timeout)
        {
            return new ReadRequest(this, timeout, true).Run();
        }

        public Message Peek(TimeSpan timeout, Cursor cursor, PeekAction action)
        {
            return new ReadRequest(this, timeout, true).At(NotNull(cursor), ActionOf(action)).Run();
        }

        public Message ReceiveById(string id)
        {
            return new MessageSearch(this, id, false).Receive(null, MessageQueueTransactionType.None);
        }

        public Message ReceiveById(string id, MessageQueueTransaction transaction)
        {
            return new MessageSearch(this, id, false)
                .Receive(NotNull(transaction), MessageQueueTransactionType.None);
        }

        public Message ReceiveById(string id, MessageQueueTransactionType transactionType)
        {
            return new MessageSearch(this, id, false).Receive(null, transactionType);
        }

        public Message ReceiveById(string id, TimeSpan timeout)
        {
            return new MessageSearch(this, id, false).Receive(timeout, null, MessageQueueTransactionType.None);
        }

        public Message ReceiveById(string id, TimeSpan timeout, MessageQueueTransaction transaction)
        {
            return new MessageSearch(this, id, false)
                .Receive(timeout, NotNull(transaction), MessageQueueTransactionType.None);
        }

        public Message ReceiveById(string id, TimeSpan timeout, MessageQueueTransactionType transactionType)
        {
            return new MessageSearch(this, id, false).Receive(timeout, null, transactionType);
        }

        public Message PeekById(string id)
        {
            return new MessageSearch(this, id, false).Peek();
        }

        public Message PeekById(string id, TimeSpan timeout)
        {
            return new MessageSearch(this, id, false).Peek(timeout);
        }

        public Message ReceiveByCorrelationId(string correlationId)
        {
            return new MessageSearch(this, correlationId, true).Receive(null, MessageQueueTransactionType.None);
        }

        public Message ReceiveByCorrelationId(string correlationId, MessageQueueTransaction transaction)
        {
            return new MessageSearch(this, correlationId, true)
                .Receive(NotNull(transaction), MessageQueueTransactionType.None);
        }

        public Message ReceiveByCorrelationId(string correlationId, MessageQueueTransactionType transactionType)
        {
            return new MessageSearch(this, correlationId, true).Receive(null, transactionType);
        }

        public Message ReceiveByCorrelationId(string correlationId, TimeSpan timeout)
        {
            return new MessageSearch(this, correlationId, true)
                .Receive(timeout, null, MessageQueueTransactionType.None);
        }

        public Message ReceiveByCorrelationId(string correlationId, TimeSpan timeout,
            MessageQueueTransaction transaction)
        {
            return new MessageSearch(this, correlationId, true)
                .Receive(timeout, NotNull(transaction), MessageQueueTransactionType.None);
        }

        public Message ReceiveByCorrelationId(string correlationId, TimeSpan timeout,
            MessageQueueTransactionType transactionType)
        {
            return new MessageSearch(this, correlationId, true).Receive(timeout, null, transactionType);
        }

        public Message PeekByCorrelationId(string correlationId)
        {
            return new MessageSearch(this, correlationId, true).Peek();
        }

        public Message PeekByCorrelationId(string correlationId, TimeSpan timeout)
        {
            return new MessageSearch(this, correlationId, true).Peek(timeout);
        }

        public Message ReceiveByLookupId(long lookupId)
        {
            return ReceiveByLookupId(MessageLookupAction.Current, lookupId, MessageQueueTransactionType.None);
        }

        public Message ReceiveByLookupId(MessageLookupAction action, long lookupId,
            MessageQueueTransaction transaction)
        {
            return LookUp(action, lookupId, false, NotNull(transaction), MessageQueueTransactionType.None);
        }

        public Message ReceiveByLookupId(MessageLookupAction action, long lookupId,
            MessageQueueTransactionType transactionType)
        {
            CheckType(transactionType);
            return LookUp(action, lookupId, false, null, transactionType);
        }

        public Message PeekByLookupId(long lookupId)
        {
            return PeekByLookupId(MessageLookupAction.Current, lookupId);
        }

        public Message PeekByLookupId(MessageLookupAction action, long lookupId)
        {
            return LookUp(action, lookupId, true, null, MessageQueueTransactionType.None);
        }

        internal static int ActionOf(PeekAction action)
        {
            if (action != PeekAction.Current && action != PeekAction.Next)
                throw new ArgumentOutOfRangeException("action");
            return action == PeekAction.Current ? PeekCurrent : PeekNext;
        }

        /// <summary>
        /// Read by look-up identifier. Raises InvalidOperationException if there is no such message,
        /// MessageQueueException.
        /// </summary>
        internal Message LookUp(MessageLookupAction action, long lookupId, bool peek,
            MessageQueueTransaction transaction, MessageQueueTransactionType type)
        {
            if (!Enum.IsDefined(typeof(MessageLookupAction), action))
                throw new ArgumentOutOfRangeException("action");
            if (type == MessageQueueTransactionType.Automatic)
                transaction = AmbientTransaction.Current();
            bool within = transaction != null && transaction.Pending;
            Func<Link, Message> read = live =>
            {
                long handle;
                Link link = HandleForReading(peek).Acquire(Channel.Patience, out handle);
                Packer request = Packer.Begin(FrameKind.Lookup).Array(within ? 5 : 4)
                    .Int(handle).UInt(unchecked((ulong)lookupId)).Int((int)action).Bool(peek);
                if (within)
                    request.Int(transaction.Number);
                return new Message(WireMessage.Read(link.Request(request)), filter.Parts);
            };
            try
            {
                Message message = within ? read(transaction.Link) : Channel.Repeat(read);
                message.SetFormatterOf(this);
                return message;
            }
            catch (MessageQueueException error)
                when (error.MessageQueueErrorCode == MessageQueueErrorCode.MessageNotFound)
            {
                throw new InvalidOperationException("no message was found with the look-up identifier", error);
            }
        }

        internal bool IsTransactionalOrRemote()
        {
            try
            {
                return Transactional;
            }
            catch (MessageQueueException)
            {
                return true; // the properties of queues of other computers cannot be read; the read will tell
            }
        }

        private static Cursor NotNull(Cursor cursor)
        {
            if (cursor == null)
                throw new ArgumentNullException("cursor");
            return cursor;
        }
    }
}
