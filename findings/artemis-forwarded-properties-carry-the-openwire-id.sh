#!/usr/bin/env bash
# Guess: a forwarder that copies the properties of a message to new messages makes new messages: each one gets an id of
#   its own at send(), as JMS 3.1 section 3.4.3 says.
# Seen: Artemis keeps what OpenWire needs (producer, message id, arrival) as ordinary properties that a Core consumer
#   reads and may set. Two messages that a Core forwarder sends with copies of them reach an OpenWire consumer with one
#   JMSMessageID, the one of the message that was forwarded. Without these properties each has its own id.
# Matters: a splitter or bridge that copies "all properties" makes every part look like a duplicate of the original to a
#   consumer that keys on the message id. Leave out the names that begin with __HDR_.
# Versions: Artemis 2.56.0 (broker and Core client), ActiveMQ Classic client 5.19.10, Java 17 (the clients
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
        var url = "tcp://127.0.0.1:" + port[0];
        try (var a = new org.apache.activemq.ActiveMQConnectionFactory(url).createConnection();
             var b = new org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory(url).createConnection()) {
            a.start();
            b.start();
            var openwire = a.createSession(false, 1);
            var core = b.createSession(false, 1);
            var original = openwire.createTextMessage("two lines");
            openwire.createProducer(openwire.createQueue("in")).send(original);
            var got = core.createConsumer(core.createQueue("in")).receive(10000);
            var results = openwire.createConsumer(openwire.createQueue("out"));
            for (var leaveOut : List.of("JMSX", "JMSX|__HDR_")) {
                var ids = new ArrayList<String>();
                for (var part : List.of("line 1", "line 2")) {
                    var copy = core.createTextMessage(part);
                    for (var name : Collections.list((Enumeration<String>) got.getPropertyNames()))
                        if (!name.matches("(" + leaveOut + ").*")) copy.setObjectProperty(name, got.getObjectProperty(name));
                    core.createProducer(core.createQueue("out")).send(copy);
                    ids.add(results.receive(10000).getJMSMessageID());
                }
                System.out.println("without " + leaveOut + ": " + new HashSet<>(ids).size() + " id(s), original's: "
                        + ids.contains(original.getJMSMessageID()));
            }
        }
        System.exit(0);
    }
}
J
run_java "$artemis_jars" Case.java "$core" | expect "without JMSX: 1 id(s), original's: true
without JMSX|__HDR_: 2 id(s), original's: false"
