"""Entry point of `python -m msmq_fast`."""

import sys

from msmq_fast.cli.main import main

sys.exit(main())
