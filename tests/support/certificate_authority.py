"""A certificate authority for one test, made with the openssl command."""

import itertools
import os
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
            give_up = pytest.fail if os.environ.get("CI") else pytest.skip
            give_up("There is no command openssl to make certificates with.")
        self._folder = folder
        self._numbers = itertools.count()
        self.file, self._key = folder / "authority.pem", folder / "authority.key"
        usage = ["-addext", "keyUsage=critical,keyCertSign,cRLSign"]
        _openssl("req", "-x509", *KEY, "-subj", f"/CN={folder.name}", "-keyout", self._key, "-out", self.file, *usage)

    def server(self, host, *, name="server", usage="serverAuth", **validity):
        """Give the context of a server that is certified, by itself if not signed here.

        Args:
            host: Its names, as ``IP:127.0.0.1`` or ``DNS:localhost``; empty for none.
            name: What the subject is called.
            usage: What the certificate is for.
            validity: Who signs it, and how long that is valid, as in `certify`.
        """
        names = f"subjectAltName={host}\n" if host else ""
        certificate, key = self.certify(name, f"{names}extendedKeyUsage={usage}\n", **validity)
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

    def certify(self, name, extensions, *, signed=True, begins=None):
        """Make a certificate; gives its file and that of its key.

        Args:
            name: What the subject is called.
            extensions: What else it says.
            signed: False if it certifies itself.
            begins: The year in which it is valid; None for two days from now on.
        """
        stem = f"{name}-{next(self._numbers)}"
        certificate, key, request, wanted = (self._folder / f"{stem}{end}" for end in (".pem", ".key", ".csr", ""))
        wanted.write_text(LEAF + extensions)
        _openssl("req", "-new", *KEY, "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        if begins is not None:
            self._sign_for_a_year(request, certificate, wanted, begins)
            return certificate, key
        by = ["-CA", self.file, "-CAkey", self._key, "-CAcreateserial"] if signed else ["-signkey", key]
        _openssl("x509", "-req", "-in", request, "-out", certificate, "-days", 2, "-extfile", wanted, *by)
        return certificate, key

    def _sign_for_a_year(self, request, certificate, wanted, year):
        (self._folder / "index").write_text("")
        configuration = self._folder / "configuration"
        configuration.write_text(
            f"[ca]\ndefault_ca=it\n[it]\ndatabase={self._folder}/index\nnew_certs_dir={self._folder}\n"
            "rand_serial=yes\ndefault_md=sha256\npolicy=any\n[any]\ncommonName=supplied\n"
        )
        period = ["-startdate", f"{year}0101000000Z", "-enddate", f"{year + 1}0101000000Z"]
        files = ["-config", configuration, "-in", request, "-out", certificate, "-extfile", wanted]
        _openssl("ca", "-batch", "-notext", *files, *period, "-cert", self.file, "-keyfile", self._key)


def _openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
