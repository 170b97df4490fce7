"""Secrets of the configuration: tokens by their digest, short ones, and files that others can read."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from msmq_fast.config.loading import load
from msmq_fast.config.mistakes import ConfigError
from msmq_fast.server.credentials import token_table, warn_of_readable_files

LONG = "5up3r-s3cret-t0ken"
USERS = """
[[users]]
name = "billing"
{}
"""


def configured(tmp_path: Path, users: str, mode: int = 0o600) -> Path:
    file = tmp_path / "msmq.toml"
    file.write_text(USERS.format(users))
    file.chmod(mode)
    return file


def test_a_token_can_be_given_by_its_digest(tmp_path: Path) -> None:
    digest = hashlib.sha256(LONG.encode()).hexdigest()
    table = token_table(load(configured(tmp_path, f'token_sha256 = "{digest.upper()}"'), {}, {}))
    identity = table.identify(LONG, "10.0.0.1")
    assert identity is not None
    assert identity.name == "billing"
    assert table.identify(digest, "10.0.0.1") is None


@pytest.mark.parametrize(
    ("users", "complaint"),
    [
        ("", "give one of token, token_file and token_sha256"),
        ('token = "a"\ntoken_file = "/b"', "give one of token, token_file and token_sha256"),
        ('token_sha256 = "abc"', "64 hexadecimal digits"),
    ],
)
def test_one_form_of_a_token_is_given(tmp_path: Path, users: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        load(configured(tmp_path, users), {}, {})


def test_a_short_token_is_reported_without_showing_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    token_table(load(configured(tmp_path, f'token = "{LONG}"'), {}, {}))
    assert caplog.messages == []
    token_table(load(configured(tmp_path, 'token = "t0k"'), {}, {}))
    (message,) = caplog.messages  # not the text: PySpark makes JSON of it, once its logger was imported
    assert "'billing'" in message or '"billing"' in message
    assert "fewer than 16 characters" in message
    assert "t0k" not in message.replace("token", "")


def test_files_with_secrets_that_others_can_read_are_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = tmp_path / "token"
    secret.write_text(LONG)
    for mode, reported in ((0o600, False), (0o640, False), (0o644, True)):
        secret.chmod(mode)
        caplog.clear()
        warn_of_readable_files(load(configured(tmp_path, f"token_file = '{secret}'", 0o644), {}, {}))
        assert (str(secret) in caplog.text) == reported
        assert "msmq.toml" not in caplog.text  # it holds no secret itself
    warn_of_readable_files(load(configured(tmp_path, f'token = "{LONG}"', 0o644), {}, {}))
    assert "msmq.toml can be read by every user of this computer" in caplog.text
