"""A certificate authority for one test, made by the command openssl."""

import itertools
import shutil
import ssl
import subprocess

import pytest

KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
LEAF = "basicConstraints=critical,CA:FALSE\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"


class Authority:
    """Signs certificates.

    Args:
        folder: Where its files go.

    Attributes:
        file: Its own certificate (PEM).
    """

    def __init__(self, folder):
        if shutil.which("openssl") is None:
            pytest.skip("There is no command openssl to make certificates with.")
        self._folder = folder
        self._numbers = itertools.count()
        self.file, self._key = folder / "authority.pem", folder / "authority.key"
        usage = ["-addext", "keyUsage=critical,keyCertSign,cRLSign"]
        _openssl("req", "-x509", *KEY, "-subj", f"/CN={folder.name}", "-keyout", self._key, "-out", self.file, *usage)

    def server(self, host, *, signed=True, days=2, name="server", usage="serverAuth"):
        """Give the context of a server that is certified, by itself if not signed here.

        Args:
            host: Its names, as ``IP:127.0.0.1`` or ``DNS:localhost``; empty for none.
            signed: False if it certifies itself.
            days: How long that is valid.
            name: What the subject is called.
            usage: What the certificate is for.
        """
        names = f"subjectAltName={host}\n" if host else ""
        certificate, key = self.certify(name, f"{names}extendedKeyUsage={usage}\n", signed=signed, days=days)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        return context

    def hashed(self):
        """Give a folder in which OpenSSL finds this authority by its name's hash."""
        folder = self._folder / "hashed"
        folder.mkdir(exist_ok=True)
        shutil.copy(self.file, folder)
        _openssl("rehash", folder)
        return folder

    def certify(self, name, extensions, *, signed=True, days=2):
        """Make a certificate; gives its file and that of its key."""
        stem = f"{name}-{next(self._numbers)}"
        certificate, key, request, wanted = (self._folder / f"{stem}{end}" for end in (".pem", ".key", ".csr", ""))
        wanted.write_text(LEAF + extensions)
        _openssl("req", "-new", *KEY, "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        by = ["-CA", self.file, "-CAkey", self._key, "-CAcreateserial"] if signed else ["-signkey", key]
        _openssl("x509", "-req", "-in", request, "-out", certificate, "-days", days, "-extfile", wanted, *by)
        return certificate, key


def _openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
