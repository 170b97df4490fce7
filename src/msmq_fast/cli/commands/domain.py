"""`msmq-fast domain`: membership of this computer's queue manager in an Active Directory domain."""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from msmq_fast.cli.confirm import add_yes, asks, confirm
from msmq_fast.cli.endpoint import add_configuration, configured
from msmq_fast.protocol.errors import AccessDenied
from msmq_fast.protocol.exits import CommandError, Exit
from msmq_fast.terminal.commands import Command, Example, Group, members
from msmq_fast.terminal.output import Form, add_output, show, show_table
from msmq_fast.terminal.parser import Parser

if TYPE_CHECKING:
    from uuid import UUID

    from msmq_fast.config.sections import Config
    from msmq_fast.directory.ldap.accounts import Accounts
    from msmq_fast.directory.ldap.domain import Domain
    from msmq_fast.directory.ldap.rights import Need
    from msmq_fast.directory.ldap.siting import OwnSite
    from msmq_fast.directory.objects import DirectoryObject
    from msmq_fast.store.store import Store

__all__ = ["COMMAND"]


def _add_status(parser: Parser) -> None:
    add_configuration(parser)
    add_output(parser)


def _add_join(parser: Parser) -> None:
    _add_status(parser)
    parser.add_argument(
        "--migrate",
        action="store_true",
        help="move the public queues of the embedded directory into the domain; they get new GUIDs",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="only show what --migrate would do with each object"
    )


def _add_leave(parser: Parser) -> None:
    _add_status(parser)
    add_yes(parser)


def _domain(config: Config) -> Domain:
    from msmq_fast.server.declarations import DeclarationError
    from msmq_fast.server.domain import domain_of

    try:
        return domain_of(config.directory)
    except DeclarationError as error:
        raise CommandError(Exit.USAGE, str(error)) from None


def _accounts(config: Config) -> Accounts:
    from msmq_fast.directory.ldap.accounts import Accounts
    from msmq_fast.server.domain import link_of

    return Accounts(link_of(config.directory))


def _sites(machine: DirectoryObject) -> Sequence[UUID]:
    return machine.get("SiteIdentifierList") or ()


def _configured_site(config: Config) -> UUID | None:
    from uuid import UUID

    return UUID(config.directory.site) if config.directory.site else None


def _store(config: Config, guid: UUID | None = None) -> Store:
    """Open the store of a stopped server; with `guid`, a store that does not exist is created with it."""
    from msmq_fast.store.errors import StoreError, StoreLockedError
    from msmq_fast.store.store import Store, StoreOptions

    options = StoreOptions(
        map_size=config.store.map_size,
        force_place=config.store.allow_any_filesystem,
        log=config.store.log,
        log_size=config.store.log_size,
        guid=None if guid is None else guid.bytes_le,
    )
    try:
        return Store.open(config.data, now_s=int(time.time()), random=random.SystemRandom(), options=options)
    except StoreLockedError as error:
        raise CommandError(Exit.IN_USE, f"{error}; stop the server first") from None
    except StoreError as error:
        raise CommandError(Exit.FAILURE, str(error)) from None


def _own(config: Config) -> tuple[Domain, dict[str, Any], str]:
    """Return the domain, what is known about it, and the name of this computer."""
    from msmq_fast.directory.objecttypes import ObjectType
    from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult
    from msmq_fast.server.settings import queue_manager_settings

    domain = _domain(config)
    name = queue_manager_settings(config).computer_name
    try:
        names = _accounts(config).domain()
        found = domain.load()
        site = domain.own_site(_configured_site(config))
    except DirectoryError as error:
        away = error.result is DirectoryOperationResult.NOT_CONNECTED
        raise CommandError(Exit.UNREACHABLE if away else Exit.FAILURE, str(error)) from None
    own = None
    for item in found.objects:
        if item.kind is ObjectType.QUEUE_MANAGER and item["ComputerName"].casefold() == name.casefold():
            own = item
    kinds = [item.kind for item in found.objects]
    own_paths = f"{name.casefold()}\\"
    facts = {
        "controller": found.controller,
        "controllers": [
            f"{one.url}: {'in use' if one.in_use else one.failing or 'not tried'}"
            for one in domain.controllers.states()
        ],
        "controllers_from": domain.controllers.source,
        "site": site.name,
        "site_reason": site.reason,
        "registered_sites": [
            item["Name"]
            for item in found.objects
            if item.kind is ObjectType.SITE and own is not None and item.identifier in _sites(own)
        ],
        "domain": names.short,
        "sid": str(names.sid),
        "computer": name,
        "object": None if own is None else own["FullPath"],
        "guid": None if own is None else str(own.identifier),
        "queue_managers": kinds.count(ObjectType.QUEUE_MANAGER),
        "queues": kinds.count(ObjectType.QUEUE),
        "sites": kinds.count(ObjectType.SITE),
        "routing_links": kinds.count(ObjectType.ROUTING_LINK),
        "other_domains": domain.forest_state,
        "problems": found.problems,
        "queue_guids": {
            item["Pathname"].casefold(): item.identifier
            for item in found.objects
            if item.kind is ObjectType.QUEUE and item["Pathname"].casefold().startswith(own_paths)
        },
    }
    return domain, facts, name


def _status(arguments: argparse.Namespace) -> int:
    config = configured(arguments)
    _, facts, _ = _own(config)
    del facts["queue_guids"]
    show(facts, arguments.form)
    return Exit.OK if facts["guid"] is not None else Exit.NOT_FOUND


def _join(arguments: argparse.Namespace) -> int:
    from uuid import UUID

    from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
    from msmq_fast.directory.objecttypes import ObjectType
    from msmq_fast.directory.results import DirectoryError
    from msmq_fast.store.schema import MetaName

    config = configured(arguments)
    if arguments.dry_run and not arguments.migrate:
        raise CommandError(Exit.USAGE, "--dry-run belongs to --migrate")
    domain, facts, name = _own(config)
    if arguments.dry_run:
        return _show_plan(config, name, facts["queue_guids"], arguments.form)
    created = facts["guid"] is None
    values: dict[str, Any] = {"ComputerName": name, "RoutingServer": config.mqqb.router}
    if config.directory.site:
        values["SiteIdentifierList"] = (UUID(config.directory.site),)
    if created or config.mqqb.router:
        try:
            if created:
                made = domain.create(DirectoryObject(ObjectType.QUEUE_MANAGER, values))
            else:  # its objects in the site may be missing
                own = DirectoryObject(ObjectType.QUEUE_MANAGER, {IDENTIFIER: UUID(facts["guid"])})
                made = domain.write(own, {"RoutingServer": True})
        except DirectoryError as error:
            why = str(error)
            if isinstance(error.for_applications(), AccessDenied):
                why = _advice(config, name) or why
            raise CommandError(
                Exit.FAILURE, f"cannot create the object of the computer {name}: {why}"
            ) from None
        facts |= {"object": made["FullPath"], "guid": str(made.identifier)}
    guid = UUID(facts["guid"])
    store = _store(config, guid)
    before = UUID(bytes_le=store.guid)
    moved = 0
    try:
        if arguments.migrate:
            moved = _migrate(store, domain, name, guid, facts["queue_guids"])
        elif before != guid:
            _refuse_public_queues(store)
            with store.unit():
                store.put_meta(MetaName.GUID, guid.bytes_le)
            store.commit()
    finally:
        store.close()
    show(
        {"joined": name, "object": facts["object"], "guid": str(guid), "new": created}
        | ({"moved": moved} if arguments.migrate else {}),
        arguments.form,
    )
    return Exit.OK


def _show_plan(config: Config, name: str, existing: dict[str, UUID], form: Form) -> int:
    from msmq_fast.cli.domainmigration import Migration
    from msmq_fast.store.identity import DATA_NAME

    rows: list[dict[str, Any]] = []
    if (config.data / DATA_NAME).exists():  # to open a store that is missing would create it
        store = _store(config)
        try:
            rows = Migration(store, name).plan(existing)
        finally:
            store.close()
    if form is Form.JSON:
        for row in rows:
            show(row, form)
    else:
        show_table(rows, ("object", "name", "outcome", "detail"), form)
    return Exit.OK


def _migrate(store: Store, domain: Domain, name: str, guid: UUID, existing: dict[str, UUID]) -> int:
    """Move the public queues of a store into the domain. Returns how many queues have new GUIDs."""
    from msmq_fast.cli.domainmigration import Migration
    from msmq_fast.directory.results import DirectoryError

    migration = Migration(store, name)
    try:
        found = migration.create(domain, existing)
    except DirectoryError as error:
        raise CommandError(
            Exit.FAILURE, f"{error}; the store is unchanged, so the command can be repeated"
        ) from None
    migration.renumber(guid, found)
    return sum(old != new for old, new in found.items())


def _refuse_public_queues(store: Store) -> None:
    """Raise CommandError if the store has public queues: their GUIDs come from the domain, and programs know
    these queues by their old ones.
    """
    from msmq_fast.qm.queues.queue import QueueKind
    from msmq_fast.qm.records import Records

    found = [
        str(record["part"])
        for _, record in Records(store).queues(lambda _kind, _text: None)
        if record["kind"] == QueueKind.PUBLIC
    ]
    if found:
        raise CommandError(
            Exit.FAILURE,
            f"the store has public queues, such as {found[0]}: add --migrate, which moves them into the "
            "domain and gives them new GUIDs",
        )


def _needs(config: Config, name: str) -> tuple[str, OwnSite, list[Need]]:
    """Return the name of the account that logs on at the domain, the site of this computer, and the rights
    that the account needs.
    """
    from msmq_fast.directory.ldap.rights import Rights
    from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult
    from msmq_fast.server.domain import link_of

    try:
        rights = Rights(link_of(config.directory))
        account = rights.account()
        known = _accounts(config).names([account]).get(account)
        site = _domain(config).own_site(_configured_site(config))
        needs = rights.needs(name, site.entry.path if config.mqqb.router else "")
    except DirectoryError as error:
        away = error.result is DirectoryOperationResult.NOT_CONNECTED
        raise CommandError(Exit.UNREACHABLE if away else Exit.FAILURE, str(error)) from None
    return str(account) if known is None else known.name, site, needs


def _explain(arguments: argparse.Namespace) -> int:
    from msmq_fast.server.settings import queue_manager_settings

    config = configured(arguments)
    _domain(config)  # complains about what the configuration lacks
    account, site, needs = _needs(config, queue_manager_settings(config).computer_name)
    facts = {"account": account, "site": site.name, "site_reason": site.reason}
    if arguments.form is Form.JSON:
        for need in needs:
            show({**facts, **asdict(need)}, arguments.form)
    else:
        show(facts, arguments.form)
        rows = [asdict(need) | {"granted": "yes" if need.granted else "no"} for need in needs]
        show_table(rows, ("granted", "purpose", "right", "object"), arguments.form, fold=True)
        missing = {need.object: "" for need in needs if not need.granted}
        for need in needs:
            if not need.granted and need.grant not in missing[need.object]:
                missing[need.object] += need.grant
        for path, grant in missing.items():
            print(f"add to the access list of {path}:\n  {grant}")
    return Exit.OK if all(need.granted for need in needs) else Exit.FAILURE


def _advice(config: Config, name: str) -> str:
    """Return which right is missing, as the end of an error's line."""
    account, _, needs = _needs(config, name)
    for need in needs:
        if not need.granted:
            return (
                f"the account {account} needs the right to {need.right} at {need.object}: an administrator "
                f"adds {need.grant} to its access list; `msmq-fast domain explain` lists all rights"
            )
    return ""


def _leave(arguments: argparse.Namespace) -> int:
    from uuid import UUID

    from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
    from msmq_fast.directory.objecttypes import ObjectType
    from msmq_fast.directory.results import DirectoryError

    config = configured(arguments)
    domain, facts, name = _own(config)
    if facts["guid"] is None:
        raise CommandError(Exit.NOT_FOUND, f"the computer {name} has no queue manager in the domain")
    if asks(arguments):
        confirm(f"delete {facts['object']} and its public queues from the domain", 1)
    try:
        domain.delete(DirectoryObject(ObjectType.QUEUE_MANAGER, {IDENTIFIER: UUID(facts["guid"])}))
    except DirectoryError as error:
        raise CommandError(Exit.FAILURE, f"cannot delete {facts['object']}: {error}") from None
    show({"left": name, "object": facts["object"], "guid": facts["guid"]}, arguments.form)
    return Exit.OK


COMMAND = Group(
    name="domain",
    help="join, leave and examine an Active Directory domain",
    description="""Makes this computer's queue manager a member of an Active Directory domain, as section
        [directory] of the configuration describes it. The public queues of members are objects of the
        domain.""",
    commands=members(
        Command(
            name="status",
            help="log on at the domain as the server does, and show what it finds",
            run=_status,
            add_arguments=_add_status,
            examples=(
                Example("", "the domain controller, the site, the own object, how many queues there are"),
            ),
        ),
        Command(
            name="join",
            help="enter the queue manager into the domain; the server must be stopped",
            description="""Creates the object of this computer's queue manager below its computer account,
                unless an administrator has created it, and gives its GUID to the store. The account of
                section [directory] needs the right to create mSMQConfiguration objects below the computer
                object. Messages and private queues stay. Public queues of the embedded directory move with
                --migrate: messages stay, the domain gives new GUIDs, and other objects are left. An attempt
                that was broken off can be repeated.""",
            run=_join,
            add_arguments=_add_join,
            examples=(
                Example("--config /etc/msmq-fast.toml", "before the first start, or later"),
                Example("--migrate --dry-run", "what happens to the objects of the embedded directory"),
            ),
        ),
        Command(
            name="explain",
            help="show what is created in the domain, and which rights for it are missing",
            description="""Logs on as the server does and changes nothing. The computer's own account, which a
                keytab gives, usually has the rights below its computer object; another account gets them from
                an administrator: add the shown entries to the access list of the object, for example with
                `samba-tool dsacl set --sddl`, or with dsacls on Windows. The exit code is 1 if a right is
                missing.""",
            run=_explain,
            add_arguments=_add_status,
            examples=(Example("", "before `domain join`, with an account of least rights"),),
        ),
        Command(
            name="leave",
            help="delete the queue manager and its public queues from the domain",
            description="""Deletes the object of this computer's queue manager with all public queues below
            it.
                Messages stay in the store.""",
            run=_leave,
            add_arguments=_add_leave,
            examples=(Example("--yes", "without a question"),),
        ),
    ),
)
