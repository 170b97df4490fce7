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
    private static void Enumerators()
    {
        using (MessageQueue queue = NewQueue("enumerated"))
        {
            foreach (string each in new[] { "a", "b", "c", "d" })
                queue.Send(each);
            var seen = new List<string>();
            foreach (Message message in queue)
                seen.Add(Text(message));
            Same("abcd", string.Concat(seen), "foreach");
            using (MessageEnumerator enumerator = queue.GetMessageEnumerator2())
            {
                Throws<InvalidOperationException>(() => enumerator.Current.ToString(), "before the first");
                True(enumerator.MoveNext() && enumerator.MoveNext(), "two moves");
                Same("b", Text(enumerator.Current), "current");
                Same("b", Text(enumerator.Current), "current again");
                Same("b", Text(enumerator.RemoveCurrent()), "removed");
                True(enumerator.MoveNext(), "move after a removal");
                Same("c", Text(enumerator.Current), "after the removal");
                True(enumerator.MoveNext(), "last");
                Same(false, enumerator.MoveNext(TimeSpan.FromMilliseconds(100)), "end");
                enumerator.Reset();
                True(enumerator.MoveNext(), "from the start");
                Same("a", Text(enumerator.Current), "first");
            }
            Same(3, queue.GetAllMessages().Length, "left");
            using (MessageEnumerator enumerator = queue.GetMessageEnumerator2())
            {
                while (enumerator.MoveNext())
                    enumerator.RemoveCurrent();
            }
            Same(0, queue.GetAllMessages().Length, "all removed");
        }
    }

    private static void Cursors()
    {
        using (MessageQueue queue = NewQueue("cursors"))
        {
            foreach (string each in new[] { "a", "b", "c" })
                queue.Send(each);
            using (Cursor cursor = queue.CreateCursor())
            {
                Fails(MessageQueueErrorCode.IllegalCursorAction, () => queue.Peek(Now, cursor, PeekAction.Next), "next");
                Same("a", Text(queue.Peek(Now, cursor, PeekAction.Current)), "a");
                Same("b", Text(queue.Peek(Now, cursor, PeekAction.Next)), "b");
                Same("b", Text(queue.Receive(Now, cursor)), "receive at the cursor");
                Same("c", Text(queue.Peek(Now, cursor, PeekAction.Current)), "c");
                queue.ReceiveById(queue.Peek(Now, cursor, PeekAction.Current).Id);
                Fails(MessageQueueErrorCode.MessageAlreadyReceived,
                    () => queue.Receive(Now, cursor), "received by another reader");
                Same("a", Text(queue.Receive(Now)), "the others stay");
            }
        }
    }

    private static void Lookups()
    {
        using (MessageQueue queue = NewQueue("lookups"))
        using (MessageQueue safe = NewQueue("lookups-safe", true))
        {
            foreach (string each in new[] { "a", "b", "c" })
                queue.Send(each);
            Message[] all = queue.GetAllMessages();
            Same("b", Text(queue.PeekByLookupId(all[1].LookupId)), "peek");
            Same("c", Text(queue.PeekByLookupId(MessageLookupAction.Next, all[1].LookupId)), "next");
            Same("a", Text(queue.PeekByLookupId(MessageLookupAction.Previous, all[1].LookupId)), "previous");
            Same("a", Text(queue.PeekByLookupId(MessageLookupAction.First, 0)), "first");
            Same("c", Text(queue.PeekByLookupId(MessageLookupAction.Last, 0)), "last");
            Same("b", Text(queue.ReceiveByLookupId(all[1].LookupId)), "receive");
            Throws<InvalidOperationException>(() => queue.ReceiveByLookupId(all[1].LookupId), "gone");
            Throws<InvalidOperationException>(
                () => queue.PeekByLookupId(MessageLookupAction.Next, all[2].LookupId), "after the last");

            safe.Send("x", MessageQueueTransactionType.Single);
            using (var transaction = new MessageQueueTransaction())
            {
                transaction.Begin();
                long id = safe.Peek(Soon).LookupId;
                Same("x", Text(safe.ReceiveByLookupId(MessageLookupAction.Current, id, transaction)), "within");
                transaction.Commit();
            }
            Same(0, safe.GetAllMessages().Length, "received");
        }
    }

    private static void Identifiers()
    {
        using (MessageQueue queue = NewQueue("identifiers"))
        {
            var first = new Message("one");
            var second = new Message("two") { CorrelationId = "11111111-2222-3333-4444-555555555555\\7" };
            queue.Send(first);
            queue.Send(second);
            Same("two", Text(queue.PeekById(second.Id)), "peek by id");
            Same("two", Text(queue.PeekByCorrelationId(second.CorrelationId)), "peek by correlation");
            Same("two", Text(queue.ReceiveById(second.Id)), "receive by id");
            Throws<InvalidOperationException>(() => queue.ReceiveById(second.Id), "gone");
            Throws<InvalidOperationException>(() => queue.ReceiveByCorrelationId(second.CorrelationId), "gone too");
            Fails(MessageQueueErrorCode.IOTimeout,
                () => queue.ReceiveById(second.Id, TimeSpan.FromMilliseconds(100)), "not there in time");
            var sender = new Thread(() =>
            {
                using (var other = new MessageQueue(queue.Path))
                {
                    other.Send("noise");
                    other.Send(new Message("answer") { CorrelationId = first.Id });
                }
            });
            sender.Start();
            Same("answer", Text(queue.ReceiveByCorrelationId(first.Id, Soon)), "waits for the answer");
            sender.Join();
            Same(2, queue.GetAllMessages().Length, "the others stay");
            Throws<ArgumentNullException>(() => queue.ReceiveById(null), "null");
        }
    }

    private static void Subqueues()
    {
        using (MessageQueue queue = NewQueue("parent", true))
        {
            queue.Send("x", MessageQueueTransactionType.Single);
            using (var part = new MessageQueue(PathOf("parent") + ";later"))
            {
                part.Formatter = queue.Formatter;
                Fails(MessageQueueErrorCode.IOTimeout, () => part.Receive(Now), "empty");
                Console.WriteLine("move"); // the test moves the message to the subqueue
                Console.In.ReadLine();
                Same("x", Text(part.Peek(Soon)), "peek");
                Same("x", Text(part.Receive(Soon)), "receive");
            }
            Same(0, queue.GetAllMessages().Length, "moved");
            Throws<MessageQueueException>(
                () => new MessageQueue(PathOf("parent") + ";later").Send("y"), "send to a subqueue");
        }
    }
}
