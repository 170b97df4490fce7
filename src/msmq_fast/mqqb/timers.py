"""Durations of the MS-MQQB timers (3.1.2, 3.1.6), with the values that Windows uses."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timers:
    """The durations of the timers of MS-MQQB sessions and links, all in seconds."""

    session_init: float = 60.0
    """Session Initialization Timer (3.1.2.1), without the round trips that are added to it."""
    round_trip_delay: float = 0.0
    """RoundTripDelay: added to the connect, acknowledgment and (twice) initialization timers."""
    session_cleanup: float = 300.0
    """Session Cleanup Timer (3.1.2.2): a session without a UserMessage for one to two periods is closed."""
    retry_connect: float = 5.0
    """Session Retry Connect Timer (3.1.2.3)."""
    retry_max: float = 600.0
    """The longest pause between two attempts to connect to a host that does not answer."""
    ack_wait: float = 20.0
    """AckWaitTimeout proposed to the acceptor, 20 to 120 s on the wire (2.2.2.1)."""
    direct_ack_multiplier: float = 2.0
    """Factor on AckWaitTimeout for sessions that serve direct format names (QosCleanupIntervalMultiplier)."""
    prompt_ack: float = 0.05
    """Seconds after which express messages are acknowledged even below half a window (AMB-19)."""
    resend: tuple[float, ...] = (30.0,) * 3 + (300.0,) * 3 + (1_800.0,) * 3 + (21_600.0,)
    """ResendTimerTable: Transactional Ack Wait Timer (3.1.2.6) after 0, 1, 2 … time-outs; the last
    entry repeats.
    """
    history_cleanup: float = 1_800.0
    """MessageIDHistory Cleanup Timer (3.1.2.8)."""
    window_recovery: float = 30.0
    """Seconds before a reduced window doubles (MS-MQMQ 2.2.20.4, note 15)."""
    order_ack: float = 0.5
    """Order Ack Send Timer (3.1.2.7): a stream is acknowledged after a pause of this length."""
    order_ack_max: float = 10.0
    """MaximumOrderAckDelay: a stream that does not pause is acknowledged at this interval."""
    stream_lifetime: float = 90 * 86_400.0
    """Seconds after which an idle stream is deleted."""
    stream_cleanup: float = 3_600.0
    """Seconds between two searches for idle streams."""
    ping_response: float = 1.0
    """Ping Response Timer (3.1.2.9)."""
    connect: float = 30.0
    """Seconds that the transport may take to connect to one address."""

    @property
    def initialization(self) -> float:
        """The Session Initialization Timer, including two round trips."""
        return self.session_init + 2 * self.round_trip_delay

    @property
    def retry(self) -> float:
        """The Session Retry Connect Timer, including one round trip."""
        return self.retry_connect + self.round_trip_delay

    @property
    def proposed_ack_wait(self) -> float:
        """The AckTimeout of our ConnectionParameters, within the range that the protocol allows."""
        return min(max(self.ack_wait + self.round_trip_delay, 20.0), 120.0)


RECOVERABLE_ACK_MIN_MS = 500
RECOVERABLE_ACK_MAX_MS = 120_000
ACK_TIMEOUT_MIN_MS = 20_000
ACK_TIMEOUT_MAX_MS = 120_000
