"""A certificate authority for one test, made by the command openssl."""

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
        self.file, self._key = folder / "authority.pem", folder / "authority.key"
        usage = ["-addext", "keyUsage=critical,keyCertSign,cRLSign"]
        _openssl("req", "-x509", *KEY, "-subj", "/CN=authority", "-keyout", self._key, "-out", self.file, *usage)

    def server(self, host, *, signed=True):
        """Give the context of a server that is certified, by itself if not signed here, as ``IP:127.0.0.1`` or such."""
        stem = f"server-{host.replace(':', '-')}-{signed}"
        certificate, key, request, extensions = (self._folder / f"{stem}{end}" for end in (".pem", ".key", ".csr", ""))
        extensions.write_text(f"{LEAF}subjectAltName={host}\n")
        _openssl("req", "-new", *KEY, "-subj", "/CN=server", "-keyout", key, "-out", request)
        by = ["-CA", self.file, "-CAkey", self._key, "-CAcreateserial"] if signed else ["-signkey", key]
        _openssl("x509", "-req", "-in", request, "-out", certificate, "-days", "2", "-extfile", extensions, *by)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        return context


def _openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
