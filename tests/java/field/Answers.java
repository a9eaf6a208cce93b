package field;

import jakarta.jms.CompletionListener;
import jakarta.jms.Message;
import java.util.concurrent.CountDownLatch;

/** Counts what the broker has answered; a failure ends the process, for there is nothing to measure any more. */
final class Answers implements CompletionListener {
    private final CountDownLatch left;

    Answers(int count) {
        left = new CountDownLatch(count);
    }

    void await() throws InterruptedException {
        left.await();
    }

    @Override
    public void onCompletion(Message message) {
        left.countDown();
    }

    @Override
    public void onException(Message message, Exception problem) {
        problem.printStackTrace();
        System.exit(1);
    }
}
