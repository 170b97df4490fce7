using System;
using System.ComponentModel;

namespace System.Messaging
{
    /// <summary>A description of a member for designers.</summary>
    [AttributeUsage(AttributeTargets.All)]
    public class MessagingDescriptionAttribute : DescriptionAttribute
    {
        public MessagingDescriptionAttribute(string description)
            : base(description) { }
    }
}
