#!/usr/bin/env bash
# Guess: a MapMessage or StreamMessage that an OpenWire client sends to ActiveMQ reaches a JMS client over AMQP as the
#   same class, because the AMQP JMS mapping has an annotation (x-opt-jms-msg-type) for each class.
# Seen: the broker sends the content as an AMQP map or list but without that annotation, so Qpid JMS makes an
#   ObjectMessage of it. A StreamMessage that holds a byte array does not arrive at all; the next message does.
# Matters: a consumer that moves from OpenWire to AMQP fails with a ClassCastException on every map, and loses streams.
# Versions: ActiveMQ Classic 6.3.1 (broker and client), Qpid JMS 2.10.0, Java 17.
set -eu
. "$(dirname "$0")/lib.sh"
activemq_jars org.apache.qpid:qpid-jms-client:2.10.0
cat >Case.java <<'J'
import jakarta.jms.*;
class Case {
    static MessageConsumer in;
    static void receive(String sent) throws Exception {
        var got = in.receive(5000);
        System.out.println(sent + " -> " + (got == null ? "nothing" : got.getClass().getSimpleName()));
    }
    public static void main(String[] port) throws Exception {
        var broker = new org.apache.activemq.broker.BrokerService();
        broker.setPersistent(false);
        broker.setUseJmx(false);
        broker.addConnector("tcp://127.0.0.1:" + port[0]);
        broker.addConnector("amqp://127.0.0.1:" + port[1]);
        broker.start();
        try (var openwire = new org.apache.activemq.ActiveMQConnectionFactory("tcp://127.0.0.1:" + port[0]).createConnection();
             var amqp = new org.apache.qpid.jms.JmsConnectionFactory("amqp://127.0.0.1:" + port[1]).createConnection()) {
            amqp.start();
            var session = openwire.createSession();
            var out = session.createProducer(session.createQueue("orders"));
            var other = amqp.createSession();
            in = other.createConsumer(other.createQueue("orders"));
            out.send(session.createTextMessage("text"));
            receive("text");
            var map = session.createMapMessage();
            map.setInt("amount", 3);
            out.send(map);
            receive("map");
            var stream = session.createStreamMessage();
            stream.writeInt(3);
            out.send(stream);
            receive("stream of an int");
            stream = session.createStreamMessage();
            stream.writeBytes(new byte[] {3});
            out.send(stream);
            receive("stream of bytes");
            out.send(session.createTextMessage("text"));
            receive("text after it");
        }
        System.exit(0);
    }
}
J
run_java activemq Case.java "$openwire" "$amqp" | expect "text -> JmsTextMessage
map -> JmsObjectMessage
stream of an int -> JmsObjectMessage
stream of bytes -> nothing
text after it -> JmsTextMessage"
