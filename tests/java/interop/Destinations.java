package interop;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.Topic;
import java.util.HashMap;
import java.util.Map;

/** Destinations as JSON: what kind, and the name. */
final class Destinations {
    /** Those of somebody else cannot be made from their names. */
    private final Map<String, Destination> temporary = new HashMap<>();

    Destination read(JsonElement told, Session session) throws JMSException {
        if (told == null || told.isJsonNull()) {
            return null;
        }
        String kind = told.getAsJsonArray().get(0).getAsString();
        String name = told.getAsJsonArray().get(1).getAsString();
        if (kind.startsWith("temporary")) {
            return temporary.get(name);
        }
        return kind.equals("queue") ? session.createQueue(name) : session.createTopic(name);
    }

    JsonElement tell(Destination destination) throws JMSException {
        if (destination == null) {
            return JsonNull.INSTANCE;
        }
        String kind = kindOf(destination);
        String name = kind.endsWith("queue") ? ((Queue) destination).getQueueName() : ((Topic) destination).getTopicName();
        if (kind.startsWith("temporary")) {
            temporary.put(name, destination);
        }
        var told = new JsonArray();
        told.add(kind);
        told.add(name);
        return told;
    }

    /** The clients' own classes implement several interfaces, but say only one of these of themselves. */
    private static String kindOf(Destination destination) {
        if (destination instanceof TemporaryQueue) {
            return "temporary queue";
        }
        if (destination instanceof TemporaryTopic) {
            return "temporary topic";
        }
        return destination instanceof Queue ? "queue" : "topic";
    }
}
