"""OpenTelemetry for programs: spans and metrics of the Python client. Needs the extra `otel`.

    from msmq_fast.client.telemetry import Telemetry

    async with msmq_fast.connect(telemetry=Telemetry()) as connection: …

Classes here derive from those of the client, and `Telemetry.connection` makes them. A connection without
telemetry therefore executes no instruction for it, and the client imports nothing of OpenTelemetry.

To add a span: override the method of the operation, and run the method of the base class inside
`Scope.operation`.
"""

from __future__ import annotations

from msmq_fast.client.telemetry.telemetry import Telemetry as Telemetry
