using System;
using System.Collections.Generic;
using System.Globalization;
using System.Messaging.Wire;

namespace System.Messaging
{
    /// <summary>The public queues of the directory.</summary>
    internal static class PublicQueues
    {
        private const int Page = 1000;

        /// <summary>Return the public queues that match, a page at a time. Raises MessageQueueException.</summary>
        internal static IEnumerable<MessageQueue> All(MessageQueueCriteria criteria)
        {
            string after = "";
            while (true)
            {
                string from = after;
                var entries = (List<object>)Channel.Repeat(live => live.Request(Packer.Begin(FrameKind.ListDirectory)
                    .Array(3).Text("Queue").Text(from).Int(Page)).Any());
                foreach (object each in entries)
                {
                    var entry = (Dictionary<string, object>)each;
                    after = Maps.Text(entry, "Identifier");
                    string path = Maps.Text(entry, "Pathname");
                    if (path != null && Matches(entry, path, criteria))
                        yield return new MessageQueue(path);
                }
                if (entries.Count < Page)
                    yield break;
            }
        }

        /// <summary>The path of the one public queue with a label. Raises InvalidOperationException.</summary>
        internal static string ByLabel(string label)
        {
            string found = null;
            foreach (MessageQueue queue in All(new MessageQueueCriteria { Label = label }))
            {
                if (found != null)
                    throw new InvalidOperationException("several public queues have the label '" + label + "'");
                found = queue.Path;
            }
            if (found == null)
                throw new InvalidOperationException("no public queue has the label '" + label + "'");
            return found;
        }

        private static bool Matches(Dictionary<string, object> entry, string path, MessageQueueCriteria criteria)
        {
            if (criteria == null)
                return true;
            if (criteria.HasLabel && Maps.Text(entry, "Label") != criteria.Label)
                return false;
            if (criteria.HasCategory && !SameGuid(Maps.Text(entry, "Type"), criteria.Category))
                return false;
            if (criteria.HasMachineName && !OnMachine(path, criteria.MachineName))
                return false;
            return Within(Time(entry, "CreateTime"), criteria.HasCreatedAfter, criteria.CreatedAfterOrEpoch,
                    criteria.HasCreatedBefore, criteria.CreatedBeforeOrEpoch)
                && Within(Time(entry, "ModifyTime"), criteria.HasModifiedAfter, criteria.ModifiedAfterOrEpoch,
                    criteria.HasModifiedBefore, criteria.ModifiedBeforeOrEpoch);
        }

        private static bool SameGuid(string text, Guid wanted)
        {
            Guid found;
            return (Guid.TryParse(text, out found) ? found : Guid.Empty) == wanted;
        }

        private static bool OnMachine(string path, string machine)
        {
            string computer = path.Substring(0, Math.Max(path.IndexOf('\\'), 0));
            string wanted = machine == "." ? Machines.Local : machine;
            return string.Equals(computer, wanted, StringComparison.OrdinalIgnoreCase);
        }

        private static DateTime Time(Dictionary<string, object> entry, string key)
        {
            object value;
            if (!entry.TryGetValue(key, out value) || value == null)
                return DateTime.MinValue;
            DateTime parsed;
            if (DateTime.TryParse(value as string, CultureInfo.InvariantCulture, DateTimeStyles.None, out parsed))
                return parsed;
            double seconds = Convert.ToDouble(value, CultureInfo.InvariantCulture);
            return new DateTime(1970, 1, 1, 0, 0, 0, DateTimeKind.Utc).AddSeconds(seconds).ToLocalTime();
        }

        private static bool Within(DateTime time, bool hasAfter, DateTime after, bool hasBefore, DateTime before)
        {
            return (!hasAfter || time > after) && (!hasBefore || time < before);
        }
    }
}
