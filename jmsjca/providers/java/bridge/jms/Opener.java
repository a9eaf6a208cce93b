package jmsjca.jms;

import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.Destination;
import jakarta.jms.XAConnectionFactory;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.MalformedURLException;
import java.net.URL;
import java.util.Hashtable;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Pattern;
import javax.naming.Context;
import javax.naming.InitialContext;
import javax.naming.NamingException;
import jmsjca.bridge.FrameReader;
import jmsjca.bridge.Port;
import jmsjca.bridge.Replies;

/** Makes a client's connections: a factory class with its bean properties, or a factory of JNDI, and the login. */
public final class Opener implements Port.Opener {
    private static final Pattern FAIL_OVER = Pattern.compile("(failover|fanout|discovery|static|multicast):.*", Pattern.DOTALL);

    @Override
    public Port open(int id, int number, FrameReader request, Replies replies) {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(Opener.class.getClassLoader());
        try {
            String factoryClass = request.text();
            String lookup = request.text();
            String url = request.text();
            Map<String, String> settings = pairs(request);
            Map<String, String> names = pairs(request);
            String user = request.text();
            String password = request.text();
            String clientId = request.text();
            String[] files = {request.text(), request.text(), request.text()};
            Map<String, Object> found = lookup == null ? Map.of() : find(settings, lookup, names);
            ConnectionFactory factory = (ConnectionFactory) (lookup == null ? make(factoryClass, url, settings) : found.get(lookup));
            Tls.apply(factory, files[0], files[1], files[2]);
            Dialect dialect = Dialect.of(factory, request);
            byte[] qualifier = request.bytes();
            boolean hasXa = qualifier != null && factory instanceof XAConnectionFactory;
            Connection made = hasXa ? connect((XAConnectionFactory) factory, user, password)
                : user == null ? factory.createConnection() : factory.createConnection(user, password);
            byte[] branches = hasXa ? qualifier : null;
            Link link = new Link(number, replies, made, clientId, dialect.flags, dialect.changed, dialect.number, branches);
            for (Map.Entry<String, String> each : names.entrySet()) {
                link.messages.name(each.getKey(), (Destination) found.get(each.getValue()));
            }
            return link;
        } catch (Throwable error) {
            Failures.send(replies, id, Failures.BEFORE, error);
            return null;
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    private static Map<String, String> pairs(FrameReader request) {
        Map<String, String> read = new LinkedHashMap<>();
        for (int i = request.count(); i > 0; i--) {
            read.put(request.text(), request.text());
        }
        return read;
    }

    /** Look up a factory and the destinations that the configuration names: no name of a message comes here. */
    private static Map<String, Object> find(Map<String, String> environment, String factory, Map<String, String> destinations)
            throws NamingException, WrongSetting {
        Map<String, Object> found = new LinkedHashMap<>();
        Context context = new InitialContext(new Hashtable<>(environment));
        try {
            found.put(factory, fitting(ConnectionFactory.class, factory, context.lookup(factory)));
            for (String each : destinations.values()) {
                found.put(each, fitting(Destination.class, each, context.lookup(each)));
            }
        } finally {
            context.close();
        }
        return found;
    }

    private static Object fitting(Class<?> wanted, String name, Object found) throws WrongSetting {
        if (!wanted.isInstance(found)) {
            String what = found == null ? "nothing" : "a " + found.getClass().getName();
            throw new WrongSetting("the name " + name + " stands for " + what + ", and a " + wanted.getName() + " is needed");
        }
        return found;
    }

    private static Object make(String name, String url, Map<String, String> beans) throws Exception {
        Class<?> type = Class.forName(name, false, Opener.class.getClassLoader());
        if (!ConnectionFactory.class.isAssignableFrom(type)) { // before any code of it runs
            throw new WrongSetting("the class " + name + " is not a " + ConnectionFactory.class.getName());
        }
        Object factory = url == null ? type.getConstructor().newInstance() : type.getConstructor(String.class).newInstance(url);
        for (Map.Entry<String, String> bean : beans.entrySet()) {
            set(factory, bean.getKey(), bean.getValue());
        }
        return factory;
    }

    /** Set a bean property: of the factory, or of what one of its getters returns, as in redeliveryPolicy.maximumRedeliveries. */
    private static void set(Object of, String bean, String value) throws Exception {
        int dot = bean.indexOf('.');
        if (dot > 0) {
            set(get(of, bean.substring(0, dot)), bean.substring(dot + 1), value);
            return;
        }
        for (Method method : of.getClass().getMethods()) {
            Class<?>[] kinds = method.getParameterTypes();
            Object converted = kinds.length == 1 && method.getName().equals(accessor("set", bean)) ? convert(bean, value, kinds[0]) : null;
            if (converted != null) {
                method.invoke(of, converted);
                return;
            }
        }
        try { // as Open MQ has it
            of.getClass().getMethod("setProperty", String.class, String.class).invoke(of, bean, value);
        } catch (NoSuchMethodException | InvocationTargetException none) {
            throw new WrongSetting(of.getClass().getName() + " has no property " + bean);
        }
    }

    private static Connection connect(XAConnectionFactory factory, String user, String password) throws Exception {
        return user == null ? factory.createXAConnection() : factory.createXAConnection(user, password);
    }

    private static Object get(Object of, String bean) throws Exception {
        Method getter = of.getClass().getMethod(accessor("get", bean));
        if (getter.getDeclaringClass() == Object.class) {
            throw new WrongSetting(of.getClass().getName() + " has no property " + bean);
        }
        return getter.invoke(of);
    }

    private static String accessor(String verb, String bean) {
        return verb + Character.toUpperCase(bean.charAt(0)) + bean.substring(1);
    }

    private static Object convert(String bean, String value, Class<?> kind) throws WrongSetting {
        try {
            return kind == String.class ? value
                : kind == int.class ? (Object) Integer.valueOf(value)
                : kind == long.class ? (Object) Long.valueOf(value)
                : kind == boolean.class ? (Object) Boolean.valueOf(value)
                : kind == URL.class ? new URL(value)
                : null;
        } catch (MalformedURLException | NumberFormatException wrong) { // whose texts show the value, maybe a secret
            throw new WrongSetting("the property " + bean + " has the type " + kind.getSimpleName() + ", which the value does not fit");
        }
    }

    /** How a client behaves, as its factory shows. */
    private static final class Dialect {
        private int number;
        private int flags;
        private String[] changed;

        /** Return the first one that fits, after its settings were made; the class name of the last one is empty. */
        static Dialect of(Object factory, FrameReader request) throws Exception {
            Dialect chosen = null;
            int count = request.count();
            for (int i = 0; i < count; i++) {
                String factoryClass = request.text();
                Map<String, String> settings = pairs(request);
                String address = request.text();
                Dialect read = new Dialect();
                read.number = i;
                read.flags = request.u8();
                String codes = request.text();
                read.changed = codes.isEmpty() ? new String[0] : codes.split("\n");
                if (chosen == null && (factoryClass.isEmpty() || isA(factory.getClass(), factoryClass))) {
                    chosen = read;
                    adapt(factory, settings, address);
                }
            }
            return chosen;
        }

        private static void adapt(Object factory, Map<String, String> settings, String address) throws Exception {
            if (!address.isEmpty() && FAIL_OVER.matcher(String.valueOf(get(factory, address))).matches()) {
                throw new WrongSetting("the property " + address + " of the factory has the client's own fail-over, which reports"
                    + " commits as rolled back that the broker has carried out");
            }
            for (Map.Entry<String, String> setting : settings.entrySet()) {
                set(factory, setting.getKey(), setting.getValue());
            }
        }

        private static boolean isA(Class<?> type, String name) {
            return type != null && (name.equals(type.getName()) || isA(type.getSuperclass(), name));
        }
    }

    /** The configuration names something that does not fit. */
    static final class WrongSetting extends ReflectiveOperationException {
        private static final long serialVersionUID = 1;

        WrongSetting(String message) {
            super(message);
        }
    }
}
