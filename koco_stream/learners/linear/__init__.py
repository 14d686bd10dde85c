"""The linear learners: the sketched online Newton family and its first-order baselines."""
