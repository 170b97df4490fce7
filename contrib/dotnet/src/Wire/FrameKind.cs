namespace System.Messaging.Wire
{
    /// <summary>Types of frames: docs/reference/application-protocol.md, section 2.</summary>
    internal enum FrameKind : byte
    {
        Hello = 0x01,
        CreateQueue = 0x10,
        DeleteQueue = 0x11,
        GetQueue = 0x12,
        SetQueue = 0x13,
        ListQueues = 0x14,
        ShowAcl = 0x15,
        EditAcl = 0x16,
        Open = 0x20,
        Close = 0x21,
        Send = 0x22,
        Receive = 0x23,
        Lookup = 0x24,
        Purge = 0x2B,
        CursorOpen = 0x2C,
        CursorClose = 0x2D,
        CursorRead = 0x2E,
        ListDirectory = 0x40,
        ShowDirectory = 0x41,
        Browse = 0x50,
        Begin = 0x60,
        Commit = 0x61,
        Abort = 0x62,
        Prepare = 0x66,
        Reply = 0x80,
        Error = 0x81,
        Sent = 0x82,
        Message = 0x84,
    }
}
