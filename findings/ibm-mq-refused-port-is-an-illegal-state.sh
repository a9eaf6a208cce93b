#!/usr/bin/env bash
# Guess: createConnection() to a port where nothing listens throws a JMSException for a failed connection, and
#   IllegalStateException stays what JMS 3.1 says: a method called at the wrong time.
# Seen: the exception of IBM MQ's client is a jakarta.jms.IllegalStateException. The reason is only in the cause: an
#   MQException with reason 2538 (host not available).
# Matters: code that takes IllegalStateException for a mistake of the program, and so does not try again, gives up when a
#   queue manager restarts. Decide by the reason in the chain of causes, not by the class.
# Versions: com.ibm.mq.jakarta.client 10.0.0.0, Java 17. No queue manager is needed.
set -eu
. "$(dirname "$0")/lib.sh"
jars mq com.ibm.mq:com.ibm.mq.jakarta.client:10.0.0.0
cat >Case.java <<'J'
class Case {
    public static void main(String[] port) throws Exception {
        var factory = new com.ibm.mq.jakarta.jms.MQConnectionFactory();
        factory.setTransportType(com.ibm.msg.client.jakarta.wmq.WMQConstants.WMQ_CM_CLIENT);
        factory.setHostName("127.0.0.1");
        factory.setPort(Integer.parseInt(port[0]));
        factory.setQueueManager("QM1");
        try {
            factory.createConnection();
        } catch (jakarta.jms.JMSException error) {
            System.out.println("IllegalStateException: " + (error instanceof jakarta.jms.IllegalStateException));
            for (Throwable cause = error; cause != null; cause = cause.getCause())
                if (cause instanceof com.ibm.mq.MQException reason) System.out.println("reason " + reason.getReason());
        }
    }
}
J
run_java mq Case.java "$(free_ports 1)" | expect "IllegalStateException: true
reason 2538"
