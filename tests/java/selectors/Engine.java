package selectors;

import java.util.Map;

/** The selector engine of a broker. */
interface Engine {
    /** A selector as the engine has parsed it. */
    interface Condition {
        /** Says whether the selector selects a message, given by its headers and properties. */
        boolean matches(Map<String, Object> message) throws Exception;
    }

    /** Parses a selector. */
    Condition parse(String selector) throws Exception;
}
