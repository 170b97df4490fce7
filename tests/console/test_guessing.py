"""Passwords that a stranger guesses at the log-on page: what the guesses cost the server."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.http.console import PASSWORD, Browser, add_user
from tests.support.processes.servers import Server, data_directory


def processor_seconds(server: Server) -> float:
    assert server.process is not None
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_guesses_of_a_locked_address_cost_no_key_derivation() -> None:
    with data_directory() as data:
        data.mkdir(mode=0o700, exist_ok=True)
        add_user(data, "admin", PASSWORD, "--group", "administrators")
        server = Server(data, "--name", "ALPHA")
        try:
            server.start()
            known = Browser(server)
            assert known.log_on("admin", PASSWORD).status == 303
            began = processor_seconds(server)
            for number in range(25):  # from the fifth on, the address is locked for unknown names
                assert Browser(server).log_on(f"nobody{number}", "guess").status == 403
            verified = processor_seconds(server)
            for number in range(100):
                assert Browser(server).log_on(f"nobody{number}", "guess").status == 403
            ended = processor_seconds(server)
            print(f"{verified - began:.2f} s for 25 guesses, then {ended - verified:.2f} s for 100")
            assert (ended - verified) / 100 < 0.02  # a verification takes 40 ms and more
            assert known.log_on("admin", PASSWORD).status == 303  # known at this address
        finally:
            server.kill()
