package jmsjca.bridge;

import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.net.URLClassLoader;

/** The class loader of one client: its jars, and the bridge's classes compiled for its name space. */
final class ClientLoader extends URLClassLoader {
    private static final String OURS = "jmsjca.jms.";
    private final String namespace;

    ClientLoader(URL[] jars, String namespace) {
        super(jars, ClientLoader.class.getClassLoader());
        this.namespace = namespace;
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
        if (!name.startsWith(OURS)) {
            return super.findClass(name);
        }
        String path = "/" + namespace + "/" + name.replace('.', '/') + ".class";
        try (InputStream in = ClientLoader.class.getResourceAsStream(path)) {
            if (in == null) {
                throw new ClassNotFoundException(name);
            }
            byte[] code = in.readAllBytes();
            return defineClass(name, code, 0, code.length);
        } catch (IOException error) {
            throw new ClassNotFoundException(name, error);
        }
    }
}
