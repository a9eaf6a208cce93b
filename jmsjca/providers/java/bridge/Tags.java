package jmsjca.bridge;

/** The types of values in frames. */
final class Tags {
    static final int NULL = 0;
    static final int BOOLEAN = 1;
    static final int BYTE = 2;
    static final int SHORT = 3;
    static final int INT = 4;
    static final int LONG = 5;
    static final int FLOAT = 6;
    static final int DOUBLE = 7;
    static final int STRING = 8;
    static final int CHAR = 9;
    static final int BYTES = 10;

    private Tags() {
    }
}
