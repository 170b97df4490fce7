using System;
using System.Messaging.Wire;

namespace System.Messaging
{
    public partial class Message
    {
        private const string DefaultProvider = "Microsoft Base Cryptographic Provider, Ver. 1.0";

        private static readonly byte[] Nothing = new byte[0];
        private static readonly DateTime Epoch = new DateTime(1970, 1, 1, 0, 0, 0, DateTimeKind.Utc);

        private int bodyType;
        private string label = "";
        private bool recoverable;
        private MessagePriority priority = MessagePriority.Normal;
        private int appSpecific;
        private byte[] correlationId = new byte[MessageId.Size];
        private byte[] extension = Nothing;
        private MessageQueue responseQueue;
        private MessageQueue administrationQueue;
        private MessageQueue transactionStatusQueue;
        private AcknowledgeTypes acknowledgeType;
        private bool useDeadLetterQueue;
        private bool useJournalQueue;
        private bool useAuthentication;
        private bool useEncryption;
        private bool useTracing;
        private bool attachSenderId = true;
        private uint timeToReachQueue;
        private uint timeToBeReceived;
        private HashAlgorithm hashAlgorithm = HashAlgorithm.Sha512;
        private bool hashAlgorithmSet;
        private EncryptionAlgorithm encryptionAlgorithm = EncryptionAlgorithm.Rc2;
        private bool encryptionAlgorithmSet;
        private byte[] senderCertificate = Nothing;
        private byte[] destinationSymmetricKey = Nothing;
        private byte[] digitalSignature = Nothing;
        private Guid connectorType;
        private string authenticationProviderName = DefaultProvider;
        private CryptographicProviderType authenticationProviderType = CryptographicProviderType.RsaFull;

        public AcknowledgeTypes AcknowledgeType
        {
            get { return Get(acknowledgeType, MessageParts.AcknowledgeType, "AcknowledgeType"); }
            set { acknowledgeType = value; }
        }

        public Acknowledgment Acknowledgment =>
            (Acknowledgment)NeedReceived(MessageParts.Acknowledgment, "Acknowledgment").Class;

        public MessageQueue AdministrationQueue
        {
            get { return Get(administrationQueue, MessageParts.AdministrationQueue, "AdministrationQueue"); }
            set { administrationQueue = value; }
        }

        public int AppSpecific
        {
            get { return Get(appSpecific, MessageParts.AppSpecific, "AppSpecific"); }
            set { appSpecific = value; }
        }

        public DateTime ArrivedTime => Local(NeedReceived(MessageParts.ArrivedTime, "ArrivedTime").ArrivedTime);

        public bool AttachSenderId
        {
            get { return Get(attachSenderId, MessageParts.AttachSenderId, "AttachSenderId"); }
            set { attachSenderId = value; }
        }

        public bool Authenticated => NeedReceived(MessageParts.Authenticated, "Authenticated").Authenticated;

        public string AuthenticationProviderName
        {
            get
            {
                return Get(authenticationProviderName, MessageParts.AuthenticationProviderName,
                    "AuthenticationProviderName");
            }
            set { authenticationProviderName = NotNull(value); }
        }

        public CryptographicProviderType AuthenticationProviderType
        {
            get
            {
                return Get(authenticationProviderType, MessageParts.AuthenticationProviderType,
                    "AuthenticationProviderType");
            }
            set { authenticationProviderType = value; }
        }

        public Guid ConnectorType
        {
            get { return Get(connectorType, MessageParts.ConnectorType, "ConnectorType"); }
            set { connectorType = value; }
        }

        public string CorrelationId
        {
            get
            {
                Need(MessageParts.CorrelationId, "CorrelationId");
                return received == null && Array.TrueForAll(correlationId, one => one == 0)
                    ? "" : MessageId.Text(correlationId);
            }
            set { correlationId = MessageId.Parse(NotNull(value)); }
        }

        public MessageQueue DestinationQueue =>
            MessageQueue.OfFormatName(NeedReceived(MessageParts.DestinationQueue, "DestinationQueue").DestinationQueue);

        public byte[] DestinationSymmetricKey
        {
            get
            {
                return Get(destinationSymmetricKey, MessageParts.DestinationSymmetricKey, "DestinationSymmetricKey");
            }
            set { destinationSymmetricKey = NotNull(value); }
        }

        public byte[] DigitalSignature
        {
            get { return Get(digitalSignature, MessageParts.DigitalSignature, "DigitalSignature"); }
            set { digitalSignature = NotNull(value); }
        }

        public EncryptionAlgorithm EncryptionAlgorithm
        {
            get { return Get(encryptionAlgorithm, MessageParts.EncryptionAlgorithm, "EncryptionAlgorithm"); }
            set
            {
                encryptionAlgorithm = value;
                encryptionAlgorithmSet = true;
            }
        }

        public byte[] Extension
        {
            get { return Get(extension, MessageParts.Extension, "Extension"); }
            set { extension = NotNull(value); }
        }

        public HashAlgorithm HashAlgorithm
        {
            get { return Get(hashAlgorithm, MessageParts.HashAlgorithm, "HashAlgorithm"); }
            set
            {
                hashAlgorithm = value;
                hashAlgorithmSet = true;
            }
        }

        /// <summary>Whether this is the first message of its transaction to the queue; false before it is sent.</summary>
        public bool IsFirstInTransaction =>
            Get(received != null && (received.Transaction & 1) != 0, MessageParts.IsFirstInTransaction,
                "IsFirstInTransaction");

        /// <summary>Whether this is the last message of its transaction to the queue; false before it is sent.</summary>
        public bool IsLastInTransaction =>
            Get(received != null && (received.Transaction & 2) != 0, MessageParts.IsLastInTransaction,
                "IsLastInTransaction");

        public string Label
        {
            get { return Get(label, MessageParts.Label, "Label"); }
            set
            {
                if (value != null && value.Length > MaxLabel)
                    throw new ArgumentException("a label must have at most 249 characters", "value");
                label = value ?? "";
            }
        }

        public long LookupId => NeedReceived(MessageParts.LookupId, "LookupId").LookupId;

        public MessageType MessageType
        {
            get
            {
                int kind = NeedReceived(MessageParts.MessageType, "MessageType").Class;
                return kind == 0 ? MessageType.Normal
                    : kind == 1 ? MessageType.Report : MessageType.Acknowledgment;
            }
        }

        public MessagePriority Priority
        {
            get { return Get(priority, MessageParts.Priority, "Priority"); }
            set { priority = value; }
        }

        public bool Recoverable
        {
            get { return Get(recoverable, MessageParts.Recoverable, "Recoverable"); }
            set { recoverable = value; }
        }

        public MessageQueue ResponseQueue
        {
            get { return Get(responseQueue, MessageParts.ResponseQueue, "ResponseQueue"); }
            set { responseQueue = value; }
        }

        public SecurityContext SecurityContext { get; set; }

        /// <summary>The certificate to sign with; it must be registered for the sender.</summary>
        public byte[] SenderCertificate
        {
            get { return Get(senderCertificate, MessageParts.SenderCertificate, "SenderCertificate"); }
            set { senderCertificate = NotNull(value); }
        }

        /// <summary>The SID of the sender; empty if the message has none.</summary>
        public byte[] SenderId => NeedReceived(MessageParts.SenderId, "SenderId").SenderId ?? Nothing;

        public long SenderVersion
        {
            get
            {
                NeedReceived(MessageParts.SenderVersion, "SenderVersion");
                return 0x10; // of all packets of MSMQ (MS-MQMQ 2.2.19.1)
            }
        }

        public DateTime SentTime => Local(NeedReceived(MessageParts.SentTime, "SentTime").SentTime);

        /// <summary>The name of the sending computer; its GUID if this queue manager does not know the name.</summary>
        public string SourceMachine
        {
            get
            {
                byte[] sender = NeedReceived(MessageParts.SourceMachine, "SourceMachine").Id;
                return Machines.NameOf(sender);
            }
        }

        public TimeSpan TimeToBeReceived
        {
            get { return Span(Get(timeToBeReceived, MessageParts.TimeToBeReceived, "TimeToBeReceived")); }
            set { timeToBeReceived = Seconds(value); }
        }

        public TimeSpan TimeToReachQueue
        {
            get { return Span(Get(timeToReachQueue, MessageParts.TimeToReachQueue, "TimeToReachQueue")); }
            set { timeToReachQueue = Seconds(value); }
        }

        /// <summary>The transaction of a received message, `guid\number`; empty if it has none.</summary>
        public string TransactionId
        {
            get
            {
                Need(MessageParts.TransactionId, "TransactionId");
                return received == null || !received.Transactional
                    ? "" : MessageId.Text(MessageId.Of(received.Id, received.Transaction >> 2));
            }
        }

        public MessageQueue TransactionStatusQueue
        {
            get { return Get(transactionStatusQueue, MessageParts.TransactionStatusQueue, "TransactionStatusQueue"); }
            set { transactionStatusQueue = value; }
        }

        public bool UseAuthentication
        {
            get { return Get(useAuthentication, MessageParts.UseAuthentication, "UseAuthentication"); }
            set { useAuthentication = value; }
        }

        public bool UseDeadLetterQueue
        {
            get { return Get(useDeadLetterQueue, MessageParts.UseDeadLetterQueue, "UseDeadLetterQueue"); }
            set { useDeadLetterQueue = value; }
        }

        public bool UseEncryption
        {
            get { return Get(useEncryption, MessageParts.UseEncryption, "UseEncryption"); }
            set { useEncryption = value; }
        }

        public bool UseJournalQueue
        {
            get { return Get(useJournalQueue, MessageParts.UseJournalQueue, "UseJournalQueue"); }
            set { useJournalQueue = value; }
        }

        /// <summary>Kept for programs that set it; the server's own tracing needs no mark on a message.</summary>
        public bool UseTracing
        {
            get { return Get(useTracing, MessageParts.UseTracing, "UseTracing"); }
            set { useTracing = value; }
        }

        /// <summary>Copy the values that a queue gives to what it sends.</summary>
        internal void CopyFrom(DefaultPropertiesToSend defaults)
        {
            Message source = defaults.Values;
            recoverable = source.recoverable;
            priority = source.priority;
            label = source.label;
            appSpecific = source.appSpecific;
            extension = source.extension;
            responseQueue = source.responseQueue;
            administrationQueue = source.administrationQueue;
            transactionStatusQueue = source.transactionStatusQueue;
            acknowledgeType = source.acknowledgeType;
            useDeadLetterQueue = source.useDeadLetterQueue;
            useJournalQueue = source.useJournalQueue;
            useAuthentication = source.useAuthentication;
            useEncryption = source.useEncryption;
            useTracing = source.useTracing;
            attachSenderId = source.attachSenderId;
            timeToReachQueue = source.timeToReachQueue;
            timeToBeReceived = source.timeToBeReceived;
            hashAlgorithm = source.hashAlgorithm;
            hashAlgorithmSet = source.hashAlgorithmSet;
            encryptionAlgorithm = source.encryptionAlgorithm;
            encryptionAlgorithmSet = source.encryptionAlgorithmSet;
        }

        private T Get<T>(T value, MessageParts part, string name)
        {
            Need(part, name);
            return value;
        }

        private static T NotNull<T>(T value) where T : class
        {
            if (value == null)
                throw new ArgumentNullException("value");
            return value;
        }

        private static DateTime Local(long seconds)
        {
            return Epoch.AddSeconds(seconds).ToLocalTime();
        }

        private static TimeSpan Span(uint seconds)
        {
            return seconds >= LongLived ? InfiniteTimeout : TimeSpan.FromSeconds(seconds);
        }

        private static uint Seconds(TimeSpan value)
        {
            if (value < TimeSpan.Zero)
                throw new ArgumentException("a time-out must not be negative", "value");
            return value >= InfiniteTimeout ? Infinite : (uint)value.TotalSeconds;
        }
    }
}
