package jmsjca.jms;

import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import java.lang.reflect.Method;
import java.util.LinkedHashMap;
import java.util.Map;
import jmsjca.bridge.FrameReader;
import jmsjca.bridge.Port;
import jmsjca.bridge.Replies;

/** Makes a client's connections: a factory class, its bean properties, and the login. */
public final class Opener implements Port.Opener {
    @Override
    public Port open(int id, int number, FrameReader request, Replies replies) {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(Opener.class.getClassLoader());
        try {
            String factoryClass = request.text();
            String url = request.text();
            Map<String, String> beans = new LinkedHashMap<>();
            for (int i = request.count(); i > 0; i--) {
                beans.put(request.text(), request.text());
            }
            String user = request.text();
            String password = request.text();
            String clientId = request.text();
            int flags = request.u8();
            String changed = request.text();
            Connection made = connect(factory(factoryClass, url, beans), user, password);
            return new Link(number, replies, made, clientId, flags, changed.isEmpty() ? new String[0] : changed.split("\n"));
        } catch (Throwable error) {
            Failures.send(replies, id, Failures.BEFORE, error);
            return null;
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    private static Object factory(String name, String url, Map<String, String> beans) throws Exception {
        Class<?> type = Class.forName(name, true, Opener.class.getClassLoader());
        Object factory = url == null ? type.getConstructor().newInstance() : type.getConstructor(String.class).newInstance(url);
        for (Map.Entry<String, String> bean : beans.entrySet()) {
            set(factory, bean.getKey(), bean.getValue());
        }
        return factory;
    }

    private static void set(Object factory, String bean, String value) throws Exception {
        String setter = "set" + Character.toUpperCase(bean.charAt(0)) + bean.substring(1);
        for (Method method : factory.getClass().getMethods()) {
            if (method.getName().equals(setter) && method.getParameterCount() == 1) {
                Class<?> kind = method.getParameterTypes()[0];
                Object converted = kind == String.class ? value
                    : kind == int.class ? (Object) Integer.valueOf(value)
                    : kind == long.class ? (Object) Long.valueOf(value)
                    : kind == boolean.class ? (Object) Boolean.valueOf(value)
                    : null;
                if (converted != null) {
                    method.invoke(factory, converted);
                    return;
                }
            }
        }
        throw new NoSuchMethodException("the connection factory has no property " + bean);
    }

    private static Connection connect(Object factory, String user, String password) throws Exception {
        ConnectionFactory made = (ConnectionFactory) factory;
        return user == null ? made.createConnection() : made.createConnection(user, password);
    }
}
