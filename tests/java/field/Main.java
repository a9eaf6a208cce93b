package field;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * Java's clients, timed: reads "LOOP QUEUE COUNT BATCH", line by line, and answers with the seconds that it took and the
 * seconds of this process's processor time.
 */
public final class Main {
    private final JmsConnectionFactory factory;

    private Main(String url) {
        factory = new JmsConnectionFactory(url);
    }

    public static void main(String[] words) throws Exception {
        var main = new Main(words[0]);
        var orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            System.out.println(main.answer(line.split(" ")));
        }
        System.exit(0); // whatever threads the clients still have
    }

    private String answer(String[] order) throws Exception {
        String queue = order[1];
        int count = Integer.parseInt(order[2]);
        int batch = Integer.parseInt(order[3]);
        Watch watch = switch (order[0]) {
            case "receive" -> Sessions.receive(factory, queue, count, batch);
            case "send" -> Sessions.send(factory, queue, count, batch);
            case "stream" -> Sessions.stream(factory, queue, count);
            case "listen" -> Containers.listen(factory, queue, count, batch > 0);
            default -> throw new IOException("There is no loop " + order[0]);
        };
        return watch.toString();
    }
}
