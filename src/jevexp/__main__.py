"""`python -m jevexp`."""

import sys

from jevexp.cli.main import main

sys.exit(main())
