#!/usr/bin/env bash
# Guess: an Artemis primary with a replicated backup and ZooKeeper's lock, stopped (SIGSTOP) until the backup has replaced
#   it and then continued, finds that it has lost the lock before it answers anything: a commit that waited fails, or its
#   outcome stays unknown.
# Seen: the commit is confirmed as soon as the process continues, and the new primary never has the message.
# Matters: a pause of a virtual machine or of its disk loses transactions that a client believes to be safe, in spite of
#   the lock. A monitor must kill a primary that does not answer, and must not let it continue.
# Versions: Artemis 2.56.0, the ZooKeeper and the Qpid JMS of its distribution, Java 17; AMQP 1.0.
set -eu
. "$(dirname "$0")/lib.sh"
archive org.apache.artemis:apache-artemis:2.56.0
jars more io.dropwizard.metrics:metrics-core:4.1.12.1 org.xerial.snappy:snappy-java:1.1.10.5
artemis_jars=$tmp/apache-artemis-2.56.0/lib
java+=(-Dorg.apache.logging.log4j.level=OFF) # a refused connection is no news
read -r keeper amqp1 core1 amqp2 core2 < <(free_ports 5)

printf 'tickTime=1000\ndataDir=%s/zoo\nclientPort=%s\nclientPortAddress=127.0.0.1\n' "$tmp" "$keeper" >zoo.cfg
background "${java[@]}" -Dzookeeper.admin.enableServer=false -cp "$artemis_jars/*:more/*" org.apache.zookeeper.server.ZooKeeperServerMain zoo.cfg
wait_for "$keeper"

cat >Artemis.java <<'J'
class Artemis {
    public static void main(String[] file) throws Exception {
        new org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ().setConfigResourcePath(file[0]).start();
    }
}
J
# node NAME ROLE AMQP CORE OTHER_CORE
node() {
  cat >"$1.xml" <<X
<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
  <security-enabled>false</security-enabled><critical-analyzer>false</critical-analyzer><max-disk-usage>100</max-disk-usage>
  <journal-type>NIO</journal-type><journal-min-files>2</journal-min-files><journal-file-size>1M</journal-file-size>
  <paging-directory>$tmp/$1/p</paging-directory><bindings-directory>$tmp/$1/b</bindings-directory>
  <journal-directory>$tmp/$1/j</journal-directory><large-messages-directory>$tmp/$1/l</large-messages-directory>
  <cluster-user>c</cluster-user><cluster-password>c</cluster-password>
  <connectors><connector name="self">tcp://127.0.0.1:$4</connector><connector name="other">tcp://127.0.0.1:$5</connector></connectors>
  <acceptors>
    <acceptor name="amqp">tcp://127.0.0.1:$3?protocols=AMQP</acceptor><acceptor name="core">tcp://127.0.0.1:$4?protocols=CORE</acceptor>
  </acceptors>
  <cluster-connections><cluster-connection name="cluster">
    <connector-ref>self</connector-ref><check-period>1000</check-period><connection-ttl>5000</connection-ttl>
    <static-connectors><connector-ref>other</connector-ref></static-connectors>
  </cluster-connection></cluster-connections>
  <ha-policy><replication><$2><manager>
    <class-name>org.apache.activemq.artemis.lockmanager.zookeeper.CuratorDistributedLockManager</class-name>
    <properties><property key="connect-string" value="127.0.0.1:$keeper"/><property key="session-ms" value="6000"/></properties>
  </manager></$2></replication></ha-policy>
  <address-settings><address-setting match="#"><auto-delete-queues>false</auto-delete-queues></address-setting></address-settings>
</core></configuration>
X
  background "${java[@]}" -cp "$artemis_jars/*" Artemis.java "file:$tmp/$1.xml"
}
node one primary "$amqp1" "$core1" "$core2"
primary=${pids[-1]}
wait_for "$amqp1"
node two backup "$amqp2" "$core2" "$core1"
sleep 20 # the backup copies the journal, which is empty

cat >Case.java <<'J'
import javax.jms.*;
import org.apache.qpid.jms.JmsConnectionFactory;
class Case {
    static void signal(String name, String pid) throws Exception {
        new ProcessBuilder("kill", "-" + name, pid).inheritIO().start().waitFor();
    }
    static Connection connect(String port) throws Exception {
        for (long end = System.nanoTime() + 120_000_000_000L;;) {
            try {
                var made = new JmsConnectionFactory("amqp://127.0.0.1:" + port).createConnection();
                made.start();
                return made;
            } catch (JMSException none) {
                if (System.nanoTime() > end) throw none;
                Thread.sleep(500);
            }
        }
    }
    public static void main(String[] given) throws Exception {
        var session = connect(given[0]).createSession(true, 0);
        var producer = session.createProducer(session.createQueue("orders"));
        producer.send(session.createTextMessage("first"));
        session.commit();
        producer.send(session.createTextMessage("second"));
        signal("STOP", given[2]);
        var commit = java.util.concurrent.CompletableFuture.supplyAsync(() -> {
            try {
                session.commit();
                return "confirmed";
            } catch (JMSException error) {
                return "not confirmed";
            }
        });
        var other = connect(given[1]).createSession(false, 1);
        System.out.println("the backup has replaced the stopped primary");
        signal("CONT", given[2]);
        System.out.println("the commit of the second message is " + commit.get());
        var consumer = other.createConsumer(other.createQueue("orders"));
        for (Message got; (got = consumer.receive(5000)) != null;) {
            System.out.println("the new primary has the " + ((TextMessage) got).getText());
        }
        System.exit(0);
    }
}
J
run_java "$artemis_jars" Case.java "$amqp1" "$amqp2" "$primary" | expect "the backup has replaced the stopped primary
the commit of the second message is confirmed
the new primary has the first"
