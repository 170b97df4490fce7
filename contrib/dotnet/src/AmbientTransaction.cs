using System;
using System.Collections.Generic;
using System.Messaging.Wire;
using System.Transactions;

namespace System.Messaging
{
    /// <summary>
    /// The internal transaction that belongs to the ambient transaction of a TransactionScope.
    ///
    /// 1. The first operation of a scope begins an internal transaction and enlists it as volatile resource.
    /// 2. If it is the only resource, the scope commits it in one phase; else the server prepares it first.
    /// 3. Nothing here survives the process: a program that dies between the phases leaves a prepared transaction,
    ///    which an administrator ends with `msmq-fast transaction`.
    /// </summary>
    internal sealed class AmbientTransaction : ISinglePhaseNotification
    {
        private static readonly Dictionary<string, AmbientTransaction> Open =
            new Dictionary<string, AmbientTransaction>();

        private readonly string identifier;
        private readonly MessageQueueTransaction inner = new MessageQueueTransaction();

        private AmbientTransaction(string identifier)
        {
            this.identifier = identifier;
            inner.Begin();
        }

        /// <summary>
        /// Return the transaction for an operation of type Automatic; null if there is no ambient transaction.
        /// </summary>
        internal static MessageQueueTransaction Current()
        {
            Transaction ambient = Transaction.Current;
            if (ambient == null)
                return null;
            string identifier = ambient.TransactionInformation.LocalIdentifier;
            lock (Open)
            {
                AmbientTransaction found;
                if (!Open.TryGetValue(identifier, out found))
                {
                    found = new AmbientTransaction(identifier);
                    ambient.EnlistVolatile(found, EnlistmentOptions.None);
                    Open.Add(identifier, found);
                }
                return found.inner;
            }
        }

        public void SinglePhaseCommit(SinglePhaseEnlistment enlistment)
        {
            Forget();
            try
            {
                inner.Commit();
            }
            catch (LinkLostException error)
            {
                enlistment.InDoubt(error);
                return;
            }
            catch (Exception error) when (error is MessageQueueException || error is InvalidOperationException)
            {
                enlistment.Aborted(error);
                return;
            }
            enlistment.Committed();
        }

        public void Prepare(PreparingEnlistment enlistment)
        {
            try
            {
                inner.Prepare();
            }
            catch (Exception error) when (error is MessageQueueException || error is InvalidOperationException)
            {
                Forget();
                inner.Dispose();
                enlistment.ForceRollback(error);
                return;
            }
            enlistment.Prepared();
        }

        public void Commit(Enlistment enlistment)
        {
            Forget();
            inner.Commit();
            enlistment.Done();
        }

        public void Rollback(Enlistment enlistment)
        {
            Forget();
            inner.Dispose();
            enlistment.Done();
        }

        public void InDoubt(Enlistment enlistment)
        {
            Forget(); // the server keeps the prepared transaction
            enlistment.Done();
        }

        private void Forget()
        {
            lock (Open)
                Open.Remove(identifier);
        }
    }
}
