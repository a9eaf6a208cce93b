package jmsjca.jms;

import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import jmsjca.bridge.FrameWriter;

/**
 * A client of JMS alone: reads "LOOP QUEUE COUNT", line by line, and answers with the seconds of this process's
 * processor time. It encodes what it receives as the bridge does.
 */
public final class Alone {
    private static final int BATCH = 100;
    private static final long PATIENCE = 120_000;
    private static final String BODY = "x".repeat(1024);

    private Alone() {}

    public static void main(String[] words) throws Exception {
        var factory = (ConnectionFactory) Class.forName(words[0]).getConstructor(String.class).newInstance(words[1]);
        var orders = new BufferedReader(new InputStreamReader(System.in));
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            String[] order = line.split(" ");
            System.out.println(take(factory, order[0].equals("send"), order[1], Integer.parseInt(order[2])));
        }
        System.exit(0); // whatever threads the client still has
    }

    private static double take(ConnectionFactory factory, boolean sends, String name, int count) throws Exception {
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        try (Connection connection = factory.createConnection("jmsjca", "jmsjca")) {
            connection.start();
            Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
            Queue queue = session.createQueue(name);
            long began = system.getProcessCpuTime();
            if (sends) {
                send(session, queue, count);
            } else {
                receive(session, queue, count);
            }
            return (system.getProcessCpuTime() - began) / 1e9;
        }
    }

    private static void receive(Session session, Queue queue, int count) throws Exception {
        var messages = new Messages(false);
        var consumer = session.createConsumer(queue);
        var out = new FrameWriter();
        for (int number = 1; number <= count; number++) {
            messages.write(consumer.receive(PATIENCE), out);
            if (number % BATCH == 0) {
                session.commit();
                out.truncate(0);
            }
        }
    }

    private static void send(Session session, Queue queue, int count) throws Exception {
        var producer = session.createProducer(queue);
        for (int number = 1; number <= count; number++) {
            Message message = session.createTextMessage(BODY);
            message.setStringProperty("region", "EU");
            message.setIntProperty("number", number);
            message.setDoubleProperty("price", 1.5);
            producer.send(message);
            if (number % BATCH == 0) {
                session.commit();
            }
        }
    }
}
