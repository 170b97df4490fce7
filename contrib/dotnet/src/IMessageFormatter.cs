using System;

namespace System.Messaging
{
    /// <summary>Writes objects into the bodies of messages and reads them.</summary>
    public interface IMessageFormatter : ICloneable
    {
        bool CanRead(Message message);

        object Read(Message message);

        void Write(Message message, object obj);
    }
}
