# Shared by the findings: a temporary folder, pinned packages, one broker on loopback. A script sources this file.
# Everything lies in $tmp; at the end the processes that the script started are ended by their ids and $tmp is removed.
tmp=$(mktemp -d)
pids=()
finish() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true; done
  rm -rf "$tmp"
}
trap finish EXIT
trap 'exit 1' INT TERM
cd "$tmp"
export PYTHONPATH=$tmp:$tmp/site PYTHONWARNINGS=ignore

# python_with PACKAGE==VERSION...: install these packages here, where Python finds them.
python_with() { python3 -m pip install -q --disable-pip-version-check --root-user-action ignore --no-compile --target "$tmp/site" "$@"; }

export MAVEN_OPTS="-Xmx192m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
maven() { mvn -q -B "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:$1" "${@:2}" >maven.log 2>&1 || { cat maven.log; exit 1; }; }

# archive GROUP:NAME:VERSION: unpack the binary archive of a product here.
archive() { maven unpack -Dartifact="$1:tar.gz:bin" -DoutputDirectory="$tmp"; }

# jars FOLDER GROUP:NAME:VERSION...: copy these artifacts and what they need into $tmp/FOLDER.
jars() {
  local folder=$1 artifact group name version
  shift
  {
    echo '<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version><dependencies>'
    for artifact in "$@" org.slf4j:slf4j-nop:2.0.17; do
      IFS=: read -r group name version <<<"$artifact"
      echo "<dependency><groupId>$group</groupId><artifactId>$name</artifactId><version>$version</version></dependency>"
    done
    echo '</dependencies></project>'
  } >pom.xml
  maven copy-dependencies -DoutputDirectory="$tmp/$folder"
}

# run_java JARS FILE ARGUMENT...: run a source file with the jars of a folder.
java=(java -Xmx192m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.net.preferIPv4Stack=true)
run_java() { "${java[@]}" -cp "$1/*" "${@:2}"; }

free_ports() {
  python3 -c 'import socket, sys
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*(each.getsockname()[1] for each in held))' "$1"
}

# background PROGRAM ARGUMENT...: start it, and remember its id.
background() { "$@" >>background.log 2>&1 </dev/null & pids+=($!); }

# wait_for PORT...: until each one accepts connections, for ten minutes at most.
wait_for() {
  python3 - "$@" <<'P' || { tail -20 background.log; exit 1; }
import socket, sys, time
end = time.monotonic() + 600
for port in sys.argv[1:]:
    while True:
        try:
            socket.create_connection(("127.0.0.1", int(port)), 1).close()
            break
        except OSError:
            if time.monotonic() > end:
                sys.exit(f"nothing listens on port {port}")
            time.sleep(0.2)
P
}

# expect TEXT: show what comes on standard input, and fail unless it is TEXT.
expect() {
  local seen
  seen=$(cat)
  echo "$seen"
  [ "$seen" = "$1" ] || { printf 'The behaviour has changed. Expected:\n%s\n' "$1"; exit 1; }
}

# artemis_files [ADDRESS_SETTINGS]: prepare Artemis 2.56.0 in memory, which a Java case starts from broker.xml; sets
# $amqp, $stomp, $core (Core and OpenWire) and $artemis_jars, which has the clients also.
artemis_files() {
  archive org.apache.artemis:apache-artemis:2.56.0
  artemis_jars=$tmp/apache-artemis-2.56.0/lib
  read -r amqp stomp core < <(free_ports 3)
  cat >broker.xml <<X
<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
  <persistence-enabled>false</persistence-enabled><security-enabled>false</security-enabled>
  <critical-analyzer>false</critical-analyzer><max-disk-usage>100</max-disk-usage>
  <message-expiry-scan-period>200</message-expiry-scan-period>
  <acceptors>
    <acceptor name="amqp">tcp://127.0.0.1:$amqp?protocols=AMQP</acceptor>
    <acceptor name="stomp">tcp://127.0.0.1:$stomp?protocols=STOMP</acceptor>
    <acceptor name="core">tcp://127.0.0.1:$core?protocols=CORE,OPENWIRE</acceptor>
  </acceptors>
  <address-settings><address-setting match="#">
    <auto-delete-queues>false</auto-delete-queues><auto-delete-addresses>false</auto-delete-addresses>${1:-}
  </address-setting></address-settings>
</core></configuration>
X
}

# artemis [ADDRESS_SETTINGS]: the same, started in a process of its own.
artemis() {
  artemis_files "$@"
  cat >Artemis.java <<'J'
class Artemis {
    public static void main(String[] file) throws Exception {
        new org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ().setConfigResourcePath(file[0]).start();
    }
}
J
  background "${java[@]}" -cp "$artemis_jars/*" Artemis.java "file:$tmp/broker.xml"
  wait_for "$amqp" "$stomp" "$core"
}

# activemq_jars [GROUP:NAME:VERSION...]: ActiveMQ Classic 6.3.1 and further jars in $tmp/activemq, which a Java case starts;
# sets $amqp and $openwire.
activemq_jars() {
  jars activemq org.apache.activemq:activemq-{broker,amqp}:6.3.1 "$@"
  read -r amqp openwire < <(free_ports 2)
}

# brokerj: start Qpid Broker-J 10.1.0 in memory; sets $amqp.
brokerj() {
  archive org.apache.qpid:apache-qpid-broker-j:10.1.0
  read -r amqp < <(free_ports 1)
  cat >initial.json <<X
{"name": "b", "modelVersion": "9.1", "authenticationproviders": [{"name": "a", "type": "Anonymous"}],
 "ports": [{"name": "p", "bindingAddress": "127.0.0.1", "port": $amqp, "protocols": ["AMQP_1_0"],
            "authenticationProvider": "a", "virtualhostaliases":
              [{"name": "d", "type": "defaultAlias"}, {"name": "h", "type": "hostnameAlias"}, {"name": "n", "type": "nameAlias"}]}],
 "virtualhostnodes": [{"name": "d", "type": "Memory", "defaultVirtualHostNode": "true", "virtualHostInitialConfiguration":
   "{\"type\": \"Memory\", \"nodeAutoCreationPolicies\": [{\"pattern\": \".*\", \"nodeType\": \"Queue\", \"createdOnPublish\": true, \"createdOnConsume\": true, \"attributes\": {}}]}"}]}
X
  background "${java[@]}" -cp "qpid-broker/10.1.0/lib/*" org.apache.qpid.server.Main -icp initial.json -prop "qpid.work_dir=$tmp/work"
  wait_for "$amqp"
}

# Raw STOMP 1.2 for Python: frames as (command, headers, body).
cat >frames.py <<'P'
import itertools, socket


class Stomp:
    def __init__(self, port, **headers):
        self.socket = socket.create_connection(("127.0.0.1", port), 20)
        self.file, self.numbers = self.socket.makefile("rb"), itertools.count(1)
        self.send("CONNECT", accept_version="1.2", host="/", **headers)
        self.connected = self.read()

    def send(self, command, body="", **headers):
        lines = "".join(f"{name.replace('_', '-')}:{value}\n" for name, value in headers.items())
        self.socket.sendall(f"{command}\n{lines}\n{body}\0".encode())

    def ask(self, command, body="", **headers):
        """Send a frame with a receipt; return the frame that answers."""
        self.send(command, body, receipt=next(self.numbers), **headers)
        return self.read()

    def read(self, timeout=10):
        """Return the next frame; None if none comes in time."""
        self.socket.settimeout(timeout)
        try:
            while (first := self.file.read(1)) == b"\n":
                pass
        except TimeoutError:
            self.file = self.socket.makefile("rb")
            return None
        head = first + b"".join(iter(self.file.readline, b"\n"))
        command, *lines = head.decode().splitlines()
        headers = dict(reversed([line.split(":", 1) for line in lines]))
        size = headers.get("content-length")
        body = self.file.read(int(size) + 1)[:-1] if size else b"".join(iter(lambda: self.file.read(1), b"\0"))
        return command, headers, body.decode()
P
