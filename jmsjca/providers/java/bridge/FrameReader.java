package jmsjca.bridge;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/** Reads the body of a frame. Lengths are compared with what is there before anything is copied. */
public final class FrameReader {
    private static final int NULL = -1;
    private final ByteBuffer data;

    public FrameReader(byte[] payload) {
        data = ByteBuffer.wrap(payload);
    }

    public int u8() {
        return data.get() & 0xFF;
    }

    public short i16() {
        return data.getShort();
    }

    public int i32() {
        return data.getInt();
    }

    public long i64() {
        return data.getLong();
    }

    /** Return a number of elements, each of at least one byte. */
    public int count() {
        int count = data.getInt();
        if (count < 0 || count > data.remaining()) {
            throw new BufferUnderflowException();
        }
        return count;
    }

    public byte[] bytes() {
        int size = data.getInt();
        if (size == NULL) {
            return null;
        }
        if (size < 0 || size > data.remaining()) {
            throw new BufferUnderflowException();
        }
        byte[] read = new byte[size];
        data.get(read);
        return read;
    }

    public String text() {
        byte[] encoded = bytes();
        return encoded == null ? null : new String(encoded, StandardCharsets.UTF_8);
    }

    /** Return a value with its type. */
    public Object value() {
        switch (u8()) {
            case Tags.NULL: return null;
            case Tags.BOOLEAN: return u8() != 0;
            case Tags.BYTE: return data.get();
            case Tags.SHORT: return data.getShort();
            case Tags.INT: return data.getInt();
            case Tags.LONG: return data.getLong();
            case Tags.FLOAT: return data.getFloat();
            case Tags.DOUBLE: return data.getDouble();
            case Tags.STRING: return text();
            case Tags.CHAR: return data.getChar();
            case Tags.BYTES: return bytes();
            default: throw new IllegalArgumentException("a frame has a value of an unknown type");
        }
    }
}
