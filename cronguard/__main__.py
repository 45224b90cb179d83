"""`python -m cronguard` is the same as the `cronguard` command."""

from cronguard.cli.main import main

if __name__ == "__main__":
    main()
