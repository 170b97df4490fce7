using System;
using System.ComponentModel;
using System.IO;
using System.Messaging.Nrbf;
using System.Runtime.Serialization.Formatters;

namespace System.Messaging
{
    /// <summary>
    /// Bodies in the .NET Remoting Binary Format (MS-NRBF), as BinaryFormatter writes them. This formatter has its
    /// own reader and writer, so it works where .NET has no BinaryFormatter any more. Of the framework, it reads
    /// only types that hold values: see <see cref="TypePolicy"/>.
    /// </summary>
    public class BinaryMessageFormatter : IMessageFormatter
    {
        private const int BinaryObject = 768; // of BodyType

        public BinaryMessageFormatter()
            : this(FormatterAssemblyStyle.Simple, FormatterTypeStyle.TypesAlways) { }

        public BinaryMessageFormatter(FormatterAssemblyStyle topObjectFormat, FormatterTypeStyle typeFormat)
        {
            TopObjectFormat = topObjectFormat;
            TypeFormat = typeFormat;
        }

        /// <summary>Kept for programs that set it; assemblies are found by their simple names.</summary>
        [DefaultValue(FormatterAssemblyStyle.Simple)]
        public FormatterAssemblyStyle TopObjectFormat { get; set; }

        /// <summary>Kept for programs that set it; types are always stated.</summary>
        [DefaultValue(FormatterTypeStyle.TypesAlways)]
        public FormatterTypeStyle TypeFormat { get; set; }

        public bool CanRead(Message message)
        {
            if (message == null)
                throw new ArgumentNullException("message");
            return message.BodyType == BinaryObject;
        }

        /// <summary>Raises InvalidOperationException, SerializationException.</summary>
        public object Read(Message message)
        {
            if (!CanRead(message))
                throw new InvalidOperationException("the body was not written by a BinaryMessageFormatter");
            message.BodyStream.Position = 0;
            var body = new MemoryStream();
            message.BodyStream.CopyTo(body);
            message.BodyStream.Position = 0;
            return new GraphBuilder(RecordReader.Read(body.ToArray())).Build();
        }

        /// <summary>Raises SerializationException.</summary>
        public void Write(Message message, object obj)
        {
            if (message == null)
                throw new ArgumentNullException("message");
            if (obj == null)
                throw new ArgumentNullException("obj");
            var body = new MemoryStream();
            new RecordWriter(body).Write(obj);
            message.BodyStream = new MemoryStream(body.GetBuffer(), 0, (int)body.Length, true, true);
            message.BodyType = BinaryObject;
        }

        public object Clone()
        {
            return new BinaryMessageFormatter(TopObjectFormat, TypeFormat);
        }
    }
}
