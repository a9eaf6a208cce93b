import com.ibm.mq.jakarta.jms.MQConnectionFactory;
import com.ibm.mq.jakarta.jms.MQQueue;
import com.ibm.mq.jakarta.jms.MQTopic;
import com.ibm.msg.client.jakarta.jms.internal.JmsBytesMessageImpl;
import com.ibm.msg.client.jakarta.jms.internal.JmsTextMessageImpl;
import jakarta.jms.Connection;
import jakarta.jms.ConnectionMetaData;
import jakarta.jms.Destination;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** IBM MQ's factory, destinations and messages, without a queue manager: what is sent is received. No transactions. */
public class Loopback extends MQConnectionFactory {
    private static final long serialVersionUID = 1;
    private static final String TYPE = "com.ibm.msg.client.jakarta.wmq";
    private static final Map<String, BlockingQueue<Message>> QUEUES = new ConcurrentHashMap<>();

    @Override
    public Connection createConnection() {
        return made(Connection.class, (name, given) -> switch (name) {
            case "createSession" -> session();
            case "getMetaData" -> made(ConnectionMetaData.class, (what, none) -> what.startsWith("get") ? "loopback" : null);
            default -> null;
        });
    }

    private static Session session() {
        return made(Session.class, (name, given) -> switch (name) {
            case "createQueue" -> new MQQueue((String) given[0]);
            case "createTopic" -> new MQTopic((String) given[0]);
            case "createTextMessage" -> new JmsTextMessageImpl(TYPE, null);
            case "createBytesMessage" -> new JmsBytesMessageImpl(TYPE, null);
            case "createProducer" -> made(MessageProducer.class, Loopback::send);
            case "createConsumer" -> consumer(queue((Destination) given[0]));
            default -> null;
        });
    }

    private static Object send(String name, Object[] given) throws Exception {
        if (name.equals("send")) {
            Message message = (Message) given[1];
            message.setJMSDestination((Destination) given[0]);
            message.setJMSDeliveryMode((int) given[2]);
            message.setJMSMessageID("ID:414d5120");
            queue((Destination) given[0]).add(message);
        }
        return null;
    }

    private static MessageConsumer consumer(BlockingQueue<Message> from) {
        return made(MessageConsumer.class, (name, given) -> switch (name) {
            case "receive" -> from.poll((long) given[0], TimeUnit.MILLISECONDS);
            case "receiveNoWait" -> from.poll();
            default -> null;
        });
    }

    private static BlockingQueue<Message> queue(Destination of) throws Exception {
        String name = of instanceof MQQueue queue ? queue.getBaseQueueName() : ((MQTopic) of).getTopicName();
        return QUEUES.computeIfAbsent(name, none -> new LinkedBlockingQueue<>());
    }

    private static <T> T made(Class<T> type, Body body) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type},
            (self, method, given) -> body.run(method.getName(), given)));
    }

    private interface Body {
        Object run(String name, Object[] given) throws Exception;
    }
}
