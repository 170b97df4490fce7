using System;
using System.IO;
using System.Text;

namespace System.Messaging
{
    /// <summary>
    /// Bodies that COM programs read and write: values of a VARIANT, whose type is the body type. Objects that COM
    /// stores in streams are not supported.
    /// </summary>
    public class ActiveXMessageFormatter : IMessageFormatter
    {
        private const int Null = 1;
        private const int Int16 = 2;
        private const int Int32 = 3;
        private const int Single = 4;
        private const int Double = 5;
        private const int Currency = 6;
        private const int Date = 7;
        private const int BasicString = 8;
        private const int Boolean = 11;
        private const int SignedByte = 16;
        private const int UnsignedByte = 17;
        private const int UInt16 = 18;
        private const int UInt32 = 19;
        private const int Int64 = 20;
        private const int UInt64 = 21;
        private const int NarrowString = 30;
        private const int WideString = 31;
        private const int ClassId = 72;
        private const int ByteVector = 0x1011;
        private const int ByteArray = 0x2011;

        /// <summary>
        /// Initialize an object that COM loads from a stream. There is no COM here: raises
        /// PlatformNotSupportedException.
        /// </summary>
        public static void InitStreamedObject(object streamedObject)
        {
            throw new PlatformNotSupportedException("objects that COM keeps in streams are not supported");
        }

        public bool CanRead(Message message)
        {
            if (message == null)
                throw new ArgumentNullException("message");
            switch (message.BodyType)
            {
                case Null:
                case Int16:
                case Int32:
                case Single:
                case Double:
                case Currency:
                case Date:
                case BasicString:
                case Boolean:
                case SignedByte:
                case UnsignedByte:
                case UInt16:
                case UInt32:
                case Int64:
                case UInt64:
                case NarrowString:
                case WideString:
                case ClassId:
                case ByteVector:
                case ByteArray:
                    return true;
                default:
                    return false;
            }
        }

        /// <summary>Raises InvalidOperationException if the body does not have the size of its type.</summary>
        public object Read(Message message)
        {
            if (!CanRead(message))
            {
                throw new InvalidOperationException("the body has the type " + message.BodyType
                    + ", which the ActiveXMessageFormatter does not read");
            }
            message.BodyStream.Position = 0;
            var copy = new MemoryStream();
            message.BodyStream.CopyTo(copy);
            message.BodyStream.Position = 0;
            byte[] body = copy.ToArray();
            switch (message.BodyType)
            {
                case Null: return null;
                case Int16: return BitConverter.ToInt16(Sized(body, 2), 0);
                case Int32: return BitConverter.ToInt32(Sized(body, 4), 0);
                case Single: return BitConverter.ToSingle(Sized(body, 4), 0);
                case Double: return BitConverter.ToDouble(Sized(body, 8), 0);
                case Currency: return decimal.FromOACurrency(BitConverter.ToInt64(Sized(body, 8), 0));
                case Date: return ReadDate(BitConverter.ToDouble(Sized(body, 8), 0));
                case Boolean: return BitConverter.ToInt16(Sized(body, 2), 0) != 0;
                case SignedByte: return unchecked((sbyte)Sized(body, 1)[0]);
                case UnsignedByte: return Sized(body, 1)[0];
                case UInt16: return BitConverter.ToUInt16(Sized(body, 2), 0);
                case UInt32: return BitConverter.ToUInt32(Sized(body, 4), 0);
                case Int64: return BitConverter.ToInt64(Sized(body, 8), 0);
                case UInt64: return BitConverter.ToUInt64(Sized(body, 8), 0);
                case NarrowString: return Trimmed(Latin.GetString(body));
                case BasicString:
                case WideString: return Trimmed(Encoding.Unicode.GetString(body));
                case ClassId: return new Guid(Sized(body, 16));
                default: return body;
            }
        }

        /// <summary>Raises InvalidOperationException for a value that has no VARIANT type.</summary>
        public void Write(Message message, object obj)
        {
            if (message == null)
                throw new ArgumentNullException("message");
            if (obj == null)
                throw new ArgumentNullException("obj");
            int type;
            byte[] body = Encode(obj, out type);
            message.BodyStream = new MemoryStream(body, 0, body.Length, true, true);
            message.BodyType = type;
        }

        public object Clone()
        {
            return new ActiveXMessageFormatter();
        }

        private static Encoding Latin => Encoding.GetEncoding("iso-8859-1");

        private static byte[] Encode(object value, out int type)
        {
            if (value is string)
                return Typed(BasicString, Encoding.Unicode.GetBytes((string)value), out type);
            if (value is char[])
                return Typed(WideString, Encoding.Unicode.GetBytes((char[])value), out type);
            if (value is byte[])
                return Typed(ByteVector, (byte[])value, out type);
            if (value is Guid)
                return Typed(ClassId, ((Guid)value).ToByteArray(), out type);
            switch (Type.GetTypeCode(value.GetType()))
            {
                case TypeCode.Boolean: return Typed(Boolean, BitConverter.GetBytes((short)((bool)value ? -1 : 0)), out type);
                case TypeCode.Byte: return Typed(UnsignedByte, new[] { (byte)value }, out type);
                case TypeCode.SByte: return Typed(SignedByte, new[] { unchecked((byte)(sbyte)value) }, out type);
                case TypeCode.Char: return Typed(UInt16, BitConverter.GetBytes((char)value), out type);
                case TypeCode.Int16: return Typed(Int16, BitConverter.GetBytes((short)value), out type);
                case TypeCode.UInt16: return Typed(UInt16, BitConverter.GetBytes((ushort)value), out type);
                case TypeCode.Int32: return Typed(Int32, BitConverter.GetBytes((int)value), out type);
                case TypeCode.UInt32: return Typed(UInt32, BitConverter.GetBytes((uint)value), out type);
                case TypeCode.Int64: return Typed(Int64, BitConverter.GetBytes((long)value), out type);
                case TypeCode.UInt64: return Typed(UInt64, BitConverter.GetBytes((ulong)value), out type);
                case TypeCode.Single: return Typed(Single, BitConverter.GetBytes((float)value), out type);
                case TypeCode.Double: return Typed(Double, BitConverter.GetBytes((double)value), out type);
                case TypeCode.Decimal:
                    return Typed(Currency, BitConverter.GetBytes(decimal.ToOACurrency((decimal)value)), out type);
                case TypeCode.DateTime:
                    return Typed(Date, BitConverter.GetBytes(((DateTime)value).ToOADate()), out type);
                case TypeCode.DBNull: return Typed(Null, new byte[0], out type);
                default:
                    throw new InvalidOperationException("the ActiveXMessageFormatter does not write "
                        + value.GetType().FullName);
            }
        }

        private static byte[] Typed(int variant, byte[] body, out int type)
        {
            type = variant;
            return body;
        }

        private static byte[] Sized(byte[] body, int size)
        {
            if (body.Length != size)
                throw new InvalidOperationException("a body of this type must have " + size + " bytes, not " + body.Length);
            return body;
        }

        private static DateTime ReadDate(double days)
        {
            try
            {
                return DateTime.FromOADate(days);
            }
            catch (ArgumentException error)
            {
                throw new InvalidOperationException("the body is not a date", error);
            }
        }

        private static string Trimmed(string text)
        {
            return text.EndsWith("\0", StringComparison.Ordinal) ? text.Substring(0, text.Length - 1) : text;
        }
    }
}
