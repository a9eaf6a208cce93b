package jmsjca.jms;

import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidClientIDException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.InvalidSelectorException;
import jakarta.jms.JMSException;
import jakarta.jms.JMSSecurityException;
import jakarta.jms.MessageFormatException;
import jakarta.jms.ResourceAllocationException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import javax.naming.CommunicationException;
import javax.naming.NamingException;
import javax.naming.NamingSecurityException;
import javax.transaction.xa.XAException;
import jmsjca.bridge.FrameWriter;
import jmsjca.bridge.Replies;

/** Exceptions of a client as frames: when it failed, what JMS calls it, the client's code, and the chain of causes. */
final class Failures {
    /** When something failed: before anything was committed, rolled back for certain, after the commit was asked, or refused. */
    static final int BEFORE = 0;
    static final int ROLLED_BACK = 1;
    static final int IN_DOUBT = 2;
    static final int PARTIAL = 3;
    private static final int LONGEST = 1000;
    private static final int DEEPEST = 8;
    private static final Pattern LOST = Pattern.compile("ConnectionFailed|ProviderIO|ProviderClosed|ProviderFailed");

    private Failures() {
    }

    static void send(Replies replies, int id, int stage, Throwable error) {
        FrameWriter reply = Replies.begin();
        write(reply, stage, error);
        replies.send(Replies.FAILED, id, reply);
    }

    static void write(FrameWriter out, int stage, Throwable error) {
        Throwable root = error instanceof java.lang.reflect.InvocationTargetException ? error.getCause() : error;
        List<Throwable> chain = new ArrayList<>();
        for (Throwable each = root; each != null && chain.size() < DEEPEST && !chain.contains(each); each = next(each)) {
            chain.add(each);
        }
        out.u8(stage);
        out.text(kind(root));
        out.text(shortened(root.getClass().getSimpleName() + ": " + (root instanceof XAException ? "code " + code(root) : root.getMessage())));
        out.i32(chain.size());
        for (Throwable each : chain) {
            out.text(each.getClass().getName());
            out.text(shortened(String.valueOf(each.getMessage())));
            out.text(code(each));
        }
    }

    /** Whether the connection failed, and not the request. */
    static boolean isLost(Throwable error) {
        int depth = 0;
        for (Throwable each = error; each != null && depth < DEEPEST; each = next(each), depth++) {
            if (each instanceof IOException || LOST.matcher(each.getClass().getName()).find()) {
                return true;
            }
        }
        return false;
    }

    private static Throwable next(Throwable error) {
        Throwable linked = error instanceof JMSException ? ((JMSException) error).getLinkedException() : null;
        return linked != null ? linked : error.getCause();
    }

    private static String code(Throwable error) {
        if (error instanceof JMSException) {
            return ((JMSException) error).getErrorCode();
        }
        if (error instanceof XAException) {
            return String.valueOf(((XAException) error).errorCode);
        }
        try { // the reason of IBM MQ's own exceptions
            return String.valueOf(error.getClass().getMethod("getReason").invoke(error));
        } catch (ReflectiveOperationException none) {
            return null;
        }
    }

    private static String kind(Throwable error) {
        return error instanceof NamingSecurityException ? "security"
            : error instanceof NamingException && !(error instanceof CommunicationException) ? "configuration"
            : isLost(error) || error instanceof NamingException ? "lost"
            : error instanceof JMSSecurityException ? "security"
            : error instanceof InvalidDestinationException ? "destination"
            : error instanceof InvalidSelectorException ? "selector"
            : error instanceof InvalidClientIDException ? "client"
            : error instanceof IllegalStateException ? "state"
            : error instanceof MessageFormatException ? "format"
            : error instanceof ResourceAllocationException ? "resource"
            : error instanceof UnsupportedOperationException || error instanceof LinkageError ? "unsupported"
            : error instanceof ReflectiveOperationException || error instanceof NumberFormatException ? "configuration"
            : "";
    }

    private static String shortened(String text) {
        return text.length() > LONGEST ? text.substring(0, LONGEST) : text;
    }
}
