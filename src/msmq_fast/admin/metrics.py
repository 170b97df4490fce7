"""Prometheus metrics. The metrics of queues have the names that windows_exporter uses, so that existing
dashboards work; metrics that windows_exporter does not have begin with `msmq_fast_`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from msmq_fast.admin.view import Fullest, Histogram, Info, View
from msmq_fast.release import release

__all__ = ["OTHER_QUEUES", "Metrics"]

OTHER_QUEUES = "_other"  # the name under which queues beyond the limit are summed; no queue can be called so

_QUEUE_METRICS = (
    ("windows_msmq_messages_in_queue", "Count of messages in the queue", "messages"),
    ("windows_msmq_bytes_in_queue", "Size of the queue in bytes", "bytes"),
    (
        "windows_msmq_messages_in_journal_queue",
        "Count of messages in the queue's journal",
        "journal_messages",
    ),
    ("windows_msmq_bytes_in_journal_queue", "Size of the queue's journal in bytes", "journal_bytes"),
)

_QUEUE_COUNTERS = (
    ("msmq_fast_queue_arrived", "Messages that arrived in the queue since the server started", "arrived"),
    ("msmq_fast_queue_removed", "Messages that left the queue for any reason", "removed"),
    ("msmq_fast_queue_expired", "Messages that expired in the queue", "expired"),
)

_DESTINATION_METRICS = (
    ("msmq_fast_destination_messages", "Messages that wait for the destination", "messages"),
    ("msmq_fast_destination_queued_bytes", "Bytes of messages that wait for the destination", "bytes"),
    (
        "msmq_fast_destination_unacknowledged",
        "Transactional messages that the destination has not acknowledged",
        "no_ack_count",
    ),
    (
        "msmq_fast_destination_resends",
        "Resends since the last acknowledgment of a transactional message",
        "resend_count",
    ),
)


class _Collector(Collector):
    def __init__(self, view: View, queue_limit: int) -> None:
        self._view = view
        self._queue_limit = queue_limit
        self._release = release()  # now: it reads a file, for which a descriptor may be lacking later

    def collect(self) -> Iterable[Metric]:
        build = GaugeMetricFamily(
            "msmq_fast_build_info", "1, with the version as a label", labels=["version"]
        )
        build.add_metric([self._release], 1)
        yield build
        yield from self._queues()
        yield from self._destinations()
        for name, (about, value) in self._view.gauges().items():
            yield GaugeMetricFamily(f"msmq_fast_{name}", about, value=value)
        for name, (about, value) in self._view.totals().items():
            yield CounterMetricFamily(f"msmq_fast_{name}", about, value=value)
        refusals = CounterMetricFamily(
            "msmq_fast_refusals", "Refusals, by what was refused and why", labels=["what", "reason"]
        )
        for what, reason, count in self._view.refusals():
            refusals.add_metric([what, reason], count)
        yield refusals
        for figure in self._view.labelled():
            kind = CounterMetricFamily if figure.grows else GaugeMetricFamily
            family = kind(f"msmq_fast_{figure.name}", figure.about, labels=figure.labels)
            for labels, value in figure.values.items():
                family.add_metric(labels, value)
            yield family
        for histogram in self._view.histograms():
            yield _family(histogram)

    def _queues(self) -> Iterator[Metric]:
        # The fullest queues keep their names: those are the ones that an operator looks for.
        fullest = self._view.fullest_queues(self._queue_limit)
        named = fullest.shown
        for metric, about, attribute in _QUEUE_METRICS:
            family = GaugeMetricFamily(metric, about, labels=["name"])
            for queue in named:
                family.add_metric([queue.name], getattr(queue, attribute))
            if fullest.others:
                family.add_metric([OTHER_QUEUES], fullest.sums[attribute])
            yield family
        for metric, about, attribute in _QUEUE_COUNTERS:
            # Without a sum of the other queues: it falls when a queue gets metrics of its own.
            counter = CounterMetricFamily(metric, about, labels=["name"])
            for queue in named:
                counter.add_metric([queue.name], getattr(queue, attribute))
            yield counter
        yield _oldest(
            "msmq_fast_queue_oldest_message_timestamp_seconds",
            "Arrival of the oldest message in the queue; absent if the queue is empty",
            "name",
            fullest,
        )
        count = len(named) + fullest.others
        yield GaugeMetricFamily("msmq_fast_queues", "User and system queues", value=count)

    def _destinations(self) -> Iterator[Metric]:
        fullest = self._view.fullest_outgoing(self._queue_limit)
        named = fullest.shown
        count = len(named) + fullest.others
        yield GaugeMetricFamily("msmq_fast_outgoing_queues", "Outgoing queues", value=count)
        yield GaugeMetricFamily(
            "msmq_fast_outgoing_messages", "Messages in outgoing queues", value=_total(fullest, "messages")
        )
        yield GaugeMetricFamily(
            "msmq_fast_outgoing_bytes", "Bytes in outgoing queues", value=_total(fullest, "bytes")
        )
        for metric, about, attribute in _DESTINATION_METRICS:
            family = GaugeMetricFamily(metric, about, labels=["destination"])
            for queue in named:
                family.add_metric([queue.name], getattr(queue, attribute))
            if fullest.others:
                family.add_metric([OTHER_QUEUES], fullest.sums[attribute])
            yield family
        yield _oldest(
            "msmq_fast_destination_oldest_message_timestamp_seconds",
            "Arrival of the oldest message that waits for the destination; absent if none waits",
            "destination",
            fullest,
        )
        stalled = GaugeMetricFamily(
            "msmq_fast_destination_stalled",
            "1 if messages wait and nothing is sent to the destination",
            labels=["destination"],
        )
        state = GaugeMetricFamily(
            "msmq_fast_destination_state",
            "1, with the state of the outgoing queue as a label",
            labels=["destination", "state"],
        )
        error = GaugeMetricFamily(
            "msmq_fast_destination_last_error",
            "1 if the last connection attempt failed, with its HRESULT as a label",
            labels=["destination", "error"],
        )
        for queue in named:
            stalled.add_metric([queue.name], int(bool(queue.stalled and queue.messages)))
            state.add_metric([queue.name, queue.state], 1)
            if queue.history and queue.history[-1].error:
                error.add_metric([queue.name, f"0x{queue.history[-1].error:08X}"], 1)
        yield from (stalled, state, error)


def _oldest(metric: str, about: str, label: str, fullest: Fullest[Info]) -> Metric:
    """Return the arrival times of the oldest messages of the queues that are not empty."""
    family = GaugeMetricFamily(metric, about, labels=[label])
    for queue in fullest.shown:
        if queue.oldest:
            family.add_metric([queue.name], queue.oldest)
    if fullest.oldest:
        family.add_metric([OTHER_QUEUES], fullest.oldest)
    return family


def _total(fullest: Fullest[Info], attribute: str) -> int:
    shown: int = sum(getattr(queue, attribute) for queue in fullest.shown)
    return shown + fullest.sums.get(attribute, 0)


def _family(histogram: Histogram) -> HistogramMetricFamily:
    buckets: list[tuple[str, float]] = []
    running = 0
    for bound, count in zip((*histogram.bounds, float("inf")), histogram.counts, strict=True):
        running += count
        buckets.append(("+Inf" if bound == float("inf") else f"{bound:g}", running))
    return HistogramMetricFamily(
        f"msmq_fast_{histogram.name}",
        histogram.about,
        buckets=buckets,
        sum_value=histogram.total,
    )


class Metrics:
    """Builds the metrics text of one server."""

    def __init__(self, view: View, queue_limit: int) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Collector(view, queue_limit))
        ProcessCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    def text(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        return generate_latest(self._registry)
