using System;
using System.Collections;
using System.Collections.Generic;

namespace System.Messaging
{
    /// <summary>Passes over the public queues of the directory.</summary>
    public class MessageQueueEnumerator : MarshalByRefObject, IEnumerator, IDisposable
    {
        private readonly MessageQueueCriteria criteria;
        private IEnumerator<MessageQueue> queues;
        private bool atQueue;

        internal MessageQueueEnumerator(MessageQueueCriteria criteria)
        {
            this.criteria = criteria;
        }

        public MessageQueue Current
        {
            get
            {
                if (!atQueue)
                    throw new InvalidOperationException("the enumerator is not at a queue: call MoveNext first");
                return queues.Current;
            }
        }

        object IEnumerator.Current => Current;

        public IntPtr LocatorHandle => IntPtr.Zero;

        public bool MoveNext()
        {
            if (queues == null)
                queues = PublicQueues.All(criteria).GetEnumerator();
            atQueue = queues.MoveNext();
            return atQueue;
        }

        public void Reset()
        {
            Close();
        }

        public void Close()
        {
            if (queues != null)
                queues.Dispose();
            queues = null;
            atQueue = false;
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
    }
}
