package selectors;

import java.util.Map;
import org.apache.activemq.command.ActiveMQMessage;
import org.apache.activemq.command.Message;
import org.apache.activemq.filter.MessageEvaluationContext;
import org.apache.activemq.selector.SelectorParser;

/** The engine of ActiveMQ Classic. */
final class ActiveMQ implements Engine {
    @Override
    public Condition parse(String selector) throws Exception {
        var expression = SelectorParser.parse(selector);
        return message -> expression.matches(context(message));
    }

    private static MessageEvaluationContext context(Map<String, Object> values) throws Exception {
        var received = new ActiveMQMessage();
        for (var value : values.entrySet()) {
            set(received, value.getKey(), value.getValue());
        }
        return new MessageEvaluationContext() {
            @Override
            public boolean isDropped() {
                return false;
            }

            @Override
            public Message getMessage() {
                return received;
            }
        };
    }

    private static void set(ActiveMQMessage message, String name, Object value) throws Exception {
        switch (name) {
            case "JMSPriority" -> message.setJMSPriority((Integer) value);
            case "JMSTimestamp" -> message.setJMSTimestamp((Long) value);
            case "JMSDeliveryMode" -> message.setPersistent(value.equals("PERSISTENT"));
            case "JMSType" -> message.setJMSType((String) value);
            case "JMSCorrelationID" -> message.setJMSCorrelationID((String) value);
            default -> message.setProperty(name, value);
        }
    }
}
