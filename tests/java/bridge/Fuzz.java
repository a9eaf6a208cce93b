import java.nio.BufferUnderflowException;
import java.util.Random;
import jmsjca.bridge.FrameReader;

/** Reads random frames by the bridge's reader: each is read or refused, and nothing is allocated for what is not there. */
public final class Fuzz {
    private static final int LONGEST = 200;
    private static final int READS = 20;

    public static void main(String[] arguments) {
        Random random = new Random(Long.parseLong(arguments[0]));
        int frames = Integer.parseInt(arguments[1]);
        int refused = 0;
        for (int i = 0; i < frames; i++) {
            byte[] frame = new byte[random.nextInt(LONGEST)];
            random.nextBytes(frame);
            if (random.nextBoolean()) {
                for (int at = 0; at + 3 < frame.length; at += 1 + random.nextInt(8)) {
                    frame[at] = 0; // small lengths, which reach further
                }
            }
            try {
                read(new FrameReader(frame), random);
            } catch (BufferUnderflowException | IllegalArgumentException expected) {
                refused++;
            }
        }
        System.out.println(frames + " frames, " + refused + " refused");
    }

    private static void read(FrameReader in, Random random) {
        for (int i = 0; i < READS; i++) {
            switch (random.nextInt(8)) {
                case 0: in.u8(); break;
                case 1: in.i16(); break;
                case 2: in.i32(); break;
                case 3: in.i64(); break;
                case 4: in.count(); break;
                case 5: in.bytes(); break;
                case 6: in.text(); break;
                default: in.value();
            }
        }
    }
}
