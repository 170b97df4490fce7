using System;
using System.Collections.Generic;
using System.IO;
using System.Reflection;
using System.Runtime.Serialization;

namespace System.Messaging.Nrbf
{
    /// <summary>
    /// Finds the types that a stream names, and refuses those that a stream must not make.
    ///
    /// 1. Types of the program and its libraries: classes that are marked as serializable, except delegates.
    /// 2. Types of the framework: values, and the collections below. Other ones can be made to run code of a sender's
    ///    choice. A program that needs one names it in MSMQ_FAST_BINARY_TYPES: full names, separated by semicolons.
    /// </summary>
    internal static class TypePolicy
    {
        private const string Variable = "MSMQ_FAST_BINARY_TYPES";

        private static readonly HashSet<string> FrameworkKeys = new HashSet<string>
        {
            "b77a5c561934e089", "b03f5f7f11d50a3a", "31bf3856ad364e35", "7cec85d7bea7798e", "cc7b13ffcd2ddd51",
            "adb9793829ddae60", "0738eb9f132ed756",
        };

        private static readonly HashSet<string> Values = new HashSet<string>
        {
            "System.Object", "System.String", "System.Guid", "System.Decimal", "System.DateTime",
            "System.DateTimeOffset", "System.TimeSpan", "System.Version", "System.Uri", "System.DBNull",
            "System.UnitySerializationHolder", "System.Nullable`1", "System.Numerics.BigInteger",
            "System.Text.StringBuilder",
            "System.Exception", "System.ApplicationException", "System.SystemException", "System.ArgumentException",
            "System.ArgumentNullException", "System.InvalidOperationException", "System.NotSupportedException",
            "System.FormatException", "System.TimeoutException",
            "System.Collections.ArrayList", "System.Collections.BitArray", "System.Collections.Hashtable",
            "System.Collections.Queue", "System.Collections.SortedList", "System.Collections.Stack",
            "System.Collections.Comparer", "System.Collections.DictionaryEntry",
            "System.Collections.CaseInsensitiveComparer", "System.Collections.CaseInsensitiveHashCodeProvider",
            "System.Collections.ListDictionaryInternal", "System.Collections.ListDictionaryInternal+DictionaryNode",
            "System.Collections.Specialized.HybridDictionary", "System.Collections.Specialized.ListDictionary",
            "System.Collections.Specialized.ListDictionary+DictionaryNode",
            "System.Collections.Specialized.NameValueCollection", "System.Collections.Specialized.StringCollection",
            "System.Collections.Specialized.StringDictionary",
            "System.Collections.Generic.Dictionary`2", "System.Collections.Generic.HashSet`1",
            "System.Collections.Generic.KeyValuePair`2", "System.Collections.Generic.LinkedList`1",
            "System.Collections.Generic.List`1", "System.Collections.Generic.Queue`1",
            "System.Collections.Generic.SortedDictionary`2", "System.Collections.Generic.SortedList`2",
            "System.Collections.Generic.SortedDictionary`2+KeyValuePairComparer",
            "System.Collections.Generic.SortedSet`1", "System.Collections.Generic.TreeSet`1",
            "System.Collections.Generic.Stack`1",
            "System.Collections.Generic.ByteEqualityComparer", "System.Collections.Generic.EnumEqualityComparer`1",
            "System.Collections.Generic.GenericComparer`1", "System.Collections.Generic.GenericEqualityComparer`1",
            "System.Collections.Generic.NonRandomizedStringEqualityComparer",
            "System.Collections.Generic.NullableComparer`1", "System.Collections.Generic.NullableEqualityComparer`1",
            "System.Collections.Generic.ObjectComparer`1", "System.Collections.Generic.ObjectEqualityComparer`1",
            "System.OrdinalComparer", "System.CultureAwareComparer", "System.Globalization.CompareInfo",
            "System.OrdinalCaseSensitiveComparer", "System.OrdinalIgnoreCaseComparer",
            "System.Collections.ObjectModel.Collection`1", "System.Collections.ObjectModel.ReadOnlyCollection`1",
            "System.Tuple`1", "System.Tuple`2", "System.Tuple`3", "System.Tuple`4", "System.Tuple`5",
            "System.Tuple`6", "System.Tuple`7", "System.Tuple`8",
            "System.ValueTuple`1", "System.ValueTuple`2", "System.ValueTuple`3", "System.ValueTuple`4",
            "System.ValueTuple`5", "System.ValueTuple`6", "System.ValueTuple`7", "System.ValueTuple`8",
        };

        /// <summary>Find a type. `library` is null for mscorlib. Raises SerializationException.</summary>
        internal static Type Find(string name, string library)
        {
            Assembly home = AssemblyOf(library == null ? null : new AssemblyName(library));
            Type found;
            try
            {
                found = Type.GetType(name, AssemblyOf,
                    (assembly, part, ignoreCase) => (assembly ?? home).GetType(part, false), false);
            }
            catch (Exception error) when (error is ArgumentException || error is FileLoadException
                || error is TypeLoadException)
            {
                throw new SerializationException("the type '" + name + "' cannot be loaded", error);
            }
            if (found == null)
                throw new SerializationException("the type '" + name + "' of " + (library ?? "mscorlib") + " is not known");
            Check(found);
            return found;
        }

        /// <summary>Raises SerializationException if a stream must not make objects of a type.</summary>
        internal static void Check(Type type)
        {
            while (type.HasElementType)
                type = type.GetElementType();
            if (type.IsGenericType)
            {
                foreach (Type argument in type.GetGenericArguments())
                    Check(argument);
                type = type.GetGenericTypeDefinition();
            }
            if (type.IsPrimitive || Values.Contains(type.FullName) || IsNamed(type.FullName))
                return;
            if (IsFramework(type.Assembly) && !type.IsEnum && !type.IsInterface)
            {
                throw new SerializationException("the body has the type " + type.FullName
                    + ", which may run code; to allow it, add it to " + Variable);
            }
            if (typeof(Delegate).IsAssignableFrom(type))
                throw new SerializationException("the body has a delegate, " + type.FullName);
            if (!type.IsSerializable && !type.IsInterface)
                throw new SerializationException("the class " + type.FullName + " is not marked as serializable");
        }

        private static bool IsNamed(string name)
        {
            string names = Environment.GetEnvironmentVariable(Variable);
            return !string.IsNullOrEmpty(names) && Array.IndexOf(names.Split(';'), name) >= 0;
        }

        private static bool IsFramework(Assembly assembly)
        {
            if (assembly == typeof(object).Assembly || assembly == typeof(TypePolicy).Assembly)
                return true;
            byte[] token = assembly.GetName().GetPublicKeyToken();
            return token != null && token.Length == 8
                && FrameworkKeys.Contains(BitConverter.ToString(token).Replace("-", "").ToLowerInvariant());
        }

        /// <summary>
        /// The assembly with a simple name: one that is loaded, else one of the program or the framework. Raises
        /// SerializationException.
        /// </summary>
        private static Assembly AssemblyOf(AssemblyName name)
        {
            if (name == null || name.Name == "mscorlib" || name.Name == "System.Private.CoreLib")
                return Assembly.Load("mscorlib");
            foreach (Assembly loaded in AppDomain.CurrentDomain.GetAssemblies())
            {
                if (string.Equals(loaded.GetName().Name, name.Name, StringComparison.OrdinalIgnoreCase))
                    return loaded;
            }
            try
            {
                return Assembly.Load(new AssemblyName(name.Name));
            }
            catch (Exception error) when (error is IOException || error is BadImageFormatException)
            {
                throw new SerializationException("the assembly '" + name.Name + "' of a type in the body is not known", error);
            }
        }
    }
}
