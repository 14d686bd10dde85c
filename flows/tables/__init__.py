"""Tables of results for people: runs, averages, conditions, decisions of successive halving."""
