"""The regret bounds of the papers, and the best function in hindsight, as numbers.

Sources: Calandriello, Lazaric, Valko, "Second-Order Kernel Online Convex Optimization with Adaptive
Sketching" (ICML 2017, "ICML"), and Luo, Agarwal, Cesa-Bianchi, Langford, "Efficient Second Order
Online Learning by Sketching" (NIPS 2016, "SON").

Notation: T rounds, K (n, n) the kernel matrix of the rows in order, α a ridge, η_t the coefficient
of g_t g_tᵀ in A_t, σ the losses' curvature (`koco_stream.losses`), L a bound on the slopes, C the
clip. The ICML paper assumes k(x, x) ≤ 1. All bounds are for a w with |f_w(x_t)| ≤ C on all rows.
"""
