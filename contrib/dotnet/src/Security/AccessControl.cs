using System;
using System.Collections;
using System.ComponentModel;
using System.Globalization;

namespace System.Messaging
{
    /// <summary>A user or group that gets or loses rights.</summary>
    public class Trustee
    {
        private string name;
        private TrusteeType trusteeType;

        public Trustee() { }

        public Trustee(string name)
            : this(name, null) { }

        public Trustee(string name, string systemName)
            : this(name, systemName, TrusteeType.Unknown) { }

        public Trustee(string name, string systemName, TrusteeType trusteeType)
        {
            Name = name;
            SystemName = systemName;
            TrusteeType = trusteeType;
        }

        /// <summary>A user or group of the server, `Everyone`, `ANONYMOUS LOGON`, or a SID.</summary>
        public string Name
        {
            get { return name; }
            set
            {
                if (value == null)
                    throw new ArgumentNullException("value");
                name = value;
            }
        }

        /// <summary>Kept for programs that set it; names are those of the server.</summary>
        public string SystemName { get; set; }

        public TrusteeType TrusteeType
        {
            get { return trusteeType; }
            set
            {
                if (!Enum.IsDefined(typeof(TrusteeType), value))
                    throw new InvalidEnumArgumentException("value", (int)value, typeof(TrusteeType));
                trusteeType = value;
            }
        }
    }

    /// <summary>Rights that are given to a trustee, or taken from it.</summary>
    public class AccessControlEntry
    {
        private AccessControlEntryType entryType = AccessControlEntryType.Allow;
        private Trustee trustee;

        public AccessControlEntry() { }

        public AccessControlEntry(Trustee trustee)
        {
            Trustee = trustee;
        }

        public AccessControlEntry(Trustee trustee, GenericAccessRights genericAccessRights,
            StandardAccessRights standardAccessRights, AccessControlEntryType entryType)
            : this(trustee)
        {
            GenericAccessRights = genericAccessRights;
            StandardAccessRights = standardAccessRights;
            EntryType = entryType;
        }

        public AccessControlEntryType EntryType
        {
            get { return entryType; }
            set
            {
                if (!Enum.IsDefined(typeof(AccessControlEntryType), value))
                    throw new InvalidEnumArgumentException("value", (int)value, typeof(AccessControlEntryType));
                entryType = value;
            }
        }

        public GenericAccessRights GenericAccessRights
        {
            get { return (GenericAccessRights)(CustomAccessRights & unchecked((int)0xF0000000)); }
            set
            {
                Refuse((int)value, unchecked((int)0xF0000000), typeof(GenericAccessRights));
                CustomAccessRights = CustomAccessRights & 0x0FFFFFFF | (int)value;
            }
        }

        public StandardAccessRights StandardAccessRights
        {
            get { return (StandardAccessRights)(CustomAccessRights & 0x001F0000); }
            set
            {
                Refuse((int)value, 0x001F0000, typeof(StandardAccessRights));
                CustomAccessRights = CustomAccessRights & ~0x001F0000 | (int)value;
            }
        }

        public Trustee Trustee
        {
            get { return trustee; }
            set
            {
                if (value == null)
                    throw new ArgumentNullException("value");
                trustee = value;
            }
        }

        /// <summary>All bits of the access mask.</summary>
        protected int CustomAccessRights { get; set; }

        internal int Mask => CustomAccessRights;

        private static void Refuse(int value, int allowed, Type type)
        {
            if ((value & ~allowed) != 0)
                throw new InvalidEnumArgumentException("value", value, type);
        }
    }

    /// <summary>Rights on a queue that are given to a trustee, or taken from it.</summary>
    public class MessageQueueAccessControlEntry : AccessControlEntry
    {
        public MessageQueueAccessControlEntry(Trustee trustee, MessageQueueAccessRights rights)
            : base(trustee)
        {
            MessageQueueAccessRights = rights;
        }

        public MessageQueueAccessControlEntry(Trustee trustee, MessageQueueAccessRights rights,
            AccessControlEntryType entryType)
            : this(trustee, rights)
        {
            EntryType = entryType;
        }

        public MessageQueueAccessRights MessageQueueAccessRights
        {
            get { return (MessageQueueAccessRights)CustomAccessRights; }
            set { CustomAccessRights = (int)value; }
        }
    }

    /// <summary>Entries that are applied together.</summary>
    public class AccessControlList : CollectionBase
    {
        public int Add(AccessControlEntry entry)
        {
            return List.Add(entry);
        }

        public void Insert(int index, AccessControlEntry entry)
        {
            List.Insert(index, entry);
        }

        public int IndexOf(AccessControlEntry entry)
        {
            return List.IndexOf(entry);
        }

        public bool Contains(AccessControlEntry entry)
        {
            return List.Contains(entry);
        }

        public void Remove(AccessControlEntry entry)
        {
            List.Remove(entry);
        }

        public void CopyTo(AccessControlEntry[] array, int index)
        {
            List.CopyTo(array, index);
        }

        protected override void OnValidate(object value)
        {
            base.OnValidate(value);
            if (!(value is AccessControlEntry))
                throw new ArgumentException("a list takes entries of type AccessControlEntry", "value");
        }
    }

    /// <summary>The server's spelling of accounts and rights.</summary>
    internal static class Accounts
    {
        // The SID of the domain BUILTIN. Windows returns it for an empty name, which libraries pass that take the
        // name of a thread's principal; no caller is a member of it, so that an entry for it gives no right.
        private const string BuiltinDomain = "S-1-5-32";

        /// <summary>Names of Windows for groups that the server has by other names.</summary>
        internal static string WireName(string name)
        {
            if (name.Length == 0)
                return BuiltinDomain;
            int slash = name.LastIndexOf('\\');
            string plain = slash < 0 ? name : name.Substring(slash + 1);
            switch (plain.ToUpperInvariant())
            {
                case "EVERYONE": return "everyone";
                case "ANONYMOUS LOGON": return "anonymous";
                case "ADMINISTRATORS": return "administrators";
                default: return plain;
            }
        }

        /// <summary>The text of an access mask, with generic rights replaced by those of a queue.</summary>
        internal static string Rights(int mask)
        {
            uint bits = unchecked((uint)mask);
            uint plain = bits & 0x0FFFFFFF;
            if ((bits & 0x10000000) != 0)
                plain |= (uint)MessageQueueAccessRights.FullControl;
            if ((bits & 0x40000000) != 0)
                plain |= (uint)MessageQueueAccessRights.GenericWrite;
            if ((bits & 0x80000000) != 0)
                plain |= (uint)MessageQueueAccessRights.GenericRead;
            return "0x" + plain.ToString("X", CultureInfo.InvariantCulture);
        }
    }
}
