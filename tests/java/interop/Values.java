package interop;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonPrimitive;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Function;
import org.apache.qpid.proton.amqp.Binary;

/**
 * Values with their types, as JSON: null, or the name of the type and the value as text, exact for every one.
 * A list, or an array of texts, has the values in it in place of the text, a map pairs of them.
 */
final class Values {
    private static final Map<String, Function<String, Object>> READERS = Map.ofEntries(
            Map.entry("boolean", Boolean::valueOf),
            Map.entry("byte", Byte::valueOf),
            Map.entry("short", Short::valueOf),
            Map.entry("char", text -> text.charAt(0)),
            Map.entry("int", Integer::valueOf),
            Map.entry("long", Long::valueOf),
            Map.entry("float", Float::valueOf),
            Map.entry("double", Double::valueOf),
            Map.entry("string", text -> text),
            Map.entry("bytes", text -> Base64.getDecoder().decode(text)),
            Map.entry("binary", text -> new Binary(Base64.getDecoder().decode(text))), // Qpid's word for AMQP's bytes
            Map.entry("uuid", UUID::fromString),
            Map.entry("date", text -> new Date(Long.parseLong(text))));

    private Values() {}

    static Object read(JsonElement told) {
        if (told.isJsonNull()) {
            return null;
        }
        String name = told.getAsJsonArray().get(0).getAsString();
        JsonElement content = told.getAsJsonArray().get(1);
        return switch (name) {
            case "list" -> listOf(content.getAsJsonArray());
            case "texts" -> listOf(content.getAsJsonArray()).toArray(new String[0]);
            case "map" -> mapOf(content.getAsJsonArray());
            default -> READERS.get(name).apply(content.getAsString());
        };
    }

    private static ArrayList<Object> listOf(JsonArray told) {
        var values = new ArrayList<Object>();
        told.forEach(value -> values.add(read(value)));
        return values;
    }

    private static LinkedHashMap<Object, Object> mapOf(JsonArray told) {
        var values = new LinkedHashMap<Object, Object>();
        told.forEach(pair -> values.put(read(pair.getAsJsonArray().get(0)), read(pair.getAsJsonArray().get(1))));
        return values;
    }

    static JsonElement tell(Object value) {
        if (value == null) {
            return JsonNull.INSTANCE;
        }
        if (value instanceof List<?> values) {
            return pair(new JsonPrimitive("list"), partsOf(values));
        }
        if (value instanceof Object[] values) {
            return pair(new JsonPrimitive("texts"), partsOf(List.of(values)));
        }
        if (value instanceof Map<?, ?> values) {
            return pair(new JsonPrimitive("map"), pairsOf(values));
        }
        return pair(new JsonPrimitive(nameOf(value)), new JsonPrimitive(textOf(value)));
    }

    private static JsonArray partsOf(List<?> values) {
        var told = new JsonArray();
        values.forEach(value -> told.add(tell(value)));
        return told;
    }

    private static JsonArray pairsOf(Map<?, ?> values) {
        var told = new JsonArray();
        values.forEach((name, value) -> told.add(pair(tell(name), tell(value))));
        return told;
    }

    private static JsonArray pair(JsonElement first, JsonElement second) {
        var told = new JsonArray();
        told.add(first);
        told.add(second);
        return told;
    }

    private static String nameOf(Object value) {
        if (value instanceof byte[]) {
            return "bytes";
        }
        if (value instanceof Integer) {
            return "int";
        }
        return value instanceof Character ? "char" : value.getClass().getSimpleName().toLowerCase();
    }

    /** Numbers with a point stand in hexadecimal digits: what is read is the same bit by bit. */
    private static String textOf(Object value) {
        if (value instanceof byte[] bytes) {
            return Base64.getEncoder().encodeToString(bytes);
        }
        if (value instanceof Binary bytes) {
            return Base64.getEncoder().encodeToString(bytes.getArray()); // which is cut to size where it is decoded
        }
        if (value instanceof Date moment) {
            return String.valueOf(moment.getTime());
        }
        if (value instanceof Float number) {
            return Double.toHexString(number);
        }
        return value instanceof Double number ? Double.toHexString(number) : value.toString();
    }
}
