"""The option ``credentials``: read by the process that connects, and never the secret itself."""

import pickle
import sys
from pathlib import Path

import pytest

from jmsjca.config import ConnectionURL
from jmsjca.config.connection_url import Credentials
from jmsjca.errors import InvalidOptionError
from jmsjca.spark.options import SourceOptions

GIVEN = {"url": "amqp://localhost", "destination": "orders"}
HIDDEN = "s3cret-of-the-test"


def login(**more: str) -> Credentials | None:
    """Log in as an executor does, with options that were pickled."""
    options = pickle.loads(pickle.dumps(SourceOptions.parse(GIVEN | more)))  # noqa: S301  # as Spark does
    assert HIDDEN not in repr(options)
    assert HIDDEN.encode() not in pickle.dumps(options)
    return options.settings.credentials(ConnectionURL.parse(GIVEN["url"]))


def test_a_variable_is_read_at_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    options = SourceOptions.parse(GIVEN | {"credentials": "env:LOGIN"})
    monkeypatch.setenv("LOGIN", f"me:{HIDDEN}")
    assert options.settings.credentials(ConnectionURL.parse(options.url)) == Credentials("me", HIDDEN)
    monkeypatch.setenv("LOGIN", HIDDEN)
    assert login(credentials="env:LOGIN", userName="you") == Credentials("you", HIDDEN)


def test_a_file_is_read_at_the_connection(tmp_path: Path) -> None:
    (tmp_path / "login").write_text(f"me:{HIDDEN}\n")
    assert login(credentials=f"file:{tmp_path}/login") == Credentials("me", HIDDEN)


def test_a_function_is_called_at_the_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "login_of_shop.py").write_text(f"def login():\n    return 'me', {HIDDEN!r}\n")
    options = SourceOptions.parse(GIVEN | {"credentials": "call:login_of_shop:login"})
    assert "login_of_shop" not in sys.modules  # options are parsed where nothing connects
    assert options.settings.credentials(ConnectionURL.parse(options.url)) == Credentials("me", HIDDEN)
    assert login(credentials="call:login_of_shop:login") == Credentials("me", HIDDEN)
    with pytest.raises(InvalidOptionError, match="the function logout of the module login_of_shop, which cannot be im"):
        login(credentials="call:login_of_shop:logout")


@pytest.mark.parametrize("text", [HIDDEN, f"me:{HIDDEN}", "env:", "call:module", "call::function", "call:m:no name"])
def test_anything_else_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(InvalidOptionError, match="must be env:NAME, file:PATH or call:MODULE:FUNCTION") as told:
        SourceOptions.parse(GIVEN | {"credentials": text})
    assert HIDDEN not in f"{told.value!r} {told.value.__cause__!r} {told.value.__context__!r}"


def test_one_password_is_enough() -> None:
    with pytest.raises(InvalidOptionError, match="'credentials' and 'password' are both given; use one"):
        SourceOptions.parse(GIVEN | {"credentials": "env:X", "userName": "me", "password": HIDDEN})
