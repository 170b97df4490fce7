#if SYSTEM_MESSAGING // .NET has no code access security; only the program that uses these classes needs it
using System;
using System.Collections;
using System.Security;
using System.Security.Permissions;

namespace System.Messaging
{
    /// <summary>What code may do with queues.</summary>
    [Flags]
    public enum MessageQueuePermissionAccess
    {
        None = 0,
        Browse = 1 << 1,
        Send = 1 << 2 | Browse,
        Peek = 1 << 3 | Browse,
        Receive = 1 << 4 | Peek,
        Administer = 1 << 5 | Send | Receive,
    }

    /// <summary>
    /// A code access permission, for programs that demand or state one. The runtimes on Linux grant all permissions;
    /// the server checks the rights of the user.
    /// </summary>
    [Serializable]
    public sealed class MessageQueuePermission : CodeAccessPermission, IUnrestrictedPermission
    {
        private readonly bool unrestricted;

        public MessageQueuePermission()
            : this(PermissionState.None) { }

        public MessageQueuePermission(PermissionState state)
        {
            unrestricted = state == PermissionState.Unrestricted;
            PermissionEntries = new MessageQueuePermissionEntryCollection();
        }

        public MessageQueuePermission(MessageQueuePermissionAccess permissionAccess, string path)
            : this()
        {
            PermissionEntries.Add(new MessageQueuePermissionEntry(permissionAccess, path));
        }

        public MessageQueuePermission(MessageQueuePermissionAccess permissionAccess, string machineName, string label,
            string category)
            : this()
        {
            PermissionEntries.Add(new MessageQueuePermissionEntry(permissionAccess, machineName, label, category));
        }

        public MessageQueuePermission(MessageQueuePermissionEntry[] permissionAccessEntries)
            : this()
        {
            PermissionEntries.AddRange(permissionAccessEntries);
        }

        public MessageQueuePermissionEntryCollection PermissionEntries { get; }

        public bool IsUnrestricted()
        {
            return unrestricted;
        }

        public override IPermission Copy()
        {
            var copy = new MessageQueuePermission(unrestricted ? PermissionState.Unrestricted : PermissionState.None);
            copy.PermissionEntries.AddRange(PermissionEntries);
            return copy;
        }

        public override bool IsSubsetOf(IPermission target)
        {
            if (target == null)
                return !unrestricted && PermissionEntries.Count == 0;
            MessageQueuePermission other = Same(target);
            if (other.unrestricted)
                return true;
            if (unrestricted)
                return false;
            foreach (MessageQueuePermissionEntry entry in PermissionEntries)
            {
                if (!other.Grants(entry))
                    return false;
            }
            return true;
        }

        public override IPermission Intersect(IPermission target)
        {
            if (target == null)
                return null;
            MessageQueuePermission other = Same(target);
            if (unrestricted)
                return other.Copy();
            if (other.unrestricted)
                return Copy();
            var both = new MessageQueuePermission();
            foreach (MessageQueuePermissionEntry entry in PermissionEntries)
            {
                if (other.Grants(entry))
                    both.PermissionEntries.Add(entry);
            }
            return both;
        }

        public override IPermission Union(IPermission target)
        {
            if (target == null)
                return Copy();
            MessageQueuePermission other = Same(target);
            if (unrestricted || other.unrestricted)
                return new MessageQueuePermission(PermissionState.Unrestricted);
            var either = (MessageQueuePermission)Copy();
            either.PermissionEntries.AddRange(other.PermissionEntries);
            return either;
        }

        public override SecurityElement ToXml()
        {
            var element = new SecurityElement("IPermission");
            element.AddAttribute("class", GetType().AssemblyQualifiedName);
            element.AddAttribute("version", "1");
            if (unrestricted)
                element.AddAttribute("Unrestricted", "true");
            foreach (MessageQueuePermissionEntry entry in PermissionEntries)
                element.AddChild(entry.ToXml());
            return element;
        }

        public override void FromXml(SecurityElement securityElement)
        {
            if (securityElement == null)
                throw new ArgumentNullException("securityElement");
            PermissionEntries.Clear();
            foreach (object child in securityElement.Children ?? new ArrayList())
                PermissionEntries.Add(MessageQueuePermissionEntry.FromXml((SecurityElement)child));
        }

        private bool Grants(MessageQueuePermissionEntry wanted)
        {
            foreach (MessageQueuePermissionEntry entry in PermissionEntries)
            {
                if (entry.Covers(wanted))
                    return true;
            }
            return false;
        }

        private static MessageQueuePermission Same(IPermission target)
        {
            var other = target as MessageQueuePermission;
            if (other == null)
                throw new ArgumentException("the permission must be a MessageQueuePermission", "target");
            return other;
        }
    }

    /// <summary>The access to one queue, or to the queues that criteria select.</summary>
    [Serializable]
    public class MessageQueuePermissionEntry
    {
        public MessageQueuePermissionEntry(MessageQueuePermissionAccess permissionAccess, string path)
        {
            if (path == null)
                throw new ArgumentNullException("path");
            PermissionAccess = permissionAccess;
            Path = path;
        }

        public MessageQueuePermissionEntry(MessageQueuePermissionAccess permissionAccess, string machineName,
            string label, string category)
        {
            if (machineName == null && label == null && category == null)
                throw new ArgumentNullException("machineName");
            PermissionAccess = permissionAccess;
            MachineName = machineName;
            Label = label;
            Category = category;
        }

        public string Category { get; }

        public string Label { get; }

        public string MachineName { get; }

        public string Path { get; }

        public MessageQueuePermissionAccess PermissionAccess { get; }

        internal static MessageQueuePermissionEntry FromXml(SecurityElement element)
        {
            var access = (MessageQueuePermissionAccess)Enum.Parse(
                typeof(MessageQueuePermissionAccess), element.Attribute("access"));
            string path = element.Attribute("path");
            return path != null
                ? new MessageQueuePermissionEntry(access, path)
                : new MessageQueuePermissionEntry(access, element.Attribute("machine"), element.Attribute("label"),
                    element.Attribute("category"));
        }

        internal SecurityElement ToXml()
        {
            var element = new SecurityElement(Path == null ? "Criteria" : "Path");
            element.AddAttribute("access", PermissionAccess.ToString());
            Add(element, "path", Path);
            Add(element, "machine", MachineName);
            Add(element, "label", Label);
            Add(element, "category", Category);
            return element;
        }

        internal bool Covers(MessageQueuePermissionEntry wanted)
        {
            if ((wanted.PermissionAccess & ~PermissionAccess) != 0)
                return false;
            if (Path != null)
                return Path == "*" || string.Equals(Path, wanted.Path, StringComparison.OrdinalIgnoreCase);
            return wanted.Path == null && Matches(MachineName, wanted.MachineName) && Matches(Label, wanted.Label)
                && Matches(Category, wanted.Category);
        }

        private static bool Matches(string given, string wanted)
        {
            return given == null || string.Equals(given, wanted, StringComparison.OrdinalIgnoreCase);
        }

        private static void Add(SecurityElement element, string name, string value)
        {
            if (value != null)
                element.AddAttribute(name, SecurityElement.Escape(value));
        }
    }

    /// <summary>The entries of a permission.</summary>
    [Serializable]
    public class MessageQueuePermissionEntryCollection : CollectionBase
    {
        internal MessageQueuePermissionEntryCollection() { }

        public MessageQueuePermissionEntry this[int index]
        {
            get { return (MessageQueuePermissionEntry)List[index]; }
            set { List[index] = value; }
        }

        public int Add(MessageQueuePermissionEntry value)
        {
            return List.Add(value);
        }

        public void AddRange(MessageQueuePermissionEntry[] value)
        {
            if (value == null)
                throw new ArgumentNullException("value");
            foreach (MessageQueuePermissionEntry entry in value)
                Add(entry);
        }

        public void AddRange(MessageQueuePermissionEntryCollection value)
        {
            if (value == null)
                throw new ArgumentNullException("value");
            foreach (MessageQueuePermissionEntry entry in value)
                Add(entry);
        }

        public bool Contains(MessageQueuePermissionEntry value)
        {
            return List.Contains(value);
        }

        public void CopyTo(MessageQueuePermissionEntry[] array, int index)
        {
            List.CopyTo(array, index);
        }

        public int IndexOf(MessageQueuePermissionEntry value)
        {
            return List.IndexOf(value);
        }

        public void Insert(int index, MessageQueuePermissionEntry value)
        {
            List.Insert(index, value);
        }

        public void Remove(MessageQueuePermissionEntry value)
        {
            List.Remove(value);
        }

        protected override void OnValidate(object value)
        {
            base.OnValidate(value);
            if (!(value is MessageQueuePermissionEntry))
                throw new ArgumentException("the collection takes MessageQueuePermissionEntry", "value");
        }
    }

    /// <summary>States a MessageQueuePermission for an assembly, a class or a method.</summary>
    [AttributeUsage(AttributeTargets.Method | AttributeTargets.Constructor | AttributeTargets.Class
        | AttributeTargets.Struct | AttributeTargets.Assembly | AttributeTargets.Event, AllowMultiple = true,
        Inherited = false)]
    [Serializable]
    public class MessageQueuePermissionAttribute : CodeAccessSecurityAttribute
    {
        private string category;
        private string label;
        private string machineName;
        private string path;

        public MessageQueuePermissionAttribute(SecurityAction action)
            : base(action) { }

        public string Category
        {
            get { return category; }
            set { category = Given(value); }
        }

        public string Label
        {
            get { return label; }
            set { label = Given(value); }
        }

        public string MachineName
        {
            get { return machineName; }
            set
            {
                if (Given(value).Length == 0)
                    throw new ArgumentException("the name of a computer must not be empty", "value");
                machineName = value;
            }
        }

        public string Path
        {
            get { return path; }
            set
            {
                if (Given(value).Length > 0 && value.IndexOf('\\') < 0)
                    throw new ArgumentException("invalid queue path '" + value + "': it must have a backslash", "value");
                path = value;
            }
        }

        public MessageQueuePermissionAccess PermissionAccess { get; set; }

        public override IPermission CreatePermission()
        {
            if (Unrestricted)
                return new MessageQueuePermission(PermissionState.Unrestricted);
            return Path != null
                ? new MessageQueuePermission(PermissionAccess, Path)
                : new MessageQueuePermission(PermissionAccess, MachineName, Label, Category);
        }

        private static string Given(string value)
        {
            if (value == null)
                throw new InvalidOperationException("the value must not be null");
            return value;
        }
    }
}
#endif
