"""The kernel learners as their papers print them, slow and in an explicit feature space: nothing is
shared with the library.

A learner here is given φ(x), a vector whose inner products are the kernel's values, and keeps its
matrices whole: A is a matrix, every step a linear solve. Names and numbers of equations are those
of Calandriello, Lazaric, Valko (ICML 2017; "ICML" below) and of the same authors' poster (NIPS
2017; "poster"); entries such as K5 are of docs/errata.md.

The arithmetic is that of the features' type: float64, or np.longdouble where an ill-conditioned
stream needs a judge.
"""

import math
from collections import Counter
from copy import copy, deepcopy
from itertools import combinations_with_replacement

import numpy as np

from koco_stream.learners import LEARNERS
from tests.oracles import exact_algebra
from tests.oracles.losses import above, curvatures, slopes
from tests.oracles.random_numbers import level, uniform

REAL = ("squared", "half_squared")  # the losses of real labels; those of the others are ±1


# Features ----------------------------------------------------------------------------------------


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


def fourier_features(X, n, bandwidth, seed):
    """(cos Ux, sin Ux)/√n of each row of X, (., 2n), with U (n, d) of u_i ~ N(0, I/bandwidth²): Lu
    et al. (2016).
    """
    U = [[level(seed, i, j) / bandwidth for j in range(X.shape[1])] for i in range(n)]
    angles = X @ np.array(U).T
    return np.hstack([np.cos(angles), np.sin(angles)]) / math.sqrt(n)


def solve(A, b):
    """A⁻¹b for a symmetric positive definite A: NumPy's, or by hand where numbers are longer."""
    return np.linalg.solve(A, b) if A.dtype == np.float64 else exact_algebra.solve(A, b)


# Dictionaries ------------------------------------------------------------------------------------


# P3: a point with less than this share of its square norm outside the others' span adds nothing.
NO_COORDINATE = 1e-12


class Kors:
    """ICML, Algorithm 2, with equation 4 in feature space: τ̃ = (1 + ε) φᵀ(Σ_I φφᵀ/p̃ + φ_tφ_tᵀ +
    γI)⁻¹φ, or the poster's (1 + ε)/ρ.

    A dictionary of `most` points takes no more. `points` are the accepted rounds, from 0; `weights`
    are theirs, 1/p̃, `taken` their φ, and `basis` is an orthonormal one of their span. `seen` counts
    what happened.
    """

    def __init__(self, D, dtype, *, ridge, epsilon, beta, estimate, seed, most=math.inf):
        self.weighted = ridge * np.eye(D, dtype=dtype)
        # 1/ρ = (1 − ε)/(1 + ε)
        self.factor = 1 + epsilon if estimate == "icml" else 1 - epsilon
        self.beta, self.most, self.seed = beta, most, seed
        self.begin(D, dtype)

    def begin(self, D, dtype):
        self.t, self.points, self.weights, self.taken, self.seen = 0, [], [], [], Counter()
        self.basis, self.remainders = np.zeros((0, D), dtype), []
        self.probabilities, self.included = [], []

    def offer(self, phi):
        """One round, lines 3 to 6: whether φ joins. The coin of round t, counted from 1, is the
        uniform number u_t at t."""
        self.t += 1
        p = self.probability(phi)
        joins = bool(uniform(self.seed, self.t) < p)
        self.probabilities.append(float(p))
        self.included.append(joins)
        self.seen["joins" if joins else "is not taken"] += 1
        if joins:
            self.enter(phi, p)
        return joins

    def probability(self, phi):
        """p̃_t."""
        if len(self.points) >= self.most:
            self.seen["dictionary at its maximum"] += 1
            return 0.0
        tau = self.factor * (phi @ solve(self.weighted + np.outer(phi, phi), phi))
        return min(self.beta * tau, 1)

    def enter(self, phi, p):
        self.seen["certain" if p == 1 else "joins with a weight above 1"] += 1
        self.seen["a repeated point joins"] += any((phi == x).all() for x in self.taken)
        self.weighted = self.weighted + np.outer(phi, phi) / p
        self.points.append(self.t - 1)
        self.weights.append(float(1 / p))
        self.taken.append(phi)
        rest = exact_algebra.outside(self.basis, phi)
        self.remainders.append(float((rest @ rest) / (phi @ phi)))
        if self.remainders[-1] > NO_COORDINATE:
            self.basis = np.vstack([self.basis, rest / np.sqrt(rest @ rest)])
        else:
            self.seen["no coordinate"] += 1

    def is_clear(self, least=0.0):
        """Whether each point is in the span of those before it but for rounding, or has at least
        this share of its square norm outside it. A coin hangs on rounding too seldom to be looked
        at.
        """
        return all(x < 1e-20 or x > least for x in self.remainders)

    @property
    def kors(self):
        return self

    def learn(self, phi, y):
        """As a learner, it predicts 0."""
        self.offer(phi)
        return 0.0

    def predict(self, phi):
        return 0.0


class Ald(Kors):
    """Approximate linear dependence in the place of KORS: a row joins if more than a share
    `threshold` of its square norm is outside the span of the points. There is no coin.
    """

    seed, weighted = 0, 0.0

    def __init__(self, D, dtype, *, threshold):
        self.threshold, self.shares = threshold, []
        self.begin(D, dtype)

    def probability(self, phi):
        rest = exact_algebra.outside(self.basis, phi)
        self.shares.append(float((rest @ rest) / (phi @ phi)) if phi.any() else 0.0)
        self.seen["is dependent"] += phi.any() and self.shares[-1] <= self.threshold
        return float(self.shares[-1] > self.threshold)

    def is_clear(self, least=0.0):
        """Also: rounding cannot decide which rows join."""
        at_threshold = (abs(share / self.threshold - 1) < 1e-6 for share in self.shares)
        return super().is_clear(least) and not any(at_threshold)


# Learners ----------------------------------------------------------------------------------------


def held(z, C):
    """z within [−C, C]."""
    return max(-C, min(C, z))


class Text:
    """A learner that predicts f(φ), held within [−C, C]. `points` are rounds, from 0; `seen` counts
    what happened; `kink` is whether a decision hung on rounding.
    """

    kors, least = None, 0.0  # its dictionary, and how clear that has to be
    embedded = None  # of rows, their features in the span of its points

    def __init__(self, *, loss="squared", clip=math.inf):
        self.loss, self.C, self.t = loss, clip, 0
        self.points, self.seen, self.kink = [], Counter(), False

    def learn(self, phi, y):
        """One round: ŷ."""
        z = self.f(phi)
        y_hat = held(z, self.C)
        self.t += 1
        self.seen["beyond the clip"] += abs(z) > self.C
        self.seen["φ = 0"] += not phi.any()
        self.step(phi, y, z, y_hat)
        return y_hat

    def predict(self, phi):
        return held(self.f(phi), self.C)

    def slope(self, phi, z, y_hat, y):
        """ℓ'(ŷ, y), where z is the prediction before it is held within [−C, C]. If the slope is
        zero on one side of z and z is there but for rounding, rounding decides what a point is."""
        from_zero = abs(z - y) if self.loss in REAL else abs(y * z - 1)
        undecided = from_zero < 1e-9 and (from_zero > 0 or z != 0)  # 0 at a label of 0 is exact
        self.kink |= self.loss != "logistic" and bool(undecided)
        slope = slopes[self.loss](y_hat, y)
        self.seen["gradient 0" if slope == 0 else "gradient not 0"] += phi.any()
        return slope

    def is_clear(self):
        """Whether no decision hung on rounding."""
        return not self.kink and (self.kors is None or self.kors.is_clear(self.least))


class Newton(Text):
    """Equation 1 of the ICML paper: with the gradient g of the loss at the projection w of u,
    A ← A + η g gᵀ if g `joins`, u ← w − A⁻¹g.
    """

    def __init__(self, D, dtype, *, alpha, curvature, decreasing, **of_all):
        super().__init__(**of_all)
        self.alpha, self.curvature, self.decreasing = alpha, curvature, decreasing
        self.A, self.u = alpha * np.eye(D, dtype=dtype), np.zeros(D, dtype)

    def f(self, phi):
        return phi @ self.u

    def step(self, phi, y, z, y_hat):
        """w = u − h(φᵀu)/(φᵀA⁻¹φ) A⁻¹φ is the nearest to u, in the norm of A, with |φᵀw| ≤ C;
        h(z) = z − ŷ is what z is beyond C.
        """
        w = self.u
        if y_hat != z:
            direction = solve(self.A, phi)
            w = w - (z - y_hat) / (phi @ direction) * direction
        g = self.slope(phi, z, y_hat, y) * phi
        eta = self.curvature / (math.sqrt(self.t) if self.decreasing else 1.0)
        if self.joins(g, eta):
            self.A = self.A + eta * np.outer(g, g)
        self.u = w - solve(self.A, g)

    def joins(self, g, eta):
        """Whether this round's gradient enters A."""
        return True


class Kons(Newton):
    """ICML, Algorithm 1, and with `kors` Algorithm 3: A ← A + z η g gᵀ.

    One uniform number a round is the coin of KORS and of the sketch (K5): KORS takes φ̄ = ġ√η φ if
    u < p̃, the sketch the gradient if u < max(p̃, floor). The points of the sketch are the rounds,
    from 0, whose gradient is in A and is not zero.
    """

    def __init__(self, D, dtype, *, kors=None, floor=0.0, **more):
        super().__init__(D, dtype, **more)
        self.kors, self.floor, self.probabilities = kors, floor, []

    def joins(self, g, eta):
        joins = True
        if self.kors is not None:
            in_kors = self.kors.offer(math.sqrt(eta) * g)
            self.probabilities.append(max(self.kors.probabilities[-1], self.floor))
            joins = uniform(self.kors.seed, self.t) < self.probabilities[-1]
            self.seen["sampled only by the floor"] += joins and not in_kors
            self.seen["not sampled"] += not joins
        if joins and g.any():
            self.points.append(self.t - 1)
        return joins


class ProsNKons(Newton):
    """The poster's algorithm with no coordinates: φ̃ = Pφ, P the projection on the span of the
    dictionary, and A on the whole space.

    A is α outside the span, so A and ω in a larger span are the same matrix and vector. What
    z_{t−1} = 1 does to the round t (lines 6 to 9, and P4) is done at the end of round
    t − 1, after its step.
    carry: "none" (PROS-N-KONS, B-KONS: ω̃ = 0, Ã = αI), "both" (CON-KONS), "weights" (ω̃ stays, Ã =
    αI).
    """

    least, restarts = 1e-5, 0

    def __init__(self, D, dtype, *, kors, carry, **more):
        super().__init__(D, dtype, **more)
        self.kors, self.points, self.carry = kors, kors.points, carry

    def embedded(self, phi):
        """Rows, or a row, projected on the span."""
        return phi @ self.kors.basis.T @ self.kors.basis

    def f(self, phi):
        return super().f(self.embedded(phi))

    def step(self, phi, y, z, y_hat):
        super().step(self.embedded(phi), y, z, y_hat)
        if self.kors.offer(phi):  # in the span from the next round on
            self.restart()

    def restart(self):
        self.seen["something is lost or carried"] += self.u.any()
        if self.carry == "none":
            self.restarts += 1
            self.u = np.zeros_like(self.u)
        if self.carry != "both":
            self.A = self.alpha * np.eye(len(self.A), dtype=self.A.dtype)


class Kawv(Text):
    """Jézéquel, Gaillard, Rudi (NeurIPS 2019): ŷ_t = k_tᵀ(K_t + λI)⁻¹(y_1, …, y_{t−1}, 0), their
    closed form, by one linear system a round. Labels are learnt by least squares whatever the loss.
    """

    def __init__(self, *, alpha, **of_all):
        super().__init__(**of_all)
        self.alpha, self.rows, self.labels = alpha, [], []

    def f(self, phi):
        rows = np.array([*self.rows, phi])
        y = np.array([*self.labels, 0.0], rows.dtype)
        K = rows @ rows.T
        return K[-1] @ solve(K + self.alpha * np.eye(len(K), dtype=K.dtype), y)

    def step(self, phi, y, z, y_hat):
        self.seen["a repeated row"] += any((phi == row).all() for row in self.rows)
        self.rows.append(phi)
        self.labels.append(y)


# The share of a point's k(x, x) that is added to its diagonal entry of K_I (V4).
JITTER = 1e-12


class Pkawv(Kawv):
    """f(x_t) of the f = Σ a_i k(x_i, ·) over the points of KORS's dictionary with the least Σ_{s<t}
    (f(x_s) − y_s)² + f(x_t)² + λ‖f‖². KORS sees x_t first, and x_t is a point if it joins.

    V4 adds λρ Σ a_i² k(x_i, x_i). So a point has a feature of its own beside φ_i, √(ρk(x_i, x_i)),
    which no row has, and f is in the span of these. Every round takes a new orthonormal basis.
    """

    least = 1e-10  # well above the feature of its own

    def __init__(self, *, kors, **more):
        super().__init__(**more)
        self.kors, self.points = kors, kors.points

    def embedded(self, rows):
        """The coordinates (n, J) of rows in an orthonormal basis of the points' span."""
        points = np.array(self.kors.taken)
        if not points.size:
            return np.zeros((len(rows), 0))
        own = np.diag(np.sqrt(points.dtype.type(JITTER) * (points * points).sum(1)))
        both = np.hstack([points, own])
        exact = both.dtype == np.float64
        basis = np.linalg.qr(both.T)[0].T if exact else exact_algebra.gram_schmidt(both)
        return np.array(rows) @ basis[:, : points.shape[1]].T

    def f(self, phi):
        """The minimiser's value at φ = φ_t."""
        if not self.kors.taken:
            return 0.0
        Z = self.embedded([*self.rows, phi])
        y = np.array([*self.labels, 0.0], Z.dtype)
        return Z[-1] @ solve(Z.T @ Z + self.alpha * np.eye(Z.shape[1], dtype=Z.dtype), Z.T @ y)

    def learn(self, phi, y):
        self.seen["past rows gain a coordinate"] += self.kors.offer(phi) and bool(self.rows)
        return super().learn(phi, y)

    def predict(self, phi):
        """In the next round, with its coin."""
        ahead = copy(self)
        ahead.kors = deepcopy(self.kors)
        self.seen["a row to predict would join"] += ahead.kors.offer(phi)
        return held(ahead.f(phi), self.C)


class Norma(Text):
    """Kivinen, Smola, Williamson (2004): f ← (1 − ηλ)f − ηℓ'k(x_t, ·), with what
    `koco_stream.NORMA` and its file say differs.

    Predictions are truncated before the loss is taken; a row with k(x, x) = 0 changes nothing. The
    budget counts terms with a slope, and the oldest leaves. tube = ν > 0 with the hinge loss:
    max(0, ρ − yŷ) − νρ, by Kivinen et al.'s section on classification.
    """

    def __init__(self, *, step_size, step_schedule, regularisation, budget, tube, **of_all):
        super().__init__(**of_all)
        self.first_eta, self.decay, self.budget = step_size, regularisation, budget
        self.power = {"constant": 0.0, "sqrt": 0.5, "linear": 1.0}[step_schedule]
        self.nu, self.rho = tube if self.loss == "hinge" else 0.0, 0.0
        self.counted = 0  # rows with φ ≠ 0
        self.terms = []  # (round, φ, coefficient), the oldest first

    def f(self, phi):
        return sum((a * (point @ phi) for _, point, a in self.terms), 0.0)

    def step(self, phi, y, z, y_hat):
        if not phi.any():
            return
        self.counted += 1
        eta = self.first_eta * self.counted**-self.power
        slope = self.slope(phi, z, y_hat, y) if self.nu == 0 else self.soft_margin(y_hat, y, eta)
        self.terms = [(s, point, (1 - eta * self.decay) * a) for s, point, a in self.terms]
        if slope != 0:
            self.terms.append((self.t - 1, phi, -eta * slope))
        if len(self.terms) > self.budget:
            self.seen["the oldest leaves"] += 1
            del self.terms[0]
        self.points = [s for s, _, _ in self.terms]

    def soft_margin(self, y_hat, y, eta):
        """The slope of max(0, ρ − yŷ) − νρ in ŷ, after a step in ρ."""
        error = above(y * y_hat, self.rho) <= 0
        self.seen["soft margin: error" if error else "soft margin: no error"] += 1
        self.kink |= 0 < abs(y * y_hat - self.rho) < 1e-9
        self.rho -= eta * (1 - self.nu) if error else -eta * self.nu
        return -y if error else 0.0


class Fogd(Text):
    """Lu et al. (2016), online gradient descent on random features z: w ← w − ηℓ'z. `tube`: of a
    loss with real labels, no update within."""

    def __init__(self, D, *, loss, step_size, tube):
        super().__init__(loss=loss)
        self.tube, self.eta, self.w = tube if loss in REAL else -1.0, step_size, np.zeros(D)

    def f(self, z):
        return self.w @ z

    def step(self, phi, y, z, y_hat):
        within, slope = abs(y_hat - y) <= self.tube, self.slope(phi, z, y_hat, y)
        self.seen["within the tube"] += within
        if slope != 0 and not within:
            self.descend(slope, phi)

    def descend(self, slope, phi):
        self.w = self.w - self.eta * slope * phi


class Nogd(Fogd):
    """Lu et al. (2016), NOGD: f ← f − ηℓ'φ until there are `budget` points; from then on everything
    happens in the span of the first `rank` eigenfunctions of their kernel matrix, f projected on
    it. Eigenvalues below 1e-12 of the largest have no eigenfunction."""

    def __init__(self, D, *, budget, rank, **more):
        super().__init__(D, **more)
        self.budget, self.rank = budget, min(rank, budget)
        self.kept, self.Q, self.values = [], None, None

    def f(self, phi):
        return super().f(self.embedded(phi))

    def embedded(self, phi):
        """φ, and once there are eigenfunctions its projection on their span."""
        return phi if self.Q is None else phi @ self.Q.T @ self.Q

    def descend(self, slope, phi):
        super().descend(slope, self.embedded(phi))
        self.seen["a step on Nyström features"] += self.Q is not None
        if self.Q is None and phi.any():
            self.points.append(self.t - 1)
            self.kept.append(phi)
            if len(self.points) == self.budget:
                self.switch()

    def switch(self):
        values, V = exact_algebra.eigen_of_rows(np.array(self.kept))
        self.values = np.append(values, np.zeros(self.budget - len(values), values.dtype))
        chosen = [i for i in range(self.rank) if self.values[i] > 1e-12 * self.values[0]]
        self.Q = V[chosen]
        self.w = self.embedded(self.w)
        rank = "below" if self.rank < self.budget else "equal to"
        self.seen[f"switched, rank {rank} the budget"] += 1
        self.seen["fewer features than the rank"] += len(chosen) < self.rank

    def is_clear(self):
        """Whether rounding cannot decide which eigenfunctions are kept."""
        if self.values is None:
            return super().is_clear()
        values = np.append(self.values, 0.0) / self.values[0]
        kept = values[: self.rank]
        apart = values[self.rank - 1] - values[self.rank] > 1e-5 or kept[-1] < 1e-14
        return super().is_clear() and bool(apart and ((kept > 1e-6) | (kept < 1e-14)).all())


class DualSgd(Text):
    """Gradient descent on λ/2·‖f‖² + loss with the step 1/(λt), as `koco_stream.DualSGD` and its
    file describe it.

    f = (Σ c φ over the points + Σ c z over those that left)/(λ·rounds), c = −ℓ'(ŷ) at the truncated
    ŷ. Beyond the budget the term with the smallest |c| leaves, the new one among them, of equals
    the oldest. `both` is (φ, z), z the last n numbers.
    """

    def __init__(self, n, *, regularisation, budget, **of_all):
        super().__init__(**of_all)
        self.decay, self.budget, self.n, self.w = regularisation, budget, n, np.zeros(n)
        self.terms = []  # (round, φ and z, c), the oldest first

    def f(self, both):
        phi, z = both[: -self.n], both[-self.n :]
        total = sum((c * (point[: -self.n] @ phi) for _, point, c in self.terms), 0.0)
        return (total + self.w @ z) / (self.decay * self.t) if self.t else 0.0

    def step(self, both, y, z, y_hat):
        c = -self.slope(both, z, y_hat, y)
        if c != 0:
            self.terms.append((self.t - 1, both, c))
        if len(self.terms) > self.budget:
            sizes = [abs(c) for _, _, c in self.terms]
            leaves = sizes.index(min(sizes))
            which = "the new" if leaves == self.budget else "an old"
            self.seen[f"{which} point leaves"] += 1
            self.seen["of equals the oldest leaves"] += sizes.count(min(sizes)) > 1
            _, both, c = self.terms.pop(leaves)
            self.w = self.w + c * both[-self.n :]
        self.points = [s for s, _, _ in self.terms]


# By name -----------------------------------------------------------------------------------------


def space_of(name, given, X):
    """Φ (n, D) of rows X, in which the text of a learner with these parameters learns."""
    o = LEARNERS[name].defaults() | given
    if "n_frequencies" not in o:
        return features(o["kernel"], X, o["bandwidth"], o["degree"])
    waves = fourier_features(X, o["n_frequencies"], o["bandwidth"], o["seed"])
    if name == "FOGD":
        return waves
    return np.hstack([features("gaussian", X, o["bandwidth"], None), waves])


def text_of(name, given, D, dtype):
    """The text of a learner with these parameters, in D features of this type."""
    o = {"seed": 0, **LEARNERS[name].defaults(), **given}
    o = {key: dtype(value) if isinstance(value, float) else value for key, value in o.items()}

    def own(*names):
        return {key: o[key] for key in names}

    shared, kors = own("loss", "clip"), None
    if "beta" in o:
        most, ridge = o.get("max_dictionary") or math.inf, o.get("ridge", o.get("alpha"))
        sampling = own("epsilon", "beta", "estimate", "seed")
        kors = Kors(D, dtype, ridge=ridge, most=most, **sampling)
    if "curvature" in o:
        shared |= {"alpha": o["alpha"], "decreasing": o["curvature_schedule"] == "decreasing"}
        shared["curvature"] = o["curvature"] or usual_curvature(name, **own("loss", "clip"))
    match name:
        case "KORS":
            return kors
        case "KONS" | "SketchedKONS":
            return Kons(D, dtype, kors=kors, floor=o.get("sampling_floor", 0.0), **shared)
        case "NONSALD":
            kors = Ald(D, dtype, threshold=o["threshold"])
            return ProsNKons(D, dtype, kors=kors, carry="both", **shared)
        case "KAWV":
            return Kawv(alpha=o["alpha"], **shared)
        case "PKAWV":
            return Pkawv(kors=kors, alpha=o["alpha"], **shared)
        case "NORMA":
            steps = own("step_size", "step_schedule", "regularisation", "budget", "tube")
            return Norma(**steps, **shared)
        case "FOGD":
            return Fogd(D, **own("loss", "step_size", "tube"))
        case "NOGD":
            return Nogd(D, **own("loss", "step_size", "tube", "budget", "rank"))
        case "DualSGD":
            return DualSgd(2 * o["n_frequencies"], **shared, **own("regularisation", "budget"))
    return ProsNKons(D, dtype, kors=kors, carry=o.get("carry", "none"), **shared)


def usual_curvature(name, loss, clip):
    """What is said to be taken of the loss's σ."""
    if (name, loss) == ("NONSALD", "squared"):
        return 1 / (4 * clip**2 + 4)
    return curvatures[loss](clip) * (1 if name in ("KONS", "SketchedKONS", "NONSALD") else 0.5)
