using System;
using System.Collections.Generic;
using System.Messaging.Wire;

namespace System.Messaging
{
    public partial class MessageQueue
    {
        /// <summary>Kept for programs that set it; handles for sending are always shared.</summary>
        public static bool EnableConnectionCache { get; set; }

        /// <summary>Close the shared handles for sending.</summary>
        public static void ClearConnectionCache()
        {
            Channel.Live().SendHandles.DropAll();
        }

        public static MessageQueue Create(string path)
        {
            return Create(path, false);
        }

        /// <summary>Create a queue of this server. Raises ArgumentException, MessageQueueException.</summary>
        public static MessageQueue Create(string path, bool transactional)
        {
            string name = PathOnly(path);
            Channel.Live().Request(Packer.Begin(FrameKind.CreateQueue)
                .Array(2).Text(name).Map(1).Text("transactional").Bool(transactional));
            return new MessageQueue(path);
        }

        /// <summary>Delete a queue with its messages.</summary>
        public static void Delete(string path)
        {
            string name = new MessageQueue(path).WireName;
            Link link = Channel.Live();
            link.Request(Packer.Begin(FrameKind.DeleteQueue).Array(1).Text(name));
            link.SendHandles.ForgetTransactional();
        }

        /// <summary>Whether a queue of this server, or a public queue, exists.</summary>
        public static bool Exists(string path)
        {
            QueuePath parsed = QueuePath.Parse(path);
            if (parsed.FormatName != null)
                throw new InvalidOperationException("Exists takes a path or a label, not a format name");
            if (parsed.IsPrivate && !Machines.IsLocal(parsed.Machine))
                throw new InvalidOperationException("it is not known whether private queues of other computers exist");
            try
            {
                string name = new MessageQueue(path).WireName;
                Channel.Repeat(link => link.Request(Packer.Begin(FrameKind.GetQueue).Array(1).Text(name)));
                return true;
            }
            catch (InvalidOperationException) when (parsed.Label != null)
            {
                return false;
            }
            catch (MessageQueueException error)
                when (error.MessageQueueErrorCode == MessageQueueErrorCode.QueueNotFound)
            {
                return false;
            }
        }

        public static Guid GetMachineId(string machineName)
        {
            NeedMachine(machineName);
            return Machines.IdOf(machineName);
        }

        /// <summary>The private queues of this server that the caller may see.</summary>
        public static MessageQueue[] GetPrivateQueuesByMachine(string machineName)
        {
            NeedMachine(machineName);
            if (!Machines.IsLocal(machineName))
            {
                throw new MessageQueueException(MessageQueueErrorCode.UnsupportedOperation,
                    "private queues of other computers cannot be listed");
            }
            var maps = (List<object>)Channel.Repeat(link =>
                link.Request(Packer.Begin(FrameKind.ListQueues).Array(1).Text("user")).Any());
            var queues = new List<MessageQueue>();
            foreach (object each in maps)
            {
                string name = Maps.Text((Dictionary<string, object>)each, "name");
                int slash = name.IndexOf('\\');
                var path = slash < 0 ? null : QueuePath.Parse(Machines.Local + name.Substring(slash));
                if (path != null && path.IsPrivate)
                    queues.Add(new MessageQueue(path.Text));
            }
            return queues.ToArray();
        }

        public static MessageQueue[] GetPublicQueues()
        {
            return GetPublicQueues(null);
        }

        public static MessageQueue[] GetPublicQueues(MessageQueueCriteria criteria)
        {
            return new List<MessageQueue>(PublicQueues.All(criteria)).ToArray();
        }

        public static MessageQueue[] GetPublicQueuesByCategory(Guid category)
        {
            return GetPublicQueues(new MessageQueueCriteria { Category = category });
        }

        public static MessageQueue[] GetPublicQueuesByLabel(string label)
        {
            return GetPublicQueues(new MessageQueueCriteria { Label = label });
        }

        public static MessageQueue[] GetPublicQueuesByMachine(string machineName)
        {
            NeedMachine(machineName);
            return GetPublicQueues(new MessageQueueCriteria { MachineName = machineName });
        }

        public static MessageQueueEnumerator GetMessageQueueEnumerator()
        {
            return new MessageQueueEnumerator(null);
        }

        public static MessageQueueEnumerator GetMessageQueueEnumerator(MessageQueueCriteria criteria)
        {
            return new MessageQueueEnumerator(criteria);
        }

        public static SecurityContext GetSecurityContext()
        {
            return new SecurityContext();
        }

        private static string PathOnly(string path)
        {
            QueuePath parsed = QueuePath.Parse(path);
            if (parsed.FormatName != null || parsed.Label != null)
                throw new ArgumentException("a queue is created by its path: MACHINE\\QUEUE or MACHINE\\private$\\QUEUE", "path");
            return parsed.WireName(parsed.Machine == "." ? "." : Machines.Local);
        }

        private static void NeedMachine(string machineName)
        {
            if (machineName == null)
                throw new ArgumentNullException("machineName");
            if (machineName.Length == 0)
                throw new ArgumentException("the name of the computer must not be empty", "machineName");
        }
    }

    /// <summary>Kept for programs that hold one: the identity of a sender is that of its connection.</summary>
    public sealed class SecurityContext : IDisposable
    {
        internal SecurityContext() { }

        public void Dispose() { }
    }
}
