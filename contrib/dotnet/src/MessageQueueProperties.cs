using System;
using System.Collections.Generic;
using System.ComponentModel;
using System.Messaging.Wire;

namespace System.Messaging
{
    public partial class MessageQueue
    {
        private static readonly DateTime Epoch = new DateTime(1970, 1, 1, 0, 0, 0, DateTimeKind.Utc);

        private Dictionary<string, object> properties;

        public bool Authenticate
        {
            get { return Maps.Flag(Properties, "authenticated"); }
            set { Set("authenticated", packer => packer.Bool(value)); }
        }

        public short BasePriority
        {
            get { return (short)Maps.Number(Properties, "base_priority"); }
            set { Set("base_priority", packer => packer.Int(value)); }
        }

        public Guid Category
        {
            get
            {
                Guid category;
                return Guid.TryParse(Maps.Text(Properties, "type"), out category) ? category : Guid.Empty;
            }
            set { Set("type", packer => packer.Text(value.ToString())); }
        }

        public DateTime CreateTime => Local("created");

        public EncryptionRequired EncryptionRequired
        {
            get { return (EncryptionRequired)Maps.Number(Properties, "privacy_level"); }
            set
            {
                if (!Enum.IsDefined(typeof(EncryptionRequired), value))
                    throw new InvalidEnumArgumentException("value", (int)value, typeof(EncryptionRequired));
                Set("privacy_level", packer => packer.Int((int)value));
            }
        }

        public string FormatName
        {
            get
            {
                QueuePath name = NeedPath();
                if (name.FormatName != null)
                    return name.FormatName;
                if (name.IsPrivate || name.IsSystem)
                    return "DIRECT=OS:" + MachineName + "\\" + name.WirePart();
                return Maps.Text(Properties, "format_name");
            }
        }

        /// <summary>The identifier of a public queue; of a private queue, the one that the server keeps.</summary>
        public Guid Id
        {
            get
            {
                Guid id;
                return Guid.TryParse(Maps.Text(Properties, "guid"), out id) ? id : Guid.Empty;
            }
        }

        public string Label
        {
            get { return Maps.Text(Properties, "label") ?? ""; }
            set
            {
                if (value == null)
                    throw new ArgumentNullException("value");
                Set("label", packer => packer.Text(value));
            }
        }

        public DateTime LastModifyTime => Local("modified");

        /// <summary>The computer of the queue.</summary>
        public string MachineName
        {
            get
            {
                QueuePath name = NeedPath();
                if (name.Machine == null)
                    name = QueuePath.Parse(FullName());
                return name.Machine == "." ? Machines.Local : name.Machine;
            }
            set
            {
                CheckName(value);
                Path = value + "\\" + (path == null ? "" : QueueName);
            }
        }

        public long MaximumJournalSize
        {
            get { return Maps.Number(Properties, "journal_quota_kb"); }
            set { Set("journal_quota_kb", packer => packer.Int(Quota(value))); }
        }

        public long MaximumQueueSize
        {
            get { return Maps.Number(Properties, "quota_kb"); }
            set { Set("quota_kb", packer => packer.Int(Quota(value))); }
        }

        /// <summary>The multicast address `ADDRESS:PORT` from which the queue receives; empty: none.</summary>
        public string MulticastAddress
        {
            get { return Maps.Text(Properties, "multicast_address") ?? ""; }
            set
            {
                if (value == null)
                    throw new ArgumentNullException("value");
                Set("multicast_address", packer => packer.Text(value));
            }
        }

        /// <summary>The name of the queue without its computer, such as `private$\orders`.</summary>
        public string QueueName
        {
            get
            {
                QueuePath name = NeedPath();
                return name.Queue ?? QueuePath.Parse(FullName()).Queue;
            }
            set
            {
                CheckName(value);
                Path = (path == null ? "." : MachineName) + "\\" + value;
            }
        }

        public bool Transactional => Maps.Flag(Properties, "transactional");

        public bool UseJournalQueue
        {
            get { return Maps.Flag(Properties, "journal"); }
            set { Set("journal", packer => packer.Bool(value)); }
        }

        private Dictionary<string, object> Properties
        {
            get
            {
                Dictionary<string, object> known = properties;
                if (known == null)
                {
                    string name = WireName;
                    known = (Dictionary<string, object>)Channel.Repeat(link =>
                        link.Request(Packer.Begin(FrameKind.GetQueue).Array(1).Text(name)).Any());
                    properties = known;
                }
                return known;
            }
        }

        /// <summary>Ask the server again for the properties at their next use.</summary>
        public void Refresh()
        {
            properties = null;
        }

        private void Set(string property, Action<Packer> value)
        {
            string name = WireName;
            properties = (Dictionary<string, object>)Channel.Repeat(link =>
            {
                Packer request = Packer.Begin(FrameKind.SetQueue).Array(2).Text(name).Map(1).Text(property);
                value(request);
                return link.Request(request).Any();
            });
        }

        /// <summary>The path name at the server of a queue that was given by a GUID or a label.</summary>
        private string FullName()
        {
            string name = Maps.Text(Properties, "name") ?? "";
            return name.IndexOf('\\') > 0 ? name : ".\\" + name;
        }

        private DateTime Local(string property)
        {
            return Epoch.AddSeconds(Maps.Number(Properties, property)).ToLocalTime();
        }

        private static long Quota(long kilobytes)
        {
            if (kilobytes < 0 || kilobytes > InfiniteQueueSize)
                throw new ArgumentException("a size must be 0 to InfiniteQueueSize kilobytes", "value");
            return kilobytes;
        }

        private static void CheckName(string value)
        {
            if (value == null)
                throw new ArgumentNullException("value");
            if (value.Length == 0)
                throw new ArgumentException("the name must not be empty", "value");
        }
    }
}
