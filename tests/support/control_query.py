"""The query of the demo over a source that settles before it stages."""

import sys

from settle_first import SettleFirstSource

from jmsjca.demo.query import run_query
from jmsjca.demo.settings import DemoSettings

if __name__ == "__main__":
    run_query(DemoSettings.load(sys.argv[1]), SettleFirstSource)
