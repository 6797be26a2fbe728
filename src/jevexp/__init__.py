"""Experiment manager for typed decision models.

Compose, identify, run, prove, track, compare: Hydra composes a configuration, it becomes one
frozen object, the core runs it and leaves evidence in a fresh directory, and MLflow and the
comparisons read that directory.
"""

__version__ = "0.1.0"
