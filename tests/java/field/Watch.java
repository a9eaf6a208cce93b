package field;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;

/** Elapsed time and this process's processor time, from the first message to the last. */
final class Watch {
    private static final double NANOSECONDS = 1e9;
    private static final OperatingSystemMXBean SYSTEM =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private long elapsed;
    private long processor;

    void begin() {
        elapsed = -System.nanoTime();
        processor = -SYSTEM.getProcessCpuTime();
    }

    void end() {
        elapsed += System.nanoTime();
        processor += SYSTEM.getProcessCpuTime();
    }

    @Override
    public String toString() {
        return elapsed / NANOSECONDS + " " + processor / NANOSECONDS;
    }
}
