using System.Reflection;
using System.Runtime.InteropServices;

#if SYSTEM_MESSAGING
[assembly: AssemblyVersion("4.0.0.0")]
#elif PARTICULAR_MSMQ
[assembly: AssemblyVersion("2.99.0.0")]
#else
[assembly: AssemblyVersion("1.99.0.0")]
#endif
[assembly: AssemblyTitle("System.Messaging")]
[assembly: AssemblyProduct("msmq-fast")]
[assembly: AssemblyDescription("System.Messaging for .NET on Linux, by msmq-fast")]
[assembly: ComVisible(false)]
