using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Runtime.Serialization;
using System.Text;

namespace System.Messaging.Nrbf
{
    /// <summary>
    /// Reads the records of an MS-NRBF stream; makes no objects but strings, primitive values and arrays of these.
    ///
    /// Bounds: a count must fit into the bytes that are left, except that of nulls; arrays together have at most
    /// MaxElements elements; structs are nested at most MaxDepth deep.
    /// </summary>
    internal sealed class RecordReader
    {
        private const int MaxElements = 8 * 1024 * 1024;
        private const int MaxDepth = 64;
        private const int MaxRank = 32;

        private readonly MemoryStream stream;
        private readonly BinaryReader input;
        private readonly Records records = new Records();
        private readonly Dictionary<int, string> libraries = new Dictionary<int, string>();
        private readonly Dictionary<int, ClassLayout> layouts = new Dictionary<int, ClassLayout>();
        private int elements;
        private int pendingNulls;

        private RecordReader(byte[] body)
        {
            stream = new MemoryStream(body, false);
            input = new BinaryReader(stream, new UTF8Encoding(false, true));
        }

        private int Left => (int)(stream.Length - stream.Position);

        /// <summary>Raises SerializationException if the stream is not valid.</summary>
        internal static Records Read(byte[] body)
        {
            var reader = new RecordReader(body);
            try
            {
                reader.ReadAll();
            }
            catch (Exception error) when (error is EndOfStreamException || error is ArgumentException
                || error is FormatException || error is OverflowException || error is IOException)
            {
                throw new SerializationException("the body is not a valid stream of a BinaryFormatter", error);
            }
            return reader.records;
        }

        private void ReadAll()
        {
            if (input.ReadByte() != (byte)RecordType.SerializedStreamHeader)
                throw Wrong("it has no header");
            records.Root = input.ReadInt32();
            input.ReadInt32();
            if (input.ReadInt32() != 1 || input.ReadInt32() != 0)
                throw Wrong("its version is not known");
            while (true)
            {
                var type = (RecordType)input.ReadByte();
                if (type == RecordType.MessageEnd)
                    break;
                if (type == RecordType.BinaryLibrary)
                    ReadLibrary();
                else
                    ReadRecord(type, 0);
            }
            if (!records.ByIdentifier.ContainsKey(records.Root))
                throw Wrong("it has no root object");
        }

        /// <summary>Read a record other than a library; returns its value.</summary>
        private object ReadRecord(RecordType type, int depth)
        {
            if (depth > MaxDepth)
                throw Wrong("its objects are nested too deeply");
            switch (type)
            {
                case RecordType.ClassWithId:
                case RecordType.SystemClassWithMembers:
                case RecordType.ClassWithMembers:
                case RecordType.SystemClassWithMembersAndTypes:
                case RecordType.ClassWithMembersAndTypes:
                    return ReadClass(type, depth);
                case RecordType.BinaryObjectString:
                    return Register(input.ReadInt32(), ReadString());
                case RecordType.MemberPrimitiveTyped:
                    return ReadPrimitive((PrimitiveType)input.ReadByte());
                case RecordType.MemberReference:
                    return new Reference(input.ReadInt32());
                case RecordType.ObjectNull:
                    return null;
                case RecordType.ObjectNullMultiple256:
                    pendingNulls = input.ReadByte() - 1;
                    return null;
                case RecordType.ObjectNullMultiple:
                    pendingNulls = input.ReadInt32() - 1;
                    return null;
                case RecordType.BinaryArray:
                case RecordType.ArraySinglePrimitive:
                case RecordType.ArraySingleObject:
                case RecordType.ArraySingleString:
                    return ReadArray(type, depth);
                default:
                    throw Wrong("it has a record of an unknown type");
            }
        }

        private void ReadLibrary()
        {
            int number = input.ReadInt32();
            libraries[number] = ReadString();
        }

        private object ReadClass(RecordType type, int depth)
        {
            int identifier = input.ReadInt32();
            ClassLayout layout;
            if (type == RecordType.ClassWithId)
            {
                if (!layouts.TryGetValue(input.ReadInt32(), out layout))
                    throw Wrong("an object refers to an unknown class");
            }
            else
            {
                layout = ReadLayout(type);
            }
            layouts[identifier] = layout;
            var record = new ClassRecord { Layout = layout, Values = new object[layout.Names.Length] };
            object result = Register(identifier, record);
            for (int index = 0; index < record.Values.Length; index++)
            {
                StatedType stated = layout.Types == null ? null : layout.Types[index];
                record.Values[index] = ReadValue(stated, depth + 1);
                if (pendingNulls != 0)
                    throw Wrong("a member is more than one null");
            }
            return result;
        }

        private ClassLayout ReadLayout(RecordType type)
        {
            var layout = new ClassLayout { Name = ReadString() };
            layout.Names = new string[Count(input.ReadInt32(), 1)];
            for (int index = 0; index < layout.Names.Length; index++)
                layout.Names[index] = ReadString();
            bool typed = type == RecordType.SystemClassWithMembersAndTypes
                || type == RecordType.ClassWithMembersAndTypes;
            if (typed)
            {
                layout.Types = new StatedType[layout.Names.Length];
                for (int index = 0; index < layout.Types.Length; index++)
                    layout.Types[index] = new StatedType { Kind = (BinaryType)input.ReadByte() };
                foreach (StatedType stated in layout.Types)
                    ReadTypeDetails(stated);
            }
            if (type == RecordType.ClassWithMembers || type == RecordType.ClassWithMembersAndTypes)
                layout.Library = Library(input.ReadInt32());
            return layout;
        }

        private void ReadTypeDetails(StatedType stated)
        {
            switch (stated.Kind)
            {
                case BinaryType.Primitive:
                case BinaryType.PrimitiveArray:
                    stated.Primitive = (PrimitiveType)input.ReadByte();
                    break;
                case BinaryType.SystemClass:
                    stated.Name = ReadString();
                    break;
                case BinaryType.Class:
                    stated.Name = ReadString();
                    stated.Library = Library(input.ReadInt32());
                    break;
                case BinaryType.String:
                case BinaryType.Object:
                case BinaryType.ObjectArray:
                case BinaryType.StringArray:
                    break;
                default:
                    throw Wrong("a member has an unknown type");
            }
        }

        /// <summary>Read the value of a member or an element, for which a type may be stated.</summary>
        private object ReadValue(StatedType stated, int depth)
        {
            if (stated != null && stated.Kind == BinaryType.Primitive)
                return ReadPrimitive(stated.Primitive);
            while (true)
            {
                var type = (RecordType)input.ReadByte();
                if (type != RecordType.BinaryLibrary)
                    return ReadRecord(type, depth);
                ReadLibrary();
            }
        }

        private object ReadArray(RecordType type, int depth)
        {
            int identifier = input.ReadInt32();
            var record = new ArrayRecord { Element = new StatedType() };
            if (type == RecordType.BinaryArray)
            {
                ReadArrayHead(record);
            }
            else
            {
                record.Lengths = new[] { input.ReadInt32() };
                record.Element.Kind = type == RecordType.ArraySinglePrimitive ? BinaryType.Primitive
                    : type == RecordType.ArraySingleString ? BinaryType.String : BinaryType.Object;
                if (type == RecordType.ArraySinglePrimitive)
                    record.Element.Primitive = (PrimitiveType)input.ReadByte();
            }
            int total = Total(record.Lengths);
            object result = Register(identifier, record);
            if (record.Element.Kind == BinaryType.Primitive)
            {
                record.Primitives = ReadPrimitives(record.Element.Primitive, total);
                return result;
            }
            record.Values = new object[total];
            for (int index = 0; index < total; index++)
            {
                record.Values[index] = ReadValue(record.Element, depth + 1);
                if (pendingNulls < 0 || pendingNulls > total - index - 1)
                    throw Wrong("an array has more nulls than elements");
                index += pendingNulls;
                pendingNulls = 0;
            }
            return result;
        }

        private void ReadArrayHead(ArrayRecord record)
        {
            int kind = input.ReadByte();
            if (kind > 2)
                throw Wrong("an array does not begin with the index 0");
            int rank = input.ReadInt32();
            if (rank < 1 || rank > MaxRank)
                throw Wrong("an array has too many dimensions");
            record.Lengths = new int[rank];
            for (int index = 0; index < rank; index++)
                record.Lengths[index] = input.ReadInt32();
            record.Element.Kind = (BinaryType)input.ReadByte();
            ReadTypeDetails(record.Element);
        }

        private int Total(int[] lengths)
        {
            long total = 1;
            foreach (int length in lengths)
            {
                if (length < 0)
                    throw Wrong("the length of an array is negative");
                total *= length;
                if (total > MaxElements)
                    throw Wrong("an array is too large");
            }
            elements = checked(elements + (int)total);
            if (elements > MaxElements)
                throw Wrong("its arrays are too large");
            return (int)total;
        }

        private Array ReadPrimitives(PrimitiveType primitive, int count)
        {
            if (primitive == PrimitiveType.Byte)
                return input.ReadBytes(Count(count, 1));
            Type type = Primitives.TypeOf(primitive);
            if (type == null)
                throw Wrong("an array has elements of an unknown type");
            Array array = Array.CreateInstance(type, Count(count, 1));
            for (int index = 0; index < count; index++)
                array.SetValue(ReadPrimitive(primitive), index);
            return array;
        }

        private object ReadPrimitive(PrimitiveType primitive)
        {
            switch (primitive)
            {
                case PrimitiveType.Boolean: return input.ReadBoolean();
                case PrimitiveType.Byte: return input.ReadByte();
                case PrimitiveType.Char: return input.ReadChar();
                case PrimitiveType.Decimal:
                    return decimal.Parse(ReadString(), NumberStyles.Number, CultureInfo.InvariantCulture);
                case PrimitiveType.Double: return input.ReadDouble();
                case PrimitiveType.Int16: return input.ReadInt16();
                case PrimitiveType.Int32: return input.ReadInt32();
                case PrimitiveType.Int64: return input.ReadInt64();
                case PrimitiveType.SByte: return input.ReadSByte();
                case PrimitiveType.Single: return input.ReadSingle();
                case PrimitiveType.TimeSpan: return new TimeSpan(input.ReadInt64());
                case PrimitiveType.DateTime: return Dates.FromBinaryKind(input.ReadInt64());
                case PrimitiveType.UInt16: return input.ReadUInt16();
                case PrimitiveType.UInt32: return input.ReadUInt32();
                case PrimitiveType.UInt64: return input.ReadUInt64();
                case PrimitiveType.Null: return null;
                case PrimitiveType.String: return ReadString();
                default: throw Wrong("a value has an unknown type");
            }
        }

        /// <summary>Keep a value under its identifier; a struct within its owner has a negative one.</summary>
        private object Register(int identifier, object value)
        {
            if (identifier <= 0)
                return value;
            if (records.ByIdentifier.ContainsKey(identifier))
                throw Wrong("two objects have one identifier");
            records.ByIdentifier.Add(identifier, value);
            records.Order.Add(identifier);
            return value is ClassRecord || value is ArrayRecord ? new Reference(identifier) : value;
        }

        private string ReadString()
        {
            int size = 0;
            int shift = 0;
            byte part;
            do
            {
                if (shift == 35)
                    throw Wrong("the length of a text is wrong");
                part = input.ReadByte();
                size |= (part & 0x7F) << shift;
                shift += 7;
            }
            while ((part & 0x80) != 0);
            return new UTF8Encoding(false, false).GetString(input.ReadBytes(Count(size, 1)));
        }

        private string Library(int number)
        {
            string name;
            if (!libraries.TryGetValue(number, out name))
                throw Wrong("a class refers to an unknown library");
            return name;
        }

        private int Count(int count, int least)
        {
            if (count < 0 || (long)count * least > Left)
                throw Wrong("a count exceeds the stream");
            return count;
        }

        private static SerializationException Wrong(string reason)
        {
            return new SerializationException("the body is not a valid stream of a BinaryFormatter: " + reason);
        }
    }
}
