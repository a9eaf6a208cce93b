"""Asks for known vulnerabilities of the packages of an environment: ``python -m tests.support.audit FOLDER``.

``audit-ignore.txt`` has the exceptions, one a line: the id, the day until which it is ignored, and the reason. A
package that the service does not know is a failure too, because nothing was said about it. The exit status is 1 for
vulnerabilities and unknown packages, and 2 if no service answered, for example without a network.
"""

import json
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NamedTuple

EXCEPTIONS = Path(__file__).parents[2] / "audit-ignore.txt"
LONGEST = 92  # days that an exception may still last
UNANSWERED = """\
No service of vulnerabilities answered, so nothing is known about {number} packages: {said}
Run `make audit` on a network that reaches https://pypi.org, or https://api.osv.dev with
PIP_AUDIT_VULNERABILITY_SERVICE=osv."""


class Exemption(NamedTuple):
    """A vulnerability that is ignored."""

    id: str
    until: date
    reason: str


def exemptions(text, today):
    """Return the exceptions of a text.

    Raises:
        ValueError: A line is wrong, has no reason, is over, or lasts too long.
    """
    found = []
    for line in (each.strip() for each in text.splitlines()):
        if not line or line.startswith("#"):
            continue
        name, until, *reason = line.split(maxsplit=2)
        each = Exemption(name, date.fromisoformat(until), " ".join(reason))
        if not each.reason:
            raise ValueError(f"{name}: give the reason.")
        if not 0 <= (each.until - today).days <= LONGEST:
            raise ValueError(f"{name}: {until} is over, or more than {LONGEST} days away. Look at it again.")
        found.append(each)
    return found


def complaints(report):
    """Return what a report of pip-audit has against the packages, in lines."""
    for package in audited(report):
        if "skip_reason" in package:
            yield f"{package['name']}: {package['skip_reason']}"
        for each in package.get("vulns", ()):
            fixed = ", ".join(each["fix_versions"]) or "nothing"
            yield f"{package['name']} {package['version']}: {each['id']}, fixed in {fixed}"


def audited(report):
    """Return the packages of a report, without our own, which is on no index."""
    return [package for package in report["dependencies"] if package["name"] != "jmsjca"]


def verdict(output, errors):
    """Return the exit status and the text for what pip-audit has written."""
    report = json.loads(output) if output.strip() else {"dependencies": []}
    if all("skip_reason" in package for package in audited(report)):
        said = next((each["skip_reason"] for each in audited(report)), errors.strip().rpartition("\n")[2])
        return 2, UNANSWERED.format(number=len(audited(report)) or "all", said=said)
    found = list(complaints(report))
    return int(bool(found)), "\n".join(found) or "no known vulnerabilities"


def main(environment):
    """Audit an environment; return the exit status."""
    ignored = exemptions(EXCEPTIONS.read_text(), datetime.now(UTC).date())
    [packages] = Path(environment).glob("lib/python3*/site-packages")
    command = [sys.executable, "-m", "pip_audit", "--format", "json", "--path", str(packages)]
    for each in ignored:
        command += ["--ignore-vuln", each.id]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    status, text = verdict(done.stdout, done.stderr)
    print(text)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
