using System;
using System.Collections.Generic;
using System.Globalization;
using System.Text;

namespace System.Messaging.Wire
{
    /// <summary>
    /// Reads the msgpack value of one frame. Sizes that exceed the frame, unknown types and deep nesting raise
    /// <see cref="WireFormatException"/>.
    /// </summary>
    internal sealed class Unpacker
    {
        private const int MaxDepth = 16;

        private readonly byte[] data;
        private int at;

        internal Unpacker(byte[] data)
        {
            this.data = data;
        }

        /// <summary>Read the number of values of an array.</summary>
        internal int Array()
        {
            byte first = Byte();
            if (first >= 0x90 && first <= 0x9F)
                return first & 15;
            if (first == 0xDC)
                return Count(Big(2));
            if (first == 0xDD)
                return Count(Big(4));
            throw Wrong(first, "an array");
        }

        internal bool TryNil()
        {
            if (at >= data.Length || data[at] != 0xC0)
                return false;
            at++;
            return true;
        }

        internal bool Bool()
        {
            byte first = Byte();
            if (first != 0xC2 && first != 0xC3)
                throw Wrong(first, "a bool");
            return first == 0xC3;
        }

        internal long Int()
        {
            return unchecked((long)UInt());
        }

        /// <summary>Read an integer; a negative one as its two's complement.</summary>
        internal ulong UInt()
        {
            byte first = Byte();
            if (first < 0x80)
                return first;
            if (first >= 0xE0)
                return unchecked((ulong)(sbyte)first);
            switch (first)
            {
                case 0xCC: return Big(1);
                case 0xCD: return Big(2);
                case 0xCE: return Big(4);
                case 0xCF: return Big(8);
                case 0xD0: return unchecked((ulong)(sbyte)Big(1));
                case 0xD1: return unchecked((ulong)(short)Big(2));
                case 0xD2: return unchecked((ulong)(int)Big(4));
                case 0xD3: return Big(8);
                default: throw Wrong(first, "an integer");
            }
        }

        /// <summary>Read a text or nil.</summary>
        internal string Text()
        {
            byte first = Byte();
            int size;
            if (first == 0xC0)
                return null;
            if (first >= 0xA0 && first <= 0xBF)
                size = first & 31;
            else if (first >= 0xD9 && first <= 0xDB)
                size = Count(Big(1 << (first - 0xD9)));
            else
                throw Wrong(first, "a text");
            Need(size);
            string value = Encoding.UTF8.GetString(data, at, size);
            at += size;
            return value;
        }

        /// <summary>Read bytes or nil.</summary>
        internal byte[] Binary()
        {
            byte first = Byte();
            if (first == 0xC0)
                return null;
            if (first < 0xC4 || first > 0xC6)
                throw Wrong(first, "bytes");
            int size = Count(Big(1 << (first - 0xC4)));
            Need(size);
            byte[] value = new byte[size];
            Buffer.BlockCopy(data, at, value, 0, size);
            at += size;
            return value;
        }

        /// <summary>
        /// Read any value: null, bool, long (ulong above its range), string, byte[], List of object, or Dictionary.
        /// </summary>
        internal object Any()
        {
            return Any(0);
        }

        private object Any(int depth)
        {
            if (depth > MaxDepth)
                throw new WireFormatException("values are nested too deeply");
            Need(1);
            byte first = data[at];
            if (first < 0x80 || first >= 0xE0 || (first >= 0xCC && first <= 0xD3))
            {
                bool signed = first >= 0xE0 || first >= 0xD0;
                ulong number = UInt();
                return signed || number <= long.MaxValue ? (object)unchecked((long)number) : number;
            }
            if (first == 0xC0)
            {
                at++;
                return null;
            }
            if (first == 0xC2 || first == 0xC3)
                return Bool();
            if ((first >= 0xA0 && first <= 0xBF) || (first >= 0xD9 && first <= 0xDB))
                return Text();
            if (first >= 0xC4 && first <= 0xC6)
                return Binary();
            if (first == 0xCB)
            {
                at++;
                return BitConverter.Int64BitsToDouble(unchecked((long)Big(8)));
            }
            if ((first >= 0x90 && first <= 0x9F) || first == 0xDC || first == 0xDD)
            {
                int count = Array();
                var list = new List<object>(Math.Min(count, 1024));
                for (int index = 0; index < count; index++)
                    list.Add(Any(depth + 1));
                return list;
            }
            return Fields(depth);
        }

        private Dictionary<string, object> Fields(int depth)
        {
            byte first = Byte();
            int count;
            if (first >= 0x80 && first <= 0x8F)
                count = first & 15;
            else if (first == 0xDE || first == 0xDF)
                count = Count(Big(first == 0xDE ? 2 : 4));
            else
                throw Wrong(first, "a value");
            var map = new Dictionary<string, object>();
            for (int index = 0; index < count; index++)
            {
                object key = Any(depth + 1);
                map[Convert.ToString(key, CultureInfo.InvariantCulture)] = Any(depth + 1);
            }
            return map;
        }

        private byte Byte()
        {
            Need(1);
            return data[at++];
        }

        private ulong Big(int size)
        {
            Need(size);
            ulong value = 0;
            for (int index = 0; index < size; index++)
                value = value << 8 | data[at++];
            return value;
        }

        private int Count(ulong count)
        {
            if (count > (ulong)(data.Length - at))
                throw new WireFormatException("a size exceeds the frame");
            return (int)count;
        }

        private void Need(int count)
        {
            if (count > data.Length - at)
                throw new WireFormatException("the frame ends within a value");
        }

        private static WireFormatException Wrong(byte first, string wanted)
        {
            return new WireFormatException("0x" + first.ToString("X2", CultureInfo.InvariantCulture) + " is not " + wanted);
        }
    }

    /// <summary>The server sent bytes that break the protocol.</summary>
    internal sealed class WireFormatException : Exception
    {
        internal WireFormatException(string message) : base(message) { }
    }
}
