"""The interfaces that are served over RPC: qm2qm, qmcomm, RemoteRead, the endpoint mapper, mgmt."""
