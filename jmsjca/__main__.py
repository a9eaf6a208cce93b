"""``python -m jmsjca`` is the same as ``jmsjca``."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line. Its dependencies are imported here, not by ``import jmsjca``."""
    from jmsjca.management.cli import run

    sys.exit(run())


if __name__ == "__main__":
    main()
