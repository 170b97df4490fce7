using System;
using System.Collections.Generic;

namespace System.Messaging.Nrbf
{
    /// <summary>A reference to an object of the stream.</summary>
    internal sealed class Reference
    {
        internal Reference(int identifier)
        {
            Identifier = identifier;
        }

        internal int Identifier { get; }
    }

    /// <summary>A type as a stream states it.</summary>
    internal sealed class StatedType
    {
        internal BinaryType Kind;
        internal PrimitiveType Primitive; // of Primitive and PrimitiveArray
        internal string Name; // of SystemClass and Class
        internal string Library; // of Class
    }

    /// <summary>The names and types of the members of a class.</summary>
    internal sealed class ClassLayout
    {
        internal string Name;
        internal string Library; // null: mscorlib
        internal string[] Names;
        internal StatedType[] Types; // null: not stated
    }

    /// <summary>An object: its members are plain values, references or other objects (of structs).</summary>
    internal sealed class ClassRecord
    {
        internal ClassLayout Layout;
        internal object[] Values;
    }

    internal sealed class ArrayRecord
    {
        internal StatedType Element;
        internal int[] Lengths;
        internal object[] Values; // null: the array has primitive elements
        internal Array Primitives;
    }

    /// <summary>The records of a stream, in the order of their appearance.</summary>
    internal sealed class Records
    {
        internal int Root;
        internal readonly Dictionary<int, object> ByIdentifier = new Dictionary<int, object>();
        internal readonly List<int> Order = new List<int>();
    }
}
