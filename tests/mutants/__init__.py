"""Small faults put into a copy of the program, to see whether the tests see them."""
