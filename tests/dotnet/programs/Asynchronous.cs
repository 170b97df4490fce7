using System;
using System.Collections.Generic;
using System.Threading;
#if MSMQ_MESSAGING
using MSMQ.Messaging;
#else
using System.Messaging;
#endif

internal static partial class Program
{
    private static void Async()
    {
        using (MessageQueue queue = NewQueue("async"))
        {
            IAsyncResult waiting = queue.BeginReceive(Soon, "state", null);
            Same(false, waiting.IsCompleted, "completed before");
            queue.Send("a");
            Same("a", Text(queue.EndReceive(waiting)), "message");
            Same("state", (string)waiting.AsyncState, "state");
            Same(true, waiting.IsCompleted, "completed after");

            IAsyncResult late = queue.BeginReceive(TimeSpan.FromMilliseconds(100));
            Fails(MessageQueueErrorCode.IOTimeout, () => queue.EndReceive(late), "time-out");

            var called = new ManualResetEvent(false);
            IAsyncResult peeking = queue.BeginPeek(Soon, null, result => called.Set());
            queue.Send("b");
            True(called.WaitOne(Soon), "callback");
            Same("b", Text(queue.EndPeek(peeking)), "peeked");
            Throws<ArgumentException>(() => queue.EndReceive(peeking), "another operation");
            Same("b", Text(queue.Receive(Soon)), "still there");

            using (Cursor cursor = queue.CreateCursor())
            {
                IAsyncResult next = queue.BeginPeek(Soon, cursor, PeekAction.Current, null, null);
                queue.Send("c");
                Same("c", Text(queue.EndPeek(next)), "with a cursor");
                IAsyncResult removed = queue.BeginReceive(Soon, cursor, null, null);
                Same("c", Text(queue.EndReceive(removed)), "received with a cursor");
            }

            var closing = new MessageQueue(queue.Path);
            IAsyncResult cancelled = closing.BeginReceive();
            closing.Close();
            Fails(MessageQueueErrorCode.OperationCanceled, () => closing.EndReceive(cancelled), "closed");
        }
    }

    private static void Events()
    {
        using (MessageQueue queue = NewQueue("events"))
        {
            var seen = new List<string>();
            var done = new ManualResetEvent(false);
            queue.ReceiveCompleted += (sender, data) =>
            {
                seen.Add(Text(data.Message));
                if (seen.Count == 100)
                    done.Set();
                else
                    ((MessageQueue)sender).BeginReceive(Soon);
            };
            queue.BeginReceive(Soon);
            for (int index = 0; index < 100; index++)
                queue.Send("message " + index);
            True(done.WaitOne(Soon), "100 events");
            for (int index = 0; index < 100; index++)
                Same("message " + index, seen[index], "order");

            var peeked = new ManualResetEvent(false);
            string text = null;
            queue.PeekCompleted += (sender, data) =>
            {
                text = Text(queue.EndPeek(data.AsyncResult));
                peeked.Set();
            };
            queue.BeginPeek();
            queue.Send("last");
            True(peeked.WaitOne(Soon), "peek event");
            Same("last", text, "peeked");
        }
    }

    private static void Threads()
    {
        using (MessageQueue queue = NewQueue("threads"))
        {
            const int Senders = 4, Each = 250;
            var all = new List<Thread>();
            int received = 0;
            for (int number = 0; number < Senders; number++)
            {
                all.Add(new Thread(() =>
                {
                    for (int index = 0; index < Each; index++)
                        queue.Send(new Message("x") { Recoverable = index % 2 == 0 });
                }));
                all.Add(new Thread(() =>
                {
                    for (int index = 0; index < Each; index++)
                    {
                        queue.Receive(Soon);
                        Interlocked.Increment(ref received);
                    }
                }));
            }
            all.ForEach(thread => thread.Start());
            all.ForEach(thread => thread.Join());
            Same(Senders * Each, received, "received");
            Same(0, queue.GetAllMessages().Length, "left");
        }
    }
}
