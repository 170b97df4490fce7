using System;
using System.Collections;

namespace System.Messaging
{
    /// <summary>Passes over the messages of a queue with a cursor; new messages appear at their places.</summary>
    public class MessageEnumerator : MarshalByRefObject, IEnumerator, IDisposable
    {
        private readonly MessageQueue owner;
        private Cursor cursor;
        private Message fetched; // what MoveNext read, until Current returns it
        private bool atMessage;

        internal MessageEnumerator(MessageQueue owner)
        {
            this.owner = owner;
        }

        /// <summary>
        /// The current message. Raises InvalidOperationException if there is none, MessageQueueException if another
        /// reader has received it.
        /// </summary>
        public Message Current
        {
            get
            {
                if (!atMessage)
                    throw new InvalidOperationException("the enumerator is not at a message: call MoveNext first");
                Message message = fetched ?? Read(TimeSpan.Zero, PeekAction.Current);
                fetched = null;
                return message;
            }
        }

        object IEnumerator.Current => Current;

        public IntPtr CursorHandle => NeedCursor().Handle;

        public bool MoveNext()
        {
            return MoveNext(TimeSpan.Zero);
        }

        /// <summary>Move to the next message; wait for one. Returns false if there is none before the time-out.</summary>
        public bool MoveNext(TimeSpan timeout)
        {
            try
            {
                fetched = Read(timeout, NeedCursor().HasCurrent ? PeekAction.Next : PeekAction.Current);
                atMessage = true;
                return true;
            }
            catch (MessageQueueException error) when (error.MessageQueueErrorCode == MessageQueueErrorCode.IOTimeout)
            {
                fetched = null;
                atMessage = false;
                return false;
            }
        }

        public Message RemoveCurrent()
        {
            return RemoveCurrent(TimeSpan.Zero);
        }

        public Message RemoveCurrent(TimeSpan timeout)
        {
            return Removed(owner.Receive(timeout, NeedCursor()));
        }

        public Message RemoveCurrent(MessageQueueTransaction transaction)
        {
            return RemoveCurrent(TimeSpan.Zero, transaction);
        }

        public Message RemoveCurrent(MessageQueueTransactionType transactionType)
        {
            return RemoveCurrent(TimeSpan.Zero, transactionType);
        }

        public Message RemoveCurrent(TimeSpan timeout, MessageQueueTransaction transaction)
        {
            return Removed(owner.Receive(timeout, NeedCursor(), transaction));
        }

        public Message RemoveCurrent(TimeSpan timeout, MessageQueueTransactionType transactionType)
        {
            return Removed(owner.Receive(timeout, NeedCursor(), transactionType));
        }

        /// <summary>Return to the begin of the queue.</summary>
        public void Reset()
        {
            Close();
        }

        public void Close()
        {
            if (cursor != null)
                cursor.Close();
            cursor = null;
            fetched = null;
            atMessage = false;
        }

        public void Dispose()
        {
            Dispose(true);
            GC.SuppressFinalize(this);
        }

        protected virtual void Dispose(bool disposing)
        {
            if (disposing)
                Close();
        }

        private Message Read(TimeSpan timeout, PeekAction action)
        {
            return owner.Peek(timeout, NeedCursor(), action);
        }

        /// <summary>After a removal, the cursor is before the next message.</summary>
        private Message Removed(Message message)
        {
            fetched = null;
            atMessage = false;
            return message;
        }

        private Cursor NeedCursor()
        {
            return cursor ?? (cursor = owner.CreateCursor());
        }
    }
}
