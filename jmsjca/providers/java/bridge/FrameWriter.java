package jmsjca.bridge;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Writes the body of a frame. */
public final class FrameWriter {
    private static final int NULL = -1;
    private ByteBuffer data = ByteBuffer.allocate(512);

    public int size() {
        return data.position();
    }

    /** Forget what was written after a position. */
    public void truncate(int size) {
        data.position(size);
    }

    public void u8(int value) {
        room(1).put((byte) value);
    }

    public void i16(int value) {
        room(2).putShort((short) value);
    }

    public void i32(int value) {
        room(4).putInt(value);
    }

    public void i64(long value) {
        room(8).putLong(value);
    }

    /** Write a number in a place that was left for it. */
    public void i32At(int position, int value) {
        data.putInt(position, value);
    }

    public void u8At(int position, int value) {
        data.put(position, (byte) value);
    }

    public void bytes(byte[] value) {
        if (value == null) {
            i32(NULL);
        } else {
            i32(value.length);
            room(value.length).put(value);
        }
    }

    public void text(String value) {
        bytes(value == null ? null : value.getBytes(StandardCharsets.UTF_8));
    }

    /** Write a value with its type. */
    public void value(Object value) {
        if (value == null) {
            u8(Tags.NULL);
        } else if (value instanceof String) {
            u8(Tags.STRING);
            text((String) value);
        } else if (value instanceof Integer) {
            u8(Tags.INT);
            i32((Integer) value);
        } else if (value instanceof Long) {
            u8(Tags.LONG);
            i64((Long) value);
        } else if (value instanceof Boolean) {
            u8(Tags.BOOLEAN);
            u8((Boolean) value ? 1 : 0);
        } else if (value instanceof Double) {
            u8(Tags.DOUBLE);
            room(8).putDouble((Double) value);
        } else if (value instanceof Float) {
            u8(Tags.FLOAT);
            room(4).putFloat((Float) value);
        } else if (value instanceof Short) {
            u8(Tags.SHORT);
            i16((Short) value);
        } else if (value instanceof Byte) {
            u8(Tags.BYTE);
            u8((Byte) value);
        } else if (value instanceof Character) {
            u8(Tags.CHAR);
            room(2).putChar((Character) value);
        } else if (value instanceof byte[]) {
            u8(Tags.BYTES);
            bytes((byte[]) value);
        } else { // a vendor's own type of a property
            u8(Tags.STRING);
            text(value.toString());
        }
    }

    byte[] array() {
        return data.array();
    }

    private ByteBuffer room(int size) {
        if (data.remaining() < size) {
            int wanted = Math.max(Math.multiplyExact(data.capacity(), 2), Math.addExact(data.position(), size));
            data = ByteBuffer.wrap(Arrays.copyOf(data.array(), wanted), data.position(), wanted - data.position());
        }
        return data;
    }
}
