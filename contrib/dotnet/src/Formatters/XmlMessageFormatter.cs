using System;
using System.Collections.Generic;
using System.ComponentModel;
using System.IO;
using System.Text;
using System.Xml;
using System.Xml.Serialization;

namespace System.Messaging
{
    /// <summary>
    /// Bodies in XML as XmlSerializer writes them on Windows: without encoding in the declaration, with CRLF. A
    /// document with a document type declaration is not read.
    /// </summary>
    public class XmlMessageFormatter : IMessageFormatter
    {
        private Type[] targetTypes = new Type[0];
        private string[] targetTypeNames = new string[0];
        private List<KeyValuePair<Type, XmlSerializer>> serializers;
        private bool stated; // the program has named the types

        public XmlMessageFormatter() { }

        public XmlMessageFormatter(string[] targetTypeNames)
        {
            TargetTypeNames = targetTypeNames;
        }

        public XmlMessageFormatter(Type[] targetTypes)
        {
            TargetTypes = targetTypes;
        }

        [DefaultValue(null)]
        public string[] TargetTypeNames
        {
            get { return targetTypeNames; }
            set
            {
                if (value == null)
                    throw new ArgumentNullException("value");
                targetTypeNames = value;
                stated = true;
                serializers = null;
            }
        }

        [Browsable(false)]
        public Type[] TargetTypes
        {
            get { return targetTypes; }
            set
            {
                if (value == null)
                    throw new ArgumentNullException("value");
                targetTypes = value;
                stated = true;
                serializers = null;
            }
        }

        /// <summary>Whether the body is XML whose root one of the target types has.</summary>
        public bool CanRead(Message message)
        {
            if (message == null)
                throw new ArgumentNullException("message");
            message.BodyStream.Position = 0;
            try
            {
                using (XmlReader reader = Reader(message.BodyStream))
                    return Find(reader) != null;
            }
            catch (XmlException)
            {
                return false;
            }
            finally
            {
                message.BodyStream.Position = 0;
            }
        }

        public object Read(Message message)
        {
            if (message == null)
                throw new ArgumentNullException("message");
            message.BodyStream.Position = 0;
            using (XmlReader reader = Reader(message.BodyStream))
            {
                XmlSerializer serializer = Find(reader);
                if (serializer == null)
                {
                    throw new InvalidOperationException("the body has the root element " + reader.LocalName
                        + ", which none of the target types of the formatter has");
                }
                return serializer.Deserialize(reader);
            }
        }

        /// <summary>Write an object. A formatter without target types then reads objects of this type, too.</summary>
        public void Write(Message message, object obj)
        {
            if (message == null)
                throw new ArgumentNullException("message");
            if (obj == null)
                throw new ArgumentNullException("obj");
            var stream = new MemoryStream();
            using (var text = new PlainWriter(stream))
            {
                var writer = new XmlTextWriter(text) { Formatting = Formatting.Indented, Indentation = 2 };
                new XmlSerializer(obj.GetType()).Serialize(writer, obj);
                writer.Flush();
                message.BodyStream = new MemoryStream(stream.GetBuffer(), 0, (int)stream.Length, true, true);
            }
            message.BodyType = 0;
            Learn(obj.GetType());
        }

        public object Clone()
        {
            return new XmlMessageFormatter
            {
                targetTypes = targetTypes,
                targetTypeNames = targetTypeNames,
                stated = stated,
                serializers = serializers,
            };
        }

        private void Learn(Type type)
        {
            if (stated || Array.IndexOf(targetTypes, type) >= 0)
                return;
            var longer = new List<Type>(targetTypes) { type };
            targetTypes = longer.ToArray();
            serializers = null;
        }

        private static XmlReader Reader(Stream body)
        {
            var settings = new XmlReaderSettings { DtdProcessing = DtdProcessing.Prohibit, XmlResolver = null };
            return XmlReader.Create(body, settings);
        }

        private XmlSerializer Find(XmlReader reader)
        {
            reader.MoveToContent();
            foreach (KeyValuePair<Type, XmlSerializer> each in Serializers())
            {
                if (each.Value.CanDeserialize(reader))
                    return each.Value;
            }
            return null;
        }

        private List<KeyValuePair<Type, XmlSerializer>> Serializers()
        {
            if (serializers != null)
                return serializers;
            if (targetTypes.Length == 0 && targetTypeNames.Length == 0)
                throw new InvalidOperationException("the formatter needs TargetTypes or TargetTypeNames to read a body");
            var made = new List<KeyValuePair<Type, XmlSerializer>>();
            foreach (Type type in targetTypes)
                made.Add(Made(type));
            foreach (string name in targetTypeNames)
            {
                Type type = Type.GetType(name, false);
                if (type == null)
                    throw new InvalidOperationException("the target type '" + name + "' is not known");
                made.Add(Made(type));
            }
            return serializers = made;
        }

        private static KeyValuePair<Type, XmlSerializer> Made(Type type)
        {
            return new KeyValuePair<Type, XmlSerializer>(type, new XmlSerializer(type));
        }

        /// <summary>Text in UTF-8 that states no encoding, so that the declaration has none.</summary>
        private sealed class PlainWriter : StreamWriter
        {
            internal PlainWriter(Stream stream)
                : base(stream, new UTF8Encoding(false))
            {
                NewLine = "\r\n";
            }

            public override Encoding Encoding => null;
        }
    }
}
