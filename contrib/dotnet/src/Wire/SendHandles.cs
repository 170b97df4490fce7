using System;
using System.Collections.Generic;

namespace System.Messaging.Wire
{
    /// <summary>A queue that is open for sending.</summary>
    internal sealed class SendHandle
    {
        internal SendHandle(string name, long number)
        {
            Name = name;
            Number = number;
        }

        internal string Name { get; }

        internal long Number { get; }

        /// <summary>Whether the queue accepted a message in a transaction, so that the next ones need not wait.</summary>
        internal bool KnownTransactional { get; set; }
    }

    /// <summary>
    /// The queues that one connection has open for sending. Queue objects with one name share a handle, and a
    /// closed object leaves its handle open for the next; the least recently used handle is closed when there are
    /// too many.
    /// </summary>
    internal sealed class SendHandles
    {
        private const int Most = 128;
        private const int SendAccess = 2;

        private readonly Link link;
        private readonly Dictionary<string, LinkedListNode<SendHandle>> byName =
            new Dictionary<string, LinkedListNode<SendHandle>>(StringComparer.OrdinalIgnoreCase);
        private readonly LinkedList<SendHandle> byUse = new LinkedList<SendHandle>();

        internal SendHandles(Link link)
        {
            this.link = link;
        }

        /// <summary>Return a handle; open the queue if need be. Raises LinkLostException, MessageQueueException.</summary>
        internal SendHandle Get(string name)
        {
            lock (byName)
            {
                LinkedListNode<SendHandle> node;
                if (byName.TryGetValue(name, out node))
                {
                    if (byUse.First != node)
                    {
                        byUse.Remove(node);
                        byUse.AddFirst(node);
                    }
                    return node.Value;
                }
            }
            Packer request = Packer.Begin(FrameKind.Open).Array(2).Text(name).Int(SendAccess);
            Unpacker reply = link.Request(request);
            reply.Array();
            var opened = new SendHandle(name, reply.Int());
            lock (byName)
            {
                if (byName.ContainsKey(name))
                {
                    Close(opened); // another thread was quicker
                    return byName[name].Value;
                }
                byName.Add(name, byUse.AddFirst(opened));
                if (byUse.Count > Most)
                    Drop(byUse.Last.Value);
            }
            return opened;
        }

        /// <summary>Close a handle that is of no use, or that has not been used for long.</summary>
        internal void Drop(SendHandle handle)
        {
            lock (byName)
            {
                LinkedListNode<SendHandle> node;
                if (!byName.TryGetValue(handle.Name, out node) || node.Value != handle)
                    return;
                byName.Remove(handle.Name);
                byUse.Remove(node);
            }
            Close(handle);
        }

        /// <summary>
        /// Forget which queues accept messages in transactions. Called when a queue was deleted: the next send in a
        /// transaction waits for the answer, so that it can open the queue again.
        /// </summary>
        internal void ForgetTransactional()
        {
            lock (byName)
            {
                foreach (SendHandle handle in byUse)
                    handle.KnownTransactional = false;
            }
        }

        internal void DropAll()
        {
            SendHandle[] all;
            lock (byName)
            {
                all = new SendHandle[byUse.Count];
                byUse.CopyTo(all, 0);
                byUse.Clear();
                byName.Clear();
            }
            foreach (SendHandle handle in all)
                Close(handle);
        }

        private void Close(SendHandle handle)
        {
            link.Post(Packer.Begin(FrameKind.Close).Array(1).Int(handle.Number));
        }
    }
}
