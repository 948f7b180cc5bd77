"""``python -m tensorferry`` is the console command."""

import sys

from tensorferry.cli import main

if __name__ == "__main__":
    sys.exit(main())
