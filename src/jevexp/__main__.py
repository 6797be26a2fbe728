"""`python -m jevexp`."""

import sys

from jevexp.untrusted.python import leave_out_current_folder

leave_out_current_folder()

from jevexp.cli.main import main  # noqa: E402  must not find a module of the current folder

sys.exit(main())
