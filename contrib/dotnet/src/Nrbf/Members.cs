using System;
using System.Collections.Generic;
using System.Reflection;
using System.Runtime.Serialization;

namespace System.Messaging.Nrbf
{
    /// <summary>What an object gives to a writer: the names, values and declared types of its members.</summary>
    internal sealed class Members
    {
        internal static readonly StreamingContext Context = new StreamingContext(StreamingContextStates.All);

        private readonly object owner;

        /// <summary>Raises SerializationException if the class of the object is not serializable.</summary>
        internal Members(object owner)
        {
            this.owner = owner;
            Type type = owner.GetType();
            if (!type.IsSerializable && !(owner is ISerializable))
                throw new SerializationException("the class " + type.FullName + " is not marked as serializable");
            if (owner is Delegate)
                throw new SerializationException("delegates are not written");
            Callbacks.Call<OnSerializingAttribute>(owner);
            var custom = owner as ISerializable;
            if (custom != null)
                Ask(custom, type);
            else
                Read(type);
        }

        internal string TypeName { get; private set; }

        internal string AssemblyName { get; private set; }

        internal string[] Names { get; private set; }

        internal object[] Values { get; private set; }

        internal Type[] Types { get; private set; }

        internal int Count => Names.Length;

        /// <summary>Tell the object that its members are written.</summary>
        internal void Written()
        {
            Callbacks.Call<OnSerializedAttribute>(owner);
        }

        private void Ask(ISerializable custom, Type type)
        {
            var info = new SerializationInfo(type, new FormatterConverter());
            custom.GetObjectData(info, Context);
            if (info.ObjectType != type)
                type = info.ObjectType;
            TypeName = info.IsFullTypeNameSetExplicit ? info.FullTypeName : TypeNames.FullName(type);
            AssemblyName = info.IsAssemblyNameSetExplicit ? info.AssemblyName : TypeNames.AssemblyOf(type);
            var names = new List<string>();
            var values = new List<object>();
            var types = new List<Type>();
            foreach (SerializationEntry entry in info)
            {
                names.Add(entry.Name);
                values.Add(entry.Value);
                types.Add(entry.ObjectType);
            }
            Names = names.ToArray();
            Values = values.ToArray();
            Types = types.ToArray();
        }

        private void Read(Type type)
        {
            TypeName = TypeNames.FullName(type);
            AssemblyName = TypeNames.AssemblyOf(type);
            MemberInfo[] fields = FormatterServices.GetSerializableMembers(type, Context);
            Values = FormatterServices.GetObjectData(owner, fields);
            Names = Array.ConvertAll(fields, field => field.Name);
            Types = Array.ConvertAll(fields, field => ((FieldInfo)field).FieldType);
        }
    }

    /// <summary>Methods that a class has for the moments of its serialization.</summary>
    internal static class Callbacks
    {
        private const BindingFlags Own = BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic
            | BindingFlags.DeclaredOnly;

        /// <summary>Call the methods of an object that have an attribute, those of base classes first.</summary>
        internal static void Call<T>(object owner) where T : Attribute
        {
            Call(owner, owner.GetType(), typeof(T));
        }

        private static void Call(object owner, Type type, Type attribute)
        {
            if (type == null || type == typeof(object) || type == typeof(ValueType))
                return;
            Call(owner, type.BaseType, attribute);
            foreach (MethodInfo method in type.GetMethods(Own))
            {
                if (method.IsDefined(attribute, false))
                    method.Invoke(owner, new object[] { Members.Context });
            }
        }
    }
}
