"""The interfaces as their IDL describes them: tables only."""
