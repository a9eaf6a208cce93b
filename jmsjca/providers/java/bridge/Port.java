package jmsjca.bridge;

/** A connection of one client, as the frames reach it. Its class is loaded by the class loader of that client. */
public interface Port {
    /** Begin a request. It answers through the replies that the port was opened with, and never blocks. */
    void handle(int operation, int id, FrameReader request);

    /** Answer the request that opened it: requests may follow now. */
    void announce(int id);

    /** Opens connections: one for each client. */
    interface Opener {
        /** Connect, and return the connection; null if it failed, and the request was answered so. Blocks. */
        Port open(int id, int number, FrameReader request, Replies replies);
    }
}
