using System;
using System.Collections.Generic;
using System.Messaging.Wire;

namespace System.Messaging
{
    public partial class MessageQueue
    {
        public void SetPermissions(string user, MessageQueueAccessRights rights)
        {
            SetPermissions(user, rights, AccessControlEntryType.Allow);
        }

        public void SetPermissions(string user, MessageQueueAccessRights rights, AccessControlEntryType entryType)
        {
            if (user == null)
                throw new ArgumentNullException("user");
            SetPermissions(new MessageQueueAccessControlEntry(new Trustee(user), rights, entryType));
        }

        public void SetPermissions(MessageQueueAccessControlEntry ace)
        {
            if (ace == null)
                throw new ArgumentNullException("ace");
            Apply(ace);
        }

        public void SetPermissions(AccessControlList dacl)
        {
            if (dacl == null)
                throw new ArgumentNullException("dacl");
            foreach (AccessControlEntry entry in dacl)
                Apply(entry);
        }

        /// <summary>
        /// Replace the access list: the owner and administrators get all rights, everyone may send and see the
        /// properties and the permissions.
        /// </summary>
        public void ResetPermissions()
        {
            string name = WireName;
            var list = (Dictionary<string, object>)Channel.Live().Request(
                Packer.Begin(FrameKind.ShowAcl).Array(1).Text(name)).Any();
            string owner = Maps.Text((Dictionary<string, object>)list["owner"], "sid");
            Edit("set", "D:(A;;0x20024;;;WD)(A;;0x4;;;AN)(A;;0xf003f;;;" + owner + ")(A;;0xf003f;;;BA)", "");
        }

        private void Apply(AccessControlEntry entry)
        {
            if (entry.Trustee == null)
                throw new InvalidOperationException("the entry has no trustee");
            string account = Accounts.WireName(entry.Trustee.Name);
            string rights = Accounts.Rights(entry.Mask);
            switch (entry.EntryType)
            {
                case AccessControlEntryType.Allow:
                    Edit("grant", account, rights);
                    break;
                case AccessControlEntryType.Deny:
                    Edit("deny", account, rights);
                    break;
                case AccessControlEntryType.Revoke:
                    Edit("revoke", account, "");
                    break;
                default: // Set: the account has these rights and no others
                    Edit("revoke", account, "");
                    Edit("grant", account, rights);
                    break;
            }
        }

        private void Edit(string action, string account, string rights)
        {
            string name = WireName;
            Channel.Live().Request(Packer.Begin(FrameKind.EditAcl)
                .Array(4).Text(name).Text(action).Text(account).Text(rights));
        }
    }
}
