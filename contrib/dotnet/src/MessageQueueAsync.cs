using System;
using System.ComponentModel;

namespace System.Messaging
{
    public partial class MessageQueue
    {
        /// <summary>Raised when a read that was begun without a callback has ended.</summary>
        public event ReceiveCompletedEventHandler ReceiveCompleted;

        /// <summary>Raised when a peek that was begun without a callback has ended.</summary>
        public event PeekCompletedEventHandler PeekCompleted;

        public IAsyncResult BeginReceive()
        {
            return BeginReceive(InfiniteTimeout, null, null);
        }

        public IAsyncResult BeginReceive(TimeSpan timeout)
        {
            return BeginReceive(timeout, null, null);
        }

        public IAsyncResult BeginReceive(TimeSpan timeout, object stateObject)
        {
            return BeginReceive(timeout, stateObject, null);
        }

        public IAsyncResult BeginReceive(TimeSpan timeout, object stateObject, AsyncCallback callback)
        {
            return Begin(new ReadRequest(this, timeout, false), stateObject, callback ?? RaiseReceiveCompleted);
        }

        public IAsyncResult BeginReceive(TimeSpan timeout, Cursor cursor, object state, AsyncCallback callback)
        {
            return Begin(new ReadRequest(this, timeout, false).At(NotNull(cursor), ReceiveCurrent), state,
                callback ?? RaiseReceiveCompleted);
        }

        public Message EndReceive(IAsyncResult asyncResult)
        {
            return End(asyncResult, false);
        }

        public IAsyncResult BeginPeek()
        {
            return BeginPeek(InfiniteTimeout, null, null);
        }

        public IAsyncResult BeginPeek(TimeSpan timeout)
        {
            return BeginPeek(timeout, null, null);
        }

        public IAsyncResult BeginPeek(TimeSpan timeout, object stateObject)
        {
            return BeginPeek(timeout, stateObject, null);
        }

        public IAsyncResult BeginPeek(TimeSpan timeout, object stateObject, AsyncCallback callback)
        {
            return Begin(new ReadRequest(this, timeout, true), stateObject, callback ?? RaisePeekCompleted);
        }

        public IAsyncResult BeginPeek(TimeSpan timeout, Cursor cursor, PeekAction action, object state,
            AsyncCallback callback)
        {
            return Begin(new ReadRequest(this, timeout, true).At(NotNull(cursor), ActionOf(action)), state,
                callback ?? RaisePeekCompleted);
        }

        public Message EndPeek(IAsyncResult asyncResult)
        {
            return End(asyncResult, true);
        }

        private IAsyncResult Begin(ReadRequest request, object state, AsyncCallback callback)
        {
            return new AsynchronousRead(this, request, state, callback).Start();
        }

        private Message End(IAsyncResult asyncResult, bool peek)
        {
            if (asyncResult == null)
                throw new ArgumentNullException("asyncResult");
            var read = asyncResult as AsynchronousRead;
            if (read == null || read.Owner != this || read.IsPeek != peek)
                throw new ArgumentException("the result belongs to another operation", "asyncResult");
            return read.End();
        }

        private void RaiseReceiveCompleted(IAsyncResult result)
        {
            ReceiveCompletedEventHandler handler = ReceiveCompleted;
            if (handler != null)
                Raise(handler, new ReceiveCompletedEventArgs(this, result), () =>
                    handler(this, new ReceiveCompletedEventArgs(this, result)));
        }

        private void RaisePeekCompleted(IAsyncResult result)
        {
            PeekCompletedEventHandler handler = PeekCompleted;
            if (handler != null)
                Raise(handler, new PeekCompletedEventArgs(this, result), () =>
                    handler(this, new PeekCompletedEventArgs(this, result)));
        }

        /// <summary>Raise an event on the thread of the synchronizing object, or directly if there is none.</summary>
        private void Raise(Delegate handler, EventArgs data, Action direct)
        {
            ISynchronizeInvoke other = SynchronizingObject;
            if (other != null && other.InvokeRequired)
                other.BeginInvoke(handler, new object[] { this, data });
            else
                direct();
        }
    }
}
