#!/usr/bin/env bash
# Guess: a cluster of Artemis with redistribution moves to node B each message that the only consumer, one at B with a
#   selector, selects; the other messages stay at node A.
# Seen: of red, blue, red (in this order, waiting at A before the consumer comes) only the first red is moved. The second
#   one stays at A, though the consumer at B waits for it, until a consumer at A takes both. With Core and with AMQP.
# Matters: consumers with selectors on a clustered queue can starve while messages for them wait at another node; the
#   queue depth of the cluster never falls to zero, and no error tells why.
# Versions: Artemis 2.56.0 with its Core client, Qpid JMS 1.17.0 of its distribution, Java 17. Both nodes run in one JVM.
set -eu
. "$(dirname "$0")/lib.sh"
artemis_files
cat >Case.java <<'J'
import java.util.*;
import javax.jms.*;
import org.apache.activemq.artemis.core.config.ClusterConnectionConfiguration;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;
import org.apache.activemq.artemis.core.settings.impl.AddressSettings;
class Case {
    static void node(String name, String own, String other, String amqp) throws Exception {
        var node = new ConfigurationImpl().setName(name).setPersistenceEnabled(false).setSecurityEnabled(false)
                .setClusterUser("c").setClusterPassword("c").setCriticalAnalyzer(false);
        node.addAcceptorConfiguration("core", "tcp://127.0.0.1:" + own + "?protocols=CORE");
        node.addAcceptorConfiguration("amqp", "tcp://127.0.0.1:" + amqp + "?protocols=AMQP");
        node.addConnectorConfiguration("own", "tcp://127.0.0.1:" + own);
        node.addConnectorConfiguration("other", "tcp://127.0.0.1:" + other);
        node.addClusterConfiguration(new ClusterConnectionConfiguration().setName("cluster").setAddress("")
                .setConnectorName("own").setStaticConnectors(List.of("other")));
        node.addAddressSetting("#", new AddressSettings().setRedistributionDelay(0).setAutoDeleteQueues(false));
        new EmbeddedActiveMQ().setConfiguration(node).start();
    }
    static String take(MessageConsumer consumer, int wait) throws Exception {
        var seen = new StringJoiner(" ");
        for (Message got; (got = consumer.receive(wait)) != null;) seen.add(((TextMessage) got).getText());
        return seen.toString();
    }
    static void run(String name, ConnectionFactory one, ConnectionFactory two) throws Exception {
        try (var a = one.createConnection(); var b = two.createConnection()) {
            a.start();
            b.start();
            var first = a.createSession(false, 1);
            var second = b.createSession(false, 1);
            var queue = first.createQueue(name);
            for (var color : List.of("red", "blue", "red")) {
                var message = first.createTextMessage(color);
                message.setStringProperty("color", color);
                first.createProducer(queue).send(message);
            }
            var selective = second.createConsumer(second.createQueue(name), "color = 'red'");
            System.out.println(name + ": red at B gets " + take(selective, 15000));
            System.out.println(name + ": then everything at A is " + take(first.createConsumer(queue), 5000));
        }
    }
    public static void main(String[] port) throws Exception {
        node("A", port[0], port[1], port[2]);
        node("B", port[1], port[0], port[3]);
        Thread.sleep(10000); // the nodes find each other
        run("Core", new org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory("tcp://127.0.0.1:" + port[0]),
                new org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory("tcp://127.0.0.1:" + port[1]));
        run("AMQP", new org.apache.qpid.jms.JmsConnectionFactory("amqp://127.0.0.1:" + port[2]),
                new org.apache.qpid.jms.JmsConnectionFactory("amqp://127.0.0.1:" + port[3]));
        System.exit(0);
    }
}
J
run_java "$artemis_jars" Case.java $(free_ports 4) | expect "Core: red at B gets red
Core: then everything at A is blue red
AMQP: red at B gets red
AMQP: then everything at A is blue red"
