package interop;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** Carries out commands, each one line of JSON on the standard input, and answers each with one line. */
public final class Main {
    private static final Commands COMMANDS = new Commands();

    public static void main(String[] words) throws IOException {
        var orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err); // what a library prints must not stand between the answers
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            answers.println(answer(JsonParser.parseString(line).getAsJsonObject()));
        }
        System.exit(0); // whatever threads the clients still have
    }

    private static JsonElement answer(JsonObject order) {
        var answer = new JsonObject();
        try {
            answer.add("result", COMMANDS.carryOut(order));
        } catch (Exception problem) {
            answer.addProperty("error", problem.getClass().getSimpleName() + ": " + problem.getMessage());
        }
        return answer;
    }
}
