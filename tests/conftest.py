"""What holds for every test."""

from __future__ import annotations

import signal

from .services.postgres import postgres as postgres
from .services.redis import redis_server as redis_server

# A shell that runs the suite in the background has it ignore Ctrl-C, and whatever the suite starts would ignore it too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
