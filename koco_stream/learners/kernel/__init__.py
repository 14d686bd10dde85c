"""The kernel learners: KORS, the kernel online Newton steps, and their baselines."""
