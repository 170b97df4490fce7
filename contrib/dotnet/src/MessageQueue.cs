using System;
using System.Collections;
using System.Collections.Generic;
using System.ComponentModel;
using System.Messaging.Wire;

namespace System.Messaging
{
    /// <summary>
    /// A queue. The object opens its queue at the first operation that needs it, and again after the connection to
    /// the server was lost.
    /// </summary>
    [DefaultEvent("ReceiveCompleted")]
    public partial class MessageQueue : Component, IEnumerable
    {
        /// <summary>The longest time-out of an operation, in milliseconds: it never expires.</summary>
        public static readonly TimeSpan InfiniteTimeout = TimeSpan.FromMilliseconds(uint.MaxValue);

        /// <summary>The size of a queue without a quota.</summary>
        public static readonly long InfiniteQueueSize = uint.MaxValue;

        private readonly object gate = new object();
        private readonly QueueAccessMode accessMode = QueueAccessMode.SendAndReceive;
        private QueuePath path;
        private string knownName; // the server's name of a queue that was given by its label
        private bool denySharedReceive;
        private IMessageFormatter formatter = new XmlMessageFormatter();
        private DefaultPropertiesToSend defaultPropertiesToSend = new DefaultPropertiesToSend();
        private MessagePropertyFilter filter = new MessagePropertyFilter();
        private ReadHandle readHandle;
        private ReadHandle peekHandle;

        public MessageQueue() { }

        public MessageQueue(string path)
            : this(path, false, EnableConnectionCache) { }

        public MessageQueue(string path, QueueAccessMode accessMode)
            : this(path, false, EnableConnectionCache, accessMode) { }

        public MessageQueue(string path, bool sharedModeDenyReceive)
            : this(path, sharedModeDenyReceive, EnableConnectionCache) { }

        public MessageQueue(string path, bool sharedModeDenyReceive, bool enableCache)
            : this(path, sharedModeDenyReceive, enableCache, QueueAccessMode.SendAndReceive) { }

        /// <summary>Make an object for a queue; `enableCache` is kept for programs that give it.</summary>
        public MessageQueue(string path, bool sharedModeDenyReceive, bool enableCache, QueueAccessMode accessMode)
        {
            if (!Enum.IsDefined(typeof(QueueAccessMode), accessMode))
                throw new InvalidEnumArgumentException("accessMode", (int)accessMode, typeof(QueueAccessMode));
            this.path = QueuePath.Parse(path);
            this.accessMode = accessMode;
            denySharedReceive = sharedModeDenyReceive;
        }

        public QueueAccessMode AccessMode => accessMode;

        /// <summary>Whether the caller can open the queue for reading.</summary>
        public bool CanRead => CanOpen(() => ReadHandle);

        /// <summary>Whether the caller can open the queue for sending.</summary>
        public bool CanWrite => CanOpen(() => WriteHandle);

        public DefaultPropertiesToSend DefaultPropertiesToSend
        {
            get { return defaultPropertiesToSend; }
            set { defaultPropertiesToSend = value ?? new DefaultPropertiesToSend(); }
        }

        public bool DenySharedReceive
        {
            get { return denySharedReceive; }
            set
            {
                if (denySharedReceive == value)
                    return;
                denySharedReceive = value;
                Close();
            }
        }

        public IMessageFormatter Formatter
        {
            get { return formatter; }
            set { formatter = value; }
        }

        public MessagePropertyFilter MessageReadPropertyFilter
        {
            get { return filter; }
            set
            {
                if (value == null)
                    throw new ArgumentNullException("value");
                filter = value;
            }
        }

        /// <summary>The name as it was given. A new name closes the queue.</summary>
        public string Path
        {
            get { return path == null ? "" : path.Text; }
            set
            {
                QueuePath parsed = QueuePath.Parse(value);
                Close();
                Refresh();
                path = parsed;
                knownName = null;
            }
        }

        /// <summary>The number of the queue's handle for reading.</summary>
        public IntPtr ReadHandle
        {
            get
            {
                long number;
                HandleForReading(false).Acquire(Channel.Patience, out number);
                return new IntPtr(number);
            }
        }

        /// <summary>The number of the queue's handle for sending.</summary>
        public IntPtr WriteHandle => new IntPtr(Channel.Repeat(link => link.SendHandles.Get(WireName).Number));

        /// <summary>An object whose thread raises the events of this queue; null: any thread.</summary>
        public ISynchronizeInvoke SynchronizingObject { get; set; }

        /// <summary>The name of the queue in requests to the server.</summary>
        internal string WireName
        {
            get
            {
                QueuePath name = NeedPath();
                if (name.FormatName != null)
                    return name.FormatName;
                if (name.Label != null)
                    return knownName ?? (knownName = PublicQueues.ByLabel(name.Label));
                return name.WireName(name.Machine == "." ? "." : Machines.Local);
            }
        }

        /// <summary>Close the queue; waiting operations end with OperationCanceled. The object stays usable.</summary>
        public void Close()
        {
            ReadHandle reading;
            ReadHandle peeking;
            lock (gate)
            {
                reading = readHandle;
                peeking = peekHandle;
                readHandle = null;
                peekHandle = null;
            }
            if (reading != null)
                reading.Close();
            if (peeking != null)
                peeking.Close();
        }

        /// <summary>Make a cursor at the begin of the queue.</summary>
        public Cursor CreateCursor()
        {
            return new Cursor(this);
        }

        /// <summary>Remove all messages.</summary>
        public void Purge()
        {
            Channel.Repeat(live =>
            {
                long number;
                Link link = HandleForReading(false).Acquire(Channel.Patience, out number);
                return link.Request(Packer.Begin(FrameKind.Purge).Array(1).Int(number));
            });
        }

        /// <summary>Return copies of all messages, which stay in the queue.</summary>
        public Message[] GetAllMessages()
        {
            var messages = new List<Message>();
            using (MessageEnumerator enumerator = GetMessageEnumerator2())
            {
                while (enumerator.MoveNext())
                    messages.Add(enumerator.Current);
            }
            return messages.ToArray();
        }

        public IEnumerator GetEnumerator()
        {
            return GetMessageEnumerator2();
        }

        [Obsolete("Use GetMessageEnumerator2.")]
        public MessageEnumerator GetMessageEnumerator()
        {
            return GetMessageEnumerator2();
        }

        public MessageEnumerator GetMessageEnumerator2()
        {
            return new MessageEnumerator(this);
        }

        internal static MessageQueue OfFormatName(string formatName)
        {
            return new MessageQueue(QueuePath.FormatPrefix + formatName);
        }

        /// <summary>The handle that reads need; it is opened by its first use.</summary>
        internal ReadHandle HandleForReading(bool peek)
        {
            int access = (int)accessMode & 0x21;
            if (access == 0)
            {
                throw new MessageQueueException(MessageQueueErrorCode.UnsupportedAccessMode,
                    "the queue object was made for sending");
            }
            lock (gate)
            {
                if (!peek || access == 0x20 || denySharedReceive)
                    return readHandle ?? (readHandle = new ReadHandle(WireName, access, denySharedReceive));
                // A caller with the right to peek only can peek with an object for sending and receiving.
                return readHandle ?? peekHandle ?? (peekHandle = new ReadHandle(WireName, 0x20, false));
            }
        }

        protected override void Dispose(bool disposing)
        {
            if (disposing)
                Close();
            base.Dispose(disposing);
        }

        private QueuePath NeedPath()
        {
            if (path == null)
                throw new InvalidOperationException("the queue has no path: set Path first");
            return path;
        }

        private static bool CanOpen(Func<IntPtr> open)
        {
            try
            {
                open();
                return true;
            }
            catch (MessageQueueException error) when (!(error is LinkLostException))
            {
                return false;
            }
        }
    }
}
