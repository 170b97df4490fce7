using System;

namespace System.Messaging
{
    /// <summary>
    /// The name of a queue as programs write it: a path (`.\private$\orders`, `host\orders\Journal$`), a format name
    /// (`FormatName:DIRECT=OS:host\private$\orders`) or a label (`Label:Orders`).
    /// </summary>
    internal sealed class QueuePath
    {
        internal const string FormatPrefix = "FormatName:";
        private const string LabelPrefix = "Label:";
        private const string PrivatePrefix = "private$\\";
        private const string JournalSuffix = "\\Journal$";

        private QueuePath(string text)
        {
            Text = text;
            if (text.StartsWith(FormatPrefix, StringComparison.OrdinalIgnoreCase))
            {
                FormatName = text.Substring(FormatPrefix.Length);
                ReadDirectName();
            }
            else if (text.StartsWith(LabelPrefix, StringComparison.OrdinalIgnoreCase))
            {
                Label = text.Substring(LabelPrefix.Length);
            }
            else
            {
                int slash = text.IndexOf('\\');
                Machine = text.Substring(0, slash);
                Queue = text.Substring(slash + 1);
            }
        }

        /// <summary>As the program wrote it.</summary>
        internal string Text { get; }

        /// <summary>The format name, null if the program gave a path or a label.</summary>
        internal string FormatName { get; }

        /// <summary>The label, null if the program gave another name.</summary>
        internal string Label { get; }

        /// <summary>The computer, `.` for the local one; null if the name does not have it.</summary>
        internal string Machine { get; private set; }

        /// <summary>What follows the computer; null if the name does not have it.</summary>
        internal string Queue { get; private set; }

        internal bool IsPrivate => Queue != null && Queue.StartsWith(PrivatePrefix, StringComparison.OrdinalIgnoreCase);

        internal bool IsSystem => WirePart().StartsWith("system$;", StringComparison.Ordinal);

        /// <summary>Parse a name. Raises ArgumentException.</summary>
        internal static QueuePath Parse(string text)
        {
            if (text == null)
                throw new ArgumentNullException("path");
            bool prefixed = text.StartsWith(FormatPrefix, StringComparison.OrdinalIgnoreCase)
                || text.StartsWith(LabelPrefix, StringComparison.OrdinalIgnoreCase);
            if (!prefixed && text.IndexOf('\\') <= 0)
            {
                throw new ArgumentException("invalid queue path '" + text
                    + "': it must have the form MACHINE\\QUEUE, MACHINE\\private$\\QUEUE, FormatName:… or Label:…",
                    "path");
            }
            return new QueuePath(text);
        }

        /// <summary>The part after the computer in the spelling of the server.</summary>
        internal string WirePart()
        {
            if (Queue == null)
                return "";
            switch (Queue.ToUpperInvariant())
            {
                case "JOURNAL$": return "system$;journal";
                case "DEADLETTER$": return "system$;deadletter";
                case "XACTDEADLETTER$": return "system$;deadxact";
            }
            return Queue.EndsWith(JournalSuffix, StringComparison.OrdinalIgnoreCase)
                ? Queue.Substring(0, Queue.Length - JournalSuffix.Length) + ";journal"
                : Queue;
        }

        /// <summary>The name for requests to the server whose computer has the name `local`.</summary>
        internal string WireName(string local)
        {
            if (FormatName != null)
                return FormatName;
            if (IsLocal(local))
                return ".\\" + WirePart();
            return IsPrivate || IsSystem ? "DIRECT=OS:" + Machine + "\\" + WirePart() : Machine + "\\" + WirePart();
        }

        internal bool IsLocal(string local)
        {
            return Machine == "." || string.Equals(Machine, local, StringComparison.OrdinalIgnoreCase);
        }

        private void ReadDirectName()
        {
            if (!FormatName.StartsWith("DIRECT=", StringComparison.OrdinalIgnoreCase) || FormatName.IndexOf(',') >= 0)
                return;
            int colon = FormatName.IndexOf(':');
            int slash = FormatName.IndexOf('\\');
            if (colon < 0 || slash < colon)
                return;
            Machine = FormatName.Substring(colon + 1, slash - colon - 1);
            Queue = FormatName.Substring(slash + 1);
        }
    }
}
