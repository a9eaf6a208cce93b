#!/usr/bin/env bash
# Guess: a transaction branch that is ended with TMFAIL can only be rolled back; prepare() of it throws an XAException
#   with a rollback code (the X/Open specification marks such a branch rollback-only).
# Seen: Artemis answers XA_OK to prepare() and to commit(), and the message that was received in the failed branch is
#   gone from its queue.
# Matters: a transaction manager must not prepare after TMFAIL and trust the broker to refuse: the work of the half that
#   failed is committed.
# Versions: Artemis 2.56.0 (broker and Core client), Java 17 (the clients
#   are those of the Artemis distribution).
set -eu
. "$(dirname "$0")/lib.sh"
artemis_files
cat >Case.java <<'J'
import javax.jms.*;
import javax.transaction.xa.*;
class Case {
    record Id(byte[] global) implements Xid {
        public int getFormatId() { return 1; }
        public byte[] getGlobalTransactionId() { return global; }
        public byte[] getBranchQualifier() { return new byte[] {1}; }
    }
    public static void main(String[] port) throws Exception {
        new org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ().setConfigResourcePath("file:broker.xml").start();
        var factory = new org.apache.activemq.artemis.jms.client.ActiveMQXAConnectionFactory("tcp://127.0.0.1:" + port[0]);
        try (var connection = factory.createXAConnection(); var plain = factory.createConnection()) {
            connection.start();
            plain.start();
            var session = plain.createSession(false, 1);
            var queue = session.createQueue("orders");
            session.createProducer(queue).send(session.createTextMessage("order"));
            var xa = connection.createXASession();
            var resource = xa.getXAResource();
            var id = new Id(new byte[] {7});
            resource.start(id, XAResource.TMNOFLAGS);
            System.out.println("received " + (xa.createConsumer(queue).receive(10000) != null));
            resource.end(id, XAResource.TMFAIL);
            System.out.println("prepare " + (resource.prepare(id) == XAResource.XA_OK ? "XA_OK" : "other"));
            resource.commit(id, false);
            xa.close();
            System.out.println("left in the queue " + (session.createConsumer(queue).receive(2000) != null));
        }
        System.exit(0);
    }
}
J
run_java "$artemis_jars" Case.java "$core" | expect "received true
prepare XA_OK
left in the queue false"
