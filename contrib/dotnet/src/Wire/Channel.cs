using System;
using System.Diagnostics;
using System.Threading;

namespace System.Messaging.Wire
{
    /// <summary>
    /// The connection of this process, which all queues share.
    ///
    /// The first connection is tried once. After a connection was lost, a call tries for <see cref="Patience"/> to
    /// connect again, with pauses that double, so that programs survive a restart of the server.
    /// </summary>
    internal static class Channel
    {
        internal static readonly TimeSpan Patience = TimeSpan.FromSeconds(30);

        private const int FirstPause = 20; // milliseconds
        private const int LongestPause = 1000;

        private static readonly object Connecting = new object();
        private static Link current;

        /// <summary>Return a connection. Raises LinkLostException, MessageQueueException.</summary>
        internal static Link Live()
        {
            Link link = Volatile.Read(ref current);
            return link != null && !link.Lost ? link : Connect(Patience);
        }

        /// <summary>As `Live`, but try for at most `most`.</summary>
        internal static Link Live(TimeSpan most)
        {
            Link link = Volatile.Read(ref current);
            return link != null && !link.Lost ? link : Connect(most < Patience ? most : Patience);
        }

        /// <summary>
        /// Run a request that may be repeated: on a new connection if the connection is lost. Raises
        /// LinkLostException, MessageQueueException.
        /// </summary>
        internal static T Repeat<T>(Func<Link, T> request)
        {
            while (true)
            {
                Link link = Live();
                try
                {
                    return request(link);
                }
                catch (LinkLostException) when (link.Lost)
                {
                    continue; // Live raises the error if the server does not return
                }
            }
        }

        private static Link Connect(TimeSpan most)
        {
            lock (Connecting)
            {
                if (current != null && !current.Lost)
                    return current;
                Address address = Address.FromEnvironment();
                Stopwatch watch = Stopwatch.StartNew();
                int pause = FirstPause;
                while (true)
                {
                    try
                    {
                        Link link = Link.Open(address);
                        Volatile.Write(ref current, link);
                        return link;
                    }
                    catch (LinkLostException) when (current != null && watch.Elapsed < most)
                    {
                        Thread.Sleep(pause);
                        pause = Math.Min(pause * 2, LongestPause);
                    }
                }
            }
        }
    }
}
