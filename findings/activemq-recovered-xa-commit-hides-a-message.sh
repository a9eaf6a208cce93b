#!/usr/bin/env bash
# Guess: a broker that was restarted commits a prepared XA branch it has recovered, and the other messages of the queue
#   are delivered as before.
# Seen: KahaDB keeps the number of messages of a queue in its index. Each start takes the prepared acknowledgements off
#   this number, and the commit takes them off again, so it is too low by one for each of them, for ever. After the next
#   restart the queue has a message that the broker does not deliver, nor shows to a browser: it believes the queue
#   empty. It comes back when the index is rebuilt from the journal (db.data and db.redo deleted).
# Matters: messages that no transaction has touched are not delivered, later ones pass them, and nothing is logged.
# Versions: ActiveMQ Classic 6.3.1 (broker with KahaDB, and client), Java 17. The number is in the index since 5.16
#   (AMQ-7132).
set -eu
. "$(dirname "$0")/lib.sh"
activemq_jars org.apache.activemq:activemq-kahadb-store:6.3.1
cat >Case.java <<'J'
import jakarta.jms.*;
import java.io.File;
import javax.transaction.xa.*;
import org.apache.activemq.*;
import org.apache.activemq.broker.BrokerService;
class Case {
    record Id(byte[] global) implements Xid {
        public int getFormatId() { return 1; }
        public byte[] getGlobalTransactionId() { return global; }
        public byte[] getBranchQualifier() { return new byte[] {1}; }
    }
    static BrokerService broker;
    static void start(String port) throws Exception {
        broker = new BrokerService();
        broker.setDataDirectory("data");
        broker.setUseJmx(false);
        broker.addConnector("tcp://127.0.0.1:" + port);
        broker.start();
    }
    static void stop() throws Exception {
        broker.stop();
        broker.waitUntilStopped();
    }
    static String receive(Session session) throws Exception {
        var message = (TextMessage) session.createConsumer(session.createQueue("orders")).receive(3000);
        return message == null ? "nothing" : message.getText();
    }
    static void look(ConnectionFactory factory, String when) throws Exception {
        try (var connection = factory.createConnection()) {
            connection.start();
            System.out.println(when + ": " + receive(connection.createSession(true, Session.SESSION_TRANSACTED)));
        }
    }
    public static void main(String[] port) throws Exception {
        var url = "tcp://127.0.0.1:" + port[0] + "?jms.prefetchPolicy.queuePrefetch=0";
        var plain = new ActiveMQConnectionFactory(url);
        var factory = new ActiveMQXAConnectionFactory(url);
        start(port[0]);
        try (var sender = plain.createConnection(); var connection = factory.createXAConnection()) {
            connection.start();
            var out = sender.createSession(false, 1);
            for (var text : new String[] {"order 1", "order 2"})
                out.createProducer(out.createQueue("orders")).send(out.createTextMessage(text));
            var session = connection.createXASession();
            var id = new Id(new byte[] {7});
            session.getXAResource().start(id, XAResource.TMNOFLAGS);
            System.out.println("received in the branch: " + receive(session));
            session.getXAResource().end(id, XAResource.TMSUCCESS);
            session.getXAResource().prepare(id);
        }
        stop();
        start(port[0]);
        try (var connection = factory.createXAConnection()) {
            var resource = connection.createXASession().getXAResource();
            for (var id : resource.recover(XAResource.TMSTARTRSCAN | XAResource.TMENDRSCAN)) {
                resource.commit(id, false);
                System.out.println("committed");
            }
        }
        look(plain, "left");
        stop();
        start(port[0]);
        look(plain, "left after a restart");
        stop();
        for (var file : new String[] {"db.data", "db.redo"})
            new File("data/localhost/KahaDB", file).delete();
        start(port[0]);
        look(plain, "left after the index was rebuilt");
        System.exit(0);
    }
}
J
run_java activemq Case.java "$openwire" | expect "received in the branch: order 1
committed
left: order 2
left after a restart: nothing
left after the index was rebuilt: order 2"
