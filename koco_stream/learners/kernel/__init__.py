"""The kernel learners: KORS, the online Newton steps on kernels, and their baselines."""
