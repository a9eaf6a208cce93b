package selectors;

import com.google.gson.JsonArray;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * Asks the engine that the first argument names which messages each selector selects. The first line of the standard
 * input is the messages, every other one a selector, all as JSON; a line of the answer has one letter for each message:
 * T if it is selected, F if not, E if the engine throws. A selector that the engine refuses is answered with "refused".
 */
public final class Main {
    private static final Map<String, Function<String, Object>> READERS = Map.of(
            "boolean", Boolean::valueOf,
            "byte", Byte::valueOf,
            "short", Short::valueOf,
            "int", Integer::valueOf,
            "long", Long::valueOf,
            "float", Float::valueOf,
            "double", Double::valueOf,
            "string", text -> text);

    public static void main(String[] words) throws IOException {
        Engine engine = words[0].equals("artemis") ? new Artemis() : new ActiveMQ();
        var orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err); // what a library prints must not stand between the answers
        List<Map<String, Object>> messages = messages(JsonParser.parseString(orders.readLine()).getAsJsonArray());
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            answers.println(answer(engine, JsonParser.parseString(line).getAsString(), messages));
        }
        answers.flush();
    }

    private static String answer(Engine engine, String selector, List<Map<String, Object>> messages) {
        Engine.Condition condition;
        try {
            condition = engine.parse(selector);
        } catch (Throwable problem) { // the lexer throws errors, not exceptions
            return "refused";
        }
        var letters = new StringBuilder();
        for (Map<String, Object> message : messages) {
            letters.append(decide(condition, message));
        }
        return letters.toString();
    }

    private static char decide(Engine.Condition condition, Map<String, Object> message) {
        try {
            return condition.matches(message) ? 'T' : 'F';
        } catch (Exception problem) {
            return 'E';
        }
    }

    private static List<Map<String, Object>> messages(JsonArray told) {
        var messages = new ArrayList<Map<String, Object>>();
        for (var each : told) {
            var properties = new HashMap<String, Object>();
            each.getAsJsonObject().entrySet().forEach(entry -> {
                JsonArray value = entry.getValue().getAsJsonArray();
                Object read = READERS.get(value.get(0).getAsString()).apply(value.get(1).getAsString());
                properties.put(entry.getKey(), read);
            });
            messages.add(properties);
        }
        return messages;
    }
}
