"""`make bench`: this project's learners beside their peers, in one run on one core. Not collected
by pytest.
"""
