#!/usr/bin/env bash
# Guess: a replier answers to JMSReplyTo whatever protocol the requester speaks; on Artemis a temporary queue is a queue
#   of the broker, so an OpenWire replier can send to one that a Core or AMQP requester has made.
# Seen: the OpenWire client refuses to send, with InvalidDestinationException "Cannot publish to a deleted Destination",
#   though the queue exists. The refusal is the client's own: it knows temporary queues by advisories, and Artemis sends
#   none for those of other protocols. With jms.watchTopicAdvisories=false the same answer arrives. In the other
#   direction (OpenWire asks, Core or AMQP answers) everything works.
# Matters: of two services that exchange requests, the replier cannot stay on OpenWire when the requester moves first.
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
        var url = "tcp://127.0.0.1:" + port[0];
        var clients = new LinkedHashMap<String, ConnectionFactory>();
        clients.put("OpenWire", new org.apache.activemq.ActiveMQConnectionFactory(url));
        clients.put("Core", new org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory(url));
        clients.put("AMQP", new org.apache.qpid.jms.JmsConnectionFactory("amqp://127.0.0.1:" + port[1]));
        clients.put("OpenWire without advisories", new org.apache.activemq.ActiveMQConnectionFactory(url + "?jms.watchTopicAdvisories=false"));
        for (var asks : List.of("Core", "AMQP", "OpenWire"))
            for (var answers : clients.keySet())
                try (var a = clients.get(asks).createConnection(); var b = clients.get(answers).createConnection()) {
                    a.start();
                    b.start();
                    var session = a.createSession(false, 1);
                    var other = b.createSession(false, 1);
                    var replies = session.createTemporaryQueue();
                    var question = session.createTextMessage("question");
                    question.setJMSReplyTo(replies);
                    session.createProducer(session.createQueue(asks + answers)).send(question);
                    var got = other.createConsumer(other.createQueue(asks + answers)).receive(10000);
                    String result;
                    try {
                        other.createProducer(got.getJMSReplyTo()).send(other.createTextMessage("answer"));
                        result = session.createConsumer(replies).receive(5000) == null ? "no answer" : "answered";
                    } catch (InvalidDestinationException refused) {
                        result = refused.getMessage().replaceAll(":.*", "");
                    }
                    System.out.println(asks + " asks, " + answers + " answers: " + result);
                }
        System.exit(0);
    }
}
J
run_java "$artemis_jars" Case.java "$core" "$amqp" | expect "Core asks, OpenWire answers: Cannot publish to a deleted Destination
Core asks, Core answers: answered
Core asks, AMQP answers: answered
Core asks, OpenWire without advisories answers: answered
AMQP asks, OpenWire answers: Cannot publish to a deleted Destination
AMQP asks, Core answers: answered
AMQP asks, AMQP answers: answered
AMQP asks, OpenWire without advisories answers: answered
OpenWire asks, OpenWire answers: answered
OpenWire asks, Core answers: answered
OpenWire asks, AMQP answers: answered
OpenWire asks, OpenWire without advisories answers: answered"
