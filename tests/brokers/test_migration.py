"""The programs of stomp.py and Proton in the guides for migration run on real brokers; those of Java are compiled."""

import subprocess
import sys
import uuid
from contextlib import contextmanager

import pytest
from brokers.provisioning import find_compiler
from jms_java.program import download

from jmsjca import ConnectionFactory, Queue
from jmsjca.config import ConnectionURL
from tests.brokers.conftest import demand
from tests.docs.migration_blocks import programs

PATIENCE = 60
EJB = {  # what the bean needs of Jakarta EE, which is not among the libraries of JMS
    "ejb/MessageDriven": "public @interface MessageDriven { ActivationConfigProperty[] activationConfig(); }",
    "ejb/ActivationConfigProperty": """
public @interface ActivationConfigProperty { String propertyName(); String propertyValue(); }""",
    "annotation/Resource": "public @interface Resource { String lookup(); }",
}


@contextmanager
def running(program):
    """Run a program in a process until the end of the block."""
    command = [sys.executable, "-u", "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def credentials(url):
    """Return host and port, user and password of a URL."""
    parsed = ConnectionURL.parse(url)
    return f"{parsed.host}:{parsed.port}", parsed.user_name, parsed.password


def test_the_program_of_stomp_py(broker_url):
    url, queue = broker_url("activemq-stomp"), f"migration.{uuid.uuid4().hex}"
    place, user, password = credentials(url)
    host, _, port = place.rpartition(":")
    [program] = programs("stomp-py")
    program = program.replace('("localhost", 61613)', repr((host, int(port)))).replace(
        "/queue/orders", f"/queue/{queue}"
    )
    program = program.replace('"user", "password"', f"{user!r}, {password!r}")
    with running(f"{program}\nimport sys\nsys.stdin.read()\n") as process:
        factory = ConnectionFactory(url)
        factory.send(queue, "a pear")
        factory.close()
        assert process.stdout.readline() == "a pear\n"


def test_the_program_of_proton(broker_url):
    url, name = broker_url("artemis-amqp"), uuid.uuid4().hex
    place, user, password = credentials(url)
    [program] = programs("proton")
    login = f"{user}:{password}@" if user else ""
    program = program.replace("amqp://localhost", f"amqp://{login}{place}")
    orders, invoices = Queue(f"orders.{name}"), Queue(f"invoices.{name}")
    program = program.replace('"orders"', repr(orders.name)).replace('"invoices"', repr(invoices.name))
    with ConnectionFactory(url).create_connection() as connection, connection.create_session() as session:
        for queue in (orders, invoices):
            connection.admin.create(queue)
        session.create_producer(orders).send("a pear")
        with running(program):
            assert session.create_consumer(invoices).receive_body(str, timeout=PATIENCE) == "invoice for a pear"


@pytest.mark.parametrize(("page", "name"), [("spring-jms", "Shop"), ("java-ee", "OrderBean")])
def test_the_program_of_java_is_compiled(page, name, tmp_path):
    [program] = programs(page, "java")
    (tmp_path / f"{name}.java").write_text(program)
    for path, text in EJB.items():
        file = tmp_path / "jakarta" / f"{path}.java"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"package jakarta.{file.parent.name};\n{text}\n")
    libraries = ":".join(f"{demand(download, jars)}/*" for jars in ("java", "spring"))
    command = [demand(find_compiler), "--release", "17", "-proc:none", "-d", "classes", "-cp", libraries]
    sources = [str(file) for file in tmp_path.rglob("*.java")]
    done = subprocess.run([*command, *sources], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "classes" / f"{name}.class").exists()
