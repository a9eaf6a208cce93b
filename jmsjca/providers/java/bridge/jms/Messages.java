package jmsjca.jms;

import jakarta.jms.BytesMessage;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageEOFException;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.StreamMessage;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Enumeration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import jmsjca.bridge.FrameReader;
import jmsjca.bridge.FrameWriter;

/** Messages as bytes, in both directions. An ObjectMessage is never read: that would run code of its sender. */
final class Messages {
    static final int PLAIN = 0;
    static final int TEXT = 1;
    static final int BYTES = 2;
    static final int MAP = 3;
    static final int STREAM = 4;
    static final int UNREADABLE = 5;
    private static final int PERSISTENT = 1;
    private static final int REDELIVERED = 2;
    private static final int JMS_PERSISTENT = 2;
    private static final int NO_COUNT = 0;
    private static final String COUNT = "JMSXDeliveryCount";
    private static final int KEPT = 1000;
    private static final Pattern SCHEME = Pattern.compile("(?:queue:///|topic://)([^?]+)");

    private final boolean prefixesTopics; // and would add the prefix to another connection's temporary topic

    private final Map<String, Destination> temporaries = Collections.synchronizedMap(new LinkedHashMap<>() {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Destination> eldest) {
            return size() > KEPT;
        }
    });

    private final Map<String, Destination> named = new ConcurrentHashMap<>();
    private final Map<String, String> names = new ConcurrentHashMap<>();

    Messages(boolean prefixesTopics) {
        this.prefixesTopics = prefixesTopics;
    }

    /** Use an object of JNDI for a kind and a name. */
    void name(String key, Destination object) throws JMSException {
        named.put(key, object);
        names.put(key.charAt(0) + nameOf(object), key.substring(1));
    }

    /** Write a received message. It is never refused: a part that cannot be read makes its body unreadable. */
    void write(Message message, FrameWriter out) throws JMSException {
        int start = out.size();
        out.i32(0);
        int kind = message instanceof TextMessage ? TEXT : message instanceof BytesMessage ? BYTES
            : message instanceof MapMessage ? MAP : message instanceof StreamMessage ? STREAM
            : message instanceof ObjectMessage ? UNREADABLE : PLAIN;
        out.u8(kind);
        boolean persistent = message.getJMSDeliveryMode() == JMS_PERSISTENT;
        out.u8((persistent ? PERSISTENT : 0) | (message.getJMSRedelivered() ? REDELIVERED : 0));
        out.u8(message.getJMSPriority());
        out.i32(count(message));
        out.i64(message.getJMSTimestamp());
        out.i64(message.getJMSExpiration());
        out.i64(deliveryTime(message));
        out.text(message.getJMSMessageID());
        out.text(correlation(message));
        out.text(message.getJMSType());
        writeDestination(message.getJMSDestination(), out);
        writeDestination(message.getJMSReplyTo(), out);
        writeProperties(message, out);
        int body = out.size();
        try {
            writeBody(message, kind, out);
        } catch (JMSException | RuntimeException error) {
            out.truncate(body);
            out.bytes(String.valueOf(error.getMessage()).getBytes(StandardCharsets.UTF_8));
            mark(out, start + 4, UNREADABLE);
        }
        out.i32At(start, out.size() - start - 4);
    }

    /** Make a message of what was written by Python, after another one or null, and return what its producer needs. */
    Outgoing read(FrameReader in, Session session, Outgoing before) throws JMSException {
        Outgoing made = new Outgoing();
        int toKind = in.u8();
        String toName = in.text();
        made.key = toKind + toName;
        boolean again = before != null && before.key.equals(made.key); // Artemis' client would ask the broker again
        made.to = again ? before.to : destination(toKind, toName, session);
        int kind = in.u8();
        made.mode = (in.u8() & PERSISTENT) != 0 ? JMS_PERSISTENT : 1;
        made.priority = in.u8();
        made.expiration = in.i64();
        made.deliveryTime = in.i64();
        String correlation = in.text();
        String type = in.text();
        Destination replyTo = readDestination(in, session);
        Message message = create(kind, session);
        made.message = message;
        if (correlation != null) {
            message.setJMSCorrelationID(correlation);
        }
        if (type != null) {
            message.setJMSType(type);
        }
        if (replyTo != null) {
            message.setJMSReplyTo(replyTo);
        }
        for (int i = in.count(); i > 0; i--) {
            message.setObjectProperty(in.text(), in.value());
        }
        readBody(kind, message, in);
        return made;
    }

    Destination readDestination(FrameReader in, Session session) throws JMSException {
        int kind = in.u8();
        return kind == 0 ? null : destination(kind, in.text(), session);
    }

    private Destination destination(int kind, String name, Session session) throws JMSException {
        Destination temporary = kind > 2 ? temporaries.get(kind + name) : null;
        boolean asQueue = kind % 2 == 1 || kind > 2 && prefixesTopics;
        Destination known = temporary != null ? temporary : named.get(kind + name);
        return known != null ? known : asQueue ? session.createQueue(name) : session.createTopic(name);
    }

    void remember(Destination temporary) throws JMSException {
        boolean queue = temporary instanceof Queue;
        temporaries.put((queue ? 3 : 4) + nameOf(temporary), temporary);
    }

    /** 0 for none, 1 a queue, 2 a topic; 3 and 4 if it is temporary. */
    void writeDestination(Destination of, FrameWriter out) throws JMSException {
        if (of == null) {
            out.u8(0);
            return;
        }
        boolean temporary = of instanceof TemporaryQueue || of instanceof TemporaryTopic;
        boolean queue = temporary ? of instanceof TemporaryQueue : of instanceof Queue;
        if (temporary) {
            remember(of);
        }
        int kind = (queue ? 1 : 2) + (temporary ? 2 : 0);
        String name = queue ? ((Queue) of).getQueueName() : ((Topic) of).getTopicName();
        out.u8(kind);
        out.text(names.isEmpty() ? shortened(name) : names.getOrDefault(kind + name, shortened(name)));
    }

    /** Return the name without the scheme that IBM MQ's client puts before it, unless options follow. */
    private static String shortened(String name) {
        Matcher scheme = name == null ? null : SCHEME.matcher(name);
        return scheme != null && scheme.matches() ? scheme.group(1) : name;
    }

    private static String nameOf(Destination of) throws JMSException {
        return of instanceof Queue ? ((Queue) of).getQueueName() : ((Topic) of).getTopicName();
    }

    private static void mark(FrameWriter out, int position, int kind) {
        out.u8At(position, kind);
    }

    private static int count(Message message) {
        try {
            return message.getIntProperty(COUNT);
        } catch (JMSException | RuntimeException none) {
            return NO_COUNT;
        }
    }

    private static long deliveryTime(Message message) throws JMSException {
        try {
            return message.getJMSDeliveryTime();
        } catch (LinkageError old) { // a client of JMS 1.1
            return 0;
        }
    }

    private static String correlation(Message message) {
        try {
            return message.getJMSCorrelationID();
        } catch (JMSException bytes) {
            return null;
        }
    }

    private static void writeProperties(Message message, FrameWriter out) throws JMSException {
        int start = out.size();
        out.i32(0);
        out.i32(0);
        int count = 0;
        for (Enumeration<?> names = message.getPropertyNames(); names.hasMoreElements();) {
            String name = (String) names.nextElement();
            if (!COUNT.equals(name)) {
                out.text(name);
                out.value(message.getObjectProperty(name));
                count++;
            }
        }
        out.i32At(start, out.size() - start - 4);
        out.i32At(start + 4, count);
    }

    private static void writeBody(Message message, int kind, FrameWriter out) throws JMSException {
        if (kind == TEXT) {
            out.text(((TextMessage) message).getText());
        } else if (kind == BYTES) {
            BytesMessage bytes = (BytesMessage) message;
            byte[] body = new byte[Math.toIntExact(bytes.getBodyLength())];
            bytes.readBytes(body);
            out.bytes(body);
        } else if (kind == MAP) {
            MapMessage map = (MapMessage) message;
            int start = begin(out);
            int count = 0;
            for (Enumeration<?> names = map.getMapNames(); names.hasMoreElements(); count++) {
                String name = (String) names.nextElement();
                out.text(name);
                out.value(map.getObject(name));
            }
            end(out, start, count);
        } else if (kind == STREAM) {
            int start = begin(out);
            end(out, start, writeStream((StreamMessage) message, out));
        } else {
            out.bytes(null);
        }
    }

    private static int writeStream(StreamMessage stream, FrameWriter out) throws JMSException {
        int count = 0;
        try {
            for (stream.reset(); true; count++) {
                out.value(stream.readObject());
            }
        } catch (MessageEOFException end) {
            return count;
        }
    }

    private static int begin(FrameWriter out) {
        out.i32(0);
        out.i32(0);
        return out.size();
    }

    private static void end(FrameWriter out, int start, int count) {
        out.i32At(start - 8, out.size() - start + 4);
        out.i32At(start - 4, count);
    }

    private static Message create(int kind, Session session) throws JMSException {
        return kind == TEXT ? session.createTextMessage() : kind == BYTES ? session.createBytesMessage()
            : kind == MAP ? session.createMapMessage() : kind == STREAM ? session.createStreamMessage()
            : session.createMessage();
    }

    private static void readBody(int kind, Message message, FrameReader in) throws JMSException {
        if (kind == TEXT) {
            String text = in.text();
            if (text != null) {
                ((TextMessage) message).setText(text);
            }
        } else if (kind == BYTES) {
            byte[] body = in.bytes();
            if (body != null) {
                ((BytesMessage) message).writeBytes(body);
            }
        } else if (kind == MAP) {
            for (int i = in.count(); i > 0; i--) {
                ((MapMessage) message).setObject(in.text(), in.value());
            }
        } else if (kind == STREAM) {
            for (int i = in.count(); i > 0; i--) {
                ((StreamMessage) message).writeObject(in.value());
            }
        }
    }

    /** A message, and what only its producer can set. */
    static final class Outgoing {
        private String key; // of its destination
        Destination to;
        Message message;
        int mode;
        int priority;
        long expiration;
        long deliveryTime;
    }
}
