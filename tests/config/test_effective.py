"""`effective`: the values in force, and the line, variable, flag or profile that each comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from msmq_fast.config.effective import HIDDEN, effective
from msmq_fast.config.loading import load
from msmq_fast.config.origins import Source
from msmq_fast.config.sections import SECTIONS, keys_of

pytestmark = pytest.mark.smoke

TEXT = """\
[server]
name = "ALPHA"
[security]
profile = "hardened"
[mqqb]
allow = "10.0.0.0/8"
[listen.mqqb]
host = "127.0.0.1"
port = 1901
ping_port = 1902
[protection]
amb83_salt = false
key = "0011223344"
[[queues]]
name = "orders"
[[queues]]
name = "bills"
quota = "1 MiB"
"""


def shown(file: Path) -> dict[str, tuple[object, str]]:
    environment = {"MSMQ_FAST_LISTEN__MQQB__PORT": "1903", "MSMQ_FAST_LOG__LEVEL": "debug"}
    flags = {"log.level": "error", "server.data": "/srv/msmq"}
    config = load(file, environment, flags)
    return {setting.name: (setting.value, str(setting.origin)) for setting in effective(config)}


def test_each_value_names_its_origin(tmp_path: Path) -> None:
    file = tmp_path / "msmq.toml"
    file.write_text(TEXT)
    found = shown(file)
    assert found["server.name"] == ("ALPHA", f"{file}:2")
    assert found["listen.mqqb.port"] == (1903, "MSMQ_FAST_LISTEN__MQQB__PORT")
    assert found["listen.mqqb.ping_port"] == (1902, f"{file}:10")
    assert found["log.level"] == ("error", "--log-level")
    assert found["log.format"] == ("text", "default")
    assert found["rpc.anonymous"] == (False, "profile hardened")
    assert found["interop.short_keys_are_padded"] == (False, f"{file}:12")  # by its old name
    assert found["queues[1].quota"] == ("1 MiB", f"{file}:18")
    assert found["queues[1].label"] == ("", "default")


def test_an_empty_value_that_stands_for_another_shows_that_one(tmp_path: Path) -> None:
    file = tmp_path / "msmq.toml"
    file.write_text(TEXT)
    found = shown(file)
    assert found["listen.app.socket"] == ("/srv/msmq/app.sock", "default")
    assert found["listen.rpc.host"] == (["127.0.0.1"], "default")
    assert found["security.users_file"] == ("/srv/msmq/users.toml", "default")


def test_secrets_are_hidden(tmp_path: Path) -> None:
    file = tmp_path / "msmq.toml"
    file.write_text(TEXT + '[[users]]\nname = "billing"\ntoken = "s3cret"\n')
    found = shown(file)
    assert found["protection.key"] == (HIDDEN, f"{file}:13")
    assert found["users[0].token"] == (HIDDEN, f"{file}:21")
    assert found["users[0].token_file"] == ("", "default")
    assert not any("0011223344" in str(value) or "s3cret" in str(value) for value, _ in found.values())


def test_every_key_is_shown_as_toml() -> None:
    settings = effective(load(None, {}, {}))
    assert [setting.name for setting in settings] == [
        f"{name}.{key}" for name, section in SECTIONS.items() for key in keys_of(section)
    ]
    assert all(str(setting).startswith(f"{setting.name} = ") for setting in settings)
    assert {setting.origin.source for setting in settings} == {Source.DEFAULT}
