"""The benchmark of ciphers measures all of them."""

from __future__ import annotations

import pytest

from bench.ciphers import measure


@pytest.mark.filterwarnings("ignore")
def test_every_cipher_is_measured() -> None:
    figures = list(measure((64,), budget=0.001))
    assert {(figure.cipher, figure.direction) for figure in figures} == {
        (cipher, direction)
        for cipher in ("RC4", "RC2", "AES 128", "AES 256")
        for direction in ("encrypt", "decrypt")
    }
    assert all(figure.ours > 0 and figure.ratio > 0 for figure in figures)
