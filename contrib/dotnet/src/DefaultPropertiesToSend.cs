using System;
using System.ComponentModel;

namespace System.Messaging
{
    /// <summary>The properties of messages that a queue sends for objects that are not messages.</summary>
    [TypeConverter(typeof(ExpandableObjectConverter))]
    public class DefaultPropertiesToSend
    {
        internal Message Values { get; } = new Message();

        public AcknowledgeTypes AcknowledgeType
        {
            get { return Values.AcknowledgeType; }
            set { Values.AcknowledgeType = value; }
        }

        public MessageQueue AdministrationQueue
        {
            get { return Values.AdministrationQueue; }
            set { Values.AdministrationQueue = value; }
        }

        public int AppSpecific
        {
            get { return Values.AppSpecific; }
            set { Values.AppSpecific = value; }
        }

        public bool AttachSenderId
        {
            get { return Values.AttachSenderId; }
            set { Values.AttachSenderId = value; }
        }

        public EncryptionAlgorithm EncryptionAlgorithm
        {
            get { return Values.EncryptionAlgorithm; }
            set { Values.EncryptionAlgorithm = value; }
        }

        public byte[] Extension
        {
            get { return Values.Extension; }
            set { Values.Extension = value; }
        }

        public HashAlgorithm HashAlgorithm
        {
            get { return Values.HashAlgorithm; }
            set { Values.HashAlgorithm = value; }
        }

        public string Label
        {
            get { return Values.Label; }
            set { Values.Label = value; }
        }

        public MessagePriority Priority
        {
            get { return Values.Priority; }
            set { Values.Priority = value; }
        }

        public bool Recoverable
        {
            get { return Values.Recoverable; }
            set { Values.Recoverable = value; }
        }

        public MessageQueue ResponseQueue
        {
            get { return Values.ResponseQueue; }
            set { Values.ResponseQueue = value; }
        }

        public TimeSpan TimeToBeReceived
        {
            get { return Values.TimeToBeReceived; }
            set { Values.TimeToBeReceived = value; }
        }

        public TimeSpan TimeToReachQueue
        {
            get { return Values.TimeToReachQueue; }
            set { Values.TimeToReachQueue = value; }
        }

        public MessageQueue TransactionStatusQueue
        {
            get { return Values.TransactionStatusQueue; }
            set { Values.TransactionStatusQueue = value; }
        }

        public bool UseAuthentication
        {
            get { return Values.UseAuthentication; }
            set { Values.UseAuthentication = value; }
        }

        public bool UseDeadLetterQueue
        {
            get { return Values.UseDeadLetterQueue; }
            set { Values.UseDeadLetterQueue = value; }
        }

        public bool UseEncryption
        {
            get { return Values.UseEncryption; }
            set { Values.UseEncryption = value; }
        }

        public bool UseJournalQueue
        {
            get { return Values.UseJournalQueue; }
            set { Values.UseJournalQueue = value; }
        }

        public bool UseTracing
        {
            get { return Values.UseTracing; }
            set { Values.UseTracing = value; }
        }
    }
}
