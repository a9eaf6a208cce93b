#!/usr/bin/env bash
# Guess: JMSXDeliveryCount counts deliveries of the message at the broker. After one consumer has rolled it back five
#   times, the next consumer reads 6.
# Seen: the first OpenWire consumer reads 1 to 5, but these are counted by the client: the broker learns of one failed
#   delivery when the consumer closes, so the next consumer reads 2.
# Matters: a limit of attempts that reads JMSXDeliveryCount starts afresh with each new consumer, and a poison message
#   that ends its consumer lives several times as long as configured.
# Versions: ActiveMQ Classic 6.3.1 (broker and client), Java 17.
set -eu
. "$(dirname "$0")/lib.sh"
activemq_jars
cat >Case.java <<'J'
import jakarta.jms.*;
class Case {
    public static void main(String[] port) throws Exception {
        var broker = new org.apache.activemq.broker.BrokerService();
        broker.setPersistent(false);
        broker.setUseJmx(false);
        broker.addConnector("tcp://127.0.0.1:" + port[0]);
        broker.start();
        var factory = new org.apache.activemq.ActiveMQConnectionFactory("tcp://127.0.0.1:" + port[0]
                + "?jms.redeliveryPolicy.maximumRedeliveries=-1&jms.redeliveryPolicy.initialRedeliveryDelay=0");
        for (var consumer = 1; consumer <= 2; consumer++)
            try (var connection = factory.createConnection()) {
                connection.start();
                var session = connection.createSession(true, Session.SESSION_TRANSACTED);
                var queue = session.createQueue("orders");
                if (consumer == 1) session.createProducer(queue).send(session.createTextMessage("order"));
                session.commit();
                var in = session.createConsumer(queue);
                var counts = new StringBuilder("consumer " + consumer + ":");
                for (var attempt = 0; attempt < 5; attempt++) {
                    counts.append(" ").append(in.receive(20000).getIntProperty("JMSXDeliveryCount"));
                    session.rollback();
                }
                System.out.println(counts);
            }
        System.exit(0);
    }
}
J
run_java activemq Case.java "$openwire" | expect "consumer 1: 1 2 3 4 5
consumer 2: 2 3 4 5 6"
