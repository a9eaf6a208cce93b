package field;

import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.Session;

/** Qpid JMS without anything around it: one session, one thread. No batch means no transactions. */
final class Sessions {
    static final int SIZE = 1024;
    private static final long PATIENCE = 120_000;

    private Sessions() {}

    static Watch receive(ConnectionFactory factory, String queue, int count, int batch) throws JMSException {
        var watch = new Watch();
        try (Connection connection = factory.createConnection()) {
            Session session = open(connection, batch);
            watch.begin();
            var consumer = session.createConsumer(session.createQueue(queue));
            for (int number = 1; number <= count; number++) {
                check(consumer.receive(PATIENCE));
                if (batch > 0 && number % batch == 0) {
                    session.commit();
                }
            }
            watch.end();
        }
        return watch;
    }

    static Watch send(ConnectionFactory factory, String queue, int count, int batch) throws JMSException {
        var watch = new Watch();
        try (Connection connection = factory.createConnection()) {
            Session session = open(connection, batch);
            watch.begin();
            var producer = session.createProducer(session.createQueue(queue));
            for (int number = 1; number <= count; number++) {
                producer.send(message(session));
                if (batch > 0 && number % batch == 0) {
                    session.commit();
                }
            }
            watch.end();
        }
        return watch;
    }

    /** What is sent is answered while more is sent. */
    static Watch stream(ConnectionFactory factory, String queue, int count) throws Exception {
        var watch = new Watch();
        var answered = new Answers(count);
        try (Connection connection = factory.createConnection()) {
            Session session = open(connection, 0);
            watch.begin();
            var producer = session.createProducer(session.createQueue(queue));
            for (int number = 1; number <= count; number++) {
                producer.send(message(session), answered);
            }
            answered.await();
            watch.end();
        }
        return watch;
    }

    static void check(Message message) throws JMSException {
        if (!(message instanceof BytesMessage bytes) || bytes.getBodyLength() != SIZE) {
            throw new JMSException("Another message was expected: " + message);
        }
    }

    private static Message message(Session session) throws JMSException {
        BytesMessage message = session.createBytesMessage();
        message.writeBytes(new byte[SIZE]);
        return message;
    }

    private static Session open(Connection connection, int batch) throws JMSException {
        connection.start();
        return connection.createSession(batch > 0, batch > 0 ? Session.SESSION_TRANSACTED : Session.AUTO_ACKNOWLEDGE);
    }
}
