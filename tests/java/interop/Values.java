package interop;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonPrimitive;
import java.util.Base64;
import java.util.Map;
import java.util.function.Function;

/** Values with their types, as JSON: null, or the name of the type and the value as text, exact for every one. */
final class Values {
    private static final Map<String, Function<String, Object>> READERS = Map.of(
            "boolean", Boolean::valueOf,
            "byte", Byte::valueOf,
            "short", Short::valueOf,
            "char", text -> text.charAt(0),
            "int", Integer::valueOf,
            "long", Long::valueOf,
            "float", Float::valueOf,
            "double", Double::valueOf,
            "string", text -> text,
            "bytes", text -> Base64.getDecoder().decode(text));

    private Values() {}

    static Object read(JsonElement told) {
        if (told.isJsonNull()) {
            return null;
        }
        JsonArray typed = told.getAsJsonArray();
        return READERS.get(typed.get(0).getAsString()).apply(typed.get(1).getAsString());
    }

    static JsonElement tell(Object value) {
        if (value == null) {
            return JsonNull.INSTANCE;
        }
        var told = new JsonArray();
        told.add(nameOf(value));
        told.add(new JsonPrimitive(textOf(value)));
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
        if (value instanceof Float number) {
            return Double.toHexString(number);
        }
        return value instanceof Double number ? Double.toHexString(number) : value.toString();
    }
}
