using System;
using System.ComponentModel;

namespace System.Messaging
{
    /// <summary>The properties of a message, one bit each.</summary>
    [Flags]
    internal enum MessageParts : ulong
    {
        None = 0,
        AcknowledgeType = 1UL << 0,
        Acknowledgment = 1UL << 1,
        AdministrationQueue = 1UL << 2,
        AppSpecific = 1UL << 3,
        ArrivedTime = 1UL << 4,
        AttachSenderId = 1UL << 5,
        Authenticated = 1UL << 6,
        AuthenticationProviderName = 1UL << 7,
        AuthenticationProviderType = 1UL << 8,
        Body = 1UL << 9,
        ConnectorType = 1UL << 10,
        CorrelationId = 1UL << 11,
        DestinationQueue = 1UL << 12,
        DestinationSymmetricKey = 1UL << 13,
        DigitalSignature = 1UL << 14,
        EncryptionAlgorithm = 1UL << 15,
        Extension = 1UL << 16,
        HashAlgorithm = 1UL << 17,
        Id = 1UL << 18,
        IsFirstInTransaction = 1UL << 19,
        IsLastInTransaction = 1UL << 20,
        Label = 1UL << 21,
        LookupId = 1UL << 22,
        MessageType = 1UL << 23,
        Priority = 1UL << 24,
        Recoverable = 1UL << 25,
        ResponseQueue = 1UL << 26,
        SenderCertificate = 1UL << 27,
        SenderId = 1UL << 28,
        SenderVersion = 1UL << 29,
        SentTime = 1UL << 30,
        SourceMachine = 1UL << 31,
        TimeToBeReceived = 1UL << 32,
        TimeToReachQueue = 1UL << 33,
        TransactionId = 1UL << 34,
        TransactionStatusQueue = 1UL << 35,
        UseAuthentication = 1UL << 36,
        UseDeadLetterQueue = 1UL << 37,
        UseEncryption = 1UL << 38,
        UseJournalQueue = 1UL << 39,
        UseTracing = 1UL << 40,
        Defaults = AcknowledgeType | Acknowledgment | AdministrationQueue | Body | Id | Label | LookupId | MessageType
            | ResponseQueue | UseDeadLetterQueue | UseJournalQueue,
        All = (1UL << 41) - 1,
    }

    /// <summary>
    /// Which properties the messages that a queue returns have. The server sends all of them; the filter decides
    /// which ones a program can read.
    /// </summary>
    [TypeConverter(typeof(ExpandableObjectConverter))]
    public class MessagePropertyFilter : ICloneable
    {
        private int defaultBodySize = 1024;
        private int defaultExtensionSize = 255;
        private int defaultLabelSize = 255;

        public MessagePropertyFilter()
        {
            Parts = MessageParts.Defaults;
        }

        internal MessageParts Parts { get; private set; }

        /// <summary>Kept for programs that set it; bodies of all sizes are received.</summary>
        public int DefaultBodySize
        {
            get { return defaultBodySize; }
            set { defaultBodySize = Size(value); }
        }

        /// <summary>Kept for programs that set it.</summary>
        public int DefaultExtensionSize
        {
            get { return defaultExtensionSize; }
            set { defaultExtensionSize = Size(value); }
        }

        /// <summary>Kept for programs that set it.</summary>
        public int DefaultLabelSize
        {
            get { return defaultLabelSize; }
            set { defaultLabelSize = Size(value); }
        }

        public bool AcknowledgeType
        {
            get { return Has(MessageParts.AcknowledgeType); }
            set { Set(MessageParts.AcknowledgeType, value); }
        }

        public bool Acknowledgment
        {
            get { return Has(MessageParts.Acknowledgment); }
            set { Set(MessageParts.Acknowledgment, value); }
        }

        public bool AdministrationQueue
        {
            get { return Has(MessageParts.AdministrationQueue); }
            set { Set(MessageParts.AdministrationQueue, value); }
        }

        public bool AppSpecific
        {
            get { return Has(MessageParts.AppSpecific); }
            set { Set(MessageParts.AppSpecific, value); }
        }

        public bool ArrivedTime
        {
            get { return Has(MessageParts.ArrivedTime); }
            set { Set(MessageParts.ArrivedTime, value); }
        }

        public bool AttachSenderId
        {
            get { return Has(MessageParts.AttachSenderId); }
            set { Set(MessageParts.AttachSenderId, value); }
        }

        public bool Authenticated
        {
            get { return Has(MessageParts.Authenticated); }
            set { Set(MessageParts.Authenticated, value); }
        }

        public bool AuthenticationProviderName
        {
            get { return Has(MessageParts.AuthenticationProviderName); }
            set { Set(MessageParts.AuthenticationProviderName, value); }
        }

        public bool AuthenticationProviderType
        {
            get { return Has(MessageParts.AuthenticationProviderType); }
            set { Set(MessageParts.AuthenticationProviderType, value); }
        }

        public bool Body
        {
            get { return Has(MessageParts.Body); }
            set { Set(MessageParts.Body, value); }
        }

        public bool ConnectorType
        {
            get { return Has(MessageParts.ConnectorType); }
            set { Set(MessageParts.ConnectorType, value); }
        }

        public bool CorrelationId
        {
            get { return Has(MessageParts.CorrelationId); }
            set { Set(MessageParts.CorrelationId, value); }
        }

        public bool DestinationQueue
        {
            get { return Has(MessageParts.DestinationQueue); }
            set { Set(MessageParts.DestinationQueue, value); }
        }

        public bool DestinationSymmetricKey
        {
            get { return Has(MessageParts.DestinationSymmetricKey); }
            set { Set(MessageParts.DestinationSymmetricKey, value); }
        }

        public bool DigitalSignature
        {
            get { return Has(MessageParts.DigitalSignature); }
            set { Set(MessageParts.DigitalSignature, value); }
        }

        public bool EncryptionAlgorithm
        {
            get { return Has(MessageParts.EncryptionAlgorithm); }
            set { Set(MessageParts.EncryptionAlgorithm, value); }
        }

        public bool Extension
        {
            get { return Has(MessageParts.Extension); }
            set { Set(MessageParts.Extension, value); }
        }

        public bool HashAlgorithm
        {
            get { return Has(MessageParts.HashAlgorithm); }
            set { Set(MessageParts.HashAlgorithm, value); }
        }

        public bool Id
        {
            get { return Has(MessageParts.Id); }
            set { Set(MessageParts.Id, value); }
        }

        public bool IsFirstInTransaction
        {
            get { return Has(MessageParts.IsFirstInTransaction); }
            set { Set(MessageParts.IsFirstInTransaction, value); }
        }

        public bool IsLastInTransaction
        {
            get { return Has(MessageParts.IsLastInTransaction); }
            set { Set(MessageParts.IsLastInTransaction, value); }
        }

        public bool Label
        {
            get { return Has(MessageParts.Label); }
            set { Set(MessageParts.Label, value); }
        }

        public bool LookupId
        {
            get { return Has(MessageParts.LookupId); }
            set { Set(MessageParts.LookupId, value); }
        }

        public bool MessageType
        {
            get { return Has(MessageParts.MessageType); }
            set { Set(MessageParts.MessageType, value); }
        }

        public bool Priority
        {
            get { return Has(MessageParts.Priority); }
            set { Set(MessageParts.Priority, value); }
        }

        public bool Recoverable
        {
            get { return Has(MessageParts.Recoverable); }
            set { Set(MessageParts.Recoverable, value); }
        }

        public bool ResponseQueue
        {
            get { return Has(MessageParts.ResponseQueue); }
            set { Set(MessageParts.ResponseQueue, value); }
        }

        public bool SenderCertificate
        {
            get { return Has(MessageParts.SenderCertificate); }
            set { Set(MessageParts.SenderCertificate, value); }
        }

        public bool SenderId
        {
            get { return Has(MessageParts.SenderId); }
            set { Set(MessageParts.SenderId, value); }
        }

        public bool SenderVersion
        {
            get { return Has(MessageParts.SenderVersion); }
            set { Set(MessageParts.SenderVersion, value); }
        }

        public bool SentTime
        {
            get { return Has(MessageParts.SentTime); }
            set { Set(MessageParts.SentTime, value); }
        }

        public bool SourceMachine
        {
            get { return Has(MessageParts.SourceMachine); }
            set { Set(MessageParts.SourceMachine, value); }
        }

        public bool TimeToBeReceived
        {
            get { return Has(MessageParts.TimeToBeReceived); }
            set { Set(MessageParts.TimeToBeReceived, value); }
        }

        public bool TimeToReachQueue
        {
            get { return Has(MessageParts.TimeToReachQueue); }
            set { Set(MessageParts.TimeToReachQueue, value); }
        }

        public bool TransactionId
        {
            get { return Has(MessageParts.TransactionId); }
            set { Set(MessageParts.TransactionId, value); }
        }

        public bool TransactionStatusQueue
        {
            get { return Has(MessageParts.TransactionStatusQueue); }
            set { Set(MessageParts.TransactionStatusQueue, value); }
        }

        public bool UseAuthentication
        {
            get { return Has(MessageParts.UseAuthentication); }
            set { Set(MessageParts.UseAuthentication, value); }
        }

        public bool UseDeadLetterQueue
        {
            get { return Has(MessageParts.UseDeadLetterQueue); }
            set { Set(MessageParts.UseDeadLetterQueue, value); }
        }

        public bool UseEncryption
        {
            get { return Has(MessageParts.UseEncryption); }
            set { Set(MessageParts.UseEncryption, value); }
        }

        public bool UseJournalQueue
        {
            get { return Has(MessageParts.UseJournalQueue); }
            set { Set(MessageParts.UseJournalQueue, value); }
        }

        public bool UseTracing
        {
            get { return Has(MessageParts.UseTracing); }
            set { Set(MessageParts.UseTracing, value); }
        }

        public void ClearAll()
        {
            Parts = MessageParts.None;
        }

        public void SetAll()
        {
            Parts = MessageParts.All;
        }

        public void SetDefaults()
        {
            Parts = MessageParts.Defaults;
            defaultBodySize = 1024;
            defaultExtensionSize = 255;
            defaultLabelSize = 255;
        }

        public virtual object Clone()
        {
            return MemberwiseClone();
        }

        private bool Has(MessageParts part)
        {
            return (Parts & part) != 0;
        }

        private void Set(MessageParts part, bool value)
        {
            Parts = value ? Parts | part : Parts & ~part;
        }

        private static int Size(int value)
        {
            if (value < 0)
                throw new ArgumentException("a size must not be negative", "value");
            return value;
        }
    }
}
