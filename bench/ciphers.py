"""Ciphers of message bodies beside OpenSSL: `python -m bench.ciphers [--json]`.

Ours is what a message costs once its session key is known. `OpenSSL` is its bulk loop alone, one context for
all bodies and no padding; `with set-up` makes a context for each body, as a plain use of the library does.
"""

from __future__ import annotations

import argparse
import json
import os
import timeit
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from cryptography.hazmat.decrepit.ciphers import algorithms as decrepit
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from msmq_fast.protocol.properties import EncryptionAlgorithm
from msmq_fast.security.ciphers import body_cipher

__all__ = ["SIZES", "Figure", "measure"]

SIZES = (64, 1024, 4096, 65_536, 1_048_576)
_KEY = bytes(range(32))
_TURNS = 25


@dataclass(frozen=True)
class Figure:
    """Microseconds for one body; `ratio` is our speed by that of OpenSSL's loop."""

    cipher: str
    direction: str
    size: int
    ours: float
    openssl: float
    set_up: float

    @property
    def ratio(self) -> float:
        return self.openssl / self.ours


def _ciphers() -> Iterator[tuple[str, EncryptionAlgorithm, int, Cipher[modes.CBC | None], int]]:
    yield "RC4", EncryptionAlgorithm.RC4, 128, Cipher(decrepit.ARC4(_KEY[:16]), None), 1
    yield "RC2", EncryptionAlgorithm.RC2, 128, Cipher(decrepit.RC2(_KEY[:16]), modes.CBC(bytes(8))), 8
    yield "AES 128", EncryptionAlgorithm.AES_128, 128, Cipher(algorithms.AES(_KEY[:16]), _cbc()), 16
    yield "AES 256", EncryptionAlgorithm.AES_256, 256, Cipher(algorithms.AES(_KEY), _cbc()), 16


def _cbc() -> modes.CBC:
    return modes.CBC(bytes(16))


def _best(calls: tuple[Callable[[], object], ...], budget: float) -> list[float]:
    """Microseconds of the fastest run of each; they take turns, so that a busy machine hits all alike.

    `budget` is in seconds, for all runs.
    """
    once = max(sum(min(timeit.repeat(call, number=1, repeat=3)) for call in calls), 1e-7)
    number = max(1, int(budget / _TURNS / once))
    best = [float("inf")] * len(calls)
    for _ in range(_TURNS):
        for index, call in enumerate(calls):
            best[index] = min(best[index], timeit.timeit(call, number=number) / number)
    return [seconds * 1e6 for seconds in best]


def measure(sizes: tuple[int, ...] = SIZES, budget: float = 0.5) -> Iterator[Figure]:
    """Figures of every cipher, direction and size."""
    for name, algorithm, bits, theirs, block in _ciphers():
        ours = body_cipher(algorithm, _KEY[: bits // 8], bits)
        for size in sizes:
            body = os.urandom(size)
            padded = body if block == 1 else body + bytes((block - size % block,)) * (block - size % block)
            encrypted = ours.encrypt(body)
            for direction, mine, data, make in (
                ("encrypt", ours.encrypt, body, theirs.encryptor),
                ("decrypt", ours.decrypt, encrypted, theirs.decryptor),
            ):
                whole = padded if direction == "encrypt" else encrypted
                yield Figure(name, direction, size, *_best(_calls(mine, data, make, whole), budget))


def _calls(
    ours: Callable[[bytes], object], body: bytes, make: Callable[[], CipherContext], whole: bytes
) -> tuple[Callable[[], object], ...]:
    context = make()
    return (lambda: ours(body), lambda: context.update(whole), lambda: make().update(whole))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.ciphers", description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--budget", type=float, default=0.5, help="seconds for one line (0.5)")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # of broken ciphers, which is why they are ours
    if not arguments.json:
        print("| cipher | | bytes | µs | MB/s | OpenSSL µs | ratio | with set-up µs |")
        print("|---|---|---|---|---|---|---|---|")
    for figure in measure(budget=arguments.budget):
        if arguments.json:
            print(json.dumps(asdict(figure) | {"ratio": round(figure.ratio, 3)}))
            continue
        rate = figure.size / figure.ours
        print(
            f"| {figure.cipher} | {figure.direction} | {figure.size} | {figure.ours:.2f} | {rate:.0f} "
            f"| {figure.openssl:.2f} | {figure.ratio:.2f} | {figure.set_up:.2f} |"
        )


if __name__ == "__main__":
    main()
