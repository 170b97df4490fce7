using System;

namespace System.Messaging
{
    /// <summary>Kinds of access control entries.</summary>
    public enum AccessControlEntryType
    {
        Allow = 1,
        Set = 2,
        Deny = 3,
        Revoke = 4,
    }

    /// <summary>The acknowledgments that a sender asks for.</summary>
    [Flags]
    public enum AcknowledgeTypes
    {
        None = 0x00,
        PositiveArrival = 0x01,
        PositiveReceive = 0x02,
        NotAcknowledgeReachQueue = 0x04,
        FullReachQueue = 0x05,
        NegativeReceive = 0x08,
        NotAcknowledgeReceive = 0x0C,
        FullReceive = 0x0E,
    }

    /// <summary>The class of an acknowledgment message (MS-MQMQ 2.2.18.1.6).</summary>
    public enum Acknowledgment
    {
        None = 0x0000,
        ReachQueue = 0x0002,
        Receive = 0x4000,
        BadDestinationQueue = 0x8000,
        Purged = 0x8001,
        ReachQueueTimeout = 0x8002,
        QueueExceedMaximumSize = 0x8003,
        AccessDenied = 0x8004,
        HopCountExceeded = 0x8005,
        BadSignature = 0x8006,
        BadEncryption = 0x8007,
        CouldNotEncrypt = 0x8008,
        NotTransactionalQueue = 0x8009,
        NotTransactionalMessage = 0x800A,
        QueueDeleted = 0xC000,
        QueuePurged = 0xC001,
        ReceiveTimeout = 0xC002,
        ReceiveRejected = 0xC004,
    }

    /// <summary>Types of cryptographic providers.</summary>
    public enum CryptographicProviderType
    {
        None = 0,
        RsaFull = 1,
        RsqSig = 2,
        Dss = 3,
        Fortezza = 4,
        MicrosoftExchange = 5,
        Ssl = 6,
        SttMer = 7,
        SttAcq = 8,
        SttBrnd = 9,
        SttRoot = 10,
        SttIss = 11,
    }

    /// <summary>Algorithms that encrypt bodies.</summary>
    public enum EncryptionAlgorithm
    {
        None = 0,
        Rc2 = 0x6602,
        Rc4 = 0x6801,
    }

    /// <summary>Whether a queue takes encrypted messages.</summary>
    public enum EncryptionRequired
    {
        None = 0,
        Optional = 1,
        Body = 2,
    }

    /// <summary>Generic rights of Windows.</summary>
    [Flags]
    public enum GenericAccessRights
    {
        None = 0,
        All = 1 << 28,
        Execute = 1 << 29,
        Write = 1 << 30,
        Read = 1 << 31,
    }

    /// <summary>Algorithms of signatures.</summary>
    public enum HashAlgorithm
    {
        None = 0,
        Md2 = 0x8001,
        Md4 = 0x8002,
        Md5 = 0x8003,
        Sha = 0x8004,
        Mac = 0x8005,
        Sha256 = 0x800C,
        Sha384 = 0x800D,
        Sha512 = 0x800E,
    }

    /// <summary>Which message a look-up finds, relative to a look-up identifier.</summary>
    public enum MessageLookupAction
    {
        Current = 0,
        Next = 1,
        Previous = 2,
        First = 4,
        Last = 8,
    }

    /// <summary>Priorities of messages; transactional messages have the lowest.</summary>
    public enum MessagePriority
    {
        Lowest = 0,
        VeryLow = 1,
        Low = 2,
        Normal = 3,
        AboveNormal = 4,
        High = 5,
        VeryHigh = 6,
        Highest = 7,
    }

    /// <summary>Rights on a queue.</summary>
    [Flags]
    public enum MessageQueueAccessRights
    {
        DeleteMessage = 0x00000001,
        PeekMessage = 0x00000002,
        ReceiveMessage = DeleteMessage | PeekMessage,
        WriteMessage = 0x00000004,
        DeleteJournalMessage = 0x00000008,
        ReceiveJournalMessage = DeleteJournalMessage | PeekMessage,
        SetQueueProperties = 0x00000010,
        GetQueueProperties = 0x00000020,
        DeleteQueue = 0x00010000,
        GetQueuePermissions = 0x00020000,
        GenericWrite = GetQueueProperties | GetQueuePermissions | WriteMessage,
        GenericRead = GetQueueProperties | GetQueuePermissions | ReceiveMessage | ReceiveJournalMessage,
        ChangeQueuePermissions = 0x00040000,
        TakeQueueOwnership = 0x00080000,
        FullControl = DeleteMessage | PeekMessage | WriteMessage | DeleteJournalMessage | SetQueueProperties
            | GetQueueProperties | DeleteQueue | GetQueuePermissions | ChangeQueuePermissions | TakeQueueOwnership,
    }

    /// <summary>States of an internal transaction.</summary>
    public enum MessageQueueTransactionStatus
    {
        Aborted = 0,
        Committed = 1,
        Initialized = 2,
        Pending = 3,
    }

    /// <summary>Which transaction an operation belongs to.</summary>
    public enum MessageQueueTransactionType
    {
        None = 0,
        Automatic = 1,
        Single = 3,
    }

    /// <summary>Types of messages.</summary>
    public enum MessageType
    {
        Acknowledgment = 1,
        Normal = 2,
        Report = 3,
    }

    /// <summary>Which message a peek with a cursor returns.</summary>
    public enum PeekAction
    {
        Current = unchecked((int)0x80000000),
        Next = unchecked((int)0x80000001),
    }

    /// <summary>Access with which a queue object opens its queue.</summary>
    public enum QueueAccessMode
    {
        Receive = 0x01,
        Send = 0x02,
        SendAndReceive = 0x03,
        PeekAndAdmin = 0xA0,
        ReceiveAndAdmin = 0x81,
        Peek = 0x20,
    }

    /// <summary>Standard rights of Windows.</summary>
    [Flags]
    public enum StandardAccessRights
    {
        None = 0,
        Delete = 1 << 16,
        ReadSecurity = 1 << 17,
        Read = ReadSecurity,
        Write = ReadSecurity,
        Execute = ReadSecurity,
        WriteSecurity = 1 << 18,
        ModifyOwner = 1 << 19,
        Required = Delete | WriteSecurity | ModifyOwner,
        Synchronize = 1 << 20,
        All = Delete | WriteSecurity | ModifyOwner | ReadSecurity | Synchronize,
    }

    /// <summary>Types of trustees.</summary>
    public enum TrusteeType
    {
        Unknown = 0,
        User = 1,
        Group = 2,
        Domain = 3,
        Alias = 4,
        Computer = 5,
    }
}
