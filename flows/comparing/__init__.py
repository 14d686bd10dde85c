"""Comparing learners over many datasets and orders: which is better, by how much, how surely."""
