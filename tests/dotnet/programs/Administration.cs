using System;
#if MSMQ_MESSAGING
using MSMQ.Messaging;
#else
using System.Messaging;
#endif

internal static partial class Program
{
    private static void Access()
    {
        using (MessageQueue queue = NewQueue("access"))
        {
            queue.SetPermissions("Everyone", MessageQueueAccessRights.WriteMessage, AccessControlEntryType.Deny);
            Fails(MessageQueueErrorCode.AccessDenied, () => new MessageQueue(queue.Path).Send("x"), "denied");
            Same(false, new MessageQueue(queue.Path).CanWrite, "may not write");
            True(new MessageQueue(queue.Path).CanRead, "may read");
            queue.SetPermissions("Everyone", MessageQueueAccessRights.FullControl, AccessControlEntryType.Set);
            queue.Send("x");
            var list = new AccessControlList();
            list.Add(new MessageQueueAccessControlEntry(
                new Trustee("Everyone"), MessageQueueAccessRights.ReceiveMessage, AccessControlEntryType.Deny));
            list.Add(new AccessControlEntry(
                new Trustee("Administrators"), GenericAccessRights.Read, StandardAccessRights.Delete,
                AccessControlEntryType.Allow));
            queue.SetPermissions(list);
            Fails(MessageQueueErrorCode.AccessDenied, () => new MessageQueue(queue.Path).Receive(Now), "read denied");
            queue.ResetPermissions();
            Same("x", Text(queue.Receive(Soon)), "after the reset");
            queue.SetPermissions("", MessageQueueAccessRights.FullControl, AccessControlEntryType.Deny);
            queue.Send("y");
            Same("y", Text(queue.Receive(Soon)), "an empty name concerns no account");
            Throws<ArgumentNullException>(() => queue.SetPermissions((string)null, 0), "null");
        }
    }

    private static void PublicQueues()
    {
        using (MessageQueue queue = MessageQueue.Create(@".\" + prefix + "-public"))
        {
            queue.Label = prefix + " label";
            queue.Category = new Guid("99999999-2222-3333-4444-555555555555");
            queue.Formatter = new XmlMessageFormatter(new[] { typeof(string) });
            Same(1, MessageQueue.GetPublicQueuesByLabel(queue.Label).Length, "by label");
            True(MessageQueue.GetPublicQueuesByCategory(queue.Category).Length >= 1, "by category");
            True(Array.Exists(MessageQueue.GetPublicQueuesByMachine("."), one => one.Id == queue.Id), "by machine");
            True(Array.Exists(MessageQueue.GetPublicQueues(), one => one.Id == queue.Id), "all");
            var criteria = new MessageQueueCriteria { Label = queue.Label, CreatedAfter = DateTime.Now.AddDays(-1) };
            int count = 0;
            using (MessageQueueEnumerator enumerator = MessageQueue.GetMessageQueueEnumerator(criteria))
            {
                while (enumerator.MoveNext())
                {
                    Same(queue.Id, enumerator.Current.Id, "found");
                    count++;
                }
            }
            Same(1, count, "enumerated");
            criteria.CreatedAfter = DateTime.Now.AddDays(1);
            Same(0, MessageQueue.GetPublicQueues(criteria).Length, "created later");
            Throws<InvalidOperationException>(() => new MessageQueueCriteria().Label.ToString(), "not set");
            new MessageQueue("Label:" + queue.Label).Send("by label");
            Same("by label", Text(queue.Receive(Soon)), "sent by label");
            new MessageQueue("FormatName:PUBLIC=" + queue.Id).Send("by id");
            Same("by id", Text(queue.Receive(Soon)), "sent by identifier");
            MessageQueue.Delete(queue.Path);
        }
    }

    /// <summary>Passes over a queue while the server is killed: each message once, in order.</summary>
    private static void Walk()
    {
        const int Count = 8;
        using (MessageQueue queue = NewQueue("walk", true))
        {
            for (int index = 0; index < Count; index++)
                queue.Send(index.ToString(), MessageQueueTransactionType.Single);
            WalkPeeking(queue, Count);
            WalkReceiving(queue, Count);
            Same(Count / 2, queue.GetAllMessages().Length, "those that were only peeked stay");
        }
    }

    private static void WalkPeeking(MessageQueue queue, int count)
    {
        Cursor cursor = queue.CreateCursor();
        MessageEnumerator enumerator = queue.GetMessageEnumerator2();
        for (int index = 0; index < count; index++)
        {
            True(enumerator.MoveNext(), "a next message");
            Same(index.ToString(), Text(enumerator.Current), "the enumerator");
            PeekAction action = index == 0 ? PeekAction.Current : PeekAction.Next;
            Same(index.ToString(), Text(queue.Peek(Now, cursor, action)), "the cursor");
            if (index % 4 == 1)
            {
                Kill();
                Same(index.ToString(), Text(enumerator.Current), "the message stays current");
            }
        }
        True(!enumerator.MoveNext(), "the end");
        Throws<InvalidOperationException>(() => enumerator.Current.ToString(), "no message at the end");
        Fails(MessageQueueErrorCode.IOTimeout, () => queue.Peek(Now, cursor, PeekAction.Next), "no next message");
        Kill();
        queue.Send("late", MessageQueueTransactionType.Single);
        True(enumerator.MoveNext(), "a message after the end");
        Same("late", Text(enumerator.RemoveCurrent()), "the enumerator after the end");
    }

    /// <summary>Receives each second message with a cursor, and peeks the others.</summary>
    private static void WalkReceiving(MessageQueue queue, int count)
    {
        Cursor cursor = queue.CreateCursor();
        for (int index = 0; index < count; index++)
        {
            PeekAction action = index % 2 == 0 && index > 0 ? PeekAction.Next : PeekAction.Current;
            Same(index.ToString(), Text(queue.Peek(Now, cursor, action)), "peeked");
            if (index % 2 == 0)
                Same(index.ToString(), Text(queue.Receive(Now, cursor)), "received");
            if (index % 3 == 0)
                Kill();
        }
    }

    /// <summary>The test kills the server and starts it again.</summary>
    private static void Kill()
    {
        Console.WriteLine("kill");
        Console.In.ReadLine();
    }

    private static void Restart()
    {
        using (MessageQueue queue = NewQueue("restart", true))
        {
            queue.Send("kept", MessageQueueTransactionType.Single);
            var transaction = new MessageQueueTransaction();
            transaction.Begin();
            queue.Receive(Soon, transaction);
            Cursor cursor = queue.CreateCursor();
            Console.WriteLine("kill"); // the test kills the server and starts it again
            Console.In.ReadLine();
            Same(MessageQueueTransactionStatus.Aborted, transaction.Status, "status");
            Throws<MessageQueueException>(() => queue.Send("x", transaction), "transaction after the restart");
            Throws<MessageQueueException>(() => transaction.Commit(), "commit after the restart");
            queue.Send("after", MessageQueueTransactionType.Single);
            Same("kept", Text(queue.Peek(Now, cursor, PeekAction.Current)), "a cursor before the first message");
            Same("kept", Text(queue.Receive(Soon)), "returned by the restart");
            Same("after", Text(queue.Receive(Soon)), "sent after the restart");

            IAsyncResult waiting = queue.BeginReceive(TimeSpan.FromSeconds(60));
            Console.WriteLine("kill");
            Message got = queue.EndReceive(waiting);
            Same("from outside", Text(got), "a read that waited during the restart");
        }
    }
}
