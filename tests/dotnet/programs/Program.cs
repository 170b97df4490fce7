// The programs of the matrix: `scenarios.exe SCENARIO QUEUE` runs one scenario with queues whose names begin with
// QUEUE, and prints `ok`. It is compiled once for each name of the assembly, and runs unchanged on each runtime.

using System;
using System.Collections.Generic;
using System.Reflection;
#if MSMQ_MESSAGING
using MSMQ.Messaging;
#else
using System.Messaging;
#endif

internal static partial class Program
{
    private static readonly TimeSpan Soon = TimeSpan.FromSeconds(10);
    private static readonly TimeSpan Now = TimeSpan.Zero;

    private static string prefix;

    private static int Main(string[] arguments)
    {
        prefix = arguments[1];
        MethodInfo scenario = typeof(Program).GetMethod(
            arguments[0], BindingFlags.Static | BindingFlags.NonPublic);
        if (scenario == null)
        {
            Console.Error.WriteLine("no scenario " + arguments[0]);
            return 2;
        }
        try
        {
            scenario.Invoke(null, null);
        }
        catch (TargetInvocationException error)
        {
            Console.Error.WriteLine(error.InnerException);
            return 1;
        }
        Console.WriteLine("ok");
        return 0;
    }

    private static string PathOf(string name)
    {
        return @".\private$\" + prefix + "-" + name;
    }

    private static MessageQueue NewQueue(string name, bool transactional = false)
    {
        MessageQueue queue = MessageQueue.Create(PathOf(name), transactional);
        queue.Formatter = new XmlMessageFormatter(new[] { typeof(string) });
        queue.MessageReadPropertyFilter.SetAll();
        return queue;
    }

    private static void Same<T>(T wanted, T found, string what)
    {
        if (!EqualityComparer<T>.Default.Equals(wanted, found))
            throw new Exception(what + ": expected " + wanted + ", found " + found);
    }

    private static void True(bool condition, string what)
    {
        if (!condition)
            throw new Exception("not true: " + what);
    }

    private static void SameBytes(byte[] wanted, byte[] found, string what)
    {
        Same(BitConverter.ToString(wanted), BitConverter.ToString(found), what);
    }

    private static T Throws<T>(Action action, string what) where T : Exception
    {
        try
        {
            action();
        }
        catch (T error)
        {
            return error;
        }
        throw new Exception(what + ": no " + typeof(T).Name);
    }

    private static void Fails(MessageQueueErrorCode code, Action action, string what)
    {
        Same(code, Throws<MessageQueueException>(action, what).MessageQueueErrorCode, what);
    }

    private static string Text(Message message)
    {
        return (string)message.Body;
    }
}
