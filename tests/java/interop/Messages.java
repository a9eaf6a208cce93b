package interop;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import jakarta.jms.BytesMessage;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageEOFException;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Session;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import java.io.Serializable;
import java.util.Collections;

/** Bodies as JSON: the kind of message and the values in it. */
final class Messages {
    private Messages() {}

    static Message make(Session session, String kind, JsonElement body) throws JMSException {
        return switch (kind) {
            case "text" -> session.createTextMessage((String) Values.read(body));
            case "bytes" -> bytes(session, body);
            case "map" -> map(session, body);
            case "stream" -> stream(session, body);
            case "object" -> object(session, body);
            default -> session.createMessage();
        };
    }

    static void describe(Message message, JsonObject told) throws JMSException {
        told.addProperty("kind", kindOf(message));
        told.add("body", bodyOf(message));
    }

    private static Message bytes(Session session, JsonElement body) throws JMSException {
        BytesMessage message = session.createBytesMessage();
        if (!body.isJsonNull()) {
            message.writeBytes((byte[]) Values.read(body));
        }
        return message;
    }

    private static Message map(Session session, JsonElement body) throws JMSException {
        MapMessage message = session.createMapMessage();
        for (var entry : body.getAsJsonObject().entrySet()) {
            message.setObject(entry.getKey(), Values.read(entry.getValue()));
        }
        return message;
    }

    private static Message stream(Session session, JsonElement body) throws JMSException {
        StreamMessage message = session.createStreamMessage();
        for (JsonElement value : body.getAsJsonArray()) {
            message.writeObject(Values.read(value));
        }
        return message;
    }

    /** An object that Java serializes, or AMQP encodes if the property says so. */
    private static Message object(Session session, JsonElement body) throws JMSException {
        ObjectMessage message = session.createObjectMessage();
        if (body.getAsJsonObject().get("typed").getAsBoolean()) {
            message.setBooleanProperty("JMS_AMQP_TYPED_ENCODING", true);
        }
        message.setObject((Serializable) Values.read(body.getAsJsonObject().get("value")));
        return message;
    }

    private static String kindOf(Message message) {
        if (message instanceof TextMessage) {
            return "text";
        }
        if (message instanceof BytesMessage) {
            return "bytes";
        }
        if (message instanceof MapMessage) {
            return "map";
        }
        if (message instanceof StreamMessage) {
            return "stream";
        }
        return message instanceof ObjectMessage ? "object" : "plain";
    }

    private static JsonElement bodyOf(Message message) throws JMSException {
        if (message instanceof TextMessage text) {
            return Values.tell(text.getText());
        }
        if (message instanceof BytesMessage bytes) {
            return bytesOf(bytes);
        }
        if (message instanceof MapMessage map) {
            return entriesOf(map);
        }
        if (message instanceof StreamMessage stream) {
            return valuesOf(stream);
        }
        return message instanceof ObjectMessage object ? Values.tell(object.getObject()) : JsonNull.INSTANCE;
    }

    private static JsonElement bytesOf(BytesMessage message) throws JMSException {
        message.reset();
        byte[] bytes = new byte[(int) message.getBodyLength()];
        message.readBytes(bytes);
        return Values.tell(bytes);
    }

    private static JsonElement entriesOf(MapMessage message) throws JMSException {
        var told = new JsonObject();
        for (Object name : Collections.list(message.getMapNames())) {
            told.add((String) name, Values.tell(message.getObject((String) name)));
        }
        return told;
    }

    private static JsonElement valuesOf(StreamMessage message) throws JMSException {
        var told = new JsonArray();
        message.reset();
        try {
            while (true) {
                told.add(Values.tell(message.readObject()));
            }
        } catch (MessageEOFException end) {
            return told;
        }
    }
}
