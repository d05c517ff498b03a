"""Is every connection back in the pool?"""

from __future__ import annotations

import time

from grandbo.library import Grandbo


def assert_pool_is_idle(opened: Grandbo) -> None:
    """No connection is out. One that the pool is still opening counts in its size, so this asks until it is there."""
    deadline = time.monotonic() + 10
    while (stats := opened.database.pool.get_stats())["pool_size"] != stats["pool_available"]:
        assert time.monotonic() < deadline, stats
        time.sleep(0.01)
