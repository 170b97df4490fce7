// What only the assembly of .NET Framework has: an installer and code access permissions.

using System;
using System.Collections;
using System.Messaging;
using System.Security.Permissions;

[assembly: MessageQueuePermission(SecurityAction.RequestMinimum, Unrestricted = true)]

internal static class Framework
{
    private static int Main(string[] arguments)
    {
        Console.WriteLine(typeof(MessageQueue).Assembly.FullName);
        string path = @".\private$\" + arguments[0];
        var installer = new MessageQueueInstaller { Path = path, Label = "installed", Transactional = true };
        IDictionary state = new Hashtable();
        installer.Install(state);
        installer.Commit(state);
        var queue = new MessageQueue(path);
        Console.WriteLine(queue.Label + " " + queue.Transactional);
        var copy = new MessageQueueInstaller(queue);
        Console.WriteLine(copy.Label + " " + copy.IsEquivalentInstaller(installer));
        installer.Uninstall(state);
        Console.WriteLine(MessageQueue.Exists(path));

        var permission = new MessageQueuePermission(MessageQueuePermissionAccess.Send, "*");
        permission.Demand();
        var less = new MessageQueuePermission(MessageQueuePermissionAccess.Browse, path);
        Console.WriteLine(less.IsSubsetOf(permission) + " " + permission.IsSubsetOf(less));
        var again = new MessageQueuePermission(PermissionState.None);
        again.FromXml(permission.ToXml());
        Console.WriteLine(permission.IsSubsetOf(again) + " " + again.Union(less).IsSubsetOf(permission));
        return 0;
    }
}
