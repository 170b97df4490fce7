using System;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Text;

namespace System.Messaging.Nrbf
{
    /// <summary>Names of types and assemblies as .NET Framework writes them, on every runtime.</summary>
    internal static class TypeNames
    {
        internal const string Mscorlib = "mscorlib, Version=4.0.0.0, Culture=neutral, PublicKeyToken=b77a5c561934e089";

        /// <summary>The assembly in which .NET Framework has a type.</summary>
        internal static string AssemblyOf(Type type)
        {
            while (type.HasElementType)
                type = type.GetElementType();
            Type definition = type.IsGenericType ? type.GetGenericTypeDefinition() : type;
            object[] moved = definition.GetCustomAttributes(typeof(TypeForwardedFromAttribute), false);
            if (moved.Length > 0)
                return ((TypeForwardedFromAttribute)moved[0]).AssemblyFullName;
            Assembly assembly = type.Assembly;
            return assembly == typeof(object).Assembly ? Mscorlib : assembly.FullName;
        }

        internal static bool IsSystem(string assembly)
        {
            return assembly == Mscorlib;
        }

        /// <summary>The full name, with the assemblies of generic arguments.</summary>
        internal static string FullName(Type type)
        {
            if (type.IsArray)
            {
                int rank = type.GetArrayRank();
                return FullName(type.GetElementType()) + "[" + new string(',', rank - 1) + "]";
            }
            if (!type.IsGenericType)
                return type.FullName;
            var name = new StringBuilder(type.GetGenericTypeDefinition().FullName).Append('[');
            Type[] arguments = type.GetGenericArguments();
            for (int index = 0; index < arguments.Length; index++)
            {
                name.Append(index == 0 ? "[" : ",[").Append(FullName(arguments[index]))
                    .Append(", ").Append(AssemblyOf(arguments[index])).Append(']');
            }
            return name.Append(']').ToString();
        }
    }
}
