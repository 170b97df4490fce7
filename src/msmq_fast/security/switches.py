"""Switches of signatures and encryption, for questions that only a capture from a Windows peer can settle;
docs/reference/interop-switches.md explains each.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["NameForm", "SecuritySwitches"]


class NameForm(StrEnum):
    """The form in which the queue names of a message enter the hash of its signature."""

    FIELD = "field"  # the bytes of the UserHeader, padding included
    CONTENT = "content"  # the same without the count and the padding of direct names
    TEXT = "text"  # the format name in UTF-16, `DIRECT=` included
    TEXT_NUL = "text-nul"  # with its NUL


@dataclass(frozen=True, slots=True)
class SecuritySwitches:
    """The switches of signatures and encryption. The name of each begins with the number of the open question
    that it answers, in the MS-MQQB rule inventory.
    """

    amb82_names: NameForm = NameForm.FIELD
    """The form of the response, administration and destination queue in the hash."""
    amb82_label_nul: bool = True
    """The label is hashed with its NUL."""
    amb82_absent_connector: bool = False
    """The hash of a message without a connector type covers 16 zero bytes in its place."""
    amb82_all_lists: bool = False
    """The FormatNameList of an MSMQ 3.0 signature covers all three lists, not only that of the
    destinations.
    """
    amb82_reversed: bool = True
    """Signatures are stored byte-reversed, as CryptoAPI does."""
    amb83_salt: bool = True
    """40-bit keys of the base provider are extended by 11 zero bytes of salt."""
    amb29_plain_size: bool = True
    """MessageSize of an encrypted message that we send is the length before encryption."""
    amb27_strict_level: bool = False
    """The provider is chosen by PrivacyLevel only, as up to Windows Server 2003; otherwise the best provider
    is used.
    """
    qb402_sign_direct: bool = True
    """Messages to direct format names are signed, as MSMQ 2.0 and later do; MS-MQQB 5.1 says that they cannot
    be.
    """
