using System;

namespace System.Messaging
{
    /// <summary>Which public queues a search returns; what is not set matches every queue.</summary>
    public class MessageQueueCriteria
    {
        private DateTime? createdAfter;
        private DateTime? createdBefore;
        private DateTime? modifiedAfter;
        private DateTime? modifiedBefore;
        private string label;
        private string machineName;
        private Guid? category;

        public DateTime CreatedAfter
        {
            get { return Known(createdAfter, "CreatedAfter"); }
            set
            {
                createdAfter = value;
                if (createdBefore < createdAfter)
                    createdBefore = createdAfter;
            }
        }

        public DateTime CreatedBefore
        {
            get { return Known(createdBefore, "CreatedBefore"); }
            set
            {
                createdBefore = value;
                if (createdAfter > createdBefore)
                    createdAfter = createdBefore;
            }
        }

        public DateTime ModifiedAfter
        {
            get { return Known(modifiedAfter, "ModifiedAfter"); }
            set
            {
                modifiedAfter = value;
                if (modifiedBefore < modifiedAfter)
                    modifiedBefore = modifiedAfter;
            }
        }

        public DateTime ModifiedBefore
        {
            get { return Known(modifiedBefore, "ModifiedBefore"); }
            set
            {
                modifiedBefore = value;
                if (modifiedAfter > modifiedBefore)
                    modifiedAfter = modifiedBefore;
            }
        }

        public string Label
        {
            get { return Known(label, "Label"); }
            set
            {
                if (value == null)
                    throw new ArgumentNullException("value");
                label = value;
            }
        }

        public string MachineName
        {
            get { return Known(machineName, "MachineName"); }
            set
            {
                if (string.IsNullOrEmpty(value))
                    throw new InvalidOperationException("the name of a computer must not be empty");
                machineName = value;
            }
        }

        public Guid Category
        {
            get { return Known(category, "Category"); }
            set { category = value; }
        }

        internal bool HasCreatedAfter => createdAfter != null;

        internal bool HasCreatedBefore => createdBefore != null;

        internal bool HasModifiedAfter => modifiedAfter != null;

        internal bool HasModifiedBefore => modifiedBefore != null;

        internal bool HasLabel => label != null;

        internal bool HasMachineName => machineName != null;

        internal bool HasCategory => category != null;

        internal DateTime CreatedAfterOrEpoch => createdAfter.GetValueOrDefault();

        internal DateTime CreatedBeforeOrEpoch => createdBefore.GetValueOrDefault();

        internal DateTime ModifiedAfterOrEpoch => modifiedAfter.GetValueOrDefault();

        internal DateTime ModifiedBeforeOrEpoch => modifiedBefore.GetValueOrDefault();

        public void ClearAll()
        {
            createdAfter = null;
            createdBefore = null;
            modifiedAfter = null;
            modifiedBefore = null;
            label = null;
            machineName = null;
            category = null;
        }

        private static T Known<T>(T? value, string name) where T : struct
        {
            if (value == null)
                throw NotSet(name);
            return value.Value;
        }

        private static string Known(string value, string name)
        {
            if (value == null)
                throw NotSet(name);
            return value;
        }

        private static InvalidOperationException NotSet(string name)
        {
            return new InvalidOperationException("the criterion " + name + " has not been set");
        }
    }
}
