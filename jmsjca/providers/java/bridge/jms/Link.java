package jmsjca.jms;

import jakarta.jms.Connection;
import jakarta.jms.ConnectionMetaData;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.Topic;
import jakarta.jms.XAConnection;
import jakarta.jms.XASession;
import java.util.Arrays;
import java.util.Enumeration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicLong;
import javax.transaction.xa.XAException;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import jmsjca.bridge.FrameReader;
import jmsjca.bridge.FrameWriter;
import jmsjca.bridge.Main;
import jmsjca.bridge.Port;
import jmsjca.bridge.Replies;

/** A connection: its requests, each on the thread of the session that it needs. */
final class Link implements Port {
    private static final int CLOSE = 2;
    private static final int CONSUMER = 3;
    private static final int RECEIVE = 4;
    private static final int WAKE = 5;
    private static final int CLOSE_CONSUMER = 6;
    private static final int COMMIT = 7;
    private static final int ROLLBACK = 8;
    private static final int BROWSE = 9;
    private static final int BROWSE_NEXT = 10;
    private static final int BROWSE_CLOSE = 11;
    private static final int TEMPORARY = 12;
    private static final int DELETE = 13;
    private static final int UNSUBSCRIBE = 14;
    private static final int CHECK = 15;
    private static final int PREPARE = 16;
    private static final int END = 17;
    private static final int RECOVER = 18;
    private static final int POLLS = 1;
    private static final int HEARS_REFUSALS = 2;
    private static final int ASKS_BEFORE_SENDS = 8;
    private static final int PREFIXES_TOPICS = 4;
    private static final int TRANSACTED = 0;
    private static final int AUTO = 1;
    private static final int CHUNK_BYTES = 1 << 20;
    private static final int LOOKS = 3;

    final Replies replies;
    final Messages messages;
    final boolean polls;
    final boolean asksBeforeSends;
    private final boolean hearsRefusals;
    private final String[] changed;
    private final int number;
    private final int dialect;
    private final Connection connection;
    private final byte[] qualifier; // of the branches of XA; null without them
    private final ExecutorService sending = Executors.newSingleThreadExecutor(threads());
    private final ExecutorService control = Executors.newSingleThreadExecutor(threads());
    private final ExecutorService settling = Executors.newCachedThreadPool(threads());
    private final Map<Integer, Lane> lanes = new ConcurrentHashMap<>();
    private final Map<Integer, Browse> browses = new ConcurrentHashMap<>();
    private final Map<Long, Held> units = new ConcurrentHashMap<>();
    private final AtomicLong numbers = new AtomicLong();
    private final Map<String, Destination> own = new ConcurrentHashMap<>();
    private final Commits commits = new Commits(this);
    private CompletableFuture<Void> lastSend = CompletableFuture.completedFuture(null);
    private Lane.Slot sender;
    private Session plain;
    private XAResource recovery;

    Link(int number, Replies replies, Connection connection, String clientId, int flags, String[] changed, int dialect,
            byte[] qualifier)
            throws Exception {
        this.number = number;
        this.dialect = dialect;
        this.replies = replies;
        this.connection = connection;
        this.qualifier = qualifier;
        polls = (flags & POLLS) != 0;
        asksBeforeSends = (flags & ASKS_BEFORE_SENDS) != 0;
        messages = new Messages((flags & PREFIXES_TOPICS) != 0);
        hearsRefusals = (flags & HEARS_REFUSALS) != 0;
        this.changed = changed;
        try {
            if (clientId != null) {
                connection.setClientID(clientId);
            }
            connection.setExceptionListener(this::lost);
            connection.start();
        } catch (Throwable error) {
            abandon();
            throw error;
        }
    }

    @Override
    public void announce(int id) {
        run(control, id, () -> {
            ConnectionMetaData about = connection.getMetaData();
            FrameWriter out = Replies.begin();
            out.text(about.getJMSProviderName());
            out.text(about.getProviderVersion());
            out.u8(dialect);
            out.bytes(qualifier);
            replies.send(Replies.DONE, id, out);
        });
    }

    void abandon() {
        control.execute(() -> {
            try {
                connection.close();
            } catch (JMSException | RuntimeException gone) {
                // it never was open
            }
        });
    }

    /** Begin a transaction of a session, as a unit. */
    void register(Lane.Slot slot, Lane lane) {
        slot.unit = numbers.incrementAndGet();
        units.put(slot.unit, new Held(slot.unit, lane, slot));
    }

    /** Forget the transaction of a session, which has ended. */
    void forget(Lane.Slot slot) {
        units.remove(slot.unit);
        slot.unit = 0;
        slot.count = 0;
    }

    @Override
    public void handle(int operation, int id, FrameReader in) {
        switch (operation) {
            case CLOSE: close(id); break;
            case CONSUMER: open(id, in.i32(), in); break;
            case RECEIVE: receive(id, in); break;
            case WAKE: wake(in.i32()); break;
            case CLOSE_CONSUMER: closeConsumer(id, in.i32()); break;
            case COMMIT: commit(id, in.i64(), in.i32(), in, false); break;
            case PREPARE: commit(id, in.i64(), in.i32(), in, true); break;
            case END: end(id, in.i64(), in); break;
            case RECOVER: run(control, id, () -> recover(id)); break;
            case ROLLBACK: run(settling, id, () -> rollback(id, in)); break;
            case BROWSE: run(control, id, () -> browse(id, in.i32(), in)); break;
            case BROWSE_NEXT: run(control, id, () -> next(id, in.i32(), in.i32())); break;
            case BROWSE_CLOSE: run(control, id, () -> closeBrowse(id, in.i32())); break;
            case TEMPORARY: run(control, id, () -> temporary(id, in.u8())); break;
            case DELETE: run(control, id, () -> delete(id, in.u8() + in.text())); break;
            case UNSUBSCRIBE: run(control, id, () -> unsubscribe(id, in.text())); break;
            case CHECK: run(control, id, () -> check(id, in)); break;
            default: throw new IllegalArgumentException("unknown operation " + operation);
        }
    }

    private void run(ExecutorService thread, int id, Task task) {
        try {
            thread.execute(() -> {
                try {
                    task.run();
                } catch (Throwable error) {
                    Failures.send(replies, id, Failures.BEFORE, error);
                }
            });
        } catch (RejectedExecutionException closed) {
            Failures.send(replies, id, Failures.BEFORE, new jakarta.jms.IllegalStateException("It is closed."));
        }
    }

    private void lost(JMSException error) {
        if (hearsRefusals && !Failures.isLost(error)) {
            return; // of a send in a transaction, which cannot commit any more
        }
        Main.thread(() -> {
            commits.awaitAnswers(); // which may be there already
            FrameWriter out = Replies.begin();
            Failures.write(out, Failures.BEFORE, error);
            replies.send(Replies.LOST, number, out);
        }).start();
    }

    private static ThreadFactory threads() {
        ClassLoader loader = Link.class.getClassLoader();
        return task -> {
            Thread thread = Main.thread(task);
            thread.setContextClassLoader(loader);
            return thread;
        };
    }

    private Session plain() throws JMSException {
        if (plain == null) {
            plain = connection.createSession(false, AUTO);
        }
        return plain;
    }

    private void open(int id, int name, FrameReader in) {
        ExecutorService thread = Executors.newSingleThreadExecutor(threads());
        run(thread, id, () -> {
            Lane.Slot first = slot();
            try {
                Source source = new Source(in, messages, first.session);
                Lane.Traits traits = new Lane.Traits(in.u8() != 0, in.i32(), source.hasCompetitors(), source.keepsMessages());
                Lane.Maker maker = () -> {
                    Lane.Slot more = slot();
                    more.consume(consumer(more.session, source));
                    return more;
                };
                first.consume(consumer(first.session, source));
                lanes.put(name, new Lane(this, thread, first, maker, traits));
            } catch (Throwable error) {
                first.session.close();
                thread.shutdown();
                throw error;
            }
            replies.done(id);
        });
    }

    /** Open a session whose work is committed: by itself, or in branches of XA. */
    private Lane.Slot slot() throws JMSException {
        if (qualifier == null) {
            return new Lane.Slot(connection.createSession(true, TRANSACTED), null);
        }
        XASession made = ((XAConnection) connection).createXASession();
        return new Lane.Slot(made.getSession(), new Branch(made.getXAResource(), qualifier));
    }

    private MessageConsumer consumer(Session session, Source from) throws JMSException {
        if (from.shared) {
            return from.durable ? shared(session, (Topic) from.target, from.name, from.selector)
                : session.createSharedConsumer((Topic) from.target, from.name, from.selector);
        }
        if (from.durable) {
            return session.createDurableSubscriber((Topic) from.target, from.name, from.selector, from.noLocal);
        }
        return from.noLocal ? session.createConsumer(from.target, from.selector, true)
            : session.createConsumer(from.target, from.selector);
    }

    /** Open a shared durable subscription; one with another topic or selector is removed, unless it is in use. */
    private MessageConsumer shared(Session session, Topic topic, String name, String selector) throws JMSException {
        try {
            return session.createSharedDurableConsumer(topic, name, selector);
        } catch (JMSException error) {
            if (Arrays.stream(changed).noneMatch(code -> String.valueOf(error.getMessage()).startsWith(code))) {
                throw error;
            }
            Session other = connection.createSession(false, AUTO);
            try {
                other.unsubscribe(name);
            } catch (JMSException used) {
                throw error;
            } finally {
                other.close();
            }
            return session.createSharedDurableConsumer(topic, name, selector);
        }
    }

    /** Open a consumer for a moment, by which some brokers create the queue. */
    void create(Queue queue) throws JMSException {
        Session session = connection.createSession(false, AUTO);
        try {
            session.createConsumer(queue, null).close();
        } finally {
            session.close();
        }
    }

    private void receive(int id, FrameReader in) {
        Lane lane = lanes.get(in.i32());
        int limit = in.i32();
        long timeout = in.i64();
        int bytes = in.i32();
        if (lane == null) {
            fail(id, "This consumer is closed.");
        } else {
            run(lane.thread, id, () -> lane.receive(id, limit, timeout, bytes));
        }
    }

    private void wake(int name) {
        Lane lane = lanes.get(name);
        if (lane != null) {
            lane.wake();
        }
    }

    private void closeConsumer(int id, int name) {
        Lane lane = lanes.remove(name);
        if (lane == null) {
            fail(id, "This consumer is closed.");
            return;
        }
        lane.stop();
        run(lane.thread, id, () -> {
            lane.close();
            replies.done(id);
        });
    }

    private void fail(int id, String text) {
        Failures.send(replies, id, Failures.BEFORE, new jakarta.jms.IllegalStateException(text));
    }

    /** Commit or prepare a unit. What only sends is so in order, and before what is received and committed after it. */
    private void commit(int id, long unit, int taken, FrameReader in, boolean prepares) {
        CompletableFuture<Void> before = lastSend;
        if (taken > 0) {
            run(settling, id, () -> {
                before.join();
                commits.commit(id, in, units.get(unit), taken, prepares);
            });
            return;
        }
        CompletableFuture<Void> done = new CompletableFuture<>();
        lastSend = done;
        run(sending, id, () -> {
            try {
                if (sender == null) {
                    sender = slot();
                }
                commits.commit(id, in, new Held(0, null, sender), 0, prepares);
            } finally {
                done.complete(null);
            }
        });
    }

    /** Commit or roll back a prepared branch, of a unit of this connection or of recovery. */
    private void end(int id, long unit, FrameReader in) {
        Branch.Id xid = new Branch.Id(in.bytes(), in.bytes());
        boolean isCommit = in.u8() != 0;
        Held held = units.get(unit);
        run(held == null ? control : settling, id, () -> {
            FrameWriter out = Replies.begin();
            out.u8(held == null ? Branch.end(recovery(), xid, isCommit) : commits.end(held, xid, isCommit));
            replies.send(Replies.DONE, id, out);
        });
    }

    private void recover(int id) throws JMSException, XAException {
        FrameWriter out = Replies.begin();
        List<Xid> found = Branch.recover(recovery());
        out.i32(found.size());
        for (Xid each : found) {
            out.bytes(each.getGlobalTransactionId());
            out.bytes(each.getBranchQualifier());
        }
        replies.send(Replies.DONE, id, out);
    }

    private XAResource recovery() throws JMSException {
        if (recovery == null) {
            recovery = ((XAConnection) connection).createXASession().getXAResource();
        }
        return recovery;
    }

    /** Roll units back, in this order. */
    private void rollback(int id, FrameReader in) throws Exception {
        long[] names = new long[in.count()];
        for (int i = 0; i < names.length; i++) {
            names[i] = in.i64();
        }
        for (long name : names) {
            Held held = units.get(name);
            if (held != null) {
                commits.rollback(held);
            }
        }
        replies.done(id);
    }

    private void close(int id) {
        lanes.values().forEach(Lane::stop);
        CompletableFuture<Void> before = lastSend;
        run(control, id, () -> {
            before.join();
            sending.shutdown();
            settling.shutdown();
            finish(id);
        });
    }

    private void finish(int id) {
        units.values().forEach(held -> held.slot.leave()); // Artemis would keep an open branch for minutes
        try {
            connection.close();
        } catch (JMSException | RuntimeException gone) {
            // it is lost, which closes it as well
        }
        lanes.values().forEach(lane -> lane.thread.shutdown());
        replies.done(id);
        control.shutdown();
    }

    private void browse(int id, int name, FrameReader in) throws JMSException {
        Browse made = new Browse();
        made.slot = qualifier == null ? new Lane.Slot(connection.createSession(false, AUTO), null) : slot();
        Session session = made.slot.session;
        try {
            made.slot.begin(); // ActiveMQ's XA shows no message without a branch
            made.browser = session.createBrowser((Queue) messages.readDestination(in, session), in.text());
            made.messages = made.browser.getEnumeration();
        } catch (JMSException | RuntimeException error) {
            made.slot.close();
            throw error;
        }
        browses.put(name, made);
        replies.done(id);
    }

    private void next(int id, int browse, int limit) throws JMSException {
        Enumeration<?> shown = browses.get(browse).messages;
        FrameWriter out = Replies.begin();
        out.i32(0);
        int place = out.size() - 4;
        int count = 0;
        while (count < limit && out.size() < CHUNK_BYTES && hasMore(shown)) {
            Message message = (Message) shown.nextElement();
            if (message == null) { // it was consumed since
                break;
            }
            out.i64(0);
            messages.write(message, out);
            count++;
        }
        out.i32At(place, count);
        replies.send(Replies.DONE, id, out);
    }

    /** Whether there is another message: Artemis' client says no at each expired one. */
    private boolean hasMore(Enumeration<?> shown) {
        for (int looks = polls ? LOOKS : 1; looks > 0; looks--) {
            if (shown.hasMoreElements()) {
                return true;
            }
        }
        return false;
    }

    private void closeBrowse(int id, int name) throws JMSException {
        browses.remove(name).slot.close();
        replies.done(id);
    }

    private void temporary(int id, int kind) throws JMSException {
        Destination made = kind == 1 ? plain().createTemporaryQueue() : plain().createTemporaryTopic();
        messages.remember(made);
        String name = kind == 1 ? ((Queue) made).getQueueName() : ((Topic) made).getTopicName();
        own.put(kind + name, made);
        FrameWriter out = Replies.begin();
        out.text(name);
        replies.send(Replies.DONE, id, out);
    }

    private void delete(int id, String key) throws JMSException {
        Destination made = own.get(key);
        if (made instanceof TemporaryQueue) {
            ((TemporaryQueue) made).delete();
        } else {
            ((TemporaryTopic) made).delete();
        }
        own.remove(key);
        replies.done(id);
    }

    private void unsubscribe(int id, String name) throws JMSException {
        plain().unsubscribe(name);
        replies.done(id);
    }

    private void check(int id, FrameReader in) throws JMSException {
        MessageProducer producer = plain().createProducer(messages.readDestination(in, plain()));
        producer.close();
        replies.done(id);
    }

    /** A unit, with the session that received its messages; its lane is null if it only sends. */
    static final class Held {
        final long unit;
        final Lane.Slot slot;
        private final Lane lane;

        Held(long unit, Lane lane, Lane.Slot slot) {
            this.unit = unit;
            this.lane = lane;
            this.slot = slot;
        }

        void settled() {
            if (lane != null) {
                lane.settled(slot);
            }
        }

        void failed() {
            if (lane != null) {
                lane.failed(slot);
            }
        }
    }

    /** What a consumer receives from. */
    private static final class Source {
        private final Destination target;
        private final String name;
        private final boolean shared;
        private final boolean durable;
        private final boolean noLocal;
        private final String selector;

        Source(FrameReader in, Messages messages, Session session) throws JMSException {
            target = messages.readDestination(in, session);
            name = in.text();
            shared = in.u8() != 0;
            durable = in.u8() != 0;
            noLocal = in.u8() != 0;
            selector = in.text();
        }

        boolean hasCompetitors() {
            return shared || isQueue();
        }

        boolean keepsMessages() {
            return durable || isQueue();
        }

        private boolean isQueue() {
            return target instanceof Queue && !(target instanceof TemporaryTopic) && name == null;
        }
    }

    private static final class Browse {
        private Lane.Slot slot;
        private QueueBrowser browser;
        private Enumeration<?> messages;
    }

    /** Something that may fail. */
    private interface Task {
        void run() throws Throwable;
    }
}
