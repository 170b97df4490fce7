// Writes the golden bodies of this folder, one JSON object a line: what .NET's formatters make of values.
//
//   mono:  mcs -d:MESSAGING -r:System.Messaging.dll -out:mono.exe Goldens.cs && mono mono.exe > mono.jsonl
//   .NET:  mcs -out:net.exe Goldens.cs
//          dotnet exec --runtimeconfig net.runtimeconfig.json net.exe > net.jsonl
//
// With MESSAGING the formatters of System.Messaging write; without it the serialisers that they call do.
// README.md says where compiler and runtimes come from.

using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Runtime.Serialization.Formatters.Binary;
using System.Text;
using System.Xml;
using System.Xml.Serialization;
#if MESSAGING
using System.Messaging;
#endif

namespace Shop
{
    public enum Colour { Red, Green = 5 }

    [Serializable]
    public struct Size { public int Width; public double Height; }

    [Serializable]
    public class Line
    {
        [XmlAttribute] public string Sku;
        public decimal Price;
        public int? Count;
        public object Extra;
    }

    [Serializable]
    public class Order
    {
        public int Id;
        public string Customer;
        public string Note;
        public DateTime When;
        public Guid Key;
        public bool Paid;
        public Colour Colour;
        public Size Size;
        public byte[] Data;
        public Line[] Lines;
        public List<string> Tags;
    }

    [Serializable]
    public class Node
    {
        public string Name;
        public Node Next;
        public Node Shared;
    }
}

public static class Goldens
{
    static readonly UTF8Encoding Plain = new UTF8Encoding(false);

    static string Quote(string text)
    {
        var made = new StringBuilder("\"");
        foreach (char c in text)
        {
            if (c == '"' || c == '\\') made.Append('\\').Append(c);
            else if (c < ' ' || c > '~') made.Append("\\u").Append(((int)c).ToString("x4"));
            else made.Append(c);
        }
        return made.Append('"').ToString();
    }

    static void Line(string formatter, string name, string type, int bodyType, byte[] body)
    {
        Console.WriteLine("{{\"formatter\": {0}, \"name\": {1}, \"type\": {2}, \"body_type\": {3}, \"body\": {4}}}",
            Quote(formatter), Quote(name), Quote(type), bodyType, Quote(BitConverter.ToString(body).Replace("-", "").ToLowerInvariant()));
    }

#if MESSAGING
    static void Write(string formatter, IMessageFormatter with, string name, object value)
    {
        var message = new Message();
        with.Write(message, value);
        var body = new MemoryStream();
        message.BodyStream.Position = 0;
        message.BodyStream.CopyTo(body);
        Line(formatter, name, value.GetType().ToString(), message.BodyType, body.ToArray());
    }

    static void Xml(string name, object value) { Write("xml", new XmlMessageFormatter(), name, value); }

    static void Binary(string name, object value) { Write("binary", new BinaryMessageFormatter(), name, value); }
#else
    static void Xml(string name, object value)
    {
        var body = new MemoryStream();
        new XmlSerializer(value.GetType()).Serialize(body, value);
        Line("xml", name, value.GetType().ToString(), 0, body.ToArray());
    }

    static void Binary(string name, object value)
    {
        var body = new MemoryStream();
        new BinaryFormatter().Serialize(body, value);
        Line("binary", name, value.GetType().ToString(), 768, body.ToArray());
    }
#endif

    static void Both(string name, object value)
    {
        Xml(name, value);
        Binary(name, value);
    }

    static void ActiveX(string name, int variantType, byte[] body) { Line("activex", name, "", variantType, body); }

    // The values of VARIANT types as OLE lays them out; conversions by the runtime's own OLE functions.
    static void Variants()
    {
        ActiveX("bstr", 8, Encoding.Unicode.GetBytes("h\u00e9 \U0001F600"));
        ActiveX("lpwstr", 31, Encoding.Unicode.GetBytes("h\u00e9 \U0001F600"));
        ActiveX("lpstr", 30, Encoding.ASCII.GetBytes("plain"));
        ActiveX("true", 11, BitConverter.GetBytes((short)-1));
        ActiveX("false", 11, BitConverter.GetBytes((short)0));
        ActiveX("int8", 16, new[] { unchecked((byte)(sbyte)-3) });
        ActiveX("uint8", 17, new byte[] { 200 });
        ActiveX("int16", 2, BitConverter.GetBytes((short)-2));
        ActiveX("uint16", 18, BitConverter.GetBytes((ushort)65535));
        ActiveX("int32", 3, BitConverter.GetBytes(-7));
        ActiveX("uint32", 19, BitConverter.GetBytes(4000000000u));
        ActiveX("int64", 20, BitConverter.GetBytes(long.MinValue));
        ActiveX("uint64", 21, BitConverter.GetBytes(ulong.MaxValue));
        ActiveX("single", 4, BitConverter.GetBytes(1.5f));
        ActiveX("double", 5, BitConverter.GetBytes(0.1));
        ActiveX("currency", 6, BitConverter.GetBytes(decimal.ToOACurrency(-12.3456m)));
        ActiveX("date", 7, BitConverter.GetBytes(new DateTime(2026, 11, 26, 18, 45, 30).ToOADate()));
        ActiveX("date-before-1900", 7, BitConverter.GetBytes(new DateTime(1815, 6, 18, 6, 0, 0).ToOADate()));
        ActiveX("clsid", 72, new Guid("0fb15084-af41-11ce-bd2b-204c4f4f5020").ToByteArray());
        ActiveX("bytes", 0x1011, new byte[] { 0, 1, 2, 255 });
    }

    static Shop.Order Order()
    {
        return new Shop.Order
        {
            Id = 7,
            Customer = "Ann & Söhne",
            When = new DateTime(2026, 11, 26, 12, 30, 0, DateTimeKind.Utc),
            Key = new Guid("0fb15084-af41-11ce-bd2b-204c4f4f5020"),
            Paid = true,
            Colour = Shop.Colour.Green,
            Size = new Shop.Size { Width = 3, Height = 0.5 },
            Data = new byte[] { 1, 2, 3 },
            Lines = new[]
            {
                new Shop.Line { Sku = "a", Price = 9.50m, Count = 2, Extra = 1.5 },
                new Shop.Line { Sku = "b", Price = 1m, Extra = "text" },
            },
            Tags = new List<string> { "x", null, "" },
        };
    }

    public static void Main()
    {
        Console.SetOut(new StreamWriter(Console.OpenStandardOutput(), Plain) { AutoFlush = true, NewLine = "\n" });
        CultureInfo.CurrentCulture = CultureInfo.InvariantCulture;
        Both("string", "hello");
        Both("string-empty", "");
        Both("string-long", new string('x', 300));
        Both("string-special", "h\u00e9 \U0001F600 <&>\"' ]]> \t");
        Both("string-lines", "a\r\nb\nc");
        Binary("string-nul", "a\0b");
        Both("true", true);
        Both("false", false);
        Both("byte", (byte)200);
        Both("sbyte", (sbyte)-3);
        Both("int16", (short)-2);
        Both("uint16", (ushort)65535);
        Both("int32", int.MinValue);
        Both("uint32", 4000000000u);
        Both("int64", long.MinValue);
        Both("uint64", ulong.MaxValue);
        Both("single", 1.5f);
        Both("char", 'x');
        Both("char-wide", '\u20ac');
        Both("decimal", -12.340m);
        Both("decimal-large", decimal.MaxValue);
        Both("datetime-utc", new DateTime(2026, 11, 26, 12, 0, 0, DateTimeKind.Utc));
        Both("datetime-fraction", new DateTime(2026, 11, 26, 12, 0, 0, DateTimeKind.Unspecified).AddTicks(1230000));
        Both("guid", new Guid("0fb15084-af41-11ce-bd2b-204c4f4f5020"));
        Binary("timespan", new TimeSpan(1, 2, 3, 4, 5));
        Both("doubles", new[] {
            0.0, 0.1, -1.5, 1.0, 100.0, 1e14, 123456789012345.0, 1e15, 1234567890123456.0, 9007199254740992.0,
            1e16, 12345678901234567890.0, 1e22, 1e300, 1.7976931348623157e308, 5e-324, 0.001, 0.0001, 0.00012345,
            0.00001, 1.2345e-7, 2.0 / 3.0, -1e-10, double.NaN, double.PositiveInfinity, double.NegativeInfinity });
        Both("singles", new[] { 0f, 0.1f, 1e6f, 1234567f, 1e7f, 16777216f, 1e20f, 3.4028235e38f, 1e-45f, 0.0001f, 0.00001f });
        Both("bytes", new byte[] { 1, 2, 3, 255 });
        Both("bytes-empty", new byte[0]);
        Both("bools", new[] { true, false });
        Both("chars", new[] { 'a', '\u20ac' });
        Both("int16s", new short[] { -1, 2 });
        Both("uint16s", new ushort[] { 1, 65535 });
        Both("int32s", new[] { 1, -2 });
        Both("int32s-empty", new int[0]);
        Both("uint32s", new[] { 1u });
        Both("int64s", new[] { 1L, -5L });
        Both("uint64s", new[] { 1UL, ulong.MaxValue });
        Both("decimals", new[] { 1.50m, -2m });
        Both("datetimes", new[] { new DateTime(2026, 1, 2, 3, 4, 5, DateTimeKind.Utc) });
        Both("strings", new[] { "a", null, "", "b" });
        Both("strings-nulls", new string[600]);
        Both("strings-same", new[] { "a", "a" });
        Both("guids", new[] { new Guid("0fb15084-af41-11ce-bd2b-204c4f4f5020") });
        Both("objects", new object[] { 1, "two", null, 3.5, true, new DateTime(2026, 1, 1, 0, 0, 0, DateTimeKind.Utc) });
        Both("list", new List<int> { 1, 2, 3 });
        Both("jagged", new[] { new[] { 1, 2 }, new[] { 3 } });
        Binary("matrix", new int[,] { { 1, 2, 3 }, { 4, 5, 6 } });
        Binary("dictionary", new Dictionary<string, int> { { "a", 1 }, { "b", 2 } });
        Both("enum", Shop.Colour.Green);
        Both("struct", new Shop.Size { Width = 1, Height = 2.5 });
        Both("order", Order());
        Both("order-list", new List<Shop.Order> { Order() });
        var node = new Shop.Node { Name = "a" };
        node.Next = new Shop.Node { Name = "b", Next = node };
        node.Shared = node.Next;
        Binary("cycle", node);
        Variants();
    }
}
