"""A domain of Active Directory, and providers on it. The tests need root, Samba and python-ldap."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.processes.samba import PASSWORD, PROGRAMS, DomainController, serving
from tests.support.worlds.domains import Inline

if TYPE_CHECKING:
    from msmq_fast.directory.ldap.link import LdapLink
    from msmq_fast.directory.ldap.provider import LdapDirectory

__all__ = ["ADDRESS", "NEEDS", "Inline", "computer", "controller", "make_link", "make_provider", "provider"]

ADDRESS = f"127.0.{os.getpid() % 200 + 20}.10"
"""Of its own for each run: several runs on one computer would share the domain controller's ports."""
NEEDS = [
    pytest.mark.needs(*PROGRAMS, modules=("ldap",), rights=["root"]),
    pytest.mark.timeout(240),
]
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DomainController]:
    with serving(tmp_path_factory.mktemp("domain") / "dc", ADDRESS) as controller:
        yield controller


@pytest.fixture
def computer(controller: DomainController) -> str:
    """The name of a new computer account."""
    name = f"PC{next(_NUMBERS)}-{time.time_ns() % 100_000}"
    controller.computer(name)
    return name


@pytest.fixture
def provider(controller: DomainController) -> LdapDirectory:
    return make_provider(controller)


def make_link(controller: DomainController, user: str = "") -> LdapLink:
    """A connection with the account of a user."""
    from msmq_fast.directory.ldap.connecting import LdapSettings
    from msmq_fast.directory.ldap.link import LdapLink

    settings = LdapSettings(
        [controller.url],
        user or controller.administrator,
        PASSWORD,
        controller.ca_file,
        operation_s=60,
    )
    return LdapLink(settings)


def make_provider(controller: DomainController, user: str = "") -> LdapDirectory:
    """A provider that has read the domain, with the account of a user."""
    from msmq_fast.directory.ldap.domain import Domain
    from msmq_fast.directory.ldap.provider import LdapDirectory

    found = LdapDirectory(Domain(make_link(controller, user)), Inline(), time.monotonic)
    found.start().result()
    return found
