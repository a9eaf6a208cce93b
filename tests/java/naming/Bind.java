import java.lang.reflect.Method;
import java.util.Hashtable;
import javax.naming.Context;
import javax.naming.InitialContext;

/** Binds objects in a folder, as an administrator does: FOLDER, then for each NAME, CLASS, and PROPERTY=VALUE… up to a dot. */
public final class Bind {
    public static void main(String[] arguments) throws Exception {
        Hashtable<String, String> environment = new Hashtable<>();
        environment.put(Context.INITIAL_CONTEXT_FACTORY, "com.sun.jndi.fscontext.RefFSContextFactory");
        environment.put(Context.PROVIDER_URL, arguments[0]);
        Context context = new InitialContext(environment);
        for (int i = 1; i < arguments.length; i++) {
            String name = arguments[i++];
            Object made = Class.forName(arguments[i++]).getConstructor().newInstance();
            for (; !arguments[i].equals("."); i++) {
                String[] pair = arguments[i].split("=", 2);
                set(made, "set" + pair[0], pair[1]);
            }
            context.rebind(name, made);
        }
    }

    private static void set(Object of, String setter, String value) throws Exception {
        for (Method method : of.getClass().getMethods()) {
            Class<?> kind = method.getName().equals(setter) && method.getParameterCount() == 1 ? method.getParameterTypes()[0] : null;
            if (kind == String.class || kind == int.class) {
                method.invoke(of, kind == int.class ? (Object) Integer.valueOf(value) : value);
                return;
            }
        }
        throw new IllegalArgumentException(setter);
    }
}
