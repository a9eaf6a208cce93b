package jmsjca.bridge;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.net.URL;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** The bridge: reads requests from its standard input, and ends with it. Its argument is the largest frame in bytes. */
public final class Main {
    private static final int CONNECT = 1;
    private static final int CLOSE = 2;
    private static final int HEAD = 9;
    private static final int USAGE = 64;

    private final Map<String, Port.Opener> clients = new ConcurrentHashMap<>();
    private final Map<Integer, Port> ports = new ConcurrentHashMap<>();
    private final ExecutorService openers = Executors.newCachedThreadPool(Main::thread);
    private final Replies replies = new Replies(new FileOutputStream(FileDescriptor.out));

    public static void main(String[] arguments) {
        System.setOut(System.err); // a client that prints must not damage the frames
        System.setIn(InputStream.nullInputStream());
        int status = 0;
        try {
            InputStream in = new BufferedInputStream(new FileInputStream(FileDescriptor.in), 1 << 16);
            new Main().serve(new DataInputStream(in), Integer.parseInt(arguments[0]));
        } catch (EOFException ended) { // Python closed the pipe, or is gone
            status = 0;
        } catch (Throwable error) {
            error.printStackTrace();
            status = USAGE;
        }
        Runtime.getRuntime().halt(status); // no client's thread or hook keeps the process
    }

    /** Return a thread that does not keep the process. */
    public static Thread thread(Runnable task) {
        Thread thread = new Thread(task, "jmsjca");
        thread.setDaemon(true);
        return thread;
    }

    private void serve(DataInputStream in, int limit) throws Exception {
        while (true) {
            int size = in.readInt();
            if (size < HEAD || size > limit) {
                throw new IllegalArgumentException("a frame of " + size + " bytes");
            }
            byte[] payload = in.readNBytes(size);
            if (payload.length < size) {
                throw new EOFException();
            }
            FrameReader request = new FrameReader(payload);
            int operation = request.u8();
            int id = request.i32();
            int number = request.i32();
            if (operation == CONNECT) {
                openers.execute(() -> connect(id, number, request));
            } else {
                Port port = operation == CLOSE ? ports.remove(number) : ports.get(number);
                if (port != null) {
                    port.handle(operation, id, request);
                } // else it was closed, and Python has failed the request already
            }
        }
    }

    private void connect(int id, int number, FrameReader request) {
        try {
            String namespace = request.text();
            String[] jars = request.text().split("\n");
            Port port = client(namespace, jars).open(id, number, request, replies);
            if (port != null) {
                ports.put(number, port);
                port.announce(id);
            }
        } catch (Throwable error) {
            FrameWriter reply = Replies.begin();
            reply.u8(0);
            reply.text("");
            reply.text(error.toString());
            reply.i32(0);
            replies.send(Replies.FAILED, id, reply);
        }
    }

    private synchronized Port.Opener client(String namespace, String[] jars) throws Exception {
        String key = namespace + "\n" + String.join("\n", jars);
        Port.Opener known = clients.get(key);
        if (known == null) {
            URL[] urls = new URL[jars.length];
            for (int i = 0; i < jars.length; i++) {
                urls[i] = new File(jars[i]).toURI().toURL();
            }
            ClassLoader loader = new ClientLoader(urls, namespace);
            known = (Port.Opener) loader.loadClass("jmsjca.jms.Opener").getConstructor().newInstance();
            clients.put(key, known);
        }
        return known;
    }
}
