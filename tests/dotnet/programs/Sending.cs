using System;
using System.IO;
using System.Text;
#if MSMQ_MESSAGING
using MSMQ.Messaging;
#else
using System.Messaging;
#endif

internal static partial class Program
{
    private static void SendReceive()
    {
        using (MessageQueue queue = NewQueue("plain"))
        {
            queue.Send("first");
            queue.Send("second", "with label");
            Same("first", Text(queue.Peek(Soon)), "peek");
            Same("first", Text(queue.Receive(Soon)), "first");
            Message second = queue.Receive(Soon);
            Same("second", Text(second), "second");
            Same("with label", second.Label, "label");
            Same(2, queue.GetAllMessages().Length + 2, "left");
        }
    }

    private static void Properties()
    {
        using (MessageQueue queue = NewQueue("full"))
        using (MessageQueue response = NewQueue("response"))
        {
            DateTime before = DateTime.Now.AddSeconds(-2);
            var message = new Message("body")
            {
                Label = "l", Priority = MessagePriority.High, Recoverable = true, AppSpecific = -5,
                CorrelationId = "11111111-2222-3333-4444-555555555555\\4000000000",
                Extension = new byte[] { 1, 2, 3 }, ResponseQueue = response, AdministrationQueue = response,
                AcknowledgeType = AcknowledgeTypes.FullReceive, UseDeadLetterQueue = true, UseJournalQueue = true,
                TimeToBeReceived = TimeSpan.FromHours(1), TimeToReachQueue = TimeSpan.FromMinutes(2),
            };
            queue.Send(message);
            Message got = queue.Receive(Soon);
            Same(message.Id, got.Id, "id");
            Same("body", Text(got), "body");
            Same("l", got.Label, "label");
            Same(MessagePriority.High, got.Priority, "priority");
            Same(true, got.Recoverable, "recoverable");
            Same(-5, got.AppSpecific, "app specific");
            Same("11111111-2222-3333-4444-555555555555\\4000000000", got.CorrelationId, "correlation");
            SameBytes(new byte[] { 1, 2, 3 }, got.Extension, "extension");
            Same(response.FormatName.ToLowerInvariant(), got.ResponseQueue.FormatName.ToLowerInvariant(), "response");
            Same(response.QueueName, got.ResponseQueue.QueueName, "name of the response queue");
            Same(response.FormatName.ToLowerInvariant(), got.AdministrationQueue.FormatName.ToLowerInvariant(), "admin");
            Same(AcknowledgeTypes.FullReceive, got.AcknowledgeType, "acknowledge");
            Same(true, got.UseDeadLetterQueue, "dead letter");
            Same(true, got.UseJournalQueue, "journal");
            Same(TimeSpan.FromHours(1), got.TimeToBeReceived, "time to be received");
            Same(TimeSpan.FromMinutes(2), got.TimeToReachQueue, "time to reach queue");
            Same(MessageType.Normal, got.MessageType, "type");
            Same(Acknowledgment.None, got.Acknowledgment, "acknowledgment");
            True(got.SentTime >= before && got.SentTime <= DateTime.Now.AddSeconds(2), "sent time");
            True(got.ArrivedTime >= before && got.ArrivedTime <= DateTime.Now.AddSeconds(2), "arrived time");
            True(got.SenderId.Length >= 8, "sender id");
            Same(queue.MachineName, got.SourceMachine, "source machine");
            Same(16L, got.SenderVersion, "version");
            True(got.LookupId != 0, "look-up id");
            Same(queue.QueueName.ToLowerInvariant(), got.DestinationQueue.QueueName.ToLowerInvariant(), "destination");

            Message report = response.Receive(Soon);
            Same(MessageType.Acknowledgment, report.MessageType, "type of the acknowledgment");
            Same(Acknowledgment.Receive, report.Acknowledgment, "acknowledgment of the receipt");
            Same(message.Id, report.CorrelationId, "acknowledged message");

            using (var journal = new MessageQueue(@".\Journal$"))
            {
                journal.Formatter = queue.Formatter;
                Same("body", Text(journal.ReceiveById(message.Id, Soon)), "copy in the journal");
            }
        }
    }

    private static void Filters()
    {
        using (MessageQueue queue = NewQueue("filter"))
        {
            queue.Send(new Message("x") { Priority = MessagePriority.Low });
            queue.MessageReadPropertyFilter = new MessagePropertyFilter();
            Message message = queue.Peek(Soon);
            Same("x", Text(message), "body");
            Throws<InvalidOperationException>(() => message.Priority.ToString(), "priority is not in the filter");
            Throws<InvalidOperationException>(() => message.SentTime.ToString(), "sent time is not in the filter");
            queue.MessageReadPropertyFilter.Priority = true;
            Same(MessagePriority.Low, queue.Peek(Soon).Priority, "priority");
            queue.MessageReadPropertyFilter.ClearAll();
            Message empty = queue.Receive(Soon);
            Throws<InvalidOperationException>(() => empty.Label.ToString(), "label is not in the filter");
            Throws<InvalidOperationException>(() => empty.Body.ToString(), "body is not in the filter");
            Throws<InvalidOperationException>(() => new Message().ArrivedTime.ToString(), "not received");
            Same(@"00000000-0000-0000-0000-000000000000\0", new Message().Id, "id before sending");
            Same(Message.InfiniteTimeout, new Message().TimeToBeReceived, "default time");
        }
    }

    private static void DefaultProperties()
    {
        using (MessageQueue queue = NewQueue("defaults"))
        {
            queue.DefaultPropertiesToSend.Recoverable = true;
            queue.DefaultPropertiesToSend.Priority = MessagePriority.VeryHigh;
            queue.DefaultPropertiesToSend.Label = "default";
            queue.DefaultPropertiesToSend.TimeToBeReceived = TimeSpan.FromSeconds(100);
            queue.Send("x");
            queue.Send(new Message("y"));
            Message first = queue.Receive(Soon);
            Same(true, first.Recoverable, "recoverable");
            Same(MessagePriority.VeryHigh, first.Priority, "priority");
            Same("default", first.Label, "label");
            Same(TimeSpan.FromSeconds(100), first.TimeToBeReceived, "time to be received");
            Message second = queue.Receive(Soon);
            Same(false, second.Recoverable, "a message has its own properties");
            Same("", second.Label, "label of the message");
        }
    }

    private static void Labels()
    {
        using (MessageQueue queue = NewQueue("labels"))
        {
            string label = "Gr\u00FC\u00DFe \u4F60\u597D \uD83D\uDE00 " + new string('\u00E4', 200);
            queue.Send("x", label);
            Same(label, queue.Receive(Soon).Label, "label");
            Throws<ArgumentException>(() => new Message().Label = new string('x', 250), "too long");
        }
    }

    private static void Large()
    {
        using (MessageQueue queue = NewQueue("large"))
        {
            var body = new byte[4190000];
            for (int index = 0; index < body.Length; index++)
                body[index] = (byte)(index * 31);
            var message = new Message { BodyStream = new MemoryStream(body), Recoverable = true };
            queue.Send(message);
            Message got = queue.Receive(TimeSpan.FromSeconds(30));
            Same((long)body.Length, got.BodyStream.Length, "length");
            var copy = new byte[body.Length];
            int read = 0;
            while (read < copy.Length)
                read += got.BodyStream.Read(copy, read, copy.Length - read);
            for (int index = 0; index < body.Length; index++)
            {
                if (body[index] != copy[index])
                    throw new Exception("byte " + index + " differs");
            }
            var tooLarge = new Message { BodyStream = new MemoryStream(new byte[4200000]) };
            Fails(MessageQueueErrorCode.InsufficientResources, () => queue.Send(tooLarge), "more than 4 MB");
            queue.Send("still works");
            Same("still works", Text(queue.Receive(Soon)), "after the refusal");
        }
    }

    private static void Timeouts()
    {
        using (MessageQueue queue = NewQueue("timeouts"))
        {
            Fails(MessageQueueErrorCode.IOTimeout, () => queue.Receive(Now), "receive at once");
            Fails(MessageQueueErrorCode.IOTimeout, () => queue.Peek(Now), "peek at once");
            DateTime begun = DateTime.UtcNow;
            Fails(MessageQueueErrorCode.IOTimeout, () => queue.Receive(TimeSpan.FromMilliseconds(300)), "receive");
            True((DateTime.UtcNow - begun).TotalMilliseconds >= 290, "waited");
            Throws<ArgumentException>(() => queue.Receive(TimeSpan.FromSeconds(-1)), "negative time-out");
            queue.Send(new Message("short") { TimeToBeReceived = TimeSpan.FromSeconds(1) });
            DateTime end = DateTime.UtcNow.AddSeconds(20);
            while (queue.GetAllMessages().Length > 0)
                True(DateTime.UtcNow < end, "the message expires");
        }
    }

    private static void Queues()
    {
        string path = PathOf("admin");
        Same(false, MessageQueue.Exists(path), "before");
        using (MessageQueue queue = MessageQueue.Create(path, true))
        {
            Same(true, MessageQueue.Exists(path), "after");
            Fails(MessageQueueErrorCode.QueueExists, () => MessageQueue.Create(path), "twice");
            Same(true, queue.Transactional, "transactional");
            Same("private$\\" + prefix + "-admin", queue.QueueName, "queue name");
            Same(path, queue.Path, "path");
            Same("DIRECT=OS:" + queue.MachineName + "\\" + queue.QueueName, queue.FormatName, "format name");
            queue.Label = "My queue";
            queue.UseJournalQueue = true;
            queue.MaximumQueueSize = 1000;
            queue.MaximumJournalSize = 500;
            queue.BasePriority = -3;
            queue.Authenticate = false;
            queue.EncryptionRequired = EncryptionRequired.Optional;
            queue.Category = new Guid("11111111-2222-3333-4444-555555555555");
            using (var other = new MessageQueue("FormatName:" + queue.FormatName))
            {
                Same("My queue", other.Label, "label");
                Same(true, other.UseJournalQueue, "journal");
                Same(1000L, other.MaximumQueueSize, "quota");
                Same(500L, other.MaximumJournalSize, "quota of the journal");
                Same((short)-3, other.BasePriority, "base priority");
                Same(EncryptionRequired.Optional, other.EncryptionRequired, "encryption");
                Same(new Guid("11111111-2222-3333-4444-555555555555"), other.Category, "category");
                True(Math.Abs((DateTime.Now - other.CreateTime).TotalMinutes) < 5, "create time");
            }
            MessageQueue[] all = MessageQueue.GetPrivateQueuesByMachine(".");
            True(Array.Exists(all, one => one.QueueName == queue.QueueName), "in the list");
            True(queue.CanRead && queue.CanWrite, "may read and write");
        }
        using (MessageQueue plain = NewQueue("purged"))
        {
            plain.Send("a");
            plain.Send("b");
            Same(2, plain.GetAllMessages().Length, "messages");
            plain.Purge();
            Same(0, plain.GetAllMessages().Length, "purged");
        }
        MessageQueue.Delete(path);
        Same(false, MessageQueue.Exists(path), "deleted");
        Fails(MessageQueueErrorCode.QueueNotFound, () => MessageQueue.Delete(path), "delete twice");
        Fails(MessageQueueErrorCode.QueueNotFound, () => new MessageQueue(path).Send("x"), "send to no queue");
        Throws<ArgumentException>(() => new MessageQueue("no path"), "invalid path");
        MessageQueue.Create(path).Dispose();
        new MessageQueue(path).Send("again");
        Same(1, new MessageQueue(path).GetAllMessages().Length, "a queue made anew");
    }
}
