"""Management of this queue manager by tools on Windows (MS-MQMR): properties, objects and actions."""
