using System;
using System.Collections.Generic;
using System.Reflection;
using System.Runtime.Serialization;

namespace System.Messaging.Nrbf
{
    /// <summary>
    /// Makes the objects of a stream.
    ///
    /// 1. All objects are allocated, so that cycles need no special care.
    /// 2. They are filled from the last to the first: what an object references mostly follows it, so a class with a
    ///    constructor for SerializationInfo gets complete values.
    /// 3. Callbacks run when all objects are filled.
    /// </summary>
    internal sealed class GraphBuilder
    {
        private const BindingFlags AnyInstance = BindingFlags.Instance | BindingFlags.Public | BindingFlags.NonPublic;

        private readonly Records records;
        private readonly Dictionary<int, object> made = new Dictionary<int, object>();
        private readonly Dictionary<ClassLayout, Type> types = new Dictionary<ClassLayout, Type>();
        private readonly List<object> filled = new List<object>();

        internal GraphBuilder(Records records)
        {
            this.records = records;
        }

        /// <summary>Return the root object. Raises SerializationException.</summary>
        internal object Build()
        {
            try
            {
                foreach (int identifier in records.Order)
                    made[identifier] = Allocate(records.ByIdentifier[identifier]);
                for (int index = records.Order.Count - 1; index >= 0; index--)
                {
                    int identifier = records.Order[index];
                    made[identifier] = Fill(made[identifier], records.ByIdentifier[identifier]);
                }
                for (int index = filled.Count - 1; index >= 0; index--)
                {
                    var waiting = filled[index] as IDeserializationCallback;
                    if (waiting != null)
                        waiting.OnDeserialization(this);
                    Callbacks.Call<OnDeserializedAttribute>(filled[index]);
                }
            }
            catch (Exception error) when (error is ArgumentException || error is InvalidCastException
                || error is MemberAccessException || error is OverflowException || error is FormatException)
            {
                throw new SerializationException("the body does not fit its types: " + error.Message, error);
            }
            catch (TargetInvocationException error)
            {
                throw new SerializationException(
                    "an object of the body refuses its values: " + error.InnerException.Message, error.InnerException);
            }
            return made[records.Root];
        }

        private object Allocate(object record)
        {
            var array = record as ArrayRecord;
            if (array != null)
                return AllocateArray(array);
            var item = record as ClassRecord;
            if (item == null)
                return record; // a string
            object simple = Simple(item);
            return simple ?? FormatterServices.GetUninitializedObject(TypeOf(item.Layout));
        }

        private object AllocateArray(ArrayRecord record)
        {
            if (record.Primitives == null)
                return Array.CreateInstance(ElementType(record.Element), record.Lengths);
            if (record.Lengths.Length == 1)
                return record.Primitives;
            Array array = Array.CreateInstance(record.Primitives.GetType().GetElementType(), record.Lengths);
            var index = new int[record.Lengths.Length];
            foreach (object value in record.Primitives)
            {
                array.SetValue(value, index);
                Advance(index, record.Lengths);
            }
            return array;
        }

        private object Fill(object target, object record)
        {
            var array = record as ArrayRecord;
            if (array != null)
            {
                if (array.Values != null)
                    FillArray((Array)target, array);
                return target;
            }
            var item = record as ClassRecord;
            return item == null || Simple(item) != null ? target : FillObject(target, item);
        }

        private void FillArray(Array target, ArrayRecord record)
        {
            var index = new int[record.Lengths.Length];
            foreach (object value in record.Values)
            {
                if (value != null)
                    target.SetValue(Resolve(value), index);
                Advance(index, record.Lengths);
            }
        }

        private static void Advance(int[] index, int[] lengths)
        {
            for (int dimension = index.Length - 1; dimension >= 0; dimension--)
            {
                if (++index[dimension] < lengths[dimension])
                    return;
                index[dimension] = 0;
            }
        }

        private object FillObject(object target, ClassRecord record)
        {
            Type type = target.GetType();
            Callbacks.Call<OnDeserializingAttribute>(target);
            if (target is ISerializable)
                Construct(target, type, record);
            else
                FillFields(target, type, record);
            filled.Add(target);
            var proxy = target as IObjectReference;
            return proxy == null ? target : proxy.GetRealObject(Members.Context);
        }

        private void Construct(object target, Type type, ClassRecord record)
        {
            ConstructorInfo constructor = type.GetConstructor(AnyInstance, null,
                new[] { typeof(SerializationInfo), typeof(StreamingContext) }, null);
            if (constructor == null)
                throw new SerializationException("the class " + type.FullName + " has no constructor for serialization");
            var info = new SerializationInfo(type, new FormatterConverter());
            for (int index = 0; index < record.Values.Length; index++)
            {
                object value = Resolve(record.Values[index]);
                info.AddValue(record.Layout.Names[index], value, value == null ? typeof(object) : value.GetType());
            }
            constructor.Invoke(target, new object[] { info, Members.Context });
        }

        private void FillFields(object target, Type type, ClassRecord record)
        {
            MemberInfo[] fields = FormatterServices.GetSerializableMembers(type, Members.Context);
            var byName = new Dictionary<string, FieldInfo>();
            foreach (MemberInfo field in fields)
                byName[field.Name] = (FieldInfo)field;
            for (int index = 0; index < record.Values.Length; index++)
            {
                FieldInfo field;
                if (!byName.TryGetValue(record.Layout.Names[index], out field))
                    continue; // of another version of the class
                object value = Resolve(record.Values[index]);
                if (value != null)
                    field.SetValue(target, value);
            }
        }

        /// <summary>The object for a value of a record: a reference, a struct, or the value itself.</summary>
        private object Resolve(object value)
        {
            var reference = value as Reference;
            if (reference != null)
            {
                object found;
                if (!made.TryGetValue(reference.Identifier, out found))
                    throw new SerializationException("the body refers to an object that it does not have");
                return found;
            }
            var item = value as ClassRecord;
            return item == null ? value : Fill(Allocate(item), item);
        }

        private Type TypeOf(ClassLayout layout)
        {
            Type type;
            if (!types.TryGetValue(layout, out type))
            {
                type = TypePolicy.Find(layout.Name, layout.Library);
                types.Add(layout, type);
            }
            return type;
        }

        private static Type ElementType(StatedType stated)
        {
            switch (stated.Kind)
            {
                case BinaryType.String: return typeof(string);
                case BinaryType.Object: return typeof(object);
                case BinaryType.ObjectArray: return typeof(object[]);
                case BinaryType.StringArray: return typeof(string[]);
                case BinaryType.PrimitiveArray:
                    Type element = Primitives.TypeOf(stated.Primitive);
                    if (element == null)
                        throw new SerializationException("an array of the body has elements of an unknown type");
                    return element.MakeArrayType();
                default: return TypePolicy.Find(stated.Name, stated.Library);
            }
        }

        /// <summary>The value of a record for a primitive, an enumeration or another simple value; else null.</summary>
        private object Simple(ClassRecord record)
        {
            Type type = TypeOf(record.Layout);
            if (type.IsEnum)
                return Enum.ToObject(type, Resolve(record.Values[0]));
            if (type.IsPrimitive)
                return Convert.ChangeType(record.Values[0], type);
            if (type == typeof(DateTime))
                return Dates.FromBinaryKind(unchecked((long)(ulong)Member(record, "dateData")));
            if (type == typeof(TimeSpan))
                return new TimeSpan((long)Member(record, "_ticks"));
            if (type == typeof(decimal))
            {
                return new decimal(new[]
                {
                    (int)Member(record, "lo"), (int)Member(record, "mid"), (int)Member(record, "hi"),
                    (int)Member(record, "flags"),
                });
            }
            return null;
        }

        private static object Member(ClassRecord record, string name)
        {
            int index = Array.IndexOf(record.Layout.Names, name);
            if (index < 0 || record.Values[index] == null)
                throw new SerializationException("the body has a " + record.Layout.Name + " without " + name);
            return record.Values[index];
        }
    }
}
