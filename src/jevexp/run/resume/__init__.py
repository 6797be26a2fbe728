"""Going on with a run that ended early: what can be taken over, and whether it may."""

from jevexp.run.resume.adopt import adopt
from jevexp.run.resume.earlier import Earlier, charged_in, read_earlier

__all__ = ["Earlier", "adopt", "charged_in", "read_earlier"]
