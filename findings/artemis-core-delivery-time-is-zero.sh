#!/usr/bin/env bash
# Guess: getJMSDeliveryTime() of a message that was sent without a delay is the time of the send, as JMS 3.1 section
#   3.4.13 says (timestamp plus delivery delay, and the delay is 0).
# Seen: Qpid JMS returns the timestamp. The Core client of Artemis returns 0, that is 1970; with a delay both return
#   timestamp plus delay.
# Matters: "age = now - JMSDeliveryTime", the natural measure of lag with delayed messages, is off by half a century for
#   every message that was not delayed, and only after a change of client.
# Versions: Artemis 2.56.0 (broker and Core client), Qpid JMS 1.17.0, Java 17 (the clients
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
        clients.put("Core", new org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory(url));
        clients.put("AMQP", new org.apache.qpid.jms.JmsConnectionFactory("amqp://127.0.0.1:" + port[1]));
        for (var name : clients.keySet())
            for (var delay : List.of(0, 1000))
                try (var connection = clients.get(name).createConnection()) {
                    connection.start();
                    var session = connection.createSession(false, 1);
                    var producer = session.createProducer(session.createQueue(name));
                    if (delay > 0) producer.setDeliveryDelay(delay);
                    producer.send(session.createTextMessage("now"));
                    var got = session.createConsumer(session.createQueue(name)).receive(10000);
                    var after = got.getJMSDeliveryTime() - got.getJMSTimestamp() - delay;
                    System.out.println(name + ", delay " + delay + ": " + (got.getJMSDeliveryTime() == 0 ? "delivery time 0"
                            : Math.abs(after) < 100 ? "timestamp + delay" : "another time"));
                }
        System.exit(0);
    }
}
J
run_java "$artemis_jars" Case.java "$core" "$amqp" | expect "Core, delay 0: delivery time 0
Core, delay 1000: timestamp + delay
AMQP, delay 0: timestamp + delay
AMQP, delay 1000: timestamp + delay"
