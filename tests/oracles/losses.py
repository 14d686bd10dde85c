"""The losses' slopes ℓ'(ŷ, y) and curvatures for a clip C, written out. A slope keeps the precision
of ŷ; a difference that is rounding is no slope.
"""

import numpy as np


def above(x, y):
    """x − y, and 0 if that is only rounding."""
    return x - y if abs(x - y) > 1e-12 * (abs(x) + abs(y)) else 0 * x


values = {
    "squared": lambda y_hat, y: (y_hat - y) ** 2,
    "half_squared": lambda y_hat, y: (y_hat - y) ** 2 / 2,
    "logistic": lambda y_hat, y: np.logaddexp(0 * y_hat, -y * y_hat),
    "squared_hinge": lambda y_hat, y: np.maximum(1 - y * y_hat, 0) ** 2,
}

slopes = {
    "squared": lambda y_hat, y: 2 * above(y_hat, y),
    "half_squared": above,
    "logistic": lambda y_hat, y: -y / (1 + np.exp(y * y_hat)),
    "squared_hinge": lambda y_hat, y: 2 * y * min(above(y * y_hat, 1), 0 * y_hat),
    "hinge": lambda y_hat, y: -y + 0 * y_hat if above(y * y_hat, 1) < 0 else 0 * y_hat,
}

curvatures = {
    "squared": lambda C: 1 / (8 * C**2),
    "half_squared": lambda C: 1 / (4 * C**2),
    "logistic": lambda C: np.exp(-C),
    "squared_hinge": lambda C: min(1 / (2 * (1 + C) ** 2), 1 / (4 * C * (1 + C))),
}
