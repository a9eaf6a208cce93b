package jmsjca.jms;

import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.TransactionRolledBackException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Pattern;
import javax.transaction.xa.XAException;
import jmsjca.bridge.FrameReader;
import jmsjca.bridge.FrameWriter;
import jmsjca.bridge.Replies;

/** Ends units: each is the transaction of one session, or its branch of XA. */
final class Commits {
    private static final int LOOKS = 100;
    private static final long PAUSE = TimeUnit.MILLISECONDS.toNanos(10);

    /** The answer of ActiveMQ if it has refused a send of the transaction: a code from XA_RBBASE to XA_RBEND. */
    private static final Pattern VOTE = Pattern.compile("xaErrorCode:10[0-7]$");

    private final Link link;
    private final AtomicInteger running = new AtomicInteger();

    Commits(Link link) {
        this.link = link;
    }

    /** Commit or prepare a unit in the session that has received its messages, or in any if it only sends. */
    void commit(int id, FrameReader in, Link.Held held, int taken, boolean prepares) {
        if (held == null) {
            rolledBefore(id);
            return;
        }
        Lane.Slot slot = held.slot;
        running.incrementAndGet();
        slot.lock.lock();
        try {
            if (taken > 0 && slot.unit != held.unit) { // the session may have another unit now
                rolledBefore(id);
                return;
            }
            if (taken > 0 && slot.count != taken) { // nothing has happened, and nothing will
                Failures.send(link.replies, id, Failures.PARTIAL, new JMSException(slot.count + " messages, not " + taken));
                return;
            }
            boolean asked = false;
            FrameWriter reply = Replies.begin();
            try {
                slot.begin();
                sendAll(slot, in);
                slot.end();
                asked = !prepares; // without a decision a prepared branch is rolled back, by recovery at the latest
                if (prepares) {
                    reply.bytes(slot.branch.prepare());
                } else {
                    slot.commit();
                }
                if (taken > 0 && slot.isPrepared()) {
                    link.replies.send(Replies.DONE, id, reply);
                    return;
                }
                slot.clear();
                link.forget(slot);
                link.replies.send(Replies.DONE, id, reply);
            } catch (Throwable error) {
                boolean inDoubt = asked && !rolledBack(error);
                if (!inDoubt) {
                    quietly(slot::rollback);
                }
                link.forget(slot);
                Failures.send(link.replies, id, inDoubt ? Failures.IN_DOUBT : Failures.ROLLED_BACK, error);
                held.failed();
                return;
            }
            held.settled();
        } finally {
            slot.lock.unlock();
            running.decrementAndGet();
        }
    }

    /** Wait a moment while commits wait for the broker. They fail with their connection, unless they were answered. */
    void awaitAnswers() {
        for (int looks = 0; looks < LOOKS && running.get() > 0; looks++) {
            LockSupport.parkNanos(PAUSE);
        }
    }

    private void rolledBefore(int id) {
        Throwable told = new TransactionRolledBackException("A message of the unit was rolled back before.");
        Failures.send(link.replies, id, Failures.ROLLED_BACK, told);
    }

    /** Roll a unit back. Nothing happens if it was rolled back before. */
    void rollback(Link.Held held) throws Exception {
        Lane.Slot slot = held.slot;
        slot.lock.lock();
        try {
            if (slot.unit == held.unit) {
                try {
                    slot.rollback();
                } finally {
                    link.forget(slot);
                    held.failed();
                }
            }
        } finally {
            slot.lock.unlock();
        }
    }

    /** Commit or roll back the prepared branch of a unit. Return the code of a heuristic outcome, or 0. */
    int end(Link.Held held, Branch.Id xid, boolean commits) throws XAException {
        Lane.Slot slot = held.slot;
        slot.lock.lock();
        boolean isDone = false;
        try {
            int outcome = Branch.end(slot.branch.resource, xid, commits);
            isDone = commits && outcome == 0;
            return outcome;
        } finally {
            slot.clear();
            link.forget(slot);
            if (isDone) {
                held.settled();
            } else {
                held.failed();
            }
            slot.lock.unlock();
        }
    }

    /** Send the messages of a unit; repeated sends to one destination by their own producer, if that saves requests. */
    private void sendAll(Lane.Slot slot, FrameReader in) throws JMSException {
        Messages.Outgoing last = null;
        MessageProducer own = null;
        try {
            for (int sends = in.count(); sends > 0; sends--) {
                Messages.Outgoing out = link.messages.read(in, slot.session, last);
                boolean again = link.asksBeforeSends && last != null && out.to == last.to;
                if (own != null && !again) {
                    own.close();
                    own = null;
                } else if (own == null && again) {
                    own = slot.session.createProducer(out.to);
                }
                last = out;
                send(slot, out, own);
            }
        } finally {
            if (own != null) {
                own.close();
            }
        }
    }

    /** Send a message of a unit by the producer of its destination, or by the session's general one if that is null. */
    private void send(Lane.Slot slot, Messages.Outgoing out, MessageProducer own) throws JMSException {
        long now = System.currentTimeMillis();
        MessageProducer producer = own != null ? own : slot.producer();
        if (out.deliveryTime != 0) {
            producer.setDeliveryDelay(Math.max(out.deliveryTime - now, 0));
        }
        long left = out.expiration == 0 ? 0 : Math.max(out.expiration - now, 1);
        if (own != null) {
            own.send(out.message, out.mode, out.priority, left);
        } else {
            try {
                producer.send(out.to, out.message, out.mode, out.priority, left);
            } catch (InvalidDestinationException missing) { // for Artemis: a topic of this name exists, and no queue
                if (!(out.to instanceof Queue)) {
                    throw missing;
                }
                link.create((Queue) out.to);
                producer.send(out.to, out.message, out.mode, out.priority, left);
            }
        }
        if (out.deliveryTime != 0) {
            producer.setDeliveryDelay(0);
        }
    }

    private static boolean rolledBack(Throwable error) {
        Throwable cause = error.getCause();
        return error instanceof TransactionRolledBackException || Branch.isRolledBack(error)
            || isRefused(error) || isRefused(cause)
            || VOTE.matcher(String.valueOf(error.getMessage())).find();
    }

    /** Artemis refuses a send at the commit, as if the connection had failed: the cause is the broker's answer. */
    private static boolean isRefused(Throwable cause) {
        return cause != null && cause.getClass().getSimpleName().equals("ActiveMQSecurityException");
    }

    private static void quietly(Action action) {
        try {
            action.run();
        } catch (Throwable gone) {
            // the connection is lost, and the transaction with it
        }
    }

    /** Something that may fail. */
    private interface Action {
        void run() throws Exception;
    }
}
