package jmsjca.jms;

import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import javax.transaction.xa.XAException;
import jmsjca.bridge.FrameWriter;
import jmsjca.bridge.Replies;

/**
 * A consumer: its thread, and its sessions.
 *
 * <p>A transacted session commits all that it has received. So where the order is kept one session receives, and a unit
 * is all that is outstanding. Elsewhere each message, or the messages of one call, have a session for themselves until
 * their unit ends. A subscription that is not shared can have one session only, and waits until that unit has ended.
 */
final class Lane {
    private static final long SLICE = 100; // milliseconds until a wake or a close is noticed
    private static final long LONGEST_PAUSE = 16; // milliseconds between two looks
    private static final String GROUP = "JMSXGroupID";

    final ExecutorService thread;
    private final Link link;
    private final Maker maker;
    private final Traits traits;
    private final Deque<Slot> idle = new ArrayDeque<>();
    private Slot only;
    private volatile boolean woken;
    private volatile boolean closing;

    Lane(Link link, ExecutorService thread, Slot first, Maker maker, Traits traits) {
        this.link = link;
        this.thread = thread;
        this.maker = maker;
        this.traits = traits;
        if (traits.hasOneSession()) {
            only = first;
        } else {
            idle.push(first);
        }
    }

    void wake() {
        woken = true;
    }

    void stop() {
        closing = true;
    }

    /** Receive up to some messages: wait for the first one, and take what else is there. */
    void receive(int id, int limit, long timeout, int bytes) throws Exception {
        FrameWriter out = Replies.begin();
        out.i32(0);
        int start = out.size();
        int most = traits.keepsTogether() ? Math.min(limit, traits.together) : limit;
        int count = 0;
        Slot slot = null;
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeout);
        while (count < most && out.size() <= bytes && !closing && !woken) {
            long left = timeout < 0 ? SLICE : TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
            if (slot == null) {
                slot = free();
            }
            int added = slot == null ? pause() : next(slot, count > 0 ? 0 : Math.min(SLICE, left), count, start, out);
            if (added == UNDONE) {
                count = 0;
            } else if (added > 0) {
                count++;
            }
            if (added == ALONE || added == 0 && (count > 0 || left <= 0)) {
                break;
            }
            if (!traits.keepsTogether() && added > 0 || added == UNDONE) {
                slot = null;
            }
        }
        if (slot != null && !traits.hasOneSession() && slot.count == 0) {
            settled(slot);
        }
        if (count == 0) {
            woken = false;
        }
        out.i32At(start - 4, count);
        link.replies.send(Replies.DONE, id, out);
    }

    /** Close the consumer; each message that is not settled keeps its session. */
    void close() throws JMSException {
        closing = true;
        Slot slot;
        while ((slot = taken()) != null) {
            if (slot.count == 0) {
                slot.close();
            }
        }
        thread.shutdown();
    }

    /**
     * Use a session again that has no message; or close it, if a broker may bind a message group to it, or may still
     * send it a message that nothing would receive: Artemis does so for a moment after an empty look.
     */
    void settled(Slot slot) {
        if (closing || !traits.hasOneSession() && (slot.hasGroup || link.polls)) {
            slot.discard();
        } else if (!traits.hasOneSession()) {
            synchronized (idle) {
                idle.push(slot);
            }
        }
    }

    /** Forget a session that was rolled back: a client might keep its messages for itself. */
    void failed(Slot slot) {
        if (!closing && !traits.canReopen && !traits.competes) {
            return; // to close the only consumer of a topic would lose its messages
        }
        Slot other = closing || traits.canReopen ? null : another();
        slot.discard();
        synchronized (idle) {
            if (traits.hasOneSession()) {
                only = only == slot ? other : only;
            } else if (other != null) {
                idle.push(other);
            }
        }
    }

    /** Return another session of a shared subscription that ends with its last consumer; null if there is none. */
    private Slot another() {
        try {
            return maker.make();
        } catch (Exception lost) {
            return null; // the connection is gone, and the subscription with it
        }
    }

    private Slot taken() {
        synchronized (idle) {
            Slot slot = only != null ? only : idle.poll();
            only = null;
            return slot;
        }
    }

    /** Return a session that may receive; null while the only one has messages that are not settled. */
    private Slot free() throws Exception {
        Slot slot;
        synchronized (idle) {
            slot = traits.hasOneSession() ? only : idle.poll();
        }
        if (slot == null) {
            slot = maker.make();
            if (traits.hasOneSession()) {
                synchronized (idle) {
                    only = slot;
                }
            }
        }
        return slot.count > 0 && !traits.ordered ? null : slot;
    }

    private static int pause() {
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1));
        return 0;
    }

    private static final int ALONE = 2;
    private static final int UNDONE = -1;

    /** Receive a message. Return 0 for none, 1, ALONE if it must be the last one, or UNDONE if all were rolled back. */
    private int next(Slot slot, long wait, int before, int start, FrameWriter out) throws Exception {
        slot.lock.lock();
        try {
            if (slot.isClosed || slot.isPrepared()) {
                return 0;
            }
            slot.begin();
            Message message = wait <= 0 ? slot.consumer.receiveNoWait()
                : link.polls ? poll(slot.consumer, wait) : slot.consumer.receive(wait);
            if (message == null) {
                return 0;
            }
            try {
                boolean alone = !traits.ordered && traits.together > 1 && message.getJMSRedelivered();
                if (alone && before > 0) { // it may be delayed or moved: it must not share a session with others
                    undo(slot);
                    out.truncate(start);
                    return UNDONE;
                }
                if (slot.count++ == 0) {
                    link.register(slot, this);
                }
                out.i64(slot.unit);
                link.messages.write(message, out);
                slot.hasGroup |= message.getObjectProperty(GROUP) != null;
                return alone ? ALONE : 1;
            } catch (Exception unreadable) {
                undo(slot);
                throw unreadable;
            }
        } finally {
            slot.lock.unlock();
        }
    }

    private void undo(Slot slot) throws Exception {
        slot.rollback();
        link.forget(slot);
        failed(slot);
    }

    /** Receive without a wait, again and again: a wait of Artemis' client without a window may prefetch a message. */
    private Message poll(MessageConsumer consumer, long wait) throws JMSException {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(wait);
        for (long pause = 1; true; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
            Message message = consumer.receiveNoWait();
            if (message != null || woken || closing || System.nanoTime() > end) {
                return message;
            }
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(pause));
        }
    }

    /** Makes sessions with a consumer of the same source. */
    interface Maker {
        Slot make() throws Exception;
    }

    /** How a consumer receives. */
    static final class Traits {
        private final boolean ordered;
        private final int together; // messages of one call that end in one unit
        private final boolean competes; // several sessions can receive from the same source
        private final boolean canReopen; // the source keeps messages while no session receives

        Traits(boolean ordered, int together, boolean competes, boolean canReopen) {
            this.ordered = ordered;
            this.together = together;
            this.competes = competes;
            this.canReopen = canReopen;
        }

        private boolean hasOneSession() {
            return ordered || !competes;
        }

        private boolean keepsTogether() {
            return hasOneSession() || together > 1;
        }
    }

    /** A session with transactions, or branches of XA; with a consumer or without. Its lock is held for each use of it. */
    static final class Slot {
        final ReentrantLock lock = new ReentrantLock(true);
        final Session session;
        final Branch branch; // null if the session has transactions of its own
        private MessageConsumer consumer;
        private MessageProducer producer;
        private boolean hasGroup;
        private boolean isClosed;
        long unit; // the number of its open transaction
        volatile int count; // of messages in it

        Slot(Session session, Branch branch) {
            this.session = session;
            this.branch = branch;
        }

        void consume(MessageConsumer from) {
            consumer = from;
        }

        /** Begin a unit: nothing may be received or sent outside of a branch. */
        void begin() throws JMSException {
            if (branch != null) {
                branch.begin(count == 0);
            }
        }

        void end() throws XAException {
            if (branch != null) {
                branch.end();
            }
        }

        void commit() throws JMSException, XAException {
            if (branch == null) {
                session.commit();
            } else {
                branch.commit();
            }
        }

        void rollback() throws JMSException, XAException {
            if (branch == null) {
                session.rollback();
            } else {
                branch.rollback();
            }
        }

        boolean isPrepared() {
            return branch != null && branch.isPrepared();
        }

        /** Forget the branch, which has ended. */
        void clear() {
            if (branch != null) {
                branch.clear();
            }
        }

        /** Roll back an open branch, unless it is used at this moment; a prepared one is recovery's. */
        void leave() {
            if (branch != null && lock.tryLock()) {
                try {
                    if (!branch.isPrepared()) {
                        branch.rollback();
                    }
                } catch (XAException gone) {
                    // the broker rolls it back
                } finally {
                    lock.unlock();
                }
            }
        }

        /** Close the session; with an open branch ActiveMQ would keep it. */
        void close() throws JMSException {
            try {
                leave();
            } finally {
                session.close();
            }
        }

        MessageProducer producer() throws JMSException {
            if (producer == null) {
                producer = session.createProducer(null);
            }
            return producer;
        }

        void discard() {
            isClosed = true;
            try {
                close();
            } catch (JMSException | RuntimeException lost) {
                // the connection is gone, and the session with it
            }
        }
    }
}
