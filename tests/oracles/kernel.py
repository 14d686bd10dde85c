"""Slow, literal references for the kernel learners. They share nothing with the code they check.

Second-order learners are written in an explicit feature space (or one got from the eigenvectors of
the kernel matrix), with dense solves; nothing is kept from round to round but what the papers'
pseudocode keeps. In all of them `curvature` is the coefficient of g gᵀ in A (the poster's σ/2), a
number or one for each round, and `slope(ŷ, y)` is ℓ'. Every row is a round, one without features
too: its kernel values are what they are. h(z) = sign(z)·max(|z| − C, 0), and a row is projected
only where h ≠ 0, so a row whose features are all zero (prediction 0) needs no division by φᵀA⁻¹φ =
0.
"""

import numpy as np


def squared_slope(y_hat, y):
    return 2.0 * (y_hat - y)


def gram(kernel, X, Z, bandwidth=None):
    """Kernel values of all rows of X with all rows of Z."""
    row = {
        "linear": lambda x: Z @ x,
        "quadratic": lambda x: (Z @ x + 1.0) ** 2,
        "gaussian": lambda x: np.exp(-np.sum((Z - x) ** 2, axis=1) / (2.0 * bandwidth**2)),
    }[kernel]
    return np.array([row(x) for x in X]).reshape(len(X), len(Z))


def feature_map(kernel, X, bandwidth=None):
    """One row of features for each row of X, with the kernel as their inner product.

    linear: x itself. quadratic, (xᵀx' + 1)²: the monomials 1, √2 x_i, x_i², √2 x_i x_j. gaussian:
    the symmetric square root of the kernel matrix of all rows (exact for these rows, which is all a
    stream needs).
    """
    if kernel == "linear":
        return X.copy()
    if kernel == "quadratic":
        n, d = X.shape
        pairs = [np.sqrt(2.0) * X[:, i] * X[:, j] for i in range(d) for j in range(i)]
        return np.column_stack([np.ones(n), np.sqrt(2.0) * X, X**2, *pairs])
    values, vectors = np.linalg.eigh(gram(kernel, X, X, bandwidth))
    return vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T


def beyond(z, clip):
    """h(z): how much z is above C or below −C."""
    return np.sign(z) * max(abs(z) - clip, 0.0)


def project(u, phi, A, clip):
    """Eq. 1 of the ICML paper: the point of |φᵀw| ≤ C nearest to u in the norm of A."""
    if beyond(phi @ u, clip) == 0.0:
        return u
    direction = np.linalg.solve(A, phi)
    return u - beyond(phi @ u, clip) / (phi @ direction) * direction


def kons_primal(Phi, y, *, alpha, curvature, clip, slope=squared_slope, coins=None):
    """Algorithms 1 (no coins) and 3 as the Newton step they stand for, in feature space:
    (predictions, slopes).

    w_t = Π(u_t), A_t = A_{t−1} + z_t η_t g gᵀ, u_{t+1} = w_t − A_t⁻¹ g. Order of the round: the new
    A (with this round's gradient, if the coin says so) is already used in this round's step, as Eq.
    1 has it.
    """
    n, d = Phi.shape
    eta, coins = np.broadcast_to(curvature, n), np.ones(n) if coins is None else coins
    A, u, predictions, slopes = alpha * np.eye(d), np.zeros(d), [], []
    for t in range(n):
        w = project(u, Phi[t], A, clip)
        predictions.append(Phi[t] @ w)
        slopes.append(slope(predictions[t], y[t]))
        g = slopes[t] * Phi[t]
        A = A + coins[t] * eta[t] * np.outer(g, g)
        u = w - np.linalg.solve(A, g)
    return np.array(predictions), np.array(slopes)


def _lemma_4(K, y, alpha, curvature, clip, slope, coins, coin_in_the_coefficient):
    n = len(K)
    eta, coins = np.broadcast_to(curvature, n), np.ones(n) if coins is None else coins
    D, b, predictions = np.zeros(n), np.zeros(n), []
    for t in range(n):
        past, R = np.arange(t), np.flatnonzero(coins[:t])
        K_bar = D[past, None] * K[:t, :t] * D[past]
        E = K_bar[np.ix_(R, R)] + alpha * np.eye(len(R))
        k = K[:t, t]
        y_breve = (
            k @ (D[:t] * b[:t]) - (k * D[:t])[R] @ np.linalg.solve(E, K_bar[R] @ b[:t])
        ) / alpha
        predictions.append(y_breve - beyond(y_breve, clip))
        g = slope(predictions[t], y[t])
        D[t] = g * np.sqrt(eta[t])
        k_bar = D[t] * (k * D[:t])[R]
        rest = D[t] ** 2 * K[t, t] - k_bar @ np.linalg.solve(E, k_bar)
        fit = coins[t] * predictions[t] if coin_in_the_coefficient else predictions[t]
        b[t] = D[t] * (fit - alpha * beyond(y_breve, clip) / rest) - 1.0 / np.sqrt(eta[t])
    return np.array(predictions)


def lemma_4_literal(K, y, *, alpha, curvature, clip, slope=squared_slope, coins=None):
    """Predictions by Lemma 4 as printed, but for K1 (the last term is −1/√η, and k_{i,i} is the
    rescaled k̄_{i,i}).

    The coin is not in the coefficient: with coins that are not all 1 these are not Algorithm 3's
    predictions (K3); with coins all 1 this is Lemma 2. Slopes must not be zero: the lemma divides
    by ġ² (K2 does not).
    """
    return _lemma_4(K, y, alpha, curvature, clip, slope, coins, False)


def lemma_4_with_coin(K, y, *, alpha, curvature, clip, slope=squared_slope, coins=None):
    """Lemma 4 with K1 and K3: z_t ŷ_t in place of ŷ_t in the coefficient."""
    return _lemma_4(K, y, alpha, curvature, clip, slope, coins, True)


def kors_estimates(Phi_bar, *, ridge, epsilon, beta, estimate, included, probabilities=None):
    """KORS's (τ̃, p̃) of every round, from scratch in feature space, given which rows its coins
    included.

    A = Σ_{i in I} φ_iφ_iᵀ/p̃_i + φ_tφ_tᵀ + ridge·I over the dictionary before round t and the row
    itself with weight 1; τ̃ = factor·φ_tᵀA⁻¹φ_t with factor 1 + ε ("icml", Eq. 4) or (1 + ε)/ρ = 1
    − ε ("poster"); p̃ = min(βτ̃, 1). The weights are 1/`probabilities` where given (a learner's
    record), else this function's own p̃. In Sketched-KONS the rows are the rescaled φ̄_t = ġ_t√η_t
    φ_t (K5); in PROS-N-KONS they are φ_t. Choices: a row with φ = 0 has τ̃ = 0 and is never
    included; an estimate is computed whether or not the dictionary is full.
    """
    n, d = Phi_bar.shape
    factor = {"icml": 1.0 + epsilon, "poster": 1.0 - epsilon}[estimate]
    tau, p = np.zeros(n), np.zeros(n)
    for t in range(n):
        A = ridge * np.eye(d) + np.outer(Phi_bar[t], Phi_bar[t])
        for i in np.flatnonzero(included[:t]):
            A += np.outer(Phi_bar[i], Phi_bar[i]) / (
                p[i] if probabilities is None else probabilities[i]
            )
        tau[t] = factor * (Phi_bar[t] @ np.linalg.solve(A, Phi_bar[t]))
        p[t] = min(beta * tau[t], 1.0)
    return tau, p


def sketched_kons(
    Phi,
    y,
    *,
    alpha,
    curvature,
    clip,
    slope=squared_slope,
    beta,
    epsilon,
    estimate="icml",
    sampling_floor,
    uniforms,
    feed_back=None,
):
    """Algorithm 3 whole, with K5's one uniform u_t a round: (predictions, p̃ of KORS, KORS's z_t,
    the sketch's z_t).

    After the label φ̄_t = ġ_t√η_t φ_t is known; KORS (Eq. 4, its ridge is α) gives τ̃ with its own
    weighted dictionary, includes if u_t < min(βτ̃, 1), and the sketch takes the round's gradient if
    u_t < max(min(βτ̃, 1), floor). Both are in force from this round's step on. `feed_back`, (KORS's
    z, the sketch's z) of a record, replaces the comparisons.
    """
    n, d = Phi.shape
    eta, factor = (
        np.broadcast_to(curvature, n),
        {"icml": 1.0 + epsilon, "poster": 1.0 - epsilon}[estimate],
    )
    A, weighted, u = alpha * np.eye(d), alpha * np.eye(d), np.zeros(d)
    predictions, p, in_kors, in_sketch = [], [], [], []
    for t in range(n):
        w = project(u, Phi[t], A, clip)
        predictions.append(Phi[t] @ w)
        g = slope(predictions[t], y[t]) * Phi[t]
        outer = eta[t] * np.outer(g, g)
        p.append(min(beta * factor * eta[t] * (g @ np.linalg.solve(weighted + outer, g)), 1.0))
        in_kors.append(uniforms[t] < p[t] if feed_back is None else feed_back[0][t])
        in_sketch.append(
            uniforms[t] < max(p[t], sampling_floor) if feed_back is None else feed_back[1][t]
        )
        if in_kors[t]:
            weighted = weighted + outer / p[t]
        if in_sketch[t]:
            A = A + outer
        u = w - np.linalg.solve(A, g)
    return np.array(predictions), np.array(p), np.array(in_kors), np.array(in_sketch)


def independent(K, tolerance=1e-12):
    """Which points of a dictionary, taken in order, add a coordinate: those with k_tt − kᵀK⁻¹k ≥
    1e-12·k_tt (P3).

    No threshold on the eigenvalues of K says the same: pivots 1, 1e-6 and 1e-11 are all kept, yet
    the least eigenvalue of that matrix can be below 1e-12 of the greatest. So the points are chosen
    by this rule, and all eigenvalues of the matrix of the chosen ones are kept. (For exact
    repetitions any threshold above rounding agrees: tested.)
    """
    kept: list[int] = []
    for i in range(len(K)):
        k = K[kept, i]
        if (
            K[i, i] > 0.0
            and K[i, i] - k @ np.linalg.solve(K[np.ix_(kept, kept)], k) >= tolerance * K[i, i]
        ):
            kept.append(i)
    return kept


def eigen_map(K):
    """The poster's Σ⁻¹Uᵀ for K = UΣΣᵀUᵀ: orthonormal coordinates from kernel values with the
    points.
    """
    values, U = np.linalg.eigh(K)
    return (U / np.sqrt(values)).T


def pros_n_kons(
    X,
    y,
    *,
    kernel,
    bandwidth=None,
    alpha,
    curvature,
    clip,
    slope=squared_slope,
    included,
    variant="pros",
    max_dictionary=None,
):
    """The poster's PROS-N-KONS ("pros"), CON-KONS ("con") and B-KONS ("b"), given KORS's z_t:
    (predictions, dictionary).

    What the pseudocode leaves open, and what is done here:

    - z_0 is not defined: 0. Before the first acceptance the space has no dimension: prediction 0,
      nothing is learnt.
    - Line 8's I_j is the dictionary of the points accepted up to t − 1: what round t itself accepts
      enters in t + 1 (P3), so the last row of a stream never enters. Only points count, not their
      weights (P2).
    - φ̃_t is written in the else branch only, but lines 15 to 17 need it in every round: a round
      that restarts embeds its row in the new space too. There ω̃_t = 0, so it predicts 0 without a
      projection; it still observes g̃_t = ℓ'(0)φ̃_t, and Ã_t = αI + curvature·g̃_t g̃_tᵀ; the next
      round, unless it restarts again, begins with the step −Ã_t⁻¹g̃_t. The gradient of the last
      round before a restart is in no step: line 12 is not run.
    - K_j may be singular (a point accepted twice, a kernel of small rank): `independent`. Such a
      point restarts the learner all the same, since the dictionary changed.
    - B-KONS: KORS stops as soon as J_max points have been accepted, counted as acceptances (a
      repeated point counts, though it adds no coordinate). The J_max-th still enters, and restarts
      the learner, in the next round; after it z_t = 0. `included` may go on being True there: it is
      ignored. With variant "pros" or "con" a `max_dictionary` acts the same.

    CON-KONS, "carry the solution across", derived. Let Q = Φ_I U Σ⁻¹ have as columns the old
    orthonormal basis of span(I) in H, and Q' the new one, span(Q) within span(Q'). ω̃ stands for
    the function Qω̃, whose coordinates in the new basis are Q'ᵀQω̃ = Mω̃ with M = Q'ᵀQ = Σ'⁻¹U'ᵀ
    K_{I',I} U Σ⁻¹ and MᵀM = I. Ã − αI = Σ curvature g̃g̃ᵀ is a quadratic form on functions, v ↦ Σ
    curvature ⟨Qg̃, v⟩²; in the new coordinates each g̃ is Mg̃, hence Ã' = αI + M(Ã − αI)Mᵀ: a new
    direction starts with α, as any direction not yet seen. (Past gradients are not embedded anew:
    they are not kept.) The step still due is carried as well: Ã'M = MÃ, so Ã'⁻¹Mg̃ = M Ã⁻¹g̃ and it
    does not matter whether the step is taken before or after the map. The round of the change is
    then an ordinary one (step, projection in the new space, prediction); it does not predict 0. A
    point that adds no coordinate changes nothing.
    """
    n = len(X)
    eta = np.broadcast_to(curvature, n)
    dictionary: list[int] = []
    points, embed = [], np.zeros((0, 0))
    omega, g, A = np.zeros(0), np.zeros(0), np.zeros((0, 0))
    predictions, z_before = [], False
    for t in range(n):
        if z_before:
            K = gram(kernel, X[dictionary], X[dictionary], bandwidth)
            chosen = independent(K)
            old_points, old_embed = points, embed
            points = [dictionary[i] for i in chosen]
            embed = eigen_map(K[np.ix_(chosen, chosen)])
            M = embed @ gram(kernel, X[points], X[old_points], bandwidth) @ old_embed.T
        phi = embed @ gram(kernel, X[points], X[[t]], bandwidth)[:, 0]
        if z_before and variant != "con":
            A, omega = alpha * np.eye(len(points)), np.zeros(len(points))
        else:
            if z_before:
                A = alpha * np.eye(len(points)) + M @ (A - alpha * np.eye(len(old_points))) @ M.T
                omega, g = M @ omega, M @ g
            omega = project(omega - np.linalg.solve(A, g), phi, A, clip)
        predictions.append(phi @ omega)
        g = slope(predictions[t], y[t]) * phi
        A = A + eta[t] * np.outer(g, g)
        z_before = bool(included[t]) and (
            max_dictionary is None or len(dictionary) < max_dictionary
        )
        if z_before:
            dictionary.append(t)
    return np.array(predictions), dictionary


def con_kons_weights(Phi, y, *, alpha, curvature, clip, slope=squared_slope, included):
    """CON-KONS that carries ω̃ across and begins again from Ã = αI when the dictionary grows:
    (predictions, f at the end, points).

    Written for functions in feature space, of which the rows of `Phi` are the features, without
    coordinates of the span: the embedding of x is its projection P φ(x), by least squares on the
    points' features; the learner holds a function f in the span and A = αI + Σ curvature g gᵀ on
    the whole space. To carry f into a larger span is then to leave it as it is. Off the span A is
    αI and g is 0, so no step leaves the span. A row that KORS includes is a point from the next
    round on; the round's own step is made with the A that holds its gradient, before A begins
    again. A repeated point makes A begin again too, as it restarts PROS-N-KONS.
    """
    d = Phi.shape[1]
    A, f, points, predictions = alpha * np.eye(d), np.zeros(d), np.zeros((0, d)), []
    for t in range(len(Phi)):
        phi = (
            points.T @ np.linalg.lstsq(points.T, Phi[t], rcond=1e-5)[0]
            if len(points)
            else np.zeros(d)
        )
        f = project(f, phi, A, clip)
        predictions.append(phi @ f)
        g = slope(predictions[t], y[t]) * phi
        A = A + curvature * np.outer(g, g)
        f = f - np.linalg.solve(A, g)
        if included[t]:
            points, A = np.vstack([points, Phi[t]]), alpha * np.eye(d)
    return np.array(predictions), f, len(points)


def norma(
    K,
    y,
    *,
    step_size,
    regularisation,
    loss="squared",
    nu=0.5,
    margin=0.0,
    budget=None,
    window="points",
    decreasing=False,
    slope=None,
):
    """NORMA (Kivinen, Smola, Williamson 2004): f ← (1 − ηλ)f − ηℓ'(f(x_t), y_t)k(x_t, ·):
    (predictions, margins).

    `loss`: "squared" is the paper's ½(ŷ − y)², with the slope ŷ − y (no factor 2; another loss
    comes as `slope`). "soft_margin", max(0, ρ − yŷ) − νρ: the slope is −y where yŷ ≤ ρ (equality is
    a margin error, as in the paper) and ρ moves by −η(1 − ν) there, else by ην. "tube", max(0, |y −
    ŷ| − ε) + νε: the slope is sign(ŷ − y) where |y − ŷ| > ε and ε moves by η(1 − ν) there, else by
    −ην. `margin` is the first ρ or ε. No offset b.

    Truncation: the paper keeps the terms of the last τ rounds, those with coefficient 0 too
    (window="rounds"); the budgets of later papers count points, that is terms whose slope was not
    zero, and drop the oldest ("points"). In both the new term is added first, then the oldest
    dropped; the decay touches the old terms only, before the new one. ρ and ε may become negative:
    the paper does not forbid it. `decreasing`: η_t = η/√t.
    """
    alpha, predictions, margins = [], [], []
    for t in range(len(K)):
        eta = step_size / np.sqrt(t + 1) if decreasing else step_size
        y_hat = sum(a * K[i, t] for i, a in alpha)
        predictions.append(y_hat)
        margins.append(margin)
        if slope is not None:
            g = slope(y_hat, y[t])
        elif loss == "squared":
            g = y_hat - y[t]
        elif loss == "soft_margin":
            wrong = y[t] * y_hat <= margin
            g, margin = (-y[t] if wrong else 0.0), margin + eta * (nu - wrong)
        else:
            wrong = abs(y[t] - y_hat) > margin
            g, margin = (np.sign(y_hat - y[t]) if wrong else 0.0), margin + eta * (wrong - nu)
        alpha = [(i, (1.0 - eta * regularisation) * a) for i, a in alpha]
        if g != 0.0 or window == "rounds":
            alpha.append((t, -eta * g))
        if budget is not None:
            alpha = alpha[-budget:]
    return np.array(predictions, dtype=float), np.array(margins, dtype=float)


def insensitive(slope, dead_zone):
    """Lu et al.'s rule for regression: no update where |error| ≤ `dead_zone`."""
    return lambda y_hat, y: slope(y_hat, y) if abs(y_hat - y) > dead_zone else 0.0


def budgeted_ogd(K, y, *, step_size, budget, regularisation=0.0, slope=squared_slope, removed=None):
    """Kernel gradient descent that holds `budget` points. One more: the oldest goes and the others
    stay as they are.

    With `removed` (Zhao et al. 2012, uniform sampling): in round t the removed[t]-th of the held
    points goes, and the others are multiplied by B/(B − 1) so that f is right on average. No bound
    on the coefficients. A round whose slope is zero adds no point, but decays the others. The decay
    1 − ηλ is applied before a point goes.
    """
    alpha, predictions = [], []
    for t in range(len(K)):
        y_hat = sum(a * K[i, t] for i, a in alpha)
        predictions.append(y_hat)
        g = slope(y_hat, y[t])
        alpha = [(i, (1.0 - step_size * regularisation) * a) for i, a in alpha]
        if g == 0.0:
            continue
        if len(alpha) == budget:
            del alpha[0 if removed is None else removed[t]]
            if removed is not None:
                alpha = [(i, budget / (budget - 1.0) * a) for i, a in alpha]
        alpha.append((t, -step_size * g))
    return np.array(predictions, dtype=float)


def fogd(X, y, *, frequencies, step_size, slope=squared_slope, scaled=True):
    """FOGD (Lu et al. 2016): gradient descent on z(x) = (cos Wx, sin Wx), one frequency a row of W,
    drawn N(0, I/bandwidth²).

    `scaled` divides z by √D, so that zᵀz' estimates the kernel; the authors' programs do not, so
    their step η is ηD here, and for regression they step by η·(y − ŷ), without the loss's 2. Their
    features are all cosines then all sines, the paper's alternate: the same predictions.
    """
    w, predictions = np.zeros(2 * len(frequencies)), []
    for x, label in zip(X, y, strict=True):
        z = np.concatenate([np.cos(frequencies @ x), np.sin(frequencies @ x)]) / (
            np.sqrt(len(frequencies)) if scaled else 1.0
        )
        predictions.append(w @ z)
        w = w - step_size * slope(w @ z, label) * z
    return np.array(predictions)


def nogd(K, y, *, step_size, budget, rank, slope=squared_slope, switch="when_full"):
    """NOGD (Lu et al. 2016): kernel gradient descent until B points are held, then on z =
    D_k^{−1/2}V_kᵀk.

    V_k, D_k: the `rank` greatest eigenvalues of the points' kernel matrix; w = αM⁺ with M =
    D^{−1/2}Vᵀ, that is w = αV D^{1/2}, which loses the part of α outside those eigenvectors. The
    paper changes over as soon as B points are held (switch="when_full"); the authors' programs at
    the next round with a loss, whose prediction is still αᵀk and whose step is made in the new
    space ("next_update"). A round whose slope is zero adds no point. No decay, no projection.
    """
    points, alpha, w, M, predictions = [], [], None, None, []
    for t in range(len(K)):
        k = K[points, t]
        y_hat = np.array(alpha) @ k if w is None else w @ (M @ k)
        predictions.append(y_hat)
        g = slope(y_hat, y[t])
        if w is None and g != 0.0 and len(points) < budget:
            points.append(t)
            alpha.append(-step_size * g)
            g = 0.0
        if w is None and len(points) == budget and (switch == "when_full" or g != 0.0):
            values, V = np.linalg.eigh(K[np.ix_(points, points)])
            M = V[:, -rank:].T / np.sqrt(values[-rank:])[:, None]
            w = np.array(alpha) @ np.linalg.pinv(M)
        if w is not None and g != 0.0:
            w = w - step_size * g * (M @ k)
    return np.array(predictions, dtype=float)
