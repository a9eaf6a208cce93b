"""The page of the beans names each attribute and operation."""

import re
from pathlib import Path

import pytest

from jmsjca.management.beans import ActivationBean, AdapterBean, ServerBean

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "beans.md").read_text()


@pytest.mark.parametrize("bean", [ActivationBean, AdapterBean, ServerBean])
def test_every_attribute_and_operation_is_documented(bean):
    names = (*bean.attribute_names, *bean.operation_names)
    assert [name for name in names if not re.search(rf"`{name}\b", PAGE)] == []
