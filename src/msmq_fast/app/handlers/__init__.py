"""What each request of the application protocol does: one module for each group of frames."""
