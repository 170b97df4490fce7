using System;
using System.Collections.Generic;
using System.IO;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Threading;

namespace System.Messaging.Wire
{
    /// <summary>
    /// One connection to the server. A thread reads the replies; callers of any thread write requests. When the
    /// connection ends, all requests without a reply fail with <see cref="LinkLostException"/>.
    /// </summary>
    internal sealed class Link
    {
        private const int MaxFrame = 4259840;

        private readonly Stream stream;
        private readonly object writing = new object();
        private readonly Dictionary<uint, Call> waiting = new Dictionary<uint, Call>();
        private readonly byte[] input = new byte[65536];
        private int inputStart;
        private int inputEnd;
        private uint lastId;
        private LinkLostException lost;
        private int lastTransaction;

        private Link(Stream stream)
        {
            this.stream = stream;
            SendHandles = new SendHandles(this);
        }

        /// <summary>The GUID of the queue manager, as bytes.</summary>
        internal byte[] Guid { get; private set; }

        /// <summary>The name of the computer.</summary>
        internal string Name { get; private set; }

        /// <summary>The queues that are open for sending.</summary>
        internal SendHandles SendHandles { get; }

        internal bool Lost => Volatile.Read(ref lost) != null;

        /// <summary>Connect and send the hello. Raises LinkLostException, MessageQueueException.</summary>
        internal static Link Open(Address address)
        {
            Stream stream;
            string token;
            try
            {
                token = address.Token;
                stream = address.Connect();
            }
            catch (Exception error) when (error is SocketException || error is IOException
                || error is AuthenticationException || error is ArgumentException
                || error is UnauthorizedAccessException)
            {
                throw new LinkLostException("cannot connect to the queue manager at " + address + ": " + error.Message);
            }
            var link = new Link(stream);
            var reader = new Thread(link.Read) { IsBackground = true, Name = "msmq-fast link" };
            reader.Start();
            link.SayHello(token);
            return link;
        }

        /// <summary>Return a number for a new transaction of this connection.</summary>
        internal int NextTransaction()
        {
            return Interlocked.Increment(ref lastTransaction) & int.MaxValue;
        }

        /// <summary>Send a request and return its reply. Raises LinkLostException, MessageQueueException.</summary>
        internal Unpacker Request(Packer request)
        {
            return Start(request, null).Wait();
        }

        /// <summary>
        /// Send a request. `completed`, which may be null, runs on the thread that reads, so it must not block.
        /// Raises LinkLostException.
        /// </summary>
        internal Call Start(Packer request, Action<Call> completed)
        {
            var call = new Call(completed);
            try
            {
                lock (writing)
                {
                    call.Id = Register(call);
                    request.Finish(call.Id);
                    stream.Write(request.Buffer, 0, request.Length);
                }
            }
            catch (Exception error) when (error is IOException || error is ObjectDisposedException)
            {
                End(error.Message);
                throw new LinkLostException(lost.Message);
            }
            return call;
        }

        /// <summary>Send a request whose reply does not matter. A lost connection is not an error.</summary>
        internal void Post(Packer request)
        {
            try
            {
                Start(request, null);
            }
            catch (LinkLostException)
            {
                return; // the end of the connection did what the request is for
            }
        }

        /// <summary>Close the connection.</summary>
        internal void Close()
        {
            End("the program closed the connection");
        }

        private void SayHello(string token)
        {
            Packer hello = Packer.Begin(FrameKind.Hello);
            hello.Map(token == null ? 2 : 3).Text("version").Int(1).Text("client").Text(ProgramName());
            if (token != null)
                hello.Text("token").Text(token);
            try
            {
                var answer = (Dictionary<string, object>)Request(hello).Any();
                Guid = (byte[])answer["guid"];
                Name = (string)answer["name"];
            }
            catch (MessageQueueException)
            {
                Close();
                throw;
            }
        }

        private static string ProgramName()
        {
            string name = AppDomain.CurrentDomain.FriendlyName ?? "";
            return name.Length > 64 ? name.Substring(0, 64) : name;
        }

        private uint Register(Call call)
        {
            lock (waiting)
            {
                if (lost != null)
                    throw new LinkLostException(lost.Message);
                do
                    lastId = lastId == uint.MaxValue ? 1 : lastId + 1;
                while (waiting.ContainsKey(lastId));
                waiting.Add(lastId, call);
                return lastId;
            }
        }

        private void Read()
        {
            var header = new byte[9];
            string reason;
            try
            {
                while (true)
                {
                    Fill(header, 9);
                    uint length = Big(header, 0);
                    if (length < 5 || length > MaxFrame)
                        throw new WireFormatException("a frame has a wrong length");
                    var payload = new byte[length - 5];
                    Fill(payload, payload.Length);
                    Dispatch((FrameKind)header[4], Big(header, 5), payload);
                }
            }
            catch (Exception error) when (error is IOException || error is ObjectDisposedException
                || error is WireFormatException || error is SocketException)
            {
                reason = error.Message;
            }
            End(reason);
        }

        private void Dispatch(FrameKind kind, uint id, byte[] payload)
        {
            if (id == 0)
                throw new WireFormatException("the server ended the connection: " + Call.ErrorOf(payload).Message);
            Call call;
            lock (waiting)
            {
                if (!waiting.TryGetValue(id, out call))
                    return;
                waiting.Remove(id);
            }
            call.Complete(kind, payload, null);
        }

        private void Fill(byte[] target, int count)
        {
            int at = 0;
            while (at < count)
            {
                if (inputStart == inputEnd)
                {
                    inputStart = 0;
                    inputEnd = 0;
                    if (count - at >= input.Length)
                    {
                        int direct = stream.Read(target, at, count - at);
                        if (direct <= 0)
                            throw new IOException("the queue manager closed the connection");
                        at += direct;
                        continue;
                    }
                    inputEnd = stream.Read(input, 0, input.Length);
                    if (inputEnd <= 0)
                    {
                        inputEnd = 0;
                        throw new IOException("the queue manager closed the connection");
                    }
                }
                int part = Math.Min(count - at, inputEnd - inputStart);
                Buffer.BlockCopy(input, inputStart, target, at, part);
                inputStart += part;
                at += part;
            }
        }

        private static uint Big(byte[] data, int at)
        {
            return (uint)(data[at] << 24 | data[at + 1] << 16 | data[at + 2] << 8 | data[at + 3]);
        }

        private void End(string reason)
        {
            Call[] failed;
            lock (waiting)
            {
                if (lost != null)
                    return;
                lost = new LinkLostException("the connection to the queue manager was lost: " + reason);
                failed = new Call[waiting.Count];
                waiting.Values.CopyTo(failed, 0);
                waiting.Clear();
            }
            stream.Dispose();
            foreach (Call call in failed)
                call.Complete(FrameKind.Error, null, lost.Message);
        }
    }

    /// <summary>A request without a reply.</summary>
    internal sealed class Call
    {
        private readonly Action<Call> completed;
        private FrameKind kind;
        private byte[] payload;
        private string lostReason;
        private bool done;

        internal Call(Action<Call> completed)
        {
            this.completed = completed;
        }

        internal uint Id { get; set; }

        /// <summary>Wait for the reply. Raises LinkLostException, MessageQueueException.</summary>
        internal Unpacker Wait()
        {
            lock (this)
            {
                while (!done)
                    Monitor.Wait(this);
            }
            return Result();
        }

        /// <summary>As `Wait`; `answer` is the type of the reply.</summary>
        internal Unpacker Wait(out FrameKind answer)
        {
            Unpacker reply = Wait();
            answer = kind;
            return reply;
        }

        /// <summary>The reply of a completed call. Raises LinkLostException, MessageQueueException.</summary>
        internal Unpacker Result()
        {
            if (lostReason != null)
                throw new LinkLostException(lostReason);
            if (kind == FrameKind.Error)
                throw ErrorOf(payload);
            return new Unpacker(payload);
        }

        internal void Complete(FrameKind answer, byte[] content, string reason)
        {
            lock (this)
            {
                kind = answer;
                payload = content;
                lostReason = reason;
                done = true;
                Monitor.PulseAll(this);
            }
            if (completed != null)
                completed(this);
        }

        internal static MessageQueueException ErrorOf(byte[] payload)
        {
            var reader = new Unpacker(payload);
            reader.Array();
            int code = unchecked((int)reader.UInt());
            string name = reader.Text();
            return new MessageQueueException(code, name, reader.Text());
        }
    }

    /// <summary>The connection was lost, or cannot be made.</summary>
    [Serializable]
    internal sealed class LinkLostException : MessageQueueException
    {
        internal LinkLostException(string reason)
            : base((int)MessageQueueErrorCode.ServiceNotAvailable, "MQ_ERROR_SERVICE_NOT_AVAILABLE", reason) { }
    }
}
