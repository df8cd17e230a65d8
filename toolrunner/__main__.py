"""`python -m toolrunner`: the same as the console script."""

from toolrunner.cli import main

if __name__ == "__main__":
    main()
