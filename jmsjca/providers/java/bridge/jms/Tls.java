package jmsjca.jms;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;

/** Certificates and keys of PEM files, for one connection factory: nothing is set for the whole process. */
final class Tls {
    private static final Pattern BLOCK = Pattern.compile("-----BEGIN ([A-Z ]+)-----([^-]+)-----END");
    private static final char[] NO_PASSWORD = {};

    private Tls() {
    }

    /** Set them by the property that the client has for them. */
    static void apply(Object factory, String authority, String certificate, String key) throws Exception {
        if (authority == null && certificate == null) {
            return; // those of Java
        }
        TrustManager[] trusted = authority == null ? null : trust(authority);
        KeyManager[] own = certificate == null ? null : keys(certificate, key == null ? certificate : key);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(own, trusted, null);
        for (Method method : factory.getClass().getMethods()) {
            switch (method.getName()) {
                case "setSslContext": // Qpid JMS
                    method.invoke(factory, context);
                    break;
                case "setKeyAndTrustManagers": // ActiveMQ
                    method.invoke(factory, own, trusted, null);
                    break;
                case "setSSLSocketFactory": // IBM MQ
                    method.invoke(factory, context.getSocketFactory());
                    break;
                default:
            }
        }
    }

    private static TrustManager[] trust(String file) throws Exception {
        KeyStore store = store();
        for (Certificate each : certificates(file)) {
            store.setCertificateEntry(String.valueOf(store.size()), each);
        }
        TrustManagerFactory made = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        made.init(store);
        return made.getTrustManagers();
    }

    private static KeyManager[] keys(String certificate, String key) throws Exception {
        KeyStore store = store();
        store.setKeyEntry("own", privateKey(key), NO_PASSWORD, certificates(certificate).toArray(new Certificate[0]));
        KeyManagerFactory made = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        made.init(store, NO_PASSWORD);
        return made.getKeyManagers();
    }

    private static KeyStore store() throws GeneralSecurityException, IOException {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        return store;
    }

    private static List<Certificate> certificates(String file) throws Exception {
        List<Certificate> found = new ArrayList<>();
        for (byte[] each : blocks(file, "CERTIFICATE")) {
            found.add(CertificateFactory.getInstance("X.509").generateCertificate(new ByteArrayInputStream(each)));
        }
        return found;
    }

    private static PrivateKey privateKey(String file) throws Exception {
        byte[] encoded = blocks(file, "PRIVATE KEY").get(0);
        for (String algorithm : new String[] {"RSA", "EC", "EdDSA"}) {
            try {
                return KeyFactory.getInstance(algorithm).generatePrivate(new PKCS8EncodedKeySpec(encoded));
            } catch (InvalidKeySpecException other) {
                // the key has another algorithm
            }
        }
        throw new Opener.WrongSetting("the key in " + file + " is neither RSA, EC nor EdDSA");
    }

    private static List<byte[]> blocks(String file, String label) throws Opener.WrongSetting {
        List<byte[]> found = new ArrayList<>();
        try {
            Matcher block = BLOCK.matcher(Files.readString(Path.of(file), StandardCharsets.ISO_8859_1));
            while (block.find()) {
                if (block.group(1).equals(label)) {
                    found.add(Base64.getMimeDecoder().decode(block.group(2)));
                }
            }
        } catch (IOException unreadable) {
            throw new Opener.WrongSetting("the file " + file + " cannot be read");
        }
        if (found.isEmpty()) {
            throw new Opener.WrongSetting("the file " + file + " has no " + label + " in PEM; openssl pkcs8 -topk8 converts keys");
        }
        return found;
    }
}
