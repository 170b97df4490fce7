using System;
using System.Transactions;
#if MSMQ_MESSAGING
using MSMQ.Messaging;
#else
using System.Messaging;
#endif

internal static partial class Program
{
    private static void Single()
    {
        using (MessageQueue safe = NewQueue("single", true))
        using (MessageQueue plain = NewQueue("single-plain"))
        {
            safe.Send("x", MessageQueueTransactionType.Single);
            Fails(MessageQueueErrorCode.TransactionUsage, () => safe.Send("y"), "no transaction");
            Fails(MessageQueueErrorCode.TransactionUsage,
                () => plain.Send("y", MessageQueueTransactionType.Single), "not a transactional queue");
            plain.Send("z");
            Fails(MessageQueueErrorCode.TransactionUsage,
                () => plain.Receive(Soon, MessageQueueTransactionType.Single), "receive as single");
            Same("x", Text(safe.Receive(Soon, MessageQueueTransactionType.Single)), "receive");
        }
    }

    private static void Recreated()
    {
        string path = NewQueue("recreated", true).Path;
        SendWithin(path, "first");
        MessageQueue.Delete(path);
        MessageQueue.Create(path, true);
        SendWithin(path, "second"); // the program that deleted the queue opens it again
        Same("second", Text(Reader(path).Receive(Soon)), "after the deletion by this program");

        Console.WriteLine("recreate"); // the test deletes the queue and creates it again
        Console.In.ReadLine();
        Fails(MessageQueueErrorCode.QueueNotAvailable, () => SendWithin(path, "lost"), "the handle of the old queue");
        SendWithin(path, "third");
        Same("third", Text(Reader(path).Receive(Soon)), "after the deletion by another program");
    }

    private static void SendWithin(string path, string text)
    {
        using (var queue = new MessageQueue(path))
        using (var transaction = new MessageQueueTransaction())
        {
            transaction.Begin();
            queue.Send(text, transaction);
            transaction.Commit();
        }
    }

    private static MessageQueue Reader(string path)
    {
        return new MessageQueue(path) { Formatter = new XmlMessageFormatter(new[] { typeof(string) }) };
    }

    private static void Multiple()
    {
        using (MessageQueue one = NewQueue("multiple-1", true))
        using (MessageQueue two = NewQueue("multiple-2", true))
        using (MessageQueue plain = NewQueue("multiple-plain"))
        {
            one.Send("work", MessageQueueTransactionType.Single);
            using (var transaction = new MessageQueueTransaction())
            {
                Same(MessageQueueTransactionStatus.Initialized, transaction.Status, "initialized");
                Throws<InvalidOperationException>(() => transaction.Commit(), "not begun");
                transaction.Begin();
                Throws<InvalidOperationException>(() => transaction.Begin(), "begun twice");
                Same("work", Text(one.Receive(Soon, transaction)), "receive");
                string identifier = null;
                var results = new Message[500];
                for (int index = 0; index < results.Length; index++)
                {
                    results[index] = new Message("result " + index);
                    two.Send(results[index], transaction);
                }
                Fails(MessageQueueErrorCode.TransactionUsage, () => plain.Send("x", transaction), "plain queue");
                Same(0, two.GetAllMessages().Length, "nothing before the commit");
                transaction.Commit();
                Same(MessageQueueTransactionStatus.Committed, transaction.Status, "committed");
                for (int index = 0; index < results.Length; index++)
                {
                    Message got = two.Receive(Soon);
                    Same("result " + index, Text(got), "result");
                    Same(results[index].Id, got.Id, "identifier");
                    Same(index == 0, got.IsFirstInTransaction, "first");
                    Same(index == results.Length - 1, got.IsLastInTransaction, "last");
                    identifier = identifier ?? got.TransactionId;
                    Same(identifier, got.TransactionId, "transaction");
                }
                True(identifier.StartsWith(results[0].Id.Substring(0, 36)), "transaction of this queue manager");
                Same(0, one.GetAllMessages().Length, "received for good");
                transaction.Begin();
                two.Send("again", transaction);
                transaction.Commit();
                Same("again", Text(two.Receive(Soon)), "a second use of the object");
            }
        }
    }

    /// <summary>Messages that follow each other quickly share frames, which only the server sees.</summary>
    private static void Batches()
    {
        using (MessageQueue queue = NewQueue("batches", true))
        using (MessageQueue other = NewQueue("batches-2", true))
        using (var again = new MessageQueue("FormatName:DIRECT=OS:" + queue.Path))
        using (var transaction = new MessageQueueTransaction())
        {
            SendWithin(queue.Path, "first");
            SendWithin(other.Path, "first");
            SendWithin(again.Path, "first");
            queue.Purge();
            other.Purge();
            transaction.Begin();
            var sent = new Message[600];
            for (int index = 0; index < sent.Length; index++)
            {
                string text = index % 250 == 200 ? new string('x', 1500000) + index : "message " + index;
                sent[index] = new Message(text);
                (index % 7 == 3 ? again : queue).Send(sent[index], transaction);
                if (index % 100 == 50)
                    other.Send("between", transaction);
                if (index == 77)
                    True(sent[index].Id.EndsWith("\\" + (Ordinal(sent[index - 1]) + 1)), "the next identifier");
            }
            var broken = new Message { Body = new object[] { new System.IO.MemoryStream() } };
            Throws<InvalidOperationException>(() => queue.Send(broken, transaction), "a body that is not serializable");
            transaction.Commit();
            for (int index = 0; index < sent.Length; index++)
            {
                Message got = queue.Receive(Soon);
                True(Text(got).EndsWith(index.ToString()), "order at " + index);
                Same(sent[index].Id, got.Id, "identifier at " + index);
            }
            Same(6, other.GetAllMessages().Length, "the other queue");
            transaction.Begin();
            queue.Send("discarded", transaction);
            queue.Send(sent[0], transaction);
            transaction.Abort();
            True(Ordinal(sent[0]) > 0, "an identifier after the abort");
            Same(0, queue.GetAllMessages().Length, "discarded");
        }
    }

    private static long Ordinal(Message message)
    {
        return long.Parse(message.Id.Substring(message.Id.IndexOf('\\') + 1));
    }

    private static void Abort()
    {
        using (MessageQueue one = NewQueue("abort-1", true))
        using (MessageQueue two = NewQueue("abort-2", true))
        {
            one.Send("work", MessageQueueTransactionType.Single);
            var transaction = new MessageQueueTransaction();
            transaction.Begin();
            one.Receive(Soon, transaction);
            two.Send("result", transaction);
            Fails(MessageQueueErrorCode.IOTimeout, () => one.Receive(Now), "locked");
            transaction.Abort();
            Same(MessageQueueTransactionStatus.Aborted, transaction.Status, "aborted");
            Throws<InvalidOperationException>(() => transaction.Commit(), "commit after abort");
            Same("work", Text(one.Peek(Soon)), "returned");
            Same(0, two.GetAllMessages().Length, "discarded");
            using (var disposed = new MessageQueueTransaction())
            {
                disposed.Begin();
                one.Receive(Soon, disposed);
            }
            Same("work", Text(one.Receive(Soon)), "returned by Dispose");
        }
    }

    private static void Refused()
    {
        using (MessageQueue queue = NewQueue("refused", true))
        {
            queue.MaximumQueueSize = 20;
            var transaction = new MessageQueueTransaction();
            transaction.Begin();
            var error = Throws<MessageQueueException>(() =>
            {
                for (int index = 0; index < 50; index++)
                    queue.Send(new string('x', 1000), transaction);
                transaction.Commit();
            }, "more than the quota");
            Same(MessageQueueErrorCode.InsufficientResources, error.MessageQueueErrorCode, "code");
            Same(MessageQueueTransactionStatus.Aborted, transaction.Status, "status");
            Same(0, queue.GetAllMessages().Length, "nothing was carried out");
        }
    }

    private static void Scopes()
    {
        using (MessageQueue one = NewQueue("scope-1", true))
        using (MessageQueue two = NewQueue("scope-2", true))
        {
            using (var scope = new TransactionScope())
            {
                one.Send("a", MessageQueueTransactionType.Automatic);
                two.Send("b", MessageQueueTransactionType.Automatic);
                Same(0, one.GetAllMessages().Length, "nothing before the end");
                scope.Complete();
            }
            Same("b", Text(two.Receive(Soon)), "committed");
            using (new TransactionScope())
            {
                one.Receive(Soon, MessageQueueTransactionType.Automatic);
                two.Send("c", MessageQueueTransactionType.Automatic);
            }
            Same("a", Text(one.Peek(Soon)), "rolled back");
            Same(0, two.GetAllMessages().Length, "not sent");
            using (var scope = new TransactionScope())
            {
                Transaction.Current.EnlistVolatile(new OtherResource(), EnlistmentOptions.None);
                one.Receive(Soon, MessageQueueTransactionType.Automatic);
                two.Send("d", MessageQueueTransactionType.Automatic);
                scope.Complete();
            }
            Same("d", Text(two.Receive(Soon)), "committed in two phases");
            Same(0, one.GetAllMessages().Length, "received in two phases");
        }
    }

    private sealed class OtherResource : IEnlistmentNotification
    {
        public void Prepare(PreparingEnlistment enlistment)
        {
            enlistment.Prepared();
        }

        public void Commit(Enlistment enlistment)
        {
            enlistment.Done();
        }

        public void Rollback(Enlistment enlistment)
        {
            enlistment.Done();
        }

        public void InDoubt(Enlistment enlistment)
        {
            enlistment.Done();
        }
    }
}
