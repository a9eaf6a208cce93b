package jmsjca.jms;

import jakarta.jms.JMSException;
import jakarta.jms.TransactionRolledBackException;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import javax.transaction.xa.XAException;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;

/** The branch of XA in which a session receives and sends: one at a time, which is one unit. */
final class Branch {
    private static final int FORMAT = 0x6A6D73;
    private static final byte[] PREFIX = {'j', 'm', 's'};
    private static final int RANDOM = 16;
    private static final long OLD = TimeUnit.SECONDS.toNanos(60); // a broker rolls back an open one after some minutes
    private static final SecureRandom NUMBERS = new SecureRandom();

    final XAResource resource;
    private final byte[] qualifier;
    private Id id;
    private boolean isEnded;
    private boolean isPrepared;
    private long since;

    Branch(XAResource resource, byte[] qualifier) {
        this.resource = resource;
        this.qualifier = qualifier;
    }

    /** Whether it has voted, so that nothing may join it. */
    boolean isPrepared() {
        return isPrepared;
    }

    /** Open it, unless it is open. Without messages an old one is replaced. */
    void begin(boolean isEmpty) throws JMSException {
        try {
            if (id != null && isEmpty && System.nanoTime() - since > OLD) {
                rollback();
            }
            if (id == null) {
                Id next = new Id(number(), qualifier);
                resource.start(next, XAResource.TMNOFLAGS);
                id = next;
                since = System.nanoTime();
            }
        } catch (XAException error) {
            JMSException told = new JMSException("A branch of XA cannot be opened: code " + error.errorCode);
            told.initCause(error);
            throw told;
        }
    }

    /** End its work. What fails here cannot be prepared or committed any more. */
    void end() throws XAException {
        if (id != null) {
            isEnded = true;
            resource.end(id, XAResource.TMSUCCESS);
        }
    }

    /** Commit it in one phase. */
    void commit() throws XAException {
        Id ended = clear();
        if (ended != null) {
            resource.commit(ended, true);
        }
    }

    /** Prepare it, and return its global id; null if nothing is to be committed. */
    byte[] prepare() throws XAException {
        if (id != null && resource.prepare(id) == XAResource.XA_RDONLY) {
            clear();
        }
        isPrepared = id != null;
        return isPrepared ? id.global : null;
    }

    /** Roll it back, prepared or not. */
    void rollback() throws XAException {
        boolean wasEnded = isEnded;
        Id open = clear();
        if (open == null) {
            return;
        }
        try {
            if (!wasEnded) {
                resource.end(open, XAResource.TMSUCCESS);
            }
        } finally {
            end(resource, open, false);
        }
    }

    /** Forget it, and return its id. */
    Id clear() {
        Id was = id;
        id = null;
        isEnded = false;
        isPrepared = false;
        return was;
    }

    /** Commit or roll back a prepared branch. Return the code of a heuristic outcome that contradicts this; 0 for none. */
    static int end(XAResource resource, Id id, boolean commits) throws XAException {
        try {
            if (commits) {
                resource.commit(id, false);
            } else {
                resource.rollback(id);
            }
            return 0;
        } catch (XAException error) {
            if (error.errorCode == XAException.XAER_NOTA || !commits && isRolledBack(error)) {
                return 0; // a recovery was first, and has decided the same
            }
            if (error.errorCode < XAException.XA_HEURMIX || error.errorCode > XAException.XA_HEURHAZ) {
                throw error;
            }
            resource.forget(id);
            return error.errorCode == (commits ? XAException.XA_HEURCOM : XAException.XA_HEURRB) ? 0 : error.errorCode;
        }
    }

    /** Return the prepared branches of the broker that this library has made. */
    static List<Xid> recover(XAResource resource) throws XAException {
        List<Xid> found = new ArrayList<>();
        for (Xid each : resource.recover(XAResource.TMSTARTRSCAN | XAResource.TMENDRSCAN)) {
            if (each.getFormatId() == FORMAT) {
                found.add(each);
            }
        }
        return found;
    }

    /** Whether an error says that the work of a branch that was not prepared is rolled back. */
    static boolean isRolledBack(Throwable error) {
        if (!(error instanceof XAException)) {
            return false;
        }
        int code = ((XAException) error).errorCode;
        return code == XAException.XAER_NOTA || code >= XAException.XA_RBBASE && code <= XAException.XA_RBEND;
    }

    private static byte[] number() {
        byte[] random = new byte[RANDOM];
        NUMBERS.nextBytes(random);
        byte[] made = Arrays.copyOf(PREFIX, PREFIX.length + RANDOM);
        System.arraycopy(random, 0, made, PREFIX.length, RANDOM);
        return made;
    }

    /** The name of a branch; clients keep it as a key. */
    static final class Id implements Xid {
        private final byte[] global;
        private final byte[] qualifier;

        Id(byte[] global, byte[] qualifier) {
            this.global = global;
            this.qualifier = qualifier;
        }

        @Override
        public int getFormatId() {
            return FORMAT;
        }

        @Override
        public byte[] getGlobalTransactionId() {
            return global.clone();
        }

        @Override
        public byte[] getBranchQualifier() {
            return qualifier.clone();
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Id && Arrays.equals(global, ((Id) other).global)
                && Arrays.equals(qualifier, ((Id) other).qualifier);
        }

        @Override
        public int hashCode() {
            return Arrays.hashCode(global);
        }
    }
}
