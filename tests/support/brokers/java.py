"""The Java that three of the brokers run on."""

import os
import shutil

from brokers.cache import BrokerMissing

# A small heap, the collector and the compiler that start fastest, and nothing but loopback over IPv4.
SMALL = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true"]


def find_java():
    """Return the ``java`` of ``JAVA_HOME``, else that of the path."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin") if home else None)  # noqa: PTH118
    if not java:
        raise BrokerMissing("there is no Java; install 17 or later, as with apt-get install openjdk-17-jre-headless")
    return java


def java(classpath, properties, main, *arguments):
    """Return the command that runs a class."""
    settings = [f"-D{name}={value}" for name, value in properties.items()]
    return [find_java(), *SMALL, *settings, "-cp", str(classpath), main, *arguments]
