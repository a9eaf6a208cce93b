"""The console: web pages over the insight service. The extra ``console`` installs what it needs.

`Console` is an ASGI application. ``jmsjca console`` serves it.
"""

from jmsjca.errors import ProviderNotInstalledError

try:
    from jmsjca.management.console.application import Console
except ImportError as error:
    raise ProviderNotInstalledError(f'The console needs {error.name}: pip install "jmsjca[console]"') from error

__all__ = ["Console"]
