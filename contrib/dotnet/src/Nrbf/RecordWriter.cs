using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Runtime.CompilerServices;
using System.Runtime.Serialization;
using System.Text;

namespace System.Messaging.Nrbf
{
    /// <summary>
    /// Writes an object graph as MS-NRBF.
    ///
    /// 1. The root gets the identifier 1. A string is written where it is first referenced; a struct is written
    ///    within its owner, with a negative identifier; another object is referenced and queued.
    /// 2. The queued objects follow, each referencing and queueing others.
    /// 3. The members of a class are written with its first object; later objects refer to that one.
    /// </summary>
    internal sealed class RecordWriter
    {
        private readonly BinaryWriter output;
        private readonly Dictionary<object, int> identifiers = new Dictionary<object, int>(new ByReference());
        private readonly Dictionary<string, int> libraries = new Dictionary<string, int>();
        private readonly Dictionary<string, WrittenClass> classes = new Dictionary<string, WrittenClass>();
        private readonly Queue<object> queue = new Queue<object>();
        private int lastIdentifier;

        internal RecordWriter(Stream stream)
        {
            output = new BinaryWriter(stream, new UTF8Encoding(false));
        }

        /// <summary>Raises SerializationException for an object whose class is not serializable.</summary>
        internal void Write(object root)
        {
            output.Write((byte)RecordType.SerializedStreamHeader);
            output.Write(1);
            output.Write(-1);
            output.Write(1);
            output.Write(0);
            identifiers.Add(root, ++lastIdentifier);
            queue.Enqueue(root);
            while (queue.Count > 0)
            {
                object next = queue.Dequeue();
                WriteObject(next, identifiers[next]);
            }
            output.Write((byte)RecordType.MessageEnd);
            output.Flush();
        }

        private void WriteObject(object value, int identifier)
        {
            var text = value as string;
            var array = value as Array;
            if (text != null)
                WriteString(text, identifier);
            else if (array != null)
                WriteArray(array, identifier);
            else
                WriteClass(new Members(value), identifier);
        }

        private void WriteString(string text, int identifier)
        {
            output.Write((byte)RecordType.BinaryObjectString);
            output.Write(identifier);
            output.Write(text);
        }

        private void WriteClass(Members members, int identifier)
        {
            string key = members.TypeName + ", " + members.AssemblyName;
            WrittenClass written;
            if (classes.TryGetValue(key, out written) && written.HasSame(members))
            {
                output.Write((byte)RecordType.ClassWithId);
                output.Write(identifier);
                output.Write(written.Identifier);
            }
            else
            {
                classes[key] = new WrittenClass(identifier, members);
                WriteClassWithMembers(members, identifier);
            }
            for (int index = 0; index < members.Count; index++)
                WriteValue(members.Values[index], members.Types[index]);
            members.Written();
        }

        private void WriteClassWithMembers(Members members, int identifier)
        {
            bool system = TypeNames.IsSystem(members.AssemblyName);
            int library = system ? 0 : Library(members.AssemblyName);
            var shown = new StatedType[members.Count];
            for (int index = 0; index < shown.Length; index++)
                shown[index] = Stated(Shown(members.Values[index], members.Types[index]), members.Types[index]);
            foreach (StatedType each in shown)
                Declare(each);
            output.Write((byte)(system
                ? RecordType.SystemClassWithMembersAndTypes : RecordType.ClassWithMembersAndTypes));
            output.Write(identifier);
            output.Write(members.TypeName);
            output.Write(members.Count);
            foreach (string name in members.Names)
                output.Write(name);
            foreach (StatedType each in shown)
                output.Write((byte)each.Kind);
            foreach (StatedType each in shown)
                WriteTypeDetails(each);
            if (!system)
                output.Write(library);
        }

        /// <summary>The class that the record states for a member: that of its value, if the declared one is not exact.</summary>
        private static Type Shown(object value, Type declared)
        {
            BinaryType kind = BinaryTypeOf(declared);
            bool exact = kind != BinaryType.SystemClass && kind != BinaryType.Class;
            return exact || value == null || value is Array ? declared : value.GetType();
        }

        /// <summary>How a record states `type`; a Nullable's value is stated as a class, even if it is primitive.</summary>
        private static StatedType Stated(Type type, Type declared)
        {
            BinaryType kind = BinaryTypeOf(declared);
            if (kind == BinaryType.SystemClass || kind == BinaryType.Class)
            {
                string assembly = TypeNames.AssemblyOf(type);
                bool system = TypeNames.IsSystem(assembly);
                return new StatedType
                {
                    Kind = system ? BinaryType.SystemClass : BinaryType.Class,
                    Name = TypeNames.FullName(type),
                    Library = system ? null : assembly,
                };
            }
            Type primitive = kind == BinaryType.PrimitiveArray ? declared.GetElementType() : declared;
            return new StatedType { Kind = kind, Primitive = Primitives.Of(primitive) };
        }

        private void WriteArray(Array array, int identifier)
        {
            Type element = array.GetType().GetElementType();
            PrimitiveType primitive = Primitives.Of(element);
            bool single = array.Rank == 1 && array.GetLowerBound(0) == 0;
            if (single && primitive != PrimitiveType.None)
            {
                output.Write((byte)RecordType.ArraySinglePrimitive);
                output.Write(identifier);
                output.Write(array.Length);
                output.Write((byte)primitive);
                WritePrimitives(array, primitive);
                return;
            }
            if (single && (element == typeof(object) || element == typeof(string)))
            {
                output.Write((byte)(element == typeof(object)
                    ? RecordType.ArraySingleObject : RecordType.ArraySingleString));
                output.Write(identifier);
                output.Write(array.Length);
            }
            else
            {
                WriteArrayHead(array, identifier, element);
            }
            if (primitive != PrimitiveType.None)
                WritePrimitives(array, primitive);
            else
                WriteElements(array, element);
        }

        private void WriteArrayHead(Array array, int identifier, Type element)
        {
            bool offset = false;
            for (int dimension = 0; dimension < array.Rank; dimension++)
                offset |= array.GetLowerBound(dimension) != 0;
            if (offset)
                throw new SerializationException("arrays whose indexes do not begin with 0 are not written");
            StatedType stated = Stated(element, element);
            Declare(stated);
            output.Write((byte)RecordType.BinaryArray);
            output.Write(identifier);
            output.Write((byte)(array.Rank > 1 ? 2 : element.IsArray ? 1 : 0)); // rectangular, jagged, single
            output.Write(array.Rank);
            for (int dimension = 0; dimension < array.Rank; dimension++)
                output.Write(array.GetLength(dimension));
            output.Write((byte)stated.Kind);
            WriteTypeDetails(stated);
        }

        private void WritePrimitives(Array array, PrimitiveType primitive)
        {
            var bytes = array as byte[];
            if (bytes != null)
            {
                output.Write(bytes);
                return;
            }
            foreach (object value in array)
                WritePrimitive(value, primitive);
        }

        private void WriteElements(Array array, Type element)
        {
            int nulls = 0;
            foreach (object value in array)
            {
                if (value == null)
                {
                    nulls++;
                    continue;
                }
                WriteNulls(nulls);
                nulls = 0;
                WriteValue(value, element);
            }
            WriteNulls(nulls);
        }

        private void WriteNulls(int count)
        {
            if (count == 0)
                return;
            if (count == 1)
            {
                output.Write((byte)RecordType.ObjectNull);
            }
            else if (count < 256)
            {
                output.Write((byte)RecordType.ObjectNullMultiple256);
                output.Write((byte)count);
            }
            else
            {
                output.Write((byte)RecordType.ObjectNullMultiple);
                output.Write(count);
            }
        }

        /// <summary>Write a member or an element that is declared with a type.</summary>
        private void WriteValue(object value, Type declared)
        {
            if (value == null)
            {
                output.Write((byte)RecordType.ObjectNull);
                return;
            }
            PrimitiveType primitive = Primitives.Of(declared);
            if (primitive != PrimitiveType.None)
            {
                WritePrimitive(value, primitive);
                return;
            }
            primitive = Primitives.Of(value.GetType());
            if (primitive != PrimitiveType.None)
            {
                output.Write((byte)RecordType.MemberPrimitiveTyped);
                output.Write((byte)primitive);
                WritePrimitive(value, primitive);
                return;
            }
            if (declared.IsValueType)
            {
                WriteClass(new Members(value), -++lastIdentifier);
                return;
            }
            int identifier;
            if (identifiers.TryGetValue(value, out identifier))
            {
                WriteReference(identifier);
                return;
            }
            identifiers.Add(value, ++lastIdentifier);
            var text = value as string;
            if (text != null)
            {
                WriteString(text, lastIdentifier);
                return;
            }
            WriteReference(lastIdentifier);
            queue.Enqueue(value);
        }

        private void WriteReference(int identifier)
        {
            output.Write((byte)RecordType.MemberReference);
            output.Write(identifier);
        }

        private void WritePrimitive(object value, PrimitiveType primitive)
        {
            switch (primitive)
            {
                case PrimitiveType.Boolean: output.Write((bool)value); break;
                case PrimitiveType.Byte: output.Write((byte)value); break;
                case PrimitiveType.Char: output.Write((char)value); break;
                case PrimitiveType.Decimal: output.Write(((decimal)value).ToString(CultureInfo.InvariantCulture)); break;
                case PrimitiveType.Double: output.Write((double)value); break;
                case PrimitiveType.Int16: output.Write((short)value); break;
                case PrimitiveType.Int32: output.Write((int)value); break;
                case PrimitiveType.Int64: output.Write((long)value); break;
                case PrimitiveType.SByte: output.Write((sbyte)value); break;
                case PrimitiveType.Single: output.Write((float)value); break;
                case PrimitiveType.TimeSpan: output.Write(((TimeSpan)value).Ticks); break;
                case PrimitiveType.DateTime: output.Write(((DateTime)value).ToBinaryKind()); break;
                case PrimitiveType.UInt16: output.Write((ushort)value); break;
                case PrimitiveType.UInt32: output.Write((uint)value); break;
                default: output.Write((ulong)value); break;
            }
        }

        private static BinaryType BinaryTypeOf(Type type)
        {
            if (Primitives.Of(type) != PrimitiveType.None)
                return BinaryType.Primitive;
            if (type == typeof(string))
                return BinaryType.String;
            if (type == typeof(object))
                return BinaryType.Object;
            if (type == typeof(object[]))
                return BinaryType.ObjectArray;
            if (type == typeof(string[]))
                return BinaryType.StringArray;
            if (type.IsArray && type.GetArrayRank() == 1 && Primitives.Of(type.GetElementType()) != PrimitiveType.None)
                return BinaryType.PrimitiveArray;
            return TypeNames.IsSystem(TypeNames.AssemblyOf(type)) ? BinaryType.SystemClass : BinaryType.Class;
        }

        private void WriteTypeDetails(StatedType stated)
        {
            switch (stated.Kind)
            {
                case BinaryType.Primitive:
                case BinaryType.PrimitiveArray:
                    output.Write((byte)stated.Primitive);
                    break;
                case BinaryType.SystemClass:
                    output.Write(stated.Name);
                    break;
                case BinaryType.Class:
                    output.Write(stated.Name);
                    output.Write(Library(stated.Library));
                    break;
            }
        }

        /// <summary>Write the record of the library of a type, unless it is written.</summary>
        private void Declare(StatedType stated)
        {
            if (stated.Kind == BinaryType.Class)
                Library(stated.Library);
        }

        /// <summary>The number of an assembly. Writes its record if it is a new one.</summary>
        private int Library(string assembly)
        {
            int number;
            if (libraries.TryGetValue(assembly, out number))
                return number;
            number = ++lastIdentifier;
            libraries.Add(assembly, number);
            output.Write((byte)RecordType.BinaryLibrary);
            output.Write(number);
            output.Write(assembly);
            return number;
        }

        private sealed class WrittenClass
        {
            private readonly string[] names;
            private readonly Type[] types;

            internal WrittenClass(int identifier, Members members)
            {
                Identifier = identifier;
                names = members.Names;
                types = members.Types;
            }

            internal int Identifier { get; }

            internal bool HasSame(Members members)
            {
                if (members.Count != names.Length)
                    return false;
                for (int index = 0; index < names.Length; index++)
                {
                    if (names[index] != members.Names[index] || types[index] != members.Types[index])
                        return false;
                }
                return true;
            }
        }

        private sealed class ByReference : IEqualityComparer<object>
        {
            bool IEqualityComparer<object>.Equals(object one, object other)
            {
                return ReferenceEquals(one, other);
            }

            int IEqualityComparer<object>.GetHashCode(object value)
            {
                return RuntimeHelpers.GetHashCode(value);
            }
        }
    }
}
