# Encodes the answer to a read of RemoteRead in one step. No other native module uses it.
