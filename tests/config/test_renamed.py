"""Old names of keys: read with a warning that says the new one."""

from __future__ import annotations

from pathlib import Path

import pytest

from msmq_fast.config.loading import load, variable
from msmq_fast.config.mistakes import ConfigError
from msmq_fast.config.renamed import RENAMED
from msmq_fast.config.sections import LISTS, SECTIONS, keys_of
from msmq_fast.config.toml_text import toml_text

pytestmark = pytest.mark.smoke


def halves(name: str) -> tuple[str, str]:
    section, _, key = name.rpartition(".")
    return section, key


@pytest.mark.parametrize("old", RENAMED)
def test_every_new_name_is_a_key_and_no_old_name_is(old: str) -> None:
    section, key = halves(RENAMED[old].name)
    assert key in keys_of((SECTIONS | LISTS)[section])
    section, key = halves(old)
    assert key not in keys_of((SECTIONS | LISTS)[section])


@pytest.mark.parametrize("old", [old for old in RENAMED if halves(old)[0] in SECTIONS])
def test_an_old_name_sets_the_key_and_is_told_with_its_line(old: str, tmp_path: Path) -> None:
    section, key = halves(RENAMED[old].name)
    kind = keys_of(SECTIONS[section])[key].metadata["kind"]
    value = next(value for value in VALUES if taken(kind, RENAMED[old].convert(value)))
    file = tmp_path / "msmq.toml"
    file.write_text(f"[{halves(old)[0]}]\n{halves(old)[1]} = {toml_text(value)}\n")
    config = load_ignoring_partners(file)
    if config is not None:
        assert getattr(config.section(section), key) == kind.check(RENAMED[old].convert(value))
        assert config.warnings == [
            f'{file}:2: "{old}" is an old name of "{RENAMED[old].name}": use the new name'
        ]


VALUES = (True, 4096, "127.0.0.1", "use", "same", "content", "0640", "10.0.0.0/8", "auto")


def taken(kind: object, value: object) -> bool:
    try:
        kind.check(value)  # type: ignore[attr-defined]
    except ValueError:
        return False
    return True


def load_ignoring_partners(file: Path) -> object:
    """The configuration; None if the key needs another one, such as a certificate its key."""
    try:
        return load(file, {}, {})
    except ConfigError as error:
        assert all("together" in str(mistake) or "needs" in str(mistake) for mistake in error.mistakes)  # noqa: PT017
        return None


def test_an_old_variable_sets_the_key_and_is_told() -> None:
    config = load(None, {"MSMQ_FAST_SECURITY__AMB23_UNSIGNED_SID": "use"}, {})
    assert config.interop.unsigned_sender_id == "use"
    assert config.warnings == [
        "MSMQ_FAST_SECURITY__AMB23_UNSIGNED_SID is an old name of MSMQ_FAST_INTEROP__UNSIGNED_SENDER_ID: "
        "use the new name"
    ]


def test_a_mistake_in_an_old_key_names_the_key_as_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "msmq.toml"
    file.write_text("[protection]\namb82_label_nul = 5\n")
    with pytest.raises(ConfigError, match=r"msmq.toml:2: protection.amb82_label_nul: expected true or false"):
        load(file, {}, {})


def test_both_names_in_one_place_are_a_mistake(tmp_path: Path) -> None:
    file = tmp_path / "msmq.toml"
    file.write_text("[interop]\nshort_keys_are_padded = true\n[protection]\namb83_salt = true\n")
    with pytest.raises(
        ConfigError, match=r'msmq.toml:4: "protection.amb83_salt" and "interop.short_keys_are_pad'
    ):
        load(file, {}, {})
    old, new = variable("protection.amb83_salt"), variable("interop.short_keys_are_padded")
    with pytest.raises(ConfigError, match=f"{old}: {new} is the same key: remove the old name"):
        load(None, {old: "on", new: "on"}, {})


def test_a_variable_with_an_old_name_wins_over_the_file_with_the_new_one(tmp_path: Path) -> None:
    file = tmp_path / "msmq.toml"
    file.write_text("[interop]\nshort_keys_are_padded = true\n")
    config = load(file, {variable("protection.amb83_salt"): "off"}, {})
    assert not config.interop.short_keys_are_padded


def test_a_misspelled_old_name_suggests_the_new_one(tmp_path: Path) -> None:
    file = tmp_path / "msmq.toml"
    file.write_text("[protection]\namb83_salz = true\n")
    with pytest.raises(ConfigError, match=r'did you mean "interop.short_keys_are_padded"\?'):
        load(file, {}, {})
    with pytest.raises(ConfigError, match=r'did you mean "MSMQ_FAST_INTEROP__SHORT_KEYS_ARE_PADDED"\?'):
        load(None, {"MSMQ_FAST_PROTECTION__AMB83_SALZ": "on"}, {})


@pytest.mark.parametrize(
    ("written", "kilobytes"), [("100", 100), ("4294967295", 2**32 - 1), ("0", 0), ("4294967294", 2**32 - 2)]
)
def test_a_quota_in_kilobytes_is_a_size_today(written: str, kilobytes: int, tmp_path: Path) -> None:
    file = tmp_path / "msmq.toml"
    file.write_text(f'[queue_manager]\nquota_kb = {written}\n[[queues]]\nname = "q"\nquota_kb = {written}\n')
    config = load(file, {variable("queue_manager.journal_quota_kb"): written}, {})
    manager = config.queue_manager
    assert (manager.quota, manager.journal_quota, config.queues[0].quota) == (kilobytes,) * 3
    assert (
        config.warnings[1]
        == f'{file}:5: "queues.quota_kb" is an old name of "queues.quota": use the new name'
    )
    assert load(None, {variable("queue_manager.quota_kb"): "auto"}, {}).queue_manager.quota is None


@pytest.mark.parametrize("written", ["-1", "4294967296", "true"])
def test_a_wrong_quota_in_kilobytes_is_a_mistake(written: str, tmp_path: Path) -> None:
    file = tmp_path / "msmq.toml"
    file.write_text(f"[queue_manager]\nquota_kb = {written}\n")
    with pytest.raises(ConfigError, match=r"msmq\.toml:2: queue_manager\.quota_kb: "):
        load(file, {}, {})
