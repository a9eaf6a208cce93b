#!/usr/bin/env bash
# Guess: a broker that was restarted commits the prepared XA branches it has recovered, and keeps all their messages, even
#   if they go to the same queue.
# Seen: after a send of a local transaction, the commit of a second recovered branch makes the queue's cursor read the
#   message of the first one again. The broker takes it for a duplicate and removes it from KahaDB, with a warning
#   "duplicate from store … redirecting" although nothing goes to a dead-letter queue (sendDuplicateFromStoreToDLQ is
#   false). Consumers still get it from memory; after the next restart it is gone. With useCache="false" in the policy
#   of the queue it stays.
# Matters: every commit was confirmed, and messages of two-phase transactions are lost.
# Versions: ActiveMQ Classic 6.3.1 (broker with KahaDB, and client), Java 17.
set -eu
. "$(dirname "$0")/lib.sh"
activemq_jars org.apache.activemq:activemq-kahadb-store:6.3.1
cat >Case.java <<'J'
import jakarta.jms.*;
import java.util.*;
import javax.transaction.xa.*;
import org.apache.activemq.*;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.broker.region.policy.*;
class Case {
    record Id(byte[] global) implements Xid {
        public int getFormatId() { return 1; }
        public byte[] getGlobalTransactionId() { return global; }
        public byte[] getBranchQualifier() { return new byte[] {1}; }
    }
    static BrokerService broker;
    static void restart(String port, boolean cache) throws Exception {
        if (broker != null) {
            broker.stop();
            broker.waitUntilStopped();
        }
        broker = new BrokerService();
        broker.setDataDirectory("cache-" + cache);
        broker.setUseJmx(false);
        var policy = new PolicyEntry();
        policy.setQueue(">");
        policy.setUseCache(cache);
        broker.setDestinationPolicy(new PolicyMap());
        broker.getDestinationPolicy().setPolicyEntries(List.of(policy));
        broker.addConnector("tcp://127.0.0.1:" + port);
        broker.start();
    }
    static void send(Session session, String text) throws Exception {
        session.createProducer(session.createQueue("orders")).send(session.createTextMessage(text));
    }
    static List<String> browse(Session session) throws Exception {
        var texts = new ArrayList<String>();
        for (var each : Collections.list(session.createBrowser(session.createQueue("orders")).getEnumeration()))
            texts.add(((TextMessage) each).getText());
        return texts;
    }
    public static void main(String[] port) throws Exception {
        for (var cache : new boolean[] {true, false}) {
            restart(port[0], cache);
            var url = "tcp://127.0.0.1:" + port[0];
            try (var connection = new ActiveMQXAConnectionFactory(url).createXAConnection()) {
                for (byte number = 1; number <= 2; number++) {
                    var session = connection.createXASession();
                    var id = new Id(new byte[] {number});
                    session.getXAResource().start(id, XAResource.TMNOFLAGS);
                    send(session, "branch " + number);
                    session.getXAResource().end(id, XAResource.TMSUCCESS);
                    session.getXAResource().prepare(id);
                }
            }
            restart(port[0], cache);
            try (var recovery = new ActiveMQXAConnectionFactory(url).createXAConnection();
                    var connection = new ActiveMQConnectionFactory(url).createConnection()) {
                connection.start();
                var local = connection.createSession(true, Session.SESSION_TRANSACTED);
                send(local, "local");
                local.commit();
                var resource = recovery.createXASession().getXAResource();
                for (var id : resource.recover(XAResource.TMSTARTRSCAN | XAResource.TMENDRSCAN)) {
                    resource.commit(id, false);
                    browse(local); // as the look for expired messages does, every 30 seconds
                }
                System.out.println("cache " + cache + ": committed " + browse(local));
            }
            restart(port[0], cache);
            try (var connection = new ActiveMQConnectionFactory(url).createConnection()) {
                connection.start();
                System.out.println("  after a restart " + browse(connection.createSession(false, 1)));
            }
        }
        System.exit(0);
    }
}
J
run_java activemq Case.java "$openwire" | expect "cache true: committed [local, branch 1, branch 2]
  after a restart [local, branch 2]
cache false: committed [local, branch 1, branch 2]
  after a restart [local, branch 1, branch 2]"
