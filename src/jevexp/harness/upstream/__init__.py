"""The pinned harness itself, from its own package, around our backends.

Only the very commit is used: installed from git, or from the objects of the checkout that
`harness.path` names. The package index has another project under the same name, which is told
apart and refused.
"""

from jevexp.harness.upstream.harness import Upstream, make_upstream

__all__ = ["Upstream", "make_upstream"]
