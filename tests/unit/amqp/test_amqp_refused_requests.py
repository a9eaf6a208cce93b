"""What the management of a broker refuses or garbles: no permission is told from other failures."""

import pytest

from jmsjca.destinations import Queue, Subscription, Topic
from jmsjca.errors import JMSError, JMSSecurityError
from jmsjca.providers.amqp.admin import ManagementResponse
from jmsjca.providers.amqp.brokers.artemis import ArtemisAdmin
from jmsjca.providers.amqp.brokers.qpid import QpidAdmin

QUEUE = Queue("q")
CALLS = {
    "destinations": lambda admin: admin.destinations(),
    "depth": lambda admin: admin.depth(QUEUE),
    "depth of a subscription": lambda admin: admin.depth(Subscription(Topic("t"), "s", "c")),
    "purge": lambda admin: admin.purge(QUEUE),
    "remove": lambda admin: admin.remove(QUEUE),
}


class Refusing:
    """A management that gives every request the same answer."""

    def __init__(self, body=None, **properties):
        self._answer = ManagementResponse(properties, body)

    def request(self, request):
        return self._answer


@pytest.mark.parametrize("call", CALLS)
def test_no_permission_is_a_security_error(call):
    admin = QpidAdmin(Refusing(statusCode=403, statusDescription="Permission INVOKE is denied"))
    with pytest.raises(JMSSecurityError, match="Permission INVOKE is denied"):
        CALLS[call](admin)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("status", [400, 409, 500])
def test_other_failures_are_none(call, status):
    admin = QpidAdmin(Refusing(statusCode=status, statusDescription="x" * 10_000))
    with pytest.raises(JMSError, match=r"refuses .*: x") as told:
        CALLS[call](admin)
    assert type(told.value) is JMSError
    assert len(str(told.value)) < 1000


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("properties", [{}, {"statusCode": "403"}, {"statusCode": None}])
def test_an_answer_without_a_status_is_an_error(call, properties):
    with pytest.raises(JMSError, match="without a status"):
        CALLS[call](QpidAdmin(Refusing(**properties)))


@pytest.mark.parametrize("body", ["no JSON", "[", "[]", "[null]", '["no JSON"]', 7])
def test_an_answer_of_artemis_that_is_none_is_an_error(body):
    with pytest.raises(JMSError, match="is invalid"):
        ArtemisAdmin(Refusing(body, _AMQ_OperationSucceeded=True)).depth(QUEUE)
