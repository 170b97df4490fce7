using System;

namespace System.Messaging
{
    public delegate void ReceiveCompletedEventHandler(object sender, ReceiveCompletedEventArgs e);

    public delegate void PeekCompletedEventHandler(object sender, PeekCompletedEventArgs e);

    /// <summary>Data of MessageQueue.ReceiveCompleted.</summary>
    public class ReceiveCompletedEventArgs : EventArgs
    {
        private readonly MessageQueue sender;
        private Message message;

        internal ReceiveCompletedEventArgs(MessageQueue sender, IAsyncResult result)
        {
            this.sender = sender;
            AsyncResult = result;
        }

        public IAsyncResult AsyncResult { get; set; }

        /// <summary>The message. Raises the MessageQueueException with which the read ended.</summary>
        public Message Message => message ?? (message = sender.EndReceive(AsyncResult));
    }

    /// <summary>Data of MessageQueue.PeekCompleted.</summary>
    public class PeekCompletedEventArgs : EventArgs
    {
        private readonly MessageQueue sender;
        private Message message;

        internal PeekCompletedEventArgs(MessageQueue sender, IAsyncResult result)
        {
            this.sender = sender;
            AsyncResult = result;
        }

        public IAsyncResult AsyncResult { get; set; }

        /// <summary>The message. Raises the MessageQueueException with which the read ended.</summary>
        public Message Message => message ?? (message = sender.EndPeek(AsyncResult));
    }
}
