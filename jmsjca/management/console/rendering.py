"""The pages of the console as HTML: templates with everything escaped, and the links between the pages."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from jmsjca import __version__
from jmsjca.management.message_view import visible

__all__ = ["Renderer", "page_link"]

_MAX_CELL = 200


class Renderer:
    """Renders the templates of the console.

    Args:
        shared: Values of all templates, such as the CSRF token.
    """

    def __init__(self, shared: Mapping[str, object]) -> None:
        self._environment = Environment(
            loader=PackageLoader("jmsjca.management.console"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(cell=_cell, moment=_moment, visible=visible)
        self._shared = {**shared, "version": __version__}

    def page(self, request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a page.

        Args:
            request: The request that it answers.
            template: The name of the template, without the extension.
            status: The status of the response.
            **values: The values of the template.
        """
        html = self._environment.get_template(f"{template}.html").render(
            **self._shared, **values, here=template, link=partial(page_link, request)
        )
        return HTMLResponse(html, status)


def page_link(request: Request, path: str, **query: object) -> str:
    """Return the address of a page, below where the console is mounted.

    Args:
        request: The request.
        path: The path of the page in the console.
        **query: The query; empty values are left out.
    """
    shown = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{request.scope.get('root_path', '')}{path}{'?' if shown else ''}{urlencode(shown, errors='replace')}"


def _cell(value: object) -> str:
    """Return the beginning of a value for a cell of a table; a dash for nothing."""
    if value is None or value == "":
        return "–"  # noqa: RUF001  # a dash
    text = str(value)
    return f"{visible(text, _MAX_CELL)}…" if len(text) > _MAX_CELL else visible(text)


def _moment(value: datetime | None) -> str:
    return "–" if value is None else value.isoformat(" ", "seconds")  # noqa: RUF001  # a dash
