using System;
using System.ComponentModel;
using System.IO;
using System.Messaging.Wire;
using System.Security.Cryptography;

namespace System.Messaging
{
    /// <summary>
    /// A message. The properties of a received message are those that the filter of its queue asked for; reading
    /// another one raises InvalidOperationException.
    /// </summary>
    public partial class Message : Component
    {
        /// <summary>The longest time-out, in seconds: it never expires.</summary>
        public static readonly TimeSpan InfiniteTimeout = TimeSpan.FromSeconds(uint.MaxValue);

        private const uint Infinite = uint.MaxValue;
        private const uint LongLived = uint.MaxValue - 1; // the queue manager's own default
        private const int MaxLabel = 249; // UTF-16 units

        private readonly WireMessage received;
        private readonly MessageParts parts = MessageParts.All;
        private object body;
        private Stream bodyStream;
        private IMessageFormatter formatter;
        private PendingId pendingId;
        private byte[] id = new byte[MessageId.Size];
        private string responseName;
        private string administrationName;

        public Message()
        {
            timeToReachQueue = LongLived;
            timeToBeReceived = Infinite;
        }

        public Message(object body)
            : this()
        {
            Body = body;
        }

        public Message(object body, IMessageFormatter formatter)
            : this()
        {
            Formatter = formatter;
            Body = body;
        }

        internal Message(WireMessage received, MessageParts parts)
        {
            this.received = received;
            this.parts = parts;
            id = received.Id;
            LoadReceived();
        }

        /// <summary>
        /// The content. It is read from the body by the formatter at the first access, and written by the
        /// formatter when the message is sent.
        /// </summary>
        public object Body
        {
            get
            {
                Need(MessageParts.Body, "Body");
                if (body == null)
                {
                    if (Formatter == null)
                        throw new InvalidOperationException("the message has no formatter to read its body");
                    if (!Formatter.CanRead(this))
                        throw new InvalidOperationException("the formatter cannot read this message");
                    BodyStream.Position = 0;
                    body = Formatter.Read(this);
                }
                return body;
            }
            set
            {
                Need(MessageParts.Body, "Body");
                body = value;
            }
        }

        /// <summary>The bytes of the body.</summary>
        public Stream BodyStream
        {
            get
            {
                Need(MessageParts.Body, "BodyStream");
                return bodyStream ?? (bodyStream = new MemoryStream());
            }
            set
            {
                Need(MessageParts.Body, "BodyStream");
                bodyStream = value;
            }
        }

        /// <summary>The VARTYPE of the body.</summary>
        public int BodyType
        {
            get
            {
                Need(MessageParts.Body, "BodyType");
                return bodyType;
            }
            set
            {
                Need(MessageParts.Body, "BodyType");
                bodyType = value;
            }
        }

        public IMessageFormatter Formatter
        {
            get { return formatter; }
            set
            {
                if (value == null)
                    throw new ArgumentNullException("value");
                formatter = value;
            }
        }

        /// <summary>
        /// The identifier, `guid\number`; zeros before the message is sent. Within a transaction, the first access
        /// waits for the server.
        /// </summary>
        public string Id
        {
            get
            {
                Need(MessageParts.Id, "Id");
                if (pendingId != null)
                {
                    byte[] known = pendingId.Wait();
                    pendingId = null;
                    if (known != null)
                        id = known;
                }
                return MessageId.Text(id);
            }
        }

        /// <summary>Whether this received message has an identifier, or a correlation identifier.</summary>
        internal bool Matches(byte[] wanted, bool byCorrelation)
        {
            return MessageId.Same(byCorrelation ? received.CorrelationId : received.Id, wanted);
        }

        internal void SetFormatterOf(MessageQueue queue)
        {
            formatter = queue.Formatter == null ? null : (IMessageFormatter)queue.Formatter.Clone();
        }

        /// <summary>Take the identifier with which the message was sent, or will have been sent.</summary>
        internal void Identify(PendingId known)
        {
            pendingId = known;
        }

        /// <summary>
        /// Let the formatter write the body, and find the names of the queues. Raises InvalidOperationException,
        /// MessageQueueException.
        /// </summary>
        internal void Prepare(MessageQueue queue)
        {
            responseName = responseQueue == null ? null : responseQueue.FormatName;
            administrationName = administrationQueue == null ? null : administrationQueue.FormatName;
            if (body == null)
                return;
            IMessageFormatter writer = formatter ?? queue.Formatter;
            if (writer == null)
                throw new InvalidOperationException("neither the message nor the queue has a formatter");
            if (formatter == null)
                formatter = (IMessageFormatter)writer.Clone();
            bodyStream = new MemoryStream();
            writer.Write(this, body);
        }

        /// <summary>Append the message array of a SEND frame.</summary>
        internal void Pack(Packer packer)
        {
            packer.Array(22);
            PackBody(packer);
            packer.Text(label).Int(recoverable ? 1 : 0).Int((int)priority)
                .UInt(unchecked((uint)bodyType)).UInt(unchecked((uint)appSpecific))
                .Binary(correlationId).Binary(extension)
                .Text(responseName).Text(administrationName)
                .Int((int)acknowledgeType).Int((useDeadLetterQueue ? 1 : 0) | (useJournalQueue ? 2 : 0))
                .UInt(timeToReachQueue).UInt(timeToBeReceived)
                .Int(0).Nil()
                .Int(useAuthentication ? 2 : 0).Int(useEncryption ? 1 : 0)
                .UInt(hashAlgorithmSet ? (uint)hashAlgorithm : 0)
                .UInt(encryptionAlgorithmSet ? (uint)encryptionAlgorithm : 0)
                .Binary(CertificateDigest()).Bool(attachSenderId);
        }

        private void PackBody(Packer packer)
        {
            if (bodyStream == null)
            {
                packer.Binary(null);
                return;
            }
            var memory = bodyStream as MemoryStream;
            ArraySegment<byte> content;
            if (memory != null && memory.TryGetBuffer(out content))
            {
                packer.Binary(content.Array, content.Offset, content.Count);
                return;
            }
            if (bodyStream.CanSeek)
                bodyStream.Position = 0;
            var copy = new MemoryStream();
            bodyStream.CopyTo(copy);
            packer.Binary(copy.GetBuffer(), 0, (int)copy.Length);
        }

        private byte[] CertificateDigest()
        {
            if (senderCertificate.Length == 0 || !useAuthentication)
                return null;
            using (MD5 md5 = MD5.Create())
                return md5.ComputeHash(senderCertificate);
        }

        private void LoadReceived()
        {
            bodyStream = new MemoryStream(received.Body, 0, received.Body.Length, true, true);
            bodyType = received.BodyType;
            label = received.Label;
            recoverable = received.Recoverable;
            priority = (MessagePriority)received.Priority;
            appSpecific = received.AppSpecific;
            correlationId = received.CorrelationId;
            extension = received.Extension;
            acknowledgeType = (AcknowledgeTypes)received.Acknowledge;
            useDeadLetterQueue = (received.Journal & 1) != 0;
            useJournalQueue = (received.Journal & 2) != 0;
            timeToReachQueue = received.TimeToReachQueue;
            timeToBeReceived = received.TimeToBeReceived;
            attachSenderId = received.SenderId != null;
            if (received.ResponseQueue != null)
                responseQueue = MessageQueue.OfFormatName(received.ResponseQueue);
            if (received.AdminQueue != null)
                administrationQueue = MessageQueue.OfFormatName(received.AdminQueue);
        }

        /// <summary>Refuse the access to a property that the filter left out.</summary>
        private void Need(MessageParts part, string name)
        {
            if ((parts & part) == 0)
            {
                throw new InvalidOperationException("the property " + name + " was not retrieved: set " + name
                    + " of the queue's MessageReadPropertyFilter to true before the message is received");
            }
        }

        /// <summary>Refuse the access to a property that only received messages have.</summary>
        private WireMessage NeedReceived(MessageParts part, string name)
        {
            if (received == null)
                throw new InvalidOperationException("the property " + name + " is known after the message was received");
            Need(part, name);
            return received;
        }
    }
}
