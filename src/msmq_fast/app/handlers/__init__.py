"""The handlers of the requests of the application protocol: one module for each group of frames."""
