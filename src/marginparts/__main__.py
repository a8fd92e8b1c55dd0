"""The command as ``python -m marginparts``."""

from marginparts.cli import main

if __name__ == "__main__":
    main()
