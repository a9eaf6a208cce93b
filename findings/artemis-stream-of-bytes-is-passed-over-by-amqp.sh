#!/usr/bin/env bash
# Guess: Artemis converts a Core StreamMessage with a byte array for an AMQP receiver, as it converts a MapMessage with
#   one; if it cannot, the message goes to the dead letter address.
# Seen: the AMQP receiver gets nothing, no error is raised, and the dead letter queue stays empty. The message is held
#   until the receiver closes; then it is in its queue again, where a Core client can receive it. Later messages pass it.
# Matters: a consumer that moves from Core to AMQP never sees such messages, and neither end is told. Watch the depth of
#   the queue, not only the dead letters.
# Versions: Artemis 2.56.0 (broker and Core client), Qpid JMS 1.17.0, Java 17 (the clients
#   are those of the Artemis distribution).
set -eu
. "$(dirname "$0")/lib.sh"
artemis_files "<dead-letter-address>dead</dead-letter-address>"
cat >Case.java <<'J'
import javax.jms.*;
class Case {
    static Session core;
    static void stream(String queue) throws Exception {
        var message = core.createStreamMessage();
        message.writeBytes(new byte[] {1, 2});
        core.createProducer(core.createQueue(queue)).send(message);
    }
    static String receive(Session session, String queue) throws Exception {
        try (var consumer = session.createConsumer(session.createQueue(queue))) {
            var got = consumer.receive(5000);
            return got == null ? "nothing" : got.getClass().getSimpleName();
        }
    }
    public static void main(String[] port) throws Exception {
        new org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ().setConfigResourcePath("file:broker.xml").start();
        try (var a = new org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory("tcp://127.0.0.1:" + port[0]).createConnection();
             var b = new org.apache.qpid.jms.JmsConnectionFactory("amqp://127.0.0.1:" + port[1]).createConnection()) {
            a.start();
            b.start();
            core = a.createSession(false, 1);
            var amqp = b.createSession(false, 1);
            stream("one");
            System.out.println("Core receives " + receive(core, "one"));
            stream("two");
            System.out.println("AMQP receives " + receive(amqp, "two"));
            System.out.println("then in the queue: " + receive(core, "two"));
            System.out.println("then in the dead letter queue: " + receive(core, "dead"));
            core.createProducer(core.createQueue("two")).send(core.createMapMessage());
            System.out.println("AMQP receives " + receive(amqp, "two"));
        }
        System.exit(0);
    }
}
J
run_java "$artemis_jars" Case.java "$core" "$amqp" | expect "Core receives ActiveMQStreamMessage
AMQP receives nothing
then in the queue: ActiveMQStreamMessage
then in the dead letter queue: nothing
AMQP receives JmsMapMessage"
