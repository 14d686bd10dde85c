"""The losses' slopes ℓ'(ŷ, y) and curvatures for a clip C, written out. A slope keeps the precision
of ŷ.
"""

import numpy as np

slopes = {
    "squared": lambda y_hat, y: 2 * (y_hat - y),
    "half_squared": lambda y_hat, y: y_hat - y,
    "logistic": lambda y_hat, y: -y / (1 + np.exp(y * y_hat)),
    "squared_hinge": lambda y_hat, y: -2 * y * (1 - y * y_hat) if y * y_hat < 1 else 0 * y_hat,
    "hinge": lambda y_hat, y: -y + 0 * y_hat if y * y_hat < 1 else 0 * y_hat,
}

curvatures = {
    "squared": lambda C: 1 / (8 * C**2),
    "half_squared": lambda C: 1 / (4 * C**2),
    "logistic": lambda C: np.exp(-C),
    "squared_hinge": lambda C: min(1 / (2 * (1 + C) ** 2), 1 / (4 * C * (1 + C))),
}
