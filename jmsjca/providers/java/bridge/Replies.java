package jmsjca.bridge;

import java.io.IOException;
import java.io.OutputStream;

/** Writes replies and events to Python, each as one frame. */
public final class Replies {
    public static final int DONE = 0;
    public static final int FAILED = 1;
    public static final int LOST = 2;
    private static final int HEAD = 9;
    private final OutputStream out;

    Replies(OutputStream out) {
        this.out = out;
    }

    /** Begin a reply; its head is filled in when it is sent. */
    public static FrameWriter begin() {
        FrameWriter frame = new FrameWriter();
        frame.i32(0);
        frame.u8(0);
        frame.i32(0);
        return frame;
    }

    /** Send a frame that was begun here. */
    public void send(int kind, int id, FrameWriter frame) {
        byte[] data = frame.array();
        int size = frame.size();
        frame.i32At(0, size - 4);
        data[4] = (byte) kind;
        frame.i32At(HEAD - 4, id);
        synchronized (out) {
            try {
                out.write(data, 0, size);
            } catch (IOException ended) { // Python is gone: nobody waits for this process any more
                Runtime.getRuntime().halt(0);
            }
        }
    }

    /** Send the reply of a request that returns nothing. */
    public void done(int id) {
        send(DONE, id, begin());
    }
}
