"""Which version of the benchmark this is about."""

# The commit of github.com/fstandhartinger/jevbench whose protocol the harness follows. Its version
# strings disagree with each other, so nothing else names it.
PINNED_COMMIT = "bb05a335bc809e61b20c0f745d25499a82b326fc"
