"""`python -m ttcodegen`: the compiler, as the command `ttcodegen`."""

import sys

from ttcodegen.cli.ttcodegen import main

if __name__ == "__main__":
    sys.exit(main())
