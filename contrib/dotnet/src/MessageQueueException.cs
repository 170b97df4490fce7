using System;
using System.Globalization;
using System.Runtime.InteropServices;
using System.Runtime.Serialization;

namespace System.Messaging
{
    /// <summary>An error of the queue manager.</summary>
    [Serializable]
    public class MessageQueueException : ExternalException
    {
        private const string CodeKey = "NativeErrorCode";
        private const int NoDirectory = unchecked((int)0xC00E0013);

        private readonly int nativeErrorCode;

        internal MessageQueueException(int error)
            : this(error, ((MessageQueueErrorCode)error).ToString(), null) { }

        internal MessageQueueException(MessageQueueErrorCode error, string text)
            : this((int)error, error.ToString(), text) { }

        internal MessageQueueException(int error, string name, string text)
            : base(Describe(error, name, text), error)
        {
            nativeErrorCode = error;
        }

        protected MessageQueueException(SerializationInfo info, StreamingContext context)
            : base(info, context)
        {
            nativeErrorCode = info.GetInt32(CodeKey);
        }

        public MessageQueueErrorCode MessageQueueErrorCode => (MessageQueueErrorCode)nativeErrorCode;

        public override void GetObjectData(SerializationInfo info, StreamingContext context)
        {
            if (info == null)
                throw new ArgumentNullException("info");
            base.GetObjectData(info, context);
            info.AddValue(CodeKey, nativeErrorCode);
        }

        private static string Describe(int error, string name, string text)
        {
            string meaning = string.IsNullOrEmpty(text) ? Meaning(error) : text;
            string code = name + " (0x" + error.ToString("X8", CultureInfo.InvariantCulture) + ")";
            return meaning == null ? code : code + ": " + meaning;
        }

        private static string Meaning(int error)
        {
            switch (error)
            {
                case (int)MessageQueueErrorCode.IOTimeout:
                    return "the time-out of the operation has expired";
                case NoDirectory:
                    return "the queue manager has no directory service";
                default:
                    return null;
            }
        }
    }
}
