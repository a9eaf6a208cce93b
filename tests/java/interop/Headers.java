package interop;

import com.google.gson.JsonObject;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.Session;
import java.util.Base64;
import java.util.Collections;

/** Headers and properties as JSON. */
final class Headers {
    private static final String COUNT = "JMSXDeliveryCount";

    private final Destinations destinations;

    Headers(Destinations destinations) {
        this.destinations = destinations;
    }

    /** Set what the sender may: the rest is the producer's. */
    void apply(JsonObject told, Message message, Session session) throws JMSException {
        for (var property : told.getAsJsonObject("properties").entrySet()) {
            message.setObjectProperty(property.getKey(), Values.read(property.getValue()));
        }
        message.setJMSReplyTo(destinations.read(told.get("reply_to"), session));
        message.setJMSType(text(told, "type"));
        if (text(told, "correlation_bytes") != null) {
            message.setJMSCorrelationIDAsBytes(Base64.getDecoder().decode(text(told, "correlation_bytes")));
        } else {
            message.setJMSCorrelationID(text(told, "correlation_id"));
        }
    }

    void describe(Message message, JsonObject told) throws JMSException {
        told.addProperty("message_id", message.getJMSMessageID());
        told.addProperty("correlation_id", message.getJMSCorrelationID());
        told.addProperty("type", message.getJMSType());
        told.add("destination", destinations.tell(message.getJMSDestination()));
        told.add("reply_to", destinations.tell(message.getJMSReplyTo()));
        told.addProperty("persistent", message.getJMSDeliveryMode() == DeliveryMode.PERSISTENT);
        told.addProperty("priority", message.getJMSPriority());
        told.addProperty("timestamp", message.getJMSTimestamp());
        told.addProperty("expiration", message.getJMSExpiration());
        told.addProperty("delivery_time", message.getJMSDeliveryTime());
        told.addProperty("redelivered", message.getJMSRedelivered());
        told.add("properties", propertiesOf(message));
        if (message.propertyExists(COUNT)) {
            told.addProperty("delivery_count", message.getIntProperty(COUNT));
        }
    }

    private static JsonObject propertiesOf(Message message) throws JMSException {
        var told = new JsonObject();
        for (Object name : Collections.list(message.getPropertyNames())) {
            if (!name.equals(COUNT)) {
                told.add((String) name, Values.tell(message.getObjectProperty((String) name)));
            }
        }
        return told;
    }

    private static String text(JsonObject told, String name) {
        return told.has(name) && !told.get(name).isJsonNull() ? told.get(name).getAsString() : null;
    }
}
