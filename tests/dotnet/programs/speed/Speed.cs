// Prints how many recoverable messages of 1 KiB one thread moves in a second: `speed.exe QUEUE COUNT`.

using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Messaging;

internal static class Speed
{
    private const int Batch = 500;
    private const int Waiting = 200;

    private static readonly TimeSpan Soon = TimeSpan.FromSeconds(30);
    private static readonly byte[] Body = new byte[1024];

    private static void Main(string[] arguments)
    {
        int count = int.Parse(arguments[1]);
        MessageQueue queue = MessageQueue.Create(@".\private$\" + arguments[0], true);
        for (int round = 0; round < 2; round++) // the first one compiles the code
        {
            Measure("send", count / 20, () =>
            {
                for (int index = 0; index < count / 20; index++)
                    queue.Send(NewMessage(), MessageQueueTransactionType.Single);
            });
            Measure("receive", count / 20, () =>
            {
                for (int index = 0; index < count / 20; index++)
                    queue.Receive(Soon);
            });
            Measure("send in transactions", count, () => InTransactions(count,
                transaction => queue.Send(NewMessage(), transaction)));
            Measure("receive in transactions", count, () => InTransactions(count,
                transaction => queue.Receive(Soon, transaction)));
            InTransactions(count, transaction => queue.Send(NewMessage(), transaction));
            Measure("begin receive", count, () => Asynchronously(queue, count));
        }
    }

    private static Message NewMessage()
    {
        return new Message { BodyStream = new MemoryStream(Body, 0, Body.Length, true, true), Recoverable = true };
    }

    private static void InTransactions(int count, Action<MessageQueueTransaction> operation)
    {
        for (int done = 0; done < count;)
        {
            using (var transaction = new MessageQueueTransaction())
            {
                transaction.Begin();
                for (int index = 0; index < Batch && done < count; index++, done++)
                    operation(transaction);
                transaction.Commit();
            }
        }
    }

    private static void Asynchronously(MessageQueue queue, int count)
    {
        var reads = new Queue<IAsyncResult>();
        int begun = 0;
        for (int ended = 0; ended < count; ended++)
        {
            for (; begun < count && reads.Count < Waiting; begun++)
                reads.Enqueue(queue.BeginReceive(Soon));
            queue.EndReceive(reads.Dequeue());
        }
    }

    private static void Measure(string name, int count, Action action)
    {
        Stopwatch watch = Stopwatch.StartNew();
        action();
        Console.WriteLine(name + ": " + (int)(count / watch.Elapsed.TotalSeconds));
    }
}
