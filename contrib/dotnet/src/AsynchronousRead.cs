using System;
using System.Messaging.Wire;
using System.Threading;

namespace System.Messaging
{
    /// <summary>
    /// A read that a program began and has not ended. The connection's thread completes it; callbacks run on the
    /// thread pool.
    /// </summary>
    internal sealed class AsynchronousRead : IAsyncResult
    {
        private readonly ReadRequest request;
        private readonly AsyncCallback callback;
        private readonly ManualResetEvent done = new ManualResetEvent(false);
        private Call call;
        private MessageQueueException failure;
        private volatile bool completed;

        internal AsynchronousRead(MessageQueue owner, ReadRequest request, object state, AsyncCallback callback)
        {
            Owner = owner;
            AsyncState = state;
            this.request = request;
            this.callback = callback;
        }

        public object AsyncState { get; }

        public WaitHandle AsyncWaitHandle => done;

        public bool CompletedSynchronously => false;

        public bool IsCompleted => completed;

        internal MessageQueue Owner { get; }

        internal bool IsPeek => request.IsPeek;

        /// <summary>Send the request. Raises MessageQueueException.</summary>
        internal AsynchronousRead Start()
        {
            request.Start(OnReply);
            return this;
        }

        /// <summary>Wait for the message. Raises MessageQueueException.</summary>
        internal Message End()
        {
            done.WaitOne();
            if (failure != null)
                throw new MessageQueueException((int)failure.MessageQueueErrorCode,
                    failure.MessageQueueErrorCode.ToString(), failure.Message);
            return request.Finish(call);
        }

        private void OnReply(Call answered)
        {
            ThreadPool.QueueUserWorkItem(Complete, answered);
        }

        private void Complete(object answered)
        {
            call = (Call)answered;
            try
            {
                call.Result();
            }
            catch (MessageQueueException error) when (request.MayRepeat(error))
            {
                try
                {
                    request.Start(OnReply);
                    return;
                }
                catch (MessageQueueException again)
                {
                    failure = again;
                }
            }
            catch (MessageQueueException error)
            {
                failure = error;
            }
            completed = true;
            done.Set();
            if (callback != null)
                callback(this);
        }
    }
}
