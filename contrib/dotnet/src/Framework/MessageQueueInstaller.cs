#if SYSTEM_MESSAGING // .NET has no System.Configuration.Install; only the program that uses this class needs it
using System;
using System.Collections;
using System.ComponentModel;
using System.Configuration.Install;

namespace System.Messaging
{
    /// <summary>Creates a queue with its properties when an application is installed.</summary>
    public class MessageQueueInstaller : ComponentInstaller
    {
        private const string CreatedKey = "MessageQueue.Created";
        private const string ExistedKey = "MessageQueue.Existed";

        private string path = "";

        public MessageQueueInstaller() { }

        public MessageQueueInstaller(MessageQueue componentToCopy)
        {
            CopyFromComponent(componentToCopy);
        }

        public bool Authenticate { get; set; }

        public short BasePriority { get; set; }

        public Guid Category { get; set; }

        public EncryptionRequired EncryptionRequired { get; set; } = EncryptionRequired.Optional;

        public string Label { get; set; } = "";

        public long MaximumJournalSize { get; set; } = MessageQueue.InfiniteQueueSize;

        public long MaximumQueueSize { get; set; } = MessageQueue.InfiniteQueueSize;

        public string MulticastAddress { get; set; } = "";

        /// <summary>The path of the queue. Raises ArgumentException for another name.</summary>
        public string Path
        {
            get { return path; }
            set
            {
                if (QueuePath.Parse(value).Queue == null)
                    throw new ArgumentException("an installer needs the path of a queue", "value");
                path = value;
            }
        }

        public AccessControlList Permissions { get; set; }

        public bool Transactional { get; set; }

        public bool UseJournalQueue { get; set; }

        public UninstallAction UninstallAction { get; set; } = UninstallAction.Remove;

        /// <summary>Take the properties of an existing queue. Raises ArgumentException, MessageQueueException.</summary>
        public override void CopyFromComponent(IComponent component)
        {
            var queue = component as MessageQueue;
            if (queue == null)
                throw new ArgumentException("the component must be a MessageQueue", "component");
            Path = queue.Path;
            if (!MessageQueue.Exists(queue.Path))
                return;
            Authenticate = queue.Authenticate;
            BasePriority = queue.BasePriority;
            Category = queue.Category;
            EncryptionRequired = queue.EncryptionRequired;
            Label = queue.Label;
            MaximumJournalSize = queue.MaximumJournalSize;
            MaximumQueueSize = queue.MaximumQueueSize;
            MulticastAddress = queue.MulticastAddress;
            Transactional = queue.Transactional;
            UseJournalQueue = queue.UseJournalQueue;
        }

        public override void Install(IDictionary stateSaver)
        {
            base.Install(stateSaver);
            if (path.Length == 0)
                throw new ArgumentException("the installer has no path");
            bool existed = MessageQueue.Exists(path);
            stateSaver[ExistedKey] = existed;
            MessageQueue queue;
            if (existed)
            {
                queue = new MessageQueue(path);
                if (queue.Transactional != Transactional)
                    throw new InvalidOperationException("the queue exists, and differs in being transactional");
            }
            else
            {
                queue = MessageQueue.Create(path, Transactional);
                stateSaver[CreatedKey] = true;
            }
            queue.Authenticate = Authenticate;
            queue.BasePriority = BasePriority;
            queue.Category = Category;
            queue.EncryptionRequired = EncryptionRequired;
            queue.Label = Label;
            queue.MaximumJournalSize = MaximumJournalSize;
            queue.MaximumQueueSize = MaximumQueueSize;
            if (MulticastAddress.Length > 0)
                queue.MulticastAddress = MulticastAddress;
            queue.UseJournalQueue = UseJournalQueue;
            if (Permissions != null)
                queue.SetPermissions(Permissions);
        }

        public override bool IsEquivalentInstaller(ComponentInstaller otherInstaller)
        {
            var other = otherInstaller as MessageQueueInstaller;
            return other != null && string.Equals(other.Path, path, StringComparison.OrdinalIgnoreCase);
        }

        public override void Rollback(IDictionary savedState)
        {
            base.Rollback(savedState);
            if (savedState != null && savedState.Contains(CreatedKey) && MessageQueue.Exists(path))
                MessageQueue.Delete(path);
        }

        public override void Uninstall(IDictionary savedState)
        {
            base.Uninstall(savedState);
            bool keep = savedState != null && savedState.Contains(ExistedKey) && (bool)savedState[ExistedKey];
            if (UninstallAction == UninstallAction.Remove && !keep && MessageQueue.Exists(path))
                MessageQueue.Delete(path);
        }
    }
}
#endif
