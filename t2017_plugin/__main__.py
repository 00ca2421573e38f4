"""``python -m t2017_plugin`` is the command ``t2017``."""

import sys

from t2017_plugin.commands.main import main

if __name__ == "__main__":
    sys.exit(main())
