"""The process of Java's clients: told what to do in lines of JSON, answering each in one."""

import json
import subprocess

from brokers.java import java

from jms_java.program import classpath


class JavaError(Exception):
    """What Java threw."""


class JavaPeer:
    """Java's clients. What is made has the name that it was given, and is used by it."""

    def __init__(self):
        command = java(classpath("interop", "java"), {}, "interop.Main")
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")

    def do(self, what, name=None, **details):
        """Carry out a command and return what it gives.

        Raises:
            JavaError: It failed.
        """
        self._process.stdin.write(json.dumps({"do": what, "name": name, **details}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise JavaError(f"Java ended at {what}; its standard error says why.")
        answer = json.loads(line)
        if "error" in answer:
            raise JavaError(f"{what}: {answer['error']}")
        return answer.get("result")

    def close(self):
        """End the process: it does when nobody speaks to it any more."""
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()
