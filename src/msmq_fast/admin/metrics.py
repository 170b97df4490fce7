"""Prometheus metrics. The metrics of queues have the names that windows_exporter uses, so that existing
dashboards work; metrics that windows_exporter does not have begin with `msmq_fast_`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from msmq_fast.admin.view import Histogram, View
from msmq_fast.protocol.resources import QueueInfo

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


class _Collector(Collector):
    def __init__(self, view: View, queue_limit: int) -> None:
        self._view = view
        self._queue_limit = queue_limit

    def collect(self) -> Iterable[Metric]:
        yield from self._queues()
        outgoing = list(self._view.outgoing())
        yield GaugeMetricFamily("msmq_fast_outgoing_queues", "Outgoing queues", value=len(outgoing))
        yield GaugeMetricFamily(
            "msmq_fast_outgoing_messages",
            "Messages in outgoing queues",
            value=sum(queue.messages for queue in outgoing),
        )
        yield GaugeMetricFamily(
            "msmq_fast_outgoing_bytes",
            "Bytes in outgoing queues",
            value=sum(queue.bytes for queue in outgoing),
        )
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
        ordered = sorted(self._view.queues(), key=lambda queue: (-queue.messages, queue.name))
        named, rest = ordered[: self._queue_limit], ordered[self._queue_limit :]
        for metric, about, attribute in _QUEUE_METRICS:
            family = GaugeMetricFamily(metric, about, labels=["name"])
            for queue in named:
                family.add_metric([queue.name], getattr(queue, attribute))
            if rest:
                family.add_metric([OTHER_QUEUES], _sum(rest, attribute))
            yield family
        yield GaugeMetricFamily("msmq_fast_queues", "User and system queues", value=len(ordered))


def _sum(queues: Iterable[QueueInfo], attribute: str) -> int:
    return sum(getattr(queue, attribute) for queue in queues)


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
