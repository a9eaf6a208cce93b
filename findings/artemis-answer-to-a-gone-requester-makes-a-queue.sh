#!/usr/bin/env bash
# Guess: a reply to a temporary queue whose requester has gone fails with InvalidDestinationException; at worst the
#   broker drops it.
# Seen: with the broker as it is shipped (queues are made on demand), Core and AMQP repliers send without an error, and
#   Artemis makes a lasting queue with the name of the temporary one. The reply stays in it; any later consumer gets it.
# Matters: each request that times out leaves a queue with a message that nobody will read, and the replier never learns
#   it. Give replies a time to live, and let queues of such names not be made on demand.
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
        var clients = new LinkedHashMap<String, ConnectionFactory>();
        clients.put("Core", new org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory("tcp://127.0.0.1:" + port[0]));
        clients.put("AMQP", new org.apache.qpid.jms.JmsConnectionFactory("amqp://127.0.0.1:" + port[1]));
        for (var client : clients.keySet())
            try (var replier = clients.get(client).createConnection()) {
                replier.start();
                var session = replier.createSession(false, 1);
                var asker = clients.get(client).createConnection();
                asker.start();
                var other = asker.createSession(false, 1);
                var question = other.createTextMessage("question");
                question.setJMSReplyTo(other.createTemporaryQueue());
                other.createProducer(other.createQueue(client)).send(question);
                var replies = session.createConsumer(session.createQueue(client)).receive(10000).getJMSReplyTo();
                asker.close();
                Thread.sleep(500);
                var name = ((javax.jms.Queue) replies).getQueueName();
                try {
                    session.createProducer(replies).send(session.createTextMessage("answer"));
                    System.out.println(client + ": sent");
                } catch (JMSException refused) {
                    System.out.println(client + ": " + refused.getClass().getSimpleName());
                }
                var later = session.createConsumer(session.createQueue(name)).receive(2000);
                System.out.println(client + ": a later consumer of that name gets " + (later == null ? "nothing" : "the answer"));
            }
        System.exit(0);
    }
}
J
run_java "$artemis_jars" Case.java "$core" "$amqp" | expect "Core: sent
Core: a later consumer of that name gets the answer
AMQP: sent
AMQP: a later consumer of that name gets the answer"
