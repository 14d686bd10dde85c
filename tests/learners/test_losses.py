"""The losses: slopes are those of the values, and curvatures hold within the clip."""

import numpy as np
import pytest

from koco_stream.losses import LOSSES, OF_REAL_LABELS, curvature_of, loss_slope, loss_value


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("clip", [0.1, 0.5, 1.0, 3.0, 20.0])
def test_losses__slope_and_curvature(loss, clip):
    code, sigma, grid = LOSSES[loss], curvature_of(loss, clip), np.linspace(-clip, clip, 61)
    for y in grid[::6] if loss in OF_REAL_LABELS else (-1.0, 1.0):
        values = np.array([loss_value(code, u, y) for u in grid])
        near = np.array([loss_value(code, u + 1e-6, y) for u in grid])
        slope = np.array([loss_slope(code, u, y) for u in grid])
        error = np.abs((near - values) / 1e-6 - slope)
        assert (error <= 1e-4 * (1 + np.abs(slope)) + (loss == "hinge")).all()
        step = slope[:, None] * (grid[None, :] - grid[:, None])
        # Assumption 2 of Luo et al.
        room = values[None, :] - values[:, None] - step - sigma / 2 * step**2
        assert room.min() >= -1e-12 * (1 + np.abs(step).max())
