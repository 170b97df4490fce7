using System;
using System.Collections.Generic;
using System.Messaging.Wire;

namespace System.Messaging
{
    /// <summary>Names and identifiers of queue managers.</summary>
    internal static class Machines
    {
        /// <summary>The name of the server's computer. Raises MessageQueueException.</summary>
        internal static string Local => Channel.Live().Name;

        /// <summary>The name of the computer whose GUID begins a message identifier, else that GUID as text.</summary>
        internal static string NameOf(byte[] messageId)
        {
            var guid = new byte[16];
            Buffer.BlockCopy(messageId, 0, guid, 0, 16);
            var identifier = new Guid(guid);
            Link link = Channel.Live();
            if (new Guid(link.Guid) == identifier)
                return link.Name;
            try
            {
                Dictionary<string, object> entry = Show(identifier.ToString());
                return Maps.Text(entry, "ComputerName") ?? identifier.ToString();
            }
            catch (MessageQueueException error) when (!(error is LinkLostException))
            {
                return identifier.ToString(); // not in the directory, or there is none
            }
        }

        /// <summary>The GUID of a computer. Raises MessageQueueException.</summary>
        internal static Guid IdOf(string machineName)
        {
            Link link = Channel.Live();
            if (IsLocal(machineName))
                return new Guid(link.Guid);
            Guid found;
            return Guid.TryParse(Maps.Text(Show(machineName), "Identifier"), out found) ? found : Guid.Empty;
        }

        internal static bool IsLocal(string machineName)
        {
            return machineName == "." || string.Equals(machineName, Local, StringComparison.OrdinalIgnoreCase)
                || string.Equals(machineName, "localhost", StringComparison.OrdinalIgnoreCase);
        }

        private static Dictionary<string, object> Show(string name)
        {
            return (Dictionary<string, object>)Channel.Repeat(live =>
                live.Request(Packer.Begin(FrameKind.ShowDirectory).Array(2).Text("QueueManager").Text(name)).Any());
        }
    }
}
