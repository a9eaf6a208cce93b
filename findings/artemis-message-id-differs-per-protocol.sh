#!/usr/bin/env bash
# Guess: a message has one JMSMessageID. Whatever protocol the consumer speaks, it reads the id that the producer saw
#   after send(), so a reply can carry it as correlation id.
# Seen: of the six crossings of OpenWire, Core and AMQP on Artemis only Core to AMQP keeps the id. In the other five the
#   consumer reads an id that the producer has never seen; the original one is at best in a property
#   (NATIVE_MESSAGE_ID from AMQP, __HDR_MESSAGE_ID from OpenWire).
# Matters: request and reply by "correlation id = message id", audit logs and duplicate filters break as soon as the two
#   ends speak different protocols. Set a correlation id at the producer, and answer with that.
# Versions: Artemis 2.56.0 (broker and Core client), ActiveMQ Classic client 5.19.10, Qpid JMS 1.17.0, Java 17 (the clients
#   are those of the Artemis distribution).
set -eu
. "$(dirname "$0")/lib.sh"
artemis_files
cat >Case.java <<'J'
import javax.jms.*;
import java.util.*;
class Case {
    public static void main(String[] port) throws Exception {
        new org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ().setConfigResourcePath("file:broker.xml").start();
        var clients = new LinkedHashMap<String, ConnectionFactory>();
        clients.put("OpenWire", new org.apache.activemq.ActiveMQConnectionFactory("tcp://127.0.0.1:" + port[0]));
        clients.put("Core", new org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory("tcp://127.0.0.1:" + port[0]));
        clients.put("AMQP", new org.apache.qpid.jms.JmsConnectionFactory("amqp://127.0.0.1:" + port[1]));
        for (var from : clients.keySet())
            for (var to : clients.keySet())
                try (var a = clients.get(from).createConnection(); var b = clients.get(to).createConnection()) {
                    b.start();
                    var session = a.createSession(false, 1);
                    var other = b.createSession(false, 1);
                    var queue = from + "." + to;
                    var sent = session.createTextMessage("question");
                    session.createProducer(session.createQueue(queue)).send(sent);
                    var got = other.createConsumer(other.createQueue(queue)).receive(10000);
                    var same = got.getJMSMessageID().equals(sent.getJMSMessageID());
                    System.out.println(from + " -> " + to + ": " + (same ? "same id" : "another id"));
                }
        System.exit(0);
    }
}
J
run_java "$artemis_jars" Case.java "$core" "$amqp" | expect "OpenWire -> OpenWire: same id
OpenWire -> Core: another id
OpenWire -> AMQP: another id
Core -> OpenWire: another id
Core -> Core: same id
Core -> AMQP: same id
AMQP -> OpenWire: another id
AMQP -> Core: another id
AMQP -> AMQP: same id"
