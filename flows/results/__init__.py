"""Results, read for people: tables of runs, conditions on them, decisions of halvings."""
