"""Translates the configuration into settings of the queue manager."""

from __future__ import annotations

from uuid import UUID

from msmq_fast.config.sections import Config
from msmq_fast.qm.settings import DirectoryMode, QueueManagerSettings
from msmq_fast.server.net.addresses import host_names, local_addresses
from msmq_fast.server.quotas import computer_quota, deadletter_quota, journal_quota
from msmq_fast.server.runtime.memory import available_memory
from msmq_fast.server.srmp.sending import sends_http

__all__ = ["queue_manager_settings"]


def queue_manager_settings(config: Config, *, multicast: bool = False) -> QueueManagerSettings:
    """Return the settings for the queue manager, which does not read the configuration itself. `multicast`:
    whether the server can send to multicast groups.
    """
    return QueueManagerSettings(
        computer_name=config.name,
        domain=config.server.domain,
        aliases=host_names() | frozenset(config.server.aliases) | {config.server.advertised_address or "."},
        advertised=config.server.advertised_address,
        addresses=local_addresses(config.listen.message_hosts),
        quota_kb=computer_quota(config),
        journal_quota_kb=journal_quota(config),
        deadletter_quota_kb=deadletter_quota(config),
        insecure_nacks=config.mqqb.insecure_nacks,
        cache_bytes=config.queue_manager.cache,
        express_memory=config.queue_manager.express_memory or available_memory() // 2,
        long_lived=int(config.queue_manager.time_to_reach_queue),
        own_copy_ids=config.interop.copy_message_ids == "own",
        hardened=config.queue_manager.hardened,
        http=sends_http(config),
        multicast=multicast,
        transaction_idle=config.queue_manager.transaction_idle,
        outgoing_idle=config.queue_manager.outgoing_idle,
        answers_per_address=config.limits.answers_per_address,
        metric_queues=config.limits.metric_queues,
        feed=config.store.feed,
        stage_lifetime=config.bulk.stage_lifetime,
        writer_lifetime=config.bulk.writer_lifetime,
        directory=DirectoryMode(config.directory.mode),
        routing_server=config.mqqb.router,
        site=UUID(config.directory.site) if config.directory.site else None,
        sites_interval=config.directory.sites_interval,
        gates_interval=config.directory.gates_interval,
        log_lines=config.log.refusals_per_second,
        audit_entries=config.audit.entries,
        audit_size=config.audit.max_size,
    )
