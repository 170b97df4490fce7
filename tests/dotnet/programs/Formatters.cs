using System;
using System.Collections;
using System.Collections.Generic;
using System.IO;
using System.Runtime.Serialization;
using System.Text;
#if MSMQ_MESSAGING
using MSMQ.Messaging;
#else
using System.Messaging;
#endif

public enum Colour { Red, Green = 5 }

public class Item
{
    public string Name { get; set; }

    public int Count { get; set; }
}

[Serializable]
public struct Size
{
    public int Width;
    public double Height;
}

[Serializable]
public class Node
{
    public string Name;
    public Node Next;
    public int? Number;
    public Colour Colour;
    public Size Size;
    public object Anything;
    [NonSerialized] public string Forgotten;
    [NonSerialized] public bool Told;

    [OnDeserialized]
    private void Tell(StreamingContext context)
    {
        Told = true;
    }
}

[Serializable]
public class Own : ISerializable
{
    public readonly string Text;

    public Own(string text)
    {
        Text = text;
    }

    protected Own(SerializationInfo info, StreamingContext context)
    {
        Text = info.GetString("text");
    }

    public void GetObjectData(SerializationInfo info, StreamingContext context)
    {
        info.AddValue("text", Text);
    }
}

internal static partial class Program
{
    private static void Xml()
    {
        using (MessageQueue queue = NewQueue("xml"))
        {
            queue.Formatter = new XmlMessageFormatter(new[] { typeof(Item), typeof(string), typeof(int[]) });
            queue.Send("Hello");
            Message message = queue.Receive(Soon);
            Same("<?xml version=\"1.0\"?>\r\n<string>Hello</string>", Raw(message), "the bytes of Windows");
            Same(0, message.BodyType, "body type");
            Same("Hello", Text(message), "text");
            queue.Send(new Item { Name = "a", Count = 3 });
            var item = (Item)queue.Receive(Soon).Body;
            Same("a3", item.Name + item.Count, "object");
            queue.Send(new[] { 1, 2, 3 });
            Same(3, ((int[])queue.Receive(Soon).Body).Length, "array");
            queue.Send(2.5);
            Message other = queue.Receive(Soon);
            Throws<InvalidOperationException>(() => other.Body.ToString(), "another type");
            var hostile = new MemoryStream(Encoding.UTF8.GetBytes(
                "<?xml version=\"1.0\"?><!DOCTYPE string [<!ENTITY e \"x\">]><string>&e;</string>"));
            queue.Send(new Message { BodyStream = hostile });
            Message refused = queue.Receive(Soon);
            Throws<InvalidOperationException>(() => refused.Body.ToString(), "document type");
            var byName = new XmlMessageFormatter(new[] { "System.String,mscorlib" });
            queue.Send("named");
            queue.Formatter = byName;
            Same("named", Text(queue.Receive(Soon)), "type by name");
            queue.Formatter = new XmlMessageFormatter();
            queue.Send("first");
            queue.Send(5);
            Same("first", Text(queue.Receive(Soon)), "a type that was written");
            Same(5, (int)queue.Receive(Soon).Body, "another type that was written");
        }
    }

    private static void Binary()
    {
        using (MessageQueue queue = NewQueue("binary"))
        {
            queue.Formatter = new BinaryMessageFormatter();
            queue.Send("Hello");
            Message message = queue.Receive(Soon);
            Same(768, message.BodyType, "body type");
            Same("Hello", Text(message), "text");
            foreach (object each in new object[]
            {
                1, -2L, 3.5, 'x', true, 1.25m, new DateTime(2026, 1, 2, 3, 4, 5, DateTimeKind.Utc), Guid.NewGuid(),
                TimeSpan.FromSeconds(1), Colour.Green, (byte)7, ulong.MaxValue, new Version(1, 2, 3, 4),
            })
            {
                Same(each, Copy(queue, each), each.GetType().Name);
            }
            var node = new Node
            {
                Name = "a", Number = 7, Colour = Colour.Green, Size = new Size { Width = 3, Height = 0.5 },
                Anything = new List<string> { "x", null, "" }, Forgotten = "not sent",
            };
            node.Next = new Node { Name = "b", Next = node, Anything = new Dictionary<string, int> { { "k", 1 } } };
            var copy = (Node)Copy(queue, node);
            Same("ab", copy.Name + copy.Next.Name, "names");
            True(ReferenceEquals(copy, copy.Next.Next), "cycle");
            Same(7, copy.Number.Value, "nullable");
            Same(null, copy.Next.Number, "null");
            Same(Colour.Green, copy.Colour, "enumeration");
            Same(0.5, copy.Size.Height, "struct");
            Same(3, ((List<string>)copy.Anything).Count, "list");
            Same(1, ((Dictionary<string, int>)copy.Next.Anything)["k"], "dictionary");
            Same(null, copy.Forgotten, "not serialized");
            True(copy.Told && copy.Next.Told, "callbacks");
            Same("own", ((Own)Copy(queue, new Own("own"))).Text, "class with its own format");
            var table = (Hashtable)Copy(queue, new Hashtable { { "a", 1 }, { 2, "b" } });
            Same("1b", "" + table["a"] + table[2], "hash table");
            Same(6, ((int[,])Copy(queue, new[,] { { 1, 2, 3 }, { 4, 5, 6 } }))[1, 2], "matrix");
            Same(2, ((int[][])Copy(queue, new[] { new[] { 1 }, new[] { 2 } }))[1][0], "jagged array");
            Same(600, ((string[])Copy(queue, new string[600])).Length, "nulls");
            var deep = new Node();
            for (int index = 0; index < 3000; index++)
                deep = new Node { Next = deep };
            Same(3000, Depth((Node)Copy(queue, deep)), "a long chain");
        }
    }

    private static void HostileBinary()
    {
        using (MessageQueue queue = NewQueue("hostile"))
        {
            queue.Formatter = new BinaryMessageFormatter();
            Throws<SerializationException>(() => queue.Send(new Item()), "not serializable");
            Throws<SerializationException>(() => queue.Send(new Action(HostileBinary)), "delegate");
            const string Head = "0001000000FFFFFFFF0100000000000000";
            foreach (string each in new[]
            {
                "", "00", "FF", Head, Head + "0B", Head + "09010000000B", // truncated, no root
                Head + "0F01000000FFFFFF7F020B", // more bytes than there are
                Head + "1001000000FFFFFF7F0EFFFFFF7F0B", // two thousand million nulls
                Head + "1001000000020000000E030000000B", // more nulls than elements
                Head + "0601000000FFFFFFFF7F610B", // length of a text
                Head + "070100000002200000000B", // dimensions
                Head + "0101000000050000000B", // unknown class
                Head + "1001000000010000000909000000" + "0B", // unknown object
                Head + "0401000000" + Name("System.IO.FileInfo") + "00000000" + "0B", // a class with effects
                Head + "0401000000" + Name("System.DelegateSerializationHolder") + "00000000" + "0B",
                Head + "0401000000" + Name("System.NoSuchType") + "00000000" + "0B",
                Head + "0C02000000" + Name("NoSuchAssembly") + "0501000000" + Name("A.B") + "00000000" + "020000000B",
            })
            {
                var body = new byte[each.Length / 2];
                for (int index = 0; index < body.Length; index++)
                    body[index] = Convert.ToByte(each.Substring(index * 2, 2), 16);
                queue.Send(new Message { BodyStream = new MemoryStream(body), BodyType = 768 });
                Message message = queue.Receive(Soon);
                Throws<SerializationException>(() => new BinaryMessageFormatter().Read(message), each);
            }
            queue.Send("text");
            Message whole = queue.Receive(Soon);
            byte[] bytes = ((MemoryStream)whole.BodyStream).ToArray();
            var random = new Random(1);
            for (int round = 0; round < 3000; round++)
            {
                var changed = (byte[])bytes.Clone();
                changed[random.Next(changed.Length)] = (byte)random.Next(256);
                try
                {
                    new BinaryMessageFormatter().Read(
                        new Message { BodyStream = new MemoryStream(changed), BodyType = 768 });
                }
                catch (SerializationException)
                {
                    continue;
                }
            }
        }
    }

    private static void ActiveX()
    {
        using (MessageQueue queue = NewQueue("activex"))
        {
            queue.Formatter = new ActiveXMessageFormatter();
            queue.Send("h\u00E9 \uD83D\uDE00");
            Message message = queue.Receive(Soon);
            Same(8, message.BodyType, "a text as COM programs send it");
            Same("h\u00E9 \uD83D\uDE00", Text(message), "text");
            foreach (object each in new object[]
            {
                1, -2L, 3.5, 1.5f, true, false, (byte)7, (sbyte)-7, (short)-2, (ushort)65535, 4000000000u,
                ulong.MaxValue, -12.3456m, new DateTime(2026, 11, 26, 18, 45, 30), Guid.NewGuid(),
            })
            {
                Same(each, Copy(queue, each), each.GetType().Name);
            }
            SameBytes(new byte[] { 0, 1, 255 }, (byte[])Copy(queue, new byte[] { 0, 1, 255 }), "bytes");
            queue.Send(new Message { BodyStream = new MemoryStream(Encoding.ASCII.GetBytes("narrow")), BodyType = 30 });
            Same("narrow", Text(queue.Receive(Soon)), "a narrow text");
            Throws<InvalidOperationException>(() => queue.Send(new Item()), "an object");
            queue.Send(new Message { BodyStream = new MemoryStream(new byte[3]), BodyType = 3 });
            Message wrong = queue.Receive(Soon);
            Throws<InvalidOperationException>(() => wrong.Body.ToString(), "wrong size");
        }
    }

    private static object Copy(MessageQueue queue, object value)
    {
        queue.Send(value);
        return queue.Receive(Soon).Body;
    }

    private static int Depth(Node node)
    {
        int depth = 0;
        for (; node.Next != null; node = node.Next)
            depth++;
        return depth;
    }

    private static string Raw(Message message)
    {
        message.BodyStream.Position = 0;
        return new StreamReader(message.BodyStream).ReadToEnd();
    }

    private static string Name(string text)
    {
        return text.Length.ToString("X2") + BitConverter.ToString(Encoding.ASCII.GetBytes(text)).Replace("-", "");
    }
}
