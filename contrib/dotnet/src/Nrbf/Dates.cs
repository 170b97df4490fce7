using System;

namespace System.Messaging.Nrbf
{
    /// <summary>DateTime as 62 bits of ticks and 2 bits of its kind: MS-NRBF 2.1.1.5.</summary>
    internal static class Dates
    {
        private const long TicksMask = 0x3FFFFFFFFFFFFFFF;

        internal static long ToBinaryKind(this DateTime value)
        {
            ulong kind = value.Kind == DateTimeKind.Utc ? 1UL : value.Kind == DateTimeKind.Local ? 2UL : 0UL;
            return unchecked((long)((ulong)value.Ticks | kind << 62));
        }

        /// <summary>Raises ArgumentOutOfRangeException.</summary>
        internal static DateTime FromBinaryKind(long value)
        {
            ulong kind = unchecked((ulong)value) >> 62;
            return new DateTime(value & TicksMask,
                kind == 1 ? DateTimeKind.Utc : kind >= 2 ? DateTimeKind.Local : DateTimeKind.Unspecified);
        }
    }
}
