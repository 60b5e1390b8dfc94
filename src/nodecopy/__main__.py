"""``python -m nodecopy``: the command line where its script is not on the path."""

from nodecopy.cli import main

if __name__ == "__main__":
    main()
