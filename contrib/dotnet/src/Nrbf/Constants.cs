using System;
using System.Collections.Generic;

namespace System.Messaging.Nrbf
{
    /// <summary>Types of records: MS-NRBF 2.1.2.1.</summary>
    internal enum RecordType : byte
    {
        SerializedStreamHeader = 0,
        ClassWithId = 1,
        SystemClassWithMembers = 2,
        ClassWithMembers = 3,
        SystemClassWithMembersAndTypes = 4,
        ClassWithMembersAndTypes = 5,
        BinaryObjectString = 6,
        BinaryArray = 7,
        MemberPrimitiveTyped = 8,
        MemberReference = 9,
        ObjectNull = 10,
        MessageEnd = 11,
        BinaryLibrary = 12,
        ObjectNullMultiple256 = 13,
        ObjectNullMultiple = 14,
        ArraySinglePrimitive = 15,
        ArraySingleObject = 16,
        ArraySingleString = 17,
    }

    /// <summary>Types of members: MS-NRBF 2.1.2.2.</summary>
    internal enum BinaryType : byte
    {
        Primitive = 0,
        String = 1,
        Object = 2,
        SystemClass = 3,
        Class = 4,
        ObjectArray = 5,
        StringArray = 6,
        PrimitiveArray = 7,
    }

    /// <summary>Primitive types: MS-NRBF 2.1.2.3.</summary>
    internal enum PrimitiveType : byte
    {
        None = 0,
        Boolean = 1,
        Byte = 2,
        Char = 3,
        Decimal = 5,
        Double = 6,
        Int16 = 7,
        Int32 = 8,
        Int64 = 9,
        SByte = 10,
        Single = 11,
        TimeSpan = 12,
        DateTime = 13,
        UInt16 = 14,
        UInt32 = 15,
        UInt64 = 16,
        Null = 17,
        String = 18,
    }

    internal static class Primitives
    {
        private static readonly Dictionary<Type, PrimitiveType> ByType = new Dictionary<Type, PrimitiveType>
        {
            { typeof(bool), PrimitiveType.Boolean },
            { typeof(byte), PrimitiveType.Byte },
            { typeof(char), PrimitiveType.Char },
            { typeof(decimal), PrimitiveType.Decimal },
            { typeof(double), PrimitiveType.Double },
            { typeof(short), PrimitiveType.Int16 },
            { typeof(int), PrimitiveType.Int32 },
            { typeof(long), PrimitiveType.Int64 },
            { typeof(sbyte), PrimitiveType.SByte },
            { typeof(float), PrimitiveType.Single },
            { typeof(TimeSpan), PrimitiveType.TimeSpan },
            { typeof(DateTime), PrimitiveType.DateTime },
            { typeof(ushort), PrimitiveType.UInt16 },
            { typeof(uint), PrimitiveType.UInt32 },
            { typeof(ulong), PrimitiveType.UInt64 },
        };

        /// <summary>The primitive type of a .NET type, None if it is not one.</summary>
        internal static PrimitiveType Of(Type type)
        {
            PrimitiveType found;
            return ByType.TryGetValue(type, out found) ? found : PrimitiveType.None;
        }

        /// <summary>The .NET type of a primitive type; null if the value is not one of an array or member.</summary>
        internal static Type TypeOf(PrimitiveType primitive)
        {
            foreach (KeyValuePair<Type, PrimitiveType> each in ByType)
            {
                if (each.Value == primitive)
                    return each.Key;
            }
            return null;
        }
    }
}
