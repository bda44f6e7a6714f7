"""When to stop: the same rule for fits, new samples and batches."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Stopping:
    """When iterations end."""

    max_iter: int = 100  # Iterations at most
    # Stop when F falls by at most ``tol * max(|F|, size of X)``, where the size is sum(X) for transport and KL, and
    # 1/2 |X|^2 for least squares; zero never stops early
    tol: float = 1e-4

    def moving(self, before: Any, after: Any, size: Any) -> Any:
        """Whether F, a number or an array of them, fell by more than that."""
        fall = before - after
        return (fall > self.tol * abs(after)) & (fall > self.tol * size)
