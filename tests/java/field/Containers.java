package field;

import jakarta.jms.ConnectionFactory;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageListener;
import java.util.concurrent.CountDownLatch;
import org.springframework.jms.listener.DefaultMessageListenerContainer;

/** Spring's message listener container with one consumer, which it keeps; transacted it commits every message. */
final class Containers {
    private Containers() {}

    static Watch listen(ConnectionFactory factory, String queue, int count, boolean transacted) throws Exception {
        var watch = new Watch();
        var left = new CountDownLatch(count);
        var container = new DefaultMessageListenerContainer();
        container.setConnectionFactory(factory);
        container.setDestinationName(queue);
        container.setSessionTransacted(transacted);
        container.setCacheLevel(DefaultMessageListenerContainer.CACHE_CONSUMER);
        container.setMessageListener((MessageListener) message -> handle(message, left, count, watch));
        container.afterPropertiesSet();
        container.start();
        left.await();
        container.shutdown();
        return watch;
    }

    private static void handle(Message message, CountDownLatch left, int count, Watch watch) {
        try {
            Sessions.check(message);
        } catch (JMSException problem) {
            throw new IllegalStateException(problem);
        }
        if (left.getCount() == count) {
            watch.begin();
        }
        if (left.getCount() == 1) {
            watch.end();
        }
        left.countDown();
    }
}
