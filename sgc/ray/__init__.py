"""Programs and engines on Ray: `map_batches` for Ray Data, `Fleet` for engines (docs/ray.md).

Ray does restarts, retries and autoscaling. `import sgc` imports neither this package nor Ray.
"""

from __future__ import annotations

import os

from sgc.runs.endpoint import require

require(("ray",), "sgc.ray", "ray")
# Ray sends usage reports to its makers unless this is set before Ray starts.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

from sgc.ray.datasets import map_batches  # noqa: E402
from sgc.ray.fleet import Fleet  # noqa: E402

__all__ = ["Fleet", "map_batches"]
