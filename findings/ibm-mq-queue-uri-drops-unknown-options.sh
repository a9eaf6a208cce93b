#!/usr/bin/env bash
# Guess: the options of a queue URI of IBM MQ are checked; one whose name is wrong is refused, as a wrong value is.
# Seen: wrong values are refused at once, and so is a name of 49 characters. An option with a misspelt name is accepted
#   and ignored: "persistance=2" leaves the persistence of the messages to the producer.
# Matters: one letter decides whether messages survive a restart of the queue manager, and nothing says that the option
#   was not used. Set options by the methods of the queue, whose names the compiler checks, or read them back.
# Versions: com.ibm.mq.jakarta.client 10.0.0.0, Java 17. No queue manager is needed.
set -eu
. "$(dirname "$0")/lib.sh"
jars mq com.ibm.mq:com.ibm.mq.jakarta.client:10.0.0.0
cat >Case.java <<'J'
import java.util.List;
class Case {
    public static void main(String[] none) throws Exception {
        for (var rest : List.of("ORDERS?persistence=2", "ORDERS?persistance=2", "ORDERS?priority=99", "X".repeat(49)))
            try {
                var queue = new com.ibm.mq.jakarta.jms.MQQueue("queue://QM1/" + rest);
                System.out.println(rest + ": accepted, persistence " + queue.getIntProperty("persistence"));
            } catch (jakarta.jms.JMSException error) {
                System.out.println(rest + ": " + error.getErrorCode());
            }
    }
}
J
run_java mq Case.java | expect "ORDERS?persistence=2: accepted, persistence 2
ORDERS?persistance=2: accepted, persistence -2
ORDERS?priority=99: JMSCMQ0004
XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX: JMSCC0005"
