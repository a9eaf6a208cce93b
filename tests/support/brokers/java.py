"""The Java that three of the brokers and the clients of JMS run on."""

import os
import shutil

from brokers.cache import BrokerMissing

# A small heap, the collector and the compiler that start fastest, and nothing but loopback over IPv4.
SMALL = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true"]


def find_java():
    """Return the ``java`` of ``JAVA_HOME``, else that of the path."""
    return _find("java", "there is no Java; install 17 or later, as with apt-get install openjdk-17-jre-headless")


def find_compiler():
    """Return the ``javac`` of ``JAVA_HOME``, else that of the path."""
    return _find("javac", "there is no javac; install 17 or later, as with apt-get install openjdk-17-jdk-headless")


def _find(command, advice):
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(command, path=os.path.join(home, "bin") if home else None)  # noqa: PTH118
    if not found:
        raise BrokerMissing(advice)
    return found


def java(classpath, properties, main, *arguments):
    """Return the command that runs a class."""
    settings = [f"-D{name}={value}" for name, value in properties.items()]
    return [find_java(), *SMALL, *settings, "-cp", str(classpath), main, *arguments]
