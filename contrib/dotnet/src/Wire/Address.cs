using System;
using System.Globalization;
using System.IO;
using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using System.Text;

namespace System.Messaging.Wire
{
    /// <summary>
    /// Where the server is: MSMQ_FAST_ENDPOINT has `/path`, `unix:/path`, `tcp://host:port` or `tls://host:port`.
    /// MSMQ_FAST_TOKEN is the token for TCP, MSMQ_FAST_TOKEN_FILE a file that contains it; MSMQ_FAST_CA is a file with
    /// the certificate that TLS is to trust in addition to those of the system.
    /// </summary>
    internal sealed class Address
    {
        private const string DefaultPath = "/run/msmq-fast/app.sock";
        private const int ConnectTimeout = 10000; // milliseconds

        private readonly string text;
        private readonly string path;
        private readonly string host;
        private readonly int port;
        private readonly bool tls;

        private Address(string text)
        {
            this.text = text;
            if (text.StartsWith("unix:", StringComparison.Ordinal))
            {
                path = text.Substring(5);
                if (path.StartsWith("//", StringComparison.Ordinal))
                    path = path.Substring(2);
                return;
            }
            if (text.IndexOf("://", StringComparison.Ordinal) < 0)
            {
                path = text;
                return;
            }
            Uri uri;
            if (!Uri.TryCreate(text, UriKind.Absolute, out uri) || (uri.Scheme != "tcp" && uri.Scheme != "tls")
                || uri.Host.Length == 0 || uri.Port <= 0 || uri.PathAndQuery.Trim('/').Length != 0)
            {
                throw new ArgumentException("MSMQ_FAST_ENDPOINT is '" + text
                    + "'; it must be a path, unix:/path, tcp://host:port or tls://host:port");
            }
            host = uri.DnsSafeHost;
            port = uri.Port;
            tls = uri.Scheme == "tls";
        }

        /// <summary>The token for TCP; null for a Unix socket. Raises IOException if its file cannot be read.</summary>
        internal string Token
        {
            get
            {
                if (path != null)
                    return null;
                string token = Environment.GetEnvironmentVariable("MSMQ_FAST_TOKEN");
                string file = Environment.GetEnvironmentVariable("MSMQ_FAST_TOKEN_FILE");
                return string.IsNullOrEmpty(token) && !string.IsNullOrEmpty(file) ? File.ReadAllText(file).Trim() : token;
            }
        }

        internal static Address FromEnvironment()
        {
            string text = Environment.GetEnvironmentVariable("MSMQ_FAST_ENDPOINT");
            return new Address(string.IsNullOrEmpty(text) ? DefaultPath : text);
        }

        public override string ToString()
        {
            return text;
        }

        /// <summary>Connect. Raises SocketException, IOException or AuthenticationException.</summary>
        internal Stream Connect()
        {
            if (path != null)
            {
                var local = new Socket(AddressFamily.Unix, SocketType.Stream, ProtocolType.Unspecified);
                try
                {
                    local.Connect(new UnixEndPoint(path));
                }
                catch
                {
                    local.Dispose();
                    throw;
                }
                return new NetworkStream(local, true);
            }
            var client = new TcpClient(AddressFamily.InterNetworkV6);
            try
            {
                client.Client.DualMode = true;
                if (!client.ConnectAsync(host, port).Wait(ConnectTimeout))
                    throw new SocketException((int)SocketError.TimedOut);
                client.NoDelay = true;
                client.Client.SetSocketOption(SocketOptionLevel.Socket, SocketOptionName.KeepAlive, true);
                Stream stream = client.GetStream();
                return tls ? Secure(stream) : stream;
            }
            catch (AggregateException error)
            {
                client.Close();
                throw new IOException(error.GetBaseException().Message, error);
            }
            catch
            {
                client.Close();
                throw;
            }
        }

        private Stream Secure(Stream stream)
        {
            string file = Environment.GetEnvironmentVariable("MSMQ_FAST_CA");
            X509Certificate2 trusted = string.IsNullOrEmpty(file) ? null : new X509Certificate2(file);
            var secure = new SslStream(stream, false, (sender, certificate, chain, errors) =>
                errors == SslPolicyErrors.None || (trusted != null && Trusts(trusted, certificate, errors)));
            secure.AuthenticateAsClient(host, null, SslProtocols.Tls12, true);
            return secure;
        }

        /// <summary>Whether the only fault of a certificate is that the system does not know its issuer.</summary>
        private static bool Trusts(X509Certificate2 trusted, X509Certificate certificate, SslPolicyErrors errors)
        {
            if (errors != SslPolicyErrors.RemoteCertificateChainErrors)
                return false;
            var offered = new X509Certificate2(certificate);
            DateTime now = DateTime.Now;
            if (now < offered.NotBefore || now > offered.NotAfter)
                return false;
            if (offered.Thumbprint == trusted.Thumbprint)
                return true;
            using (var chain = new X509Chain())
            {
                chain.ChainPolicy.RevocationMode = X509RevocationMode.NoCheck;
                chain.ChainPolicy.VerificationFlags = X509VerificationFlags.AllowUnknownCertificateAuthority;
                chain.ChainPolicy.ExtraStore.Add(trusted);
                return chain.Build(offered)
                    && chain.ChainElements[chain.ChainElements.Count - 1].Certificate.Thumbprint == trusted.Thumbprint;
            }
        }
    }

    /// <summary>The address of a Unix socket; .NET Framework and Mono's mscorlib have no class for it.</summary>
    internal sealed class UnixEndPoint : EndPoint
    {
        private const int MaxPath = 107; // bytes, without the NUL

        private readonly byte[] path;

        internal UnixEndPoint(string path)
        {
            this.path = Encoding.UTF8.GetBytes(path);
            if (this.path.Length == 0 || this.path.Length > MaxPath)
            {
                throw new ArgumentException("the path of a Unix socket must have 1 to "
                    + MaxPath.ToString(CultureInfo.InvariantCulture) + " bytes: '" + path + "'");
            }
        }

        public override AddressFamily AddressFamily => AddressFamily.Unix;

        public override SocketAddress Serialize()
        {
            var address = new SocketAddress(AddressFamily.Unix, path.Length + 3);
            for (int index = 0; index < path.Length; index++)
                address[index + 2] = path[index];
            address[path.Length + 2] = 0;
            return address;
        }

        public override EndPoint Create(SocketAddress socketAddress)
        {
            return this;
        }
    }
}
