"""A person's own model in this process, made by the callable that the configuration names.

>>> # my_model.py, in the current directory; backend=python backend.factory=my_model:make
>>> def make(top=0.9):
...     def decide(request):
...         first, *others = request.question.options
...         return {first: top} | {label: (1 - top) / len(others) for label in others}
...     return decide
"""

from jevexp.backends.python_factory.load import make_python

__all__ = ["make_python"]
