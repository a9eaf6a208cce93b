package selectors;

import java.util.Map;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.selector.filter.Filterable;
import org.apache.activemq.artemis.selector.impl.SelectorParser;

/** The engine of Artemis. A header has the name that Artemis gives it. */
final class Artemis implements Engine {
    @Override
    public Condition parse(String selector) throws Exception {
        var expression = SelectorParser.parse(selector);
        return message -> expression.matches(new Properties(message));
    }

    private record Properties(Map<String, Object> values) implements Filterable {
        @Override
        public Object getProperty(SimpleString name) {
            return values.get(name.toString());
        }

        @Override
        public <T> T getBodyAs(Class<T> type) {
            return null;
        }

        @Override
        public Object getLocalConnectionId() {
            return null;
        }
    }
}
