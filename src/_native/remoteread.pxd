# The answer to a read of RemoteRead, encoded at one stroke; nothing of it is used from other native modules.
