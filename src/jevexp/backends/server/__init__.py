"""A llama.cpp server that is started here, in a process of its own, and ended with us."""
