"""Code that the tests of several folders share. A helper of one folder stays beside its tests.

- `clocks`: clocks that stand still until a test moves them.
- `worlds`: queue managers, directories, stores and sessions in this process, in memory.
- `processes`: servers and other programs as real processes.
- `mqqb`, `packet`, `rpc`, `srmp`: packets, PDUs and envelopes written by hand, and peers that speak them.
- `http`, `bulk`: requests to the HTTP ports; packets and events as columns.
- `captures`: conversations as capture files, and tshark.
- `hostile`: peers that attack a server, and a witness beside it.

To add a helper: put it beside its tests; when a second folder needs it, move it here. A test module is never
imported (`tests/packaging/test_layout.py`).
"""
