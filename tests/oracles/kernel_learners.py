"""The kernel learners as their papers print them, slow and in an explicit feature space: nothing is
shared with the library.

A learner here is given φ(x), a vector whose inner products are the kernel's values, and keeps its
matrices whole: A is a matrix, every step a linear solve. Names and numbers of equations are those
of Calandriello, Lazaric, Valko (ICML 2017; "ICML" below) and of the same authors' poster (NIPS
2017; "poster"); entries such as K5 are of docs/errata.md. The random numbers are an implementation
of their own, in Python's integers, of the generator that the library documents. `seen` counts what
happened to a learner.

The arithmetic is that of the features' type: float64, or np.longdouble where an ill-conditioned
stream needs a judge.
"""

import math
from collections import Counter
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
from scipy.special import ndtri

from tests.oracles import exact_algebra
from tests.oracles.losses import above, slopes

REAL = ("squared", "half_squared")  # the losses of real labels; those of the others are ±1


# Random numbers ----------------------------------------------------------------------------------

WORD = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def bits(seed, position):
    """SplitMix64 (Steele, Lea, Flood, 2014) at the counter `position` of the sequence of `seed`."""
    z = (seed * 0xD1342543DE82EF95 + (position + 1) * GOLDEN) & WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def _unit(word):
    return (word >> 11) / 2**53


def uniform(seed, position):
    """A number in [0, 1): the 53 upper bits."""
    return _unit(bits(seed, position))


def _ziggurat(layers, tail, area):
    edges = [area / math.exp(-tail * tail / 2), tail]
    while len(edges) < layers:
        edges.append(math.sqrt(-2 * math.log(area / edges[-1] + math.exp(-(edges[-1] ** 2) / 2))))
    return [*edges, 0.0]


EDGES = _ziggurat(256, 3.6541528853610088, 0.00492867323399)


def normal(seed, position):
    """A standard normal number by the ziggurat of Marsaglia and Tsang (2000) with 256 layers. Eight
    bits of a word are the layer, the next one the sign, the upper 53 the position in the layer; a
    word that is rejected is the seed of the next."""
    word = bits(seed, position)
    while True:
        layer, sign, x = word % 256, 1 - 2 * (word // 256 % 2), _unit(word)
        x *= EDGES[layer]
        if x < EDGES[layer + 1]:
            return sign * x
        word = bits(word, 0)
        if layer == 0:
            while True:
                a = -math.log(1 - _unit(word)) / EDGES[1]
                word = bits(word, 1)
                b = -math.log(1 - _unit(word))
                word = bits(word, 2)
                if 2 * b > a * a:
                    return sign * (EDGES[1] + a)
        low, high = (math.exp(-(EDGES[i] ** 2) / 2) for i in (layer, layer + 1))
        if low + _unit(word) * (high - low) < math.exp(-x * x / 2):
            return sign * x
        word = bits(word, 3)


@cache
def levels():
    """65,536 equally likely levels with the quantiles of the normal distribution, variance 1."""
    whole = np.rint(4096 * ndtri((np.arange(2**16) + 0.5) / 2**16))
    return whole / np.sqrt(np.mean(whole**2))


def level(seed, i, j):
    """Entry j of u_i, of bandwidth 1: sixteen bits of a word, the lowest first, choose the levels
    of two frequencies, of which the second is that of 53445 times these bits."""
    part = bits(seed, 2**32 * (i // 8) + j) >> 16 * (i // 2 % 4) & 0xFFFF
    return levels()[53445 * part % 2**16 if i % 2 else part]


def frequencies(d, n, bandwidth, seed):
    """U (n, d): u_i ~ N(0, I/bandwidth²)."""
    return np.array([[level(seed, i, j) / bandwidth for j in range(d)] for i in range(n)]).reshape(
        n, d
    )


def fourier_features(X, U):
    """(cos Ux, sin Ux)/√D of each row of X, (n, 2D): Lu et al. (2016)."""
    return np.hstack([np.cos(X @ U.T), np.sin(X @ U.T)]) / math.sqrt(len(U))


# Kernels -----------------------------------------------------------------------------------------


def features(kernel, X, bandwidth, degree):
    """Φ (n, D) with ΦΦᵀ the kernel matrix of all rows of X.

    linear: the rows. polynomial, (xᵀx' + 1)^degree: all monomials in (1, x) of that degree, each
    times the root of how often it appears.
    gaussian: a factor of the kernel matrix.
    """
    if kernel == "linear":
        return X.copy()
    if kernel == "gaussian":
        squares = ((X[:, None] - X[None]) ** 2).sum(-1)
        return factor(np.exp(-squares / (2 * X.dtype.type(bandwidth) ** 2)))
    with_one = np.hstack([np.ones((len(X), 1), X.dtype), X])
    columns = []
    for chosen in combinations_with_replacement(range(with_one.shape[1]), degree):
        times = math.factorial(degree) // math.prod(
            math.factorial(chosen.count(i)) for i in set(chosen)
        )
        columns.append(np.sqrt(X.dtype.type(times)) * with_one[:, chosen].prod(1))
    return np.column_stack(columns)


def factor(K):
    """Φ (n, D) with ΦΦᵀ = K: a Cholesky factor, largest pivots first, until what is left is
    rounding.
    """
    rest, columns = K.copy(), []
    least = 4 * np.finfo(K.dtype).eps * K.diagonal().max()
    while rest.diagonal().max() > least and len(columns) < len(K):
        i = int(rest.diagonal().argmax())
        columns.append(rest[i] / np.sqrt(rest[i, i]))
        rest = rest - np.outer(columns[-1], columns[-1])
    return np.column_stack(columns or [rest[0]])


def solve(A, b):
    """A⁻¹b for a symmetric positive definite A: NumPy's, or by hand where numbers are longer."""
    return np.linalg.solve(A, b) if A.dtype == np.float64 else exact_algebra.solve(A, b)


def beyond(z, C):
    """h(z) = sign(z)·max(|z| − C, 0)."""
    return np.sign(z) * max(abs(z) - C, 0)


def held(z, C):
    """z within [−C, C]."""
    return max(-C, min(C, z))


# KORS --------------------------------------------------------------------------------------------


class Kors:
    """ICML, Algorithm 2, with equation 4 in feature space: τ̃ = (1 + ε) φᵀ(Σ_I φφᵀ/p̃ + φ_tφ_tᵀ +
    γI)⁻¹φ, or the poster's (1 + ε)/ρ.

    A dictionary of `most` points takes no more. `points` are the accepted rounds, from 0; `weights`
    are theirs, 1/p̃.
    """

    def __init__(self, D, dtype, *, ridge, epsilon, beta, estimate, seed, most=math.inf):
        self.weighted = ridge * np.eye(D, dtype=dtype)
        # 1/ρ = (1 − ε)/(1 + ε)
        self.factor = 1 + epsilon if estimate == "icml" else 1 - epsilon
        self.beta, self.most, self.seed = beta, most, seed
        self.t, self.points, self.weights, self.taken, self.seen = 0, [], [], [], Counter()

    def is_clear(self):
        """A coin hangs on rounding too seldom to be looked at."""
        return True

    def offer(self, phi):
        """One round, lines 3 to 6: (p̃_t, z_t, u_t). The coin of round t, counted from 1, is the
        uniform number u_t at t."""
        self.t += 1
        u = uniform(self.seed, self.t)
        if len(self.points) >= self.most:
            self.seen["dictionary at its maximum"] += 1
            return 0.0, False, u
        tau = self.factor * (phi @ solve(self.weighted + np.outer(phi, phi), phi))
        p = min(self.beta * tau, 1)
        joins = bool(u < p)
        self.seen["is not taken"] += not joins
        if joins:
            self.seen["certain" if p == 1 else "joins with a weight above 1"] += 1
            self.seen["a repeated point joins"] += any((phi == x).all() for x in self.taken)
            self.weighted = self.weighted + np.outer(phi, phi) / p
            self.points.append(self.t - 1)
            self.weights.append(float(1 / p))
            self.taken.append(phi)
        return p, joins, u


class Ald:
    """Approximate linear dependence in the place of KORS: a row joins if more than a share
    `threshold` of its square norm is outside the span of the points. There is no coin.
    """

    def __init__(self, D, dtype, *, threshold):
        self.threshold, self.basis = threshold, np.zeros((0, D), dtype)
        self.points, self.shares, self.t, self.seen = [], [], 0, Counter()

    def offer(self, phi):
        """(1 if the row joins, whether it does, no coin)."""
        self.t += 1
        rest = phi
        for _ in range(2):
            rest = rest - self.basis.T @ (self.basis @ rest)
        share = (rest @ rest) / (phi @ phi) if phi.any() else 0.0
        joins = bool(share > self.threshold)
        self.shares.append(float(share))
        self.seen["is dependent" if phi.any() and not joins else "joins"] += 1
        if joins:
            self.basis = np.vstack([self.basis, rest / np.sqrt(rest @ rest)])
            self.points.append(self.t - 1)
        return float(joins), joins, None

    def is_clear(self):
        """Whether rounding cannot decide which rows join."""
        return all(abs(share / self.threshold - 1) > 1e-6 for share in self.shares)


# Online Newton steps on kernels ------------------------------------------------------------------


class Judged:
    """The loss of a reference, what it has seen, and whether one of its decisions hung on
    rounding."""

    def __init__(self, loss):
        self.loss, self.seen, self.kink = loss, Counter(), False

    def slope(self, z, y_hat, y):
        """ℓ'(ŷ, y), where z is the prediction before it is held within [−C, C]. If the slope is
        zero on one side of z and z is there but for rounding, rounding decides what a point is."""
        from_zero = abs(z - y) if self.loss in REAL else abs(y * z - 1)
        undecided = from_zero < 1e-9 and (from_zero > 0 or z != 0)  # 0 at a label of 0 is exact
        self.kink |= self.loss != "logistic" and bool(undecided)
        return slopes[self.loss](y_hat, y)

    def is_clear(self):
        """Whether no decision hung on rounding."""
        return not self.kink


class Newton(Judged):
    """What the four Newton learners share: the loss, the constants, and equation 1 of the ICML
    paper."""

    def __init__(self, D, dtype, *, loss, alpha, clip, curvature, decreasing):
        super().__init__(loss)
        self.alpha, self.C = alpha, clip
        self.curvature, self.decreasing, self.t = curvature, decreasing, 0
        self.A, self.u = alpha * np.eye(D, dtype=dtype), np.zeros(D, dtype)

    def projected(self, phi):
        """(w, φᵀw): w = u − h(φᵀu)/(φᵀA⁻¹φ) A⁻¹φ is the nearest to u, in the norm of A, with
        |φᵀw| ≤ C, and φᵀw = φᵀu − h(φᵀu) is φᵀu held within [−C, C]."""
        z = phi @ self.u
        h = beyond(z, self.C)
        self.seen["projected"] += h != 0
        if h == 0:
            return self.u, z
        direction = solve(self.A, phi)
        return self.u - h / (phi @ direction) * direction, held(z, self.C)

    def eta(self):
        """The coefficient of g gᵀ in this round."""
        return self.curvature / (math.sqrt(self.t) if self.decreasing else 1.0)

    def newton_step(self, phi, y):
        """The projection w, A ← A + η g gᵀ if g `joins`, u ← w − A⁻¹g. Returns ŷ = φᵀw."""
        w, y_hat = self.projected(phi)
        slope = self.slope(phi @ self.u, y_hat, y)
        g = slope * phi
        self.seen["gradient 0" if slope == 0 else "gradient not 0"] += phi.any()
        if self.joins(g):
            self.A = self.A + self.eta() * np.outer(g, g)
        self.u = w - solve(self.A, g)
        return y_hat

    def joins(self, g):
        """Whether this round's gradient enters A."""
        return True


class Kons(Newton):
    """ICML, Algorithm 1, and with `kors` Algorithm 3: A ← A + z η g gᵀ, u ← w − A⁻¹g, w the
    projection of u.

    One uniform number a round is the coin of KORS and of the sketch (K5): KORS takes φ̄ = ġ√η φ if
    u < p̃, the sketch the gradient if u < max(p̃, floor). The points of the sketch are the rounds,
    from 0, whose gradient is in A and is not zero.
    """

    def __init__(self, D, dtype, *, kors=None, floor=0.0, **more):
        super().__init__(D, dtype, **more)
        self.kors, self.floor = kors, floor
        self.points, self.probabilities, self.in_kors = [], [], []

    def learn(self, phi, y):
        self.t += 1
        self.seen["φ = 0"] += not phi.any()
        return self.newton_step(phi, y)

    def joins(self, g):
        joins = True
        if self.kors is not None:
            p, in_kors, coin = self.kors.offer(math.sqrt(self.eta()) * g)
            joins = bool(coin < max(p, self.floor))
            self.probabilities.append(float(max(p, self.floor)))
            self.in_kors.append(in_kors)
            self.seen["sampled"] += in_kors
            self.seen["sampled only by the floor"] += joins and not in_kors
            self.seen["not sampled"] += not joins
        if joins and g.any():
            self.points.append(self.t - 1)
        return joins

    def predict(self, phi):
        return held(phi @ self.u, self.C)


# P3: a point with less than this share of its square norm outside the others' span adds nothing.
NO_COORDINATE = 1e-12


class ProsNKons(Newton):
    """The poster's algorithm with no coordinates: φ̃ = Pφ, P the projection on the span of the
    dictionary, and A on the whole space.

    A is α outside the span, so A and ω in a larger span are the same matrix and vector. What
    z_{t−1} = 1 does to the round t (lines 6 to 9, and P4) is done at the end of round
    t − 1, after its step.
    carry: "none" (PROS-N-KONS, B-KONS: ω̃ = 0, Ã = αI), "both" (CON-KONS), "weights" (ω̃ stays, Ã =
    αI).
    """

    def __init__(self, D, dtype, *, kors, carry, **more):
        super().__init__(D, dtype, **more)
        self.kors, self.carry, self.basis, self.restarts = kors, carry, np.zeros((0, D), dtype), 0
        self.probabilities, self.included, self.remainders = [], [], []
        self.points = kors.points

    def embedded(self, phi):
        return self.basis.T @ (self.basis @ phi)

    def learn(self, row, y):
        self.t += 1
        p, joins, _ = self.kors.offer(row)
        self.probabilities.append(float(p))
        self.included.append(joins)
        self.seen["φ = 0"] += not row.any()
        y_hat = self.newton_step(self.embedded(row), y)
        if joins:
            self.enter(row)
        return y_hat

    def is_clear(self, least=1e-5):
        """Also: each point is in the span of those before it but for rounding, or has at least this
        share of its square norm outside it."""
        of_points = all(x < 1e-20 or x > least for x in self.remainders)
        return super().is_clear() and of_points and self.kors.is_clear()

    def enter(self, row):
        """The point is in the span from the next round on."""
        rest = row - self.embedded(row)
        rest = rest - self.embedded(rest)
        share = (rest @ rest) / (row @ row)
        self.remainders.append(float(share))
        self.seen["no coordinate"] += share <= NO_COORDINATE
        self.seen["something is lost or carried"] += self.u.any()
        if share > NO_COORDINATE:
            self.basis = np.vstack([self.basis, rest / np.sqrt(rest @ rest)])
        if self.carry == "none":
            self.restarts += 1
            self.u = np.zeros_like(self.u)
        if self.carry != "both":
            self.A = self.alpha * np.eye(len(self.A), dtype=self.A.dtype)

    def predict(self, row):
        return held(self.embedded(row) @ self.u, self.C)


# First order -------------------------------------------------------------------------------------


class Norma(Judged):
    """Kivinen, Smola, Williamson (2004): f ← (1 − ηλ)f − ηℓ'k(x_t, ·), with what
    `koco_stream.NORMA` and its file say differs.

    Predictions are truncated before the loss is taken; a row with k(x, x) = 0 changes nothing. The
    budget counts terms with a slope, and the oldest leaves. nu > 0 with the hinge loss: max(0, ρ −
    yŷ) − νρ, by Kivinen et al.'s section on classification.
    """

    def __init__(
        self, *, loss, clip, step_size, regularisation, budget, nu, step_schedule="constant"
    ):
        super().__init__(loss)
        self.C, self.first_eta, self.decay, self.budget = clip, step_size, regularisation, budget
        self.power = {"constant": 0.0, "sqrt": 0.5, "linear": 1.0}[step_schedule]
        self.counted = 0  # rows with φ ≠ 0
        self.nu, self.rho, self.t = nu if loss == "hinge" else 0.0, 0.0, 0
        self.terms = []  # (round, φ, coefficient), the oldest first

    def f(self, phi):
        return sum((a * (point @ phi) for _, point, a in self.terms), 0.0)

    def learn(self, phi, y):
        z = self.f(phi)
        y_hat = held(z, self.C)
        self.t += 1
        self.seen["φ = 0"] += phi @ phi == 0
        if phi @ phi == 0:
            return 0.0
        self.counted += 1
        self.eta = self.first_eta * self.counted**-self.power
        self.seen["truncated"] += abs(z) > self.C
        slope = self.slope(z, y_hat, y) if self.nu == 0 else self.soft_margin(y_hat, y)
        self.seen["gradient 0"] += slope == 0
        self.terms = [(s, point, (1 - self.eta * self.decay) * a) for s, point, a in self.terms]
        if slope != 0:
            self.terms.append((self.t - 1, phi, -self.eta * slope))
        if len(self.terms) > self.budget:
            self.seen["the oldest leaves"] += 1
            del self.terms[0]
        return y_hat

    def soft_margin(self, y_hat, y):
        """The slope of max(0, ρ − yŷ) − νρ in ŷ, after a step in ρ."""
        error = above(y * y_hat, self.rho) <= 0
        self.seen["soft margin: error" if error else "soft margin: no error"] += 1
        self.kink |= 0 < abs(y * y_hat - self.rho) < 1e-9
        self.rho -= self.eta * (1 - self.nu) if error else -self.eta * self.nu
        return -y if error else 0.0

    def predict(self, phi):
        return held(self.f(phi), self.C)

    @property
    def points(self):
        return [s for s, _, _ in self.terms]


class Fogd(Judged):
    """Lu et al. (2016), online gradient descent on random features z: w ← w − ηℓ'z. `tube`: of a
    loss with real labels, no update within."""

    def __init__(self, D, *, loss, step_size, tube):
        super().__init__(loss)
        self.tube, self.eta, self.w = tube if loss in REAL else -1.0, step_size, np.zeros(D)

    def learn(self, z, y):
        y_hat = self.predict(z)
        within, slope = abs(y_hat - y) <= self.tube, self.slope(y_hat, y_hat, y)
        self.seen["within the tube"] += within
        self.seen["gradient 0"] += slope == 0 and not within
        if slope != 0 and not within:
            self.step(slope, z)
        return y_hat

    def step(self, slope, z):
        self.w = self.w - self.eta * slope * z

    def predict(self, z):
        return self.w @ z


class Nogd(Fogd):
    """Lu et al. (2016), NOGD: f ← f − ηℓ'φ until there are `budget` points; from then on everything
    happens in the span of the first `rank` eigenfunctions of their kernel matrix, f projected on
    it. Eigenvalues below 1e-12 of the largest have no eigenfunction."""

    def __init__(self, D, *, budget, rank, **more):
        super().__init__(D, **more)
        self.budget, self.rank, self.t = budget, min(rank, budget), 0
        self.points, self.kept, self.Q, self.values = [], [], None, None

    def learn(self, phi, y):
        self.t += 1
        return super().learn(phi, y)

    def step(self, slope, phi):
        super().step(slope, self.embedded(phi))
        self.seen["φ = 0"] += not phi.any()
        self.seen["a step on Nyström features"] += self.Q is not None
        if self.Q is None and phi.any():
            self.points.append(self.t - 1)
            self.kept.append(phi)
            if len(self.points) == self.budget:
                self.switch()

    def embedded(self, phi):
        """φ, and once there are eigenfunctions its projection on their span."""
        return phi if self.Q is None else self.Q.T @ (self.Q @ phi)

    def switch(self):
        values, V = exact_algebra.eigen_of_rows(np.array(self.kept))
        self.values = np.append(values, np.zeros(self.budget - len(values), values.dtype))
        chosen = [i for i in range(self.rank) if self.values[i] > 1e-12 * self.values[0]]
        self.Q = V[chosen]
        self.w = self.embedded(self.w)
        rank = "below" if self.rank < self.budget else "equal to"
        self.seen[f"switched, rank {rank} the budget"] += 1
        self.seen["fewer features than the rank"] += len(chosen) < self.rank

    def predict(self, phi):
        return self.w @ self.embedded(phi)

    def is_clear(self):
        """Whether rounding cannot decide which eigenfunctions are kept."""
        if self.values is None:
            return super().is_clear()
        values = np.append(self.values, 0.0) / self.values[0]
        kept = values[: self.rank]
        apart = values[self.rank - 1] - values[self.rank] > 1e-5 or kept[-1] < 1e-14
        return super().is_clear() and bool(apart and ((kept > 1e-6) | (kept < 1e-14)).all())


class DualSgd(Judged):
    """Gradient descent on λ/2·‖f‖² + loss with the step 1/(λt), as `koco_stream.DualSGD` and its
    file describe it.

    f = (Σ c φ over the points + Σ c z over those that left)/(λ·rounds), c = −ℓ'(ŷ) at the truncated
    ŷ. Beyond the budget the term with the smallest |c| leaves, the new one among them, of equals
    the oldest. `both` is (φ, z), D of them φ's.
    """

    def __init__(self, D, n, *, loss, clip, regularisation, budget):
        super().__init__(loss)
        self.C, self.decay, self.budget, self.D = clip, regularisation, budget, D
        self.t, self.w = 0, np.zeros(n)
        self.terms = []  # (round, φ, z, c), the oldest first

    def f(self, both):
        phi, z = both[: self.D], both[self.D :]
        total = sum((c * (point @ phi) for _, point, _, c in self.terms), 0.0) + self.w @ z
        return total / (self.decay * self.t) if self.t else 0.0

    def learn(self, both, y):
        z = self.f(both)
        y_hat = held(z, self.C)
        c = -self.slope(z, y_hat, y)
        self.t += 1
        self.seen["truncated"] += abs(z) > self.C
        self.seen["gradient 0"] += c == 0
        if c != 0:
            self.terms.append((self.t - 1, both[: self.D], both[self.D :], c))
        if len(self.terms) > self.budget:
            sizes = [abs(c) for _, _, _, c in self.terms]
            leaves = sizes.index(min(sizes))
            which = "the new" if leaves == self.budget else "an old"
            self.seen[f"{which} point leaves"] += 1
            self.seen["of equals the oldest leaves"] += sizes.count(min(sizes)) > 1
            _, _, z, c = self.terms.pop(leaves)
            self.w = self.w + c * z
        return y_hat

    def predict(self, both):
        return held(self.f(both), self.C)

    @property
    def points(self):
        return [s for s, _, _, _ in self.terms]
