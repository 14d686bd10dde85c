"""The bounds of the poster on PROS-N-KONS, as functions."""

import math


def proposition_3_error(*, epsilon: float, ridge: float) -> float:
    """ε/(1 − ε)·γ, the poster's bound on `projection_error` of KORS's dictionary in every round.

    It is point 1 of Proposition 3, which holds with probability 1 − δ for β ≥ `theorem_2_beta`.

    Parameters
    ----------
    epsilon : float
        ε, the accuracy of KORS's estimate. There is no bound for 1.
    ridge : float
        γ, KORS's ridge.

    Returns
    -------
    float
        The bound.

    Notes
    -----
    It follows from point (1) of the ICML paper's Theorem 2, whose estimate has the factor 1 + ε.
    The poster's estimate is ρ times smaller (docs/errata.md, P7).
    """
    return ridge * epsilon / (1.0 - epsilon) if epsilon < 1.0 else math.inf


def poster_epochs(*, d_eff: float, rounds: int, beta: float) -> float:
    """J ≤ 3β·d_eff·log(2T), the poster's bound on the restarts.

    Parameters
    ----------
    d_eff : float
        The effective dimension at KORS's ridge γ.
    rounds : int
        T.
    beta : float
        β.

    Returns
    -------
    float
        The bound on J.

    Notes
    -----
    log(2T) needs γ ≥ 1 and T ≥ 4 (docs/errata.md, P5).
    """
    return 3.0 * beta * d_eff * math.log(2.0 * rounds)


def poster_theorem_1(
    *, alpha: float, w_norm2: float, d_eff: float, rounds: int, epochs: float, ridge: float
) -> float:
    """J(α‖w‖² + d_eff log(T/α)) + γT/α, the expression inside the O(·) of the poster's Theorem 1.

    Its constant is unknown, so only ratios of it are meaningful.

    Parameters
    ----------
    alpha, w_norm2 : float
        α and ‖w‖².
    d_eff : float
        The effective dimension at α.
    rounds : int
        T.
    epochs : float
        J.
    ridge : float
        γ, KORS's ridge.

    Returns
    -------
    float
        The expression.

    Notes
    -----
    The print leaves a bracket open. The last term is outside J, since the epochs' rounds add up to
    T (docs/errata.md, P6).
    """
    return epochs * (alpha * w_norm2 + d_eff * math.log(rounds / alpha)) + ridge * rounds / alpha


def poster_theorem_2(
    *,
    alpha: float,
    w_norm2: float,
    d_eff: float,
    rounds: int,
    epochs: float,
    largest_epoch_loss: float,
) -> float:
    """J(d_eff log T + α max_j L*_j + α‖w‖²), the expression inside the O(·) of the poster's Theorem
    2.

    It is for the squared loss. Its constant is unknown, so only ratios of it are meaningful.

    Parameters
    ----------
    alpha, w_norm2 : float
        α and ‖w‖².
    d_eff : float
        The effective dimension at α.
    rounds : int
        T.
    epochs : float
        J.
    largest_epoch_loss : float
        max_j L*_j, where L*_j is the minimum of Σ (f(x_t) − y_t)² + α‖f‖² over the rows of epoch j.

    Returns
    -------
    float
        The expression.
    """
    return epochs * (d_eff * math.log(rounds) + alpha * largest_epoch_loss + alpha * w_norm2)
