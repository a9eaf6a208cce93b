package interop;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.Topic;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.qpid.jms.JmsConnectionFactory;

/** What can be asked for. Whoever asks names what is made, and uses it by that name. */
final class Commands {
    private static final Map<String, Integer> MODES = Map.of(
            "transacted", Session.SESSION_TRANSACTED,
            "auto", Session.AUTO_ACKNOWLEDGE,
            "client", Session.CLIENT_ACKNOWLEDGE,
            "dups_ok", Session.DUPS_OK_ACKNOWLEDGE);

    private final Map<String, Connection> connections = new HashMap<>();
    private final Map<String, Session> sessions = new HashMap<>();
    private final Map<String, MessageConsumer> consumers = new HashMap<>();
    private final Map<String, Message> last = new HashMap<>();
    private final Destinations destinations = new Destinations();
    private final Headers headers = new Headers(destinations);

    JsonElement carryOut(JsonObject order) throws JMSException {
        String name = text(order, "name");
        return switch (text(order, "do")) {
            case "connect" -> connect(name, order);
            case "session" -> session(name, order);
            case "consumer" -> consumer(name, order);
            case "send" -> send(sessions.get(name), order);
            case "receive" -> receive(name, order.get("milliseconds").getAsLong());
            case "reply" -> reply(name, order);
            case "browse" -> browse(sessions.get(name), order);
            case "unsubscribe" -> unsubscribe(sessions.get(name), text(order, "subscription"));
            case "temporary" -> temporary(sessions.get(name), text(order, "kind"));
            default -> settle(text(order, "do"), name);
        };
    }

    private JsonElement settle(String what, String name) throws JMSException {
        switch (what) {
            case "commit" -> sessions.get(name).commit();
            case "rollback" -> sessions.get(name).rollback();
            case "recover" -> sessions.get(name).recover();
            case "acknowledge" -> last.get(name).acknowledge();
            case "close consumer" -> consumers.remove(name).close();
            case "close session" -> sessions.remove(name).close();
            case "close" -> connections.remove(name).close();
            default -> throw new IllegalArgumentException(what);
        }
        return JsonNull.INSTANCE;
    }

    private JsonElement connect(String name, JsonObject order) throws JMSException {
        Connection connection = factory(text(order, "url")).createConnection();
        connections.put(name, connection);
        if (text(order, "client_id") != null) {
            connection.setClientID(text(order, "client_id"));
        }
        connection.start();
        return new JsonPrimitive(connection.getMetaData().getJMSProviderName());
    }

    private static ConnectionFactory factory(String url) {
        return url.startsWith("amqp") ? new JmsConnectionFactory(url) : new ActiveMQConnectionFactory(url);
    }

    private JsonElement session(String name, JsonObject order) throws JMSException {
        sessions.put(name, connections.get(text(order, "connection")).createSession(MODES.get(text(order, "mode"))));
        return JsonNull.INSTANCE;
    }

    private JsonElement consumer(String name, JsonObject order) throws JMSException {
        Session session = sessions.get(text(order, "session"));
        Destination source = destinations.read(order.get("source"), session);
        String selector = text(order, "selector");
        String subscription = text(order, "subscription");
        consumers.put(name, switch (String.valueOf(text(order, "sort"))) {
            case "durable" -> session.createDurableConsumer((Topic) source, subscription, selector, false);
            case "shared" -> session.createSharedConsumer((Topic) source, subscription, selector);
            case "shared durable" -> session.createSharedDurableConsumer((Topic) source, subscription, selector);
            default -> session.createConsumer(source, selector);
        });
        return JsonNull.INSTANCE;
    }

    /** Send a message as it is described. */
    private JsonElement send(Session session, JsonObject order) throws JMSException {
        JsonObject told = order.getAsJsonObject("message");
        Message message = Messages.make(session, text(told, "kind"), told.get("body"));
        headers.apply(told, message, session);
        MessageProducer producer = session.createProducer(destinations.read(order.get("to"), session));
        producer.setDisableMessageID(order.has("bare"));
        producer.setDisableMessageTimestamp(order.has("bare"));
        if (order.has("delay")) { // ActiveMQ's client knows no delays
            producer.setDeliveryDelay(order.get("delay").getAsLong());
        }
        int mode = told.get("persistent").getAsBoolean() ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT;
        long life = order.has("life") ? order.get("life").getAsLong() : Message.DEFAULT_TIME_TO_LIVE;
        producer.send(message, mode, told.get("priority").getAsInt(), life);
        producer.close();
        return describe(message);
    }

    private JsonElement receive(String name, long milliseconds) throws JMSException {
        Message message = consumers.get(name).receive(milliseconds);
        last.put(name, message);
        return message == null ? JsonNull.INSTANCE : describe(message);
    }

    /** Answer the last message of a consumer where, and under the id under which, it wants to be answered. */
    private JsonElement reply(String name, JsonObject order) throws JMSException {
        Session session = sessions.get(text(order, "session"));
        Message asked = last.get(name);
        Message reply = session.createTextMessage(text(order, "text"));
        String id = asked.getJMSCorrelationID();
        reply.setJMSCorrelationID(id == null ? asked.getJMSMessageID() : id);
        MessageProducer producer = session.createProducer(asked.getJMSReplyTo());
        producer.send(reply);
        producer.close();
        return describe(reply);
    }

    private JsonElement browse(Session session, JsonObject order) throws JMSException {
        var source = (Queue) destinations.read(order.get("source"), session);
        var told = new JsonArray();
        try (var browser = session.createBrowser(source, text(order, "selector"))) {
            for (Object message : Collections.list(browser.getEnumeration())) {
                told.add(describe((Message) message));
            }
        }
        return told;
    }

    private static JsonElement unsubscribe(Session session, String subscription) throws JMSException {
        session.unsubscribe(subscription);
        return JsonNull.INSTANCE;
    }

    private JsonElement temporary(Session session, String kind) throws JMSException {
        return destinations.tell(kind.equals("queue") ? session.createTemporaryQueue() : session.createTemporaryTopic());
    }

    private JsonObject describe(Message message) throws JMSException {
        var told = new JsonObject();
        Messages.describe(message, told);
        headers.describe(message, told);
        return told;
    }

    private static String text(JsonObject order, String name) {
        return order.has(name) && !order.get(name).isJsonNull() ? order.get(name).getAsString() : null;
    }
}
