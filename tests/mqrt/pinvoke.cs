// Calls libmqrt as the .NET libraries for MSMQ do: P/Invoke of mqrt.dll and kernel32.dll. Runs on Mono and on .NET.
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;

[ComImport, Guid("0FB15084-AF41-11CE-BD2B-204C4F4F5020"), InterfaceType(ComInterfaceType.InterfaceIsIUnknown)]
interface ITransaction
{
    [PreserveSig] int Commit(int retaining, int grfTC, int grfRM);
    [PreserveSig] int Abort(int reason, int retaining, int asynchronous);
    [PreserveSig] int GetTransactionInfo(IntPtr info);
}

[StructLayout(LayoutKind.Explicit, Size = 24)]
struct Value
{
    [FieldOffset(0)] public short Type;
    [FieldOffset(8)] public byte Byte;
    [FieldOffset(8)] public uint Number;
    [FieldOffset(8)] public ulong Large;
    [FieldOffset(8)] public IntPtr Pointer;
    [FieldOffset(8)] public uint Count;
    [FieldOffset(16)] public IntPtr Elements;
}

[StructLayout(LayoutKind.Sequential)]
struct Properties
{
    public int Count;
    public IntPtr Ids, Values, Statuses;
}

// The properties of one call, in memory that does not move.
sealed class Bag
{
    readonly List<int> ids = new List<int>();
    readonly List<Value> values = new List<Value>();
    IntPtr native;

    public Bag Add(int id, short type, ulong number = 0, IntPtr elements = default(IntPtr))
    {
        ids.Add(id);
        values.Add(new Value { Type = type, Large = number, Elements = elements });
        return this;
    }

    public Bag Text(int id, string text) => Add(id, 31, (ulong)Marshal.StringToHGlobalUni(text).ToInt64());

    public IntPtr Native()
    {
        IntPtr idArray = Marshal.AllocHGlobal(4 * ids.Count), valueArray = Marshal.AllocHGlobal(24 * ids.Count);
        for (int i = 0; i < ids.Count; i++)
        {
            Marshal.WriteInt32(idArray, 4 * i, ids[i]);
            Marshal.StructureToPtr(values[i], valueArray + 24 * i, false);
        }
        native = Marshal.AllocHGlobal(Marshal.SizeOf<Properties>());
        var properties = new Properties { Count = ids.Count, Ids = idArray, Values = valueArray };
        properties.Statuses = Marshal.AllocHGlobal(4 * ids.Count);
        Marshal.StructureToPtr(properties, native, false);
        return native;
    }

    public Value this[int id]
    {
        get
        {
            var properties = Marshal.PtrToStructure<Properties>(native);
            return Marshal.PtrToStructure<Value>(properties.Values + 24 * ids.IndexOf(id));
        }
    }
}

static class Program
{
    delegate void Callback(
        int result, IntPtr queue, int timeout, int action, IntPtr properties, IntPtr overlapped, IntPtr cursor);

    const CharSet Wide = CharSet.Unicode;
    [DllImport("mqrt.dll", CharSet = Wide)]
    static extern int MQCreateQueue(IntPtr security, IntPtr properties, StringBuilder name, ref int length);
    [DllImport("mqrt.dll", CharSet = Wide)]
    static extern int MQOpenQueue(string name, int access, int share, out IntPtr queue);
    [DllImport("mqrt.dll")] static extern int MQCloseQueue(IntPtr queue);
    [DllImport("mqrt.dll")] static extern int MQSendMessage(IntPtr queue, IntPtr properties, IntPtr transaction);
    [DllImport("mqrt.dll", EntryPoint = "MQSendMessage")]
    static extern int Enlisted(IntPtr queue, IntPtr properties, ITransaction transaction);
    [DllImport("mqrt.dll")] static extern int MQBeginTransaction(out IntPtr transaction);
    [DllImport("mqrt.dll", EntryPoint = "MQBeginTransaction")]
    static extern int Begin(out ITransaction transaction);
    [DllImport("mqrt.dll")]
    static extern int MQReceiveMessage(
        IntPtr queue, uint timeout, uint action, IntPtr properties, IntPtr overlapped, Callback callback,
        IntPtr cursor, IntPtr transaction);
    [DllImport("mqrt.dll", CharSet = Wide)]
    static extern int MQMgmtGetInfo(string computer, string name, IntPtr properties);
    [DllImport("mqrt.dll")] static extern void MQFreeMemory(IntPtr memory);
    [DllImport("kernel32.dll")] static extern bool GetHandleInformation(IntPtr handle, out int flags);
    [DllImport("kernel32.dll", CharSet = Wide)]
    static extern bool GetComputerName(StringBuilder name, ref int length);
    [DllImport("kernel32.dll", CharSet = Wide)]
    static extern int FormatMessage(
        int flags, IntPtr source, uint message, int language, StringBuilder text, int size, IntPtr arguments);

    static void Check(uint found, uint wanted, string what)
    {
        if (found != wanted)
            throw new Exception(string.Format("{0}: 0x{1:X8} instead of 0x{2:X8}", what, found, wanted));
    }

    static void Ok(int found, string what) => Check((uint)found, 0, what);

    static IntPtr Buffer(int size) => Marshal.AllocHGlobal(size);

    static IntPtr Message(string body)
    {
        byte[] bytes = Encoding.Unicode.GetBytes(body);
        IntPtr memory = Buffer(bytes.Length);
        Marshal.Copy(bytes, 0, memory, bytes.Length);
        return new Bag().Add(9, 0x1011, (ulong)bytes.Length, memory).Add(42, 19, 8).Text(11, "Auftr\u00e4ge").Native();
    }

    static Bag Reader() =>
        new Bag().Add(9, 0x1011, 200, Buffer(200)).Add(10, 19).Add(11, 31, (ulong)Buffer(500).ToInt64()).Add(12, 19, 250);

    static string Body(Bag bag)
    {
        byte[] bytes = new byte[bag[10].Number];
        Marshal.Copy(bag[9].Elements, bytes, 0, bytes.Length);
        return Encoding.Unicode.GetString(bytes) + " " + Marshal.PtrToStringUni(bag[11].Pointer);
    }

    static IntPtr Open(string name, int access)
    {
        IntPtr queue;
        Ok(MQOpenQueue("DIRECT=OS:.\\private$\\" + name, access, 0, out queue), "MQOpenQueue");
        return queue;
    }

    static int Main(string[] arguments)
    {
        var name = new StringBuilder(124);
        int length = 124, flags;
        Bag create = new Bag().Text(103, ".\\private$\\invoked").Add(113, 17, 1);
        Ok(MQCreateQueue(IntPtr.Zero, create.Native(), name, ref length), "MQCreateQueue");
        IntPtr sender = Open("invoked", 2), reader = Open("invoked", 1);

        Ok(MQSendMessage(sender, Message("single"), new IntPtr(3)), "MQSendMessage");
        Bag bag = Reader();
        Ok(MQReceiveMessage(reader, 0, 0, bag.Native(), IntPtr.Zero, null, IntPtr.Zero, IntPtr.Zero), "receive");
        Console.WriteLine(Body(bag));

        var done = new ManualResetEvent(false);
        int result = -1;
        Callback callback = (hresult, queue, timeout, action, properties, overlapped, cursor) =>
        {
            result = hresult;
            done.Set();
        };
        bag = Reader();
        int begun = MQReceiveMessage(
            reader, uint.MaxValue, 0, bag.Native(), IntPtr.Zero, callback, IntPtr.Zero, IntPtr.Zero);
        Check((uint)begun, 0x400E0006, "MQReceiveMessage with a callback");
        Ok(MQSendMessage(sender, Message("called back"), new IntPtr(3)), "MQSendMessage");
        if (!done.WaitOne(20000)) throw new Exception("no callback");
        GC.KeepAlive(callback);
        Ok(result, "the callback");
        Console.WriteLine(Body(bag));

        if (arguments[0] == "com")
        {
            ITransaction transaction;
            Ok(Begin(out transaction), "MQBeginTransaction");
            Ok(Enlisted(sender, Message("committed"), transaction), "MQSendMessage in a transaction");
            Ok(transaction.Commit(0, 0, 0), "Commit");
            Marshal.ReleaseComObject(transaction);
        }
        else
        {
            IntPtr transaction;
            Ok(MQBeginTransaction(out transaction), "MQBeginTransaction");
            Ok(MQSendMessage(sender, Message("committed"), transaction), "MQSendMessage in a transaction");
            Commit(transaction);
        }
        bag = Reader();
        Ok(MQReceiveMessage(reader, 0, 0, bag.Native(), IntPtr.Zero, null, IntPtr.Zero, IntPtr.Zero), "receive");
        Console.WriteLine(Body(bag));

        Bag list = new Bag().Add(2, 1);
        Ok(MQMgmtGetInfo(null, "MACHINE", list.Native()), "MQMgmtGetInfo");
        IntPtr first = Marshal.ReadIntPtr(list[2].Elements);
        Console.WriteLine("{0} {1}", list[2].Count, Marshal.PtrToStringUni(first).Split('\\')[2]);
        MQFreeMemory(first);
        MQFreeMemory(list[2].Elements);

        Console.WriteLine(GetHandleInformation(reader, out flags) ? "completion ports" : "callbacks");
        var computer = new StringBuilder(256);
        length = 256;
        if (!GetComputerName(computer, ref length) || computer.Length != length) throw new Exception("GetComputerName");
        var text = new StringBuilder(512);
        if (FormatMessage(0, IntPtr.Zero, 0xC00E0003, 0, text, 512, IntPtr.Zero) == 0) throw new Exception("text");
        Console.WriteLine(text);
        Ok(MQCloseQueue(sender), "MQCloseQueue");
        Ok(MQCloseQueue(reader), "MQCloseQueue");
        return 0;
    }

    delegate int CommitMethod(IntPtr self, int retaining, int grfTC, int grfRM);
    delegate int ReleaseMethod(IntPtr self);

    // Through the table of methods, as a program does that passes transactions as IntPtr.
    static void Commit(IntPtr transaction)
    {
        IntPtr methods = Marshal.ReadIntPtr(transaction);
        IntPtr commit = Marshal.ReadIntPtr(methods, 3 * IntPtr.Size), release = Marshal.ReadIntPtr(methods, 2 * IntPtr.Size);
        Ok(Marshal.GetDelegateForFunctionPointer<CommitMethod>(commit)(transaction, 0, 0, 0), "Commit");
        Ok(Marshal.GetDelegateForFunctionPointer<ReleaseMethod>(release)(transaction), "Release");
    }
}
