using System;
using System.Text;

namespace System.Messaging.Wire
{
    /// <summary>Writes one frame: the header, then one msgpack value.</summary>
    internal sealed class Packer
    {
        private const int HeaderSize = 9;

        [ThreadStatic] private static Packer spare;

        private byte[] buffer = new byte[2048];
        private int length;

        private Packer() { }

        internal byte[] Buffer => buffer;

        internal int Length => length;

        /// <summary>Begin a frame. Each thread has one packer, so a frame must be sent before the next begins.</summary>
        internal static Packer Begin(FrameKind kind)
        {
            Packer packer = spare ?? (spare = new Packer());
            if (packer.buffer.Length > 1 << 20)
                packer.buffer = new byte[2048];
            packer.length = HeaderSize;
            packer.buffer[4] = (byte)kind;
            return packer;
        }

        /// <summary>An empty packer for values that become parts of a frame: `kept`, which is made if it is null.</summary>
        internal static Packer ForParts(ref Packer kept)
        {
            if (kept == null || kept.buffer.Length > 1 << 20)
                kept = new Packer();
            kept.length = 0;
            return kept;
        }

        /// <summary>Append the values of a packer that was made for parts.</summary>
        internal Packer Parts(Packer parts)
        {
            Room(parts.length);
            Copy(parts.buffer, 0, parts.length);
            return this;
        }

        /// <summary>Fill in the length and the request id.</summary>
        internal void Finish(uint id)
        {
            Put32(0, (uint)(length - 4));
            Put32(5, id);
        }

        internal Packer Nil()
        {
            Byte(0xC0);
            return this;
        }

        internal Packer Bool(bool value)
        {
            Byte(value ? (byte)0xC3 : (byte)0xC2);
            return this;
        }

        internal Packer Array(int count)
        {
            return Size(count, 0x90, 15, 0xDC);
        }

        internal Packer Map(int count)
        {
            return Size(count, 0x80, 15, 0xDE);
        }

        internal Packer Int(long value)
        {
            if (value >= 0)
                return UInt((ulong)value);
            if (value >= -32)
            {
                Byte((byte)value);
                return this;
            }
            Byte(0xD3);
            Put64((ulong)value);
            return this;
        }

        internal Packer UInt(ulong value)
        {
            if (value < 128)
            {
                Byte((byte)value);
            }
            else if (value <= 0xFFFF)
            {
                Byte(0xCD);
                Byte((byte)(value >> 8));
                Byte((byte)value);
            }
            else if (value <= uint.MaxValue)
            {
                Byte(0xCE);
                Room(4);
                Put32(length, (uint)value);
                length += 4;
            }
            else
            {
                Byte(0xCF);
                Put64(value);
            }
            return this;
        }

        /// <summary>Write a text; null becomes nil.</summary>
        internal Packer Text(string value)
        {
            if (value == null)
                return Nil();
            int size = Encoding.UTF8.GetByteCount(value);
            if (size < 32)
                Byte((byte)(0xA0 | size));
            else
                Sized(size, 0xD9);
            Room(size);
            length += Encoding.UTF8.GetBytes(value, 0, value.Length, buffer, length);
            return this;
        }

        /// <summary>Write bytes; null becomes empty.</summary>
        internal Packer Binary(byte[] value)
        {
            return Binary(value, 0, value == null ? 0 : value.Length);
        }

        internal Packer Binary(byte[] value, int offset, int count)
        {
            Sized(count, 0xC4);
            if (count > 0)
            {
                Room(count);
                Copy(value, offset, count);
            }
            return this;
        }

        private void Copy(byte[] value, int offset, int count)
        {
            global::System.Buffer.BlockCopy(value, offset, buffer, length, count);
            length += count;
        }

        private Packer Size(int count, int small, int most, byte wide)
        {
            if (count <= most)
            {
                Byte((byte)(small | count));
            }
            else
            {
                Byte(wide);
                Byte((byte)(count >> 8));
                Byte((byte)count);
            }
            return this;
        }

        private void Sized(int size, byte first)
        {
            if (size < 256)
            {
                Byte(first);
                Byte((byte)size);
            }
            else
            {
                Byte((byte)(first + 2));
                Room(4);
                Put32(length, (uint)size);
                length += 4;
            }
        }

        private void Byte(byte value)
        {
            Room(1);
            buffer[length++] = value;
        }

        private void Put32(int at, uint value)
        {
            buffer[at] = (byte)(value >> 24);
            buffer[at + 1] = (byte)(value >> 16);
            buffer[at + 2] = (byte)(value >> 8);
            buffer[at + 3] = (byte)value;
        }

        private void Put64(ulong value)
        {
            Room(8);
            Put32(length, (uint)(value >> 32));
            Put32(length + 4, (uint)value);
            length += 8;
        }

        private void Room(int count)
        {
            if (length + count > buffer.Length)
                global::System.Array.Resize(ref buffer, Math.Max(buffer.Length * 2, length + count));
        }
    }
}
