"""The console: web pages over the insight service. The extra ``console`` installs what it needs.

`app_for` returns an ASGI application, a `Console`. ``jmsjca console`` serves it.
"""

from jmsjca.errors import ProviderNotInstalledError

try:
    from jmsjca.management.console.application import Console, app_for
except ImportError as error:
    raise ProviderNotInstalledError(f'The console needs {error.name}: pip install "jmsjca[console]"') from error

__all__ = ["Console", "app_for"]
