"""What the literal texts of linear learners share: the loop over a stream."""

import numpy as np


class LinearText:
    """A learner of weights w (d,), which predicts wᵀx, held within the clip: its parameters and the
    loss's slope are attributes. After `run`: predictions (n,), products wᵀx (n,) before they are
    bounded, and w.

    All arithmetic is in `number`: double, or long double, which says how well a stream is
    conditioned. An empty row changes nothing, not even t.
    """

    def __init__(self, **parameters):
        vars(self).update(parameters)

    def run(self, X, y, number=float):
        """All rounds from new weights. Returns itself."""
        self.number, self.t, self.predictions, self.products = number, 0, [], []
        for name, value in vars(self).items():
            if isinstance(value, float):
                setattr(self, name, number(value))
        self.w = np.zeros(X.shape[1], number)
        self.begin()
        for x, label in zip(self.read(X.astype(number)), y.astype(number), strict=True):
            z = self.product(x) if x.any() else number(0)
            y_hat = np.clip(z, -self.clip, self.clip)
            self.predictions.append(y_hat)
            self.products.append(z)
            if x.any():
                self.t += 1
                self.learn(x, z, y_hat, self.slope(y_hat, label))
        self.predictions, self.products = np.array(self.predictions), np.array(self.products)
        return self

    def begin(self):
        """Make what is kept beside w."""

    def read(self, X):
        """The rows as they are learnt from."""
        return X

    def product(self, x):
        """wᵀx."""
        return self.w @ x
