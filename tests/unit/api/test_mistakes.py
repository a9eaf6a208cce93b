"""Mistakes in calls of the public API: each is refused in the line that makes it, with the remedy in the error.

A row of a table has the mistake as code, the class of the error, and a regular expression of its text.
"""

import asyncio
import logging
import re
from dataclasses import dataclass
from datetime import timedelta

import pytest

import jmsjca
from jmsjca import (
    AcknowledgeMode,
    ActivationSpec,
    DeliveryMode,
    Queue,
    Requestor,
    ResourceAdapter,
    TextMessage,
    Topic,
    aio,
)
from jmsjca.errors import (
    ArgumentTypeError,
    ConfigurationError,
    IllegalStateError,
    InvalidActivationSpecError,
    InvalidArgumentError,
    InvalidAttributeError,
    InvalidClientIDError,
    InvalidDestinationError,
    InvalidOptionError,
    InvalidSelectorError,
    InvalidURLError,
    JMSError,
    MessageFormatError,
    MessageNotWriteableError,
    MissingClientIDError,
)

DISTRIBUTED = {
    "destination": Topic("d"),
    "subscription_durability": "Durable",
    "subscription_name": "jmsjca://?distribution=1&subscribername=s",
    "client_id": "c",
}
QUEUE, TOPIC = Queue("q"), Topic("t")
NAN, INFINITY = float("nan"), float("inf")


@dataclass
class Order:
    item: str


@dataclass
class Odd:
    thing: object


class Deferred(jmsjca.Hooks):
    """What its methods and functions do is never done by a call."""

    async def around_send(self, message, destination, call_next):
        call_next()

    async def __call__(self, *arguments):
        """Not run."""

    async def coroutine(self, *arguments):
        """Not run."""

    def generator(self, *arguments):
        yield

    on_completion = on_exception = coroutine


class Listener:
    def on_order(self, message):
        """Not run."""


class DeferredListener:
    on_completion = on_exception = Deferred.coroutine


class Secretive:
    def __repr__(self):
        raise RuntimeError("never shown")


@pytest.fixture
def context(jms_connection_factory):
    with jms_connection_factory.create_context() as context:
        yield context


@pytest.fixture
def names(jms_broker_url, jms_connection_factory, connection, context):
    """What the code of a row may name: the public API, and one open object of each kind."""
    adapter = ResourceAdapter(jms_broker_url)
    with connection.create_session() as session, connection.create_session(transacted=True) as transacted:
        yield {
            **{name: getattr(jmsjca, name) for name in jmsjca.__all__},
            **globals(),
            "url": jms_broker_url,
            "factory": jms_connection_factory,
            "connection": connection,
            "context": context,
            "session": session,
            "transacted": transacted,
            "producer": session.create_producer(QUEUE),
            "anonymous": session.create_producer(),
            "sender": context.create_producer(),
            "consumer": session.create_consumer(QUEUE),
            "browser": session.create_browser(QUEUE),
            "requestor": Requestor(session, QUEUE),
            "adapter": adapter,
            "activation": adapter.activate(ActivationSpec(destination="a", concurrency_mode="cc"), print),
            "distributed": adapter.activate(ActivationSpec(**DISTRIBUTED), print),
            "message": TextMessage("a"),
            "timedelta": timedelta,
        }


def make(code, names):
    """Run the code of a row."""
    exec(code, names)  # noqa: S102


CALLS = [
    # Factories and URLs
    ("ConnectionFactory(None)", InvalidURLError, r"must be a str, such as 'embedded:.*not NoneType"),
    ("ConnectionFactory(5672)", InvalidURLError, "must be a str, such as .*amqp://localhost:5672"),
    ("ConnectionFactory('broker.db')", InvalidURLError, "must begin with a scheme, as embedded:// does"),
    ("ConnectionFactory(url, user_name=5)", ArgumentTypeError, "user_name must be a str or None, not int"),
    (
        "ConnectionFactory(url, user_name='me', password=b's3cret')",
        ArgumentTypeError,
        "password must be a str.*not bytes",
    ),
    ("ConnectionFactory(url, client_id=7)", ArgumentTypeError, "client_id must be a str or None, not 7"),
    ("ConnectionFactory(url, limits=10)", ArgumentTypeError, r"limits must be a Limits\(…\) or None, not 10"),
    ("ConnectionFactory(url, hooks=Hooks())", ArgumentTypeError, r"a sequence of Hooks, such as \[hook\]"),
    ("ConnectionFactory(url, hooks=[Hooks])", ArgumentTypeError, "an instance of a subclass of Hooks"),
    (
        "ConnectionFactory(url, hooks=[Deferred()])",
        ConfigurationError,
        r"The hook Deferred.around_send must be a plain function, .* 'async def' or has a 'yield', .*with 'def'",
    ),
    ("ResourceAdapter(url, hooks=[Deferred()])", ConfigurationError, "Deferred.around_send must be a plain function"),
    ("jmsjca.hooks.use_hooks(Deferred())", ConfigurationError, "Deferred.around_send must be a plain function"),
    ("factory.create_connection(7)", ArgumentTypeError, "user_name must be a str or None, not int"),
    ("factory.create_connection('me', 7)", ArgumentTypeError, "password must be a str or None, not int"),
    ("factory.create_context(True)", InvalidArgumentError, "a transacted session has transacted=True"),
    (
        "factory.create_context('AUTOMATIC')",
        InvalidArgumentError,
        r"not 'AUTOMATIC' \((did you mean AUTO|there are AUTO, )",
    ),
    ("factory.create_context(transacted=1)", ArgumentTypeError, "transacted must be True or False"),
    ("factory.client_id = 'me'", InvalidAttributeError, "client_id of a ConnectionFactory cannot be set; it is given"),
    (
        "Limits(prefetch_messages='10')",
        ConfigurationError,
        "prefetch_messages must be a whole number from 0 on, not '10'",
    ),
    ("Limits(prefetch_messages=2.5)", ConfigurationError, "must be a whole number from 0 on, not 2.5"),
    ("Limits(lock_timeout=-1)", ConfigurationError, "lock_timeout is -1; a limit is not below 0"),
    ("Limits(lock_timeout=NAN)", ConfigurationError, "lock_timeout is nan; a limit is not below 0"),
    ("Limits(lock_timeout=INFINITY)", ConfigurationError, "lock_timeout must be a number from 0 to 2147483, not inf"),
    ("Limits(prefetch_bytes=2**63)", ConfigurationError, "from 0 to 9223372036854775807, not 9223372036854775808"),
    ("DestinationSettings(2**31)", ConfigurationError, "from 1 to 2147483647, or None for no maximum, not 2147483648"),
    ("DestinationSettings(10**5000)", ConfigurationError, r"or None for no maximum, not a value \(int\)"),
    ("DestinationSettings(max_deliveries='3')", ConfigurationError, "max_deliveries must be a whole number or None"),
    (
        "DestinationSettings(3, dead_letter='dlq')",
        InvalidDestinationError,
        r"'dlq' is no destination; name a Queue\(…\)",
    ),
    # Connections
    (
        "connection.create_session(AcknowledgeMode.CLIENT)",
        ArgumentTypeError,
        "the acknowledge mode is the argument ackno",
    ),
    ("connection.create_session('yes')", ArgumentTypeError, "transacted must be True or False; .*not 'yes'"),
    (
        "connection.create_session(False, 1)",
        InvalidArgumentError,
        r"its name \(AUTO, CLIENT, DUPS_OK, INDIVIDUAL\), not 1",
    ),
    (
        "connection.create_session(acknowledge_mode='CLIENTT')",
        InvalidArgumentError,
        r"'CLIENTT' \(did you mean CLIENT\?",
    ),
    ("connection.create_session(acknowledge_mode=None)", InvalidArgumentError, "AcknowledgeMode, or its name"),
    ("connection.exception_listener = 'print'", ArgumentTypeError, "a function that takes the error, or None"),
    ("connection.exception_listener = Deferred()", ArgumentTypeError, "must be a plain function"),
    ("connection.exception_listener = Deferred().coroutine", ArgumentTypeError, "must be a plain function"),
    ("connection.exception_listener = Deferred().generator", ArgumentTypeError, "must be a plain function"),
    ("connection.exception_listner = print", InvalidAttributeError, r"did you mean exception_listener\?"),
    ("connection.client_id = 'me'", InvalidAttributeError, "client_id of a Connection cannot be set; it is given when"),
    # Sessions
    (
        "session.acknowlege_mode = 1",
        InvalidAttributeError,
        r"no attribute 'acknowlege_mode' \(did you mean acknowledge_mode",
    ),
    ("session.transacted = True", InvalidAttributeError, "cannot be set; it is given when the object is created"),
    ("session.create_consumer('orders')", InvalidDestinationError, r"'orders' is no destination; name a Queue\(…\)"),
    ("session.create_consumer(QUEUE, 5)", InvalidSelectorError, "selector must be a str, such as"),
    ("session.create_consumer(QUEUE, 'a =')", InvalidSelectorError, "selector"),
    ("session.create_consumer(TOPIC, no_local='no')", ArgumentTypeError, "no_local must be True or False, not 'no'"),
    ("session.create_consumer(QUEUE, no_local=True)", InvalidDestinationError, "Use a selector instead"),
    ("session.create_producer('orders')", InvalidDestinationError, r"name a Queue\(…\) or a Topic\(…\)"),
    ("session.create_browser('orders')", InvalidDestinationError, r"must be a Queue\(…\): only queues can be browsed"),
    ("session.create_browser(TOPIC)", InvalidDestinationError, "only queues can be browsed, not Topic"),
    ("session.create_browser(QUEUE, 'a =')", InvalidSelectorError, "selector"),
    ("session.create_browser(QUEUE, 7)", InvalidSelectorError, "must be a str, such as .*not 7"),
    ("session.create_shared_consumer(QUEUE, 's')", InvalidDestinationError, "needs a topic"),
    ("session.create_shared_consumer(TOPIC, '')", InvalidDestinationError, "needs a name; it is empty"),
    (
        "session.create_shared_consumer(TOPIC, 5)",
        InvalidDestinationError,
        "name of a subscription must be a str, not 5",
    ),
    ("session.create_durable_consumer(TOPIC, 's')", IllegalStateError, r"ConnectionFactory \(client_id=…\)"),
    ("session.create_durable_consumer(TOPIC, 's')", InvalidClientIDError, r"ConnectionFactory \(client_id=…\)"),
    ("session.create_durable_consumer('t', 's')", InvalidDestinationError, r"'t' is no destination; name a Queue"),
    (
        "session.create_durable_consumer(TemporaryTopic('t'), 's')",
        InvalidDestinationError,
        "a topic that is not temporary",
    ),
    ("session.create_durable_consumer(TOPIC, None)", InvalidDestinationError, "must be a str, not None"),
    ("session.unsubscribe('t', 's')", InvalidDestinationError, r"name a Queue\(…\) or a Topic"),
    ("session.unsubscribe(TOPIC, '')", InvalidDestinationError, "needs a name; it is empty"),
    ("session.create_queue(5)", InvalidDestinationError, r"named by a str, as in Queue\('orders'\), not by 5"),
    ("session.create_text_message(5)", MessageFormatError, "holds a str, not int; convert it"),
    ("session.commit()", IllegalStateError, r"create_session\(transacted=True\)"),
    ("transacted.recover()", IllegalStateError, r"by rollback\(\), not by recover\(\)"),
    # Destinations
    ("Queue(None)", InvalidDestinationError, r"as in Queue\('orders'\), not by None"),
    ("Queue('')", InvalidDestinationError, "needs a name, but it is empty"),
    ("Queue(' ')", InvalidDestinationError, "a Queue is ' ': it is blank; name a queue or a topic"),
    ("Topic(' \\t')", InvalidDestinationError, r"a Topic is ' \\t': it is blank; name a queue or a topic"),
    ("adapter.send(' ', 'a')", InvalidDestinationError, "it is blank; name a queue or a topic"),
    ("Topic(b'news')", InvalidDestinationError, r"as in Topic\('orders'\), not by b'news' \(bytes\)"),
    ("Queue(Queue('q'))", InvalidDestinationError, "is named by a str"),
    # Producers
    ("producer.send(7)", MessageFormatError, "No message can be made of int. Send a str, bytes, a mapping"),
    ("producer.send(None)", MessageFormatError, r"A message without a body is Message\(\)"),
    ("producer.send(['a'])", MessageFormatError, "made of list. Send a str"),
    ("producer.send(Order)", MessageFormatError, "the class Order; give an instance of it"),
    (
        "producer.send(Odd(Secretive()))",
        MessageFormatError,
        "of type Odd, has no JSON form at thing: a value of type Secretive .* Register a converter for its type",
    ),
    ("producer.send('a', priority='7')", MessageFormatError, "priority must be a whole number from 0 to 9, not '7'"),
    ("producer.send('a', priority=10)", MessageFormatError, "a whole number from 0 to 9, not 10"),
    ("producer.send('a', delivery_mode='PERSISTANT')", MessageFormatError, r"\(did you mean PERSISTENT\?\)"),
    ("producer.send('a', time_to_live=-1)", MessageFormatError, "time_to_live must be seconds, as a number from 0"),
    ("producer.send('a', delivery_delay='5')", MessageFormatError, "delivery_delay must be seconds, as a number"),
    (
        "producer.send('a', on_completion=Deferred().coroutine)",
        ArgumentTypeError,
        "on_completion must be a plain funct",
    ),
    ("producer.send('a', on_completion=Deferred())", ArgumentTypeError, "on_completion must be a plain function"),
    ("producer.send('a', on_completion=DeferredListener())", ArgumentTypeError, "must be a plain function"),
    ("sender.on_completion = Deferred().coroutine", ArgumentTypeError, "must be a plain function"),
    ("producer.send('a', QUEUE)", InvalidDestinationError, "not to both or neither"),
    ("producer.send(QUEUE, 'a')", InvalidDestinationError, "not to both or neither"),
    ("anonymous.send('a')", InvalidDestinationError, "names its destination once"),
    ("anonymous.send('a', 'orders')", InvalidDestinationError, r"name a Queue\(…\)"),
    (
        "producer.prioritty = 9",
        InvalidAttributeError,
        r"MessageProducer has no attribute 'prioritty' \(did you mean priority\?",
    ),
    ("producer.priority = 'high'", MessageFormatError, "a whole number from 0 to 9, not 'high'"),
    ("producer.time_to_live = True", MessageFormatError, r"seconds, as a number .*not True \(bool\)"),
    ("producer.delivery_mode = None", MessageFormatError, r"or its name \(NON_PERSISTENT, PERSISTENT\), not None"),
    ("producer.disable_timestamp = 'no'", ArgumentTypeError, "must be True or False, not 'no'"),
    ("producer.destination = QUEUE", InvalidAttributeError, "cannot be set; it is given when the object is created"),
    ("sender.send('orders', 'a')", InvalidDestinationError, r"'orders' is no destination; name a Queue\(…\)"),
    ("sender.set(prioritty=9)", InvalidArgumentError, r"no option 'prioritty' \(did you mean priority\?\)"),
    ("sender.set(prioritty=9)", TypeError, "did you mean priority"),
    ("context.create_producer(reply_to='replies')", InvalidDestinationError, r"reply_to must be a Queue\(…\)"),
    ("sender.reply_to = 'replies'", InvalidDestinationError, r"reply_to must be a Queue\(…\), a Topic\(…\) or None"),
    ("sender.correlation_id = 5", ArgumentTypeError, "correlation_id must be a str or None, not 5"),
    ("sender.properties = ['a']", MessageFormatError, "a mapping from names to values"),
    ("sender.propertys = {}", InvalidAttributeError, r"did you mean properties\?"),
    ("context.auto_start = 'no'", ArgumentTypeError, "auto_start must be True or False"),
    ("context.create_context('CLEINT')", InvalidArgumentError, r"did you mean CLIENT\?"),
    # Consumers, browsers and requestors
    (
        "consumer.receive(timeout='1')",
        ArgumentTypeError,
        r"timeout must be seconds .*None to wait forever, not '1' \(str\)",
    ),
    ("consumer.receive(timeout='1')", TypeError, "must be seconds"),
    ("consumer.receive(-1)", InvalidArgumentError, "None to wait forever, not -1"),
    ("consumer.receive(NAN)", InvalidArgumentError, "None to wait forever, not nan"),
    ("consumer.receive(INFINITY)", InvalidArgumentError, "None to wait forever, not inf"),
    (
        "consumer.receive_body('str')",
        ArgumentTypeError,
        "kind must be a class such as str, bytes, dict or list, not 'str'",
    ),
    ("consumer.receive_body(dict[str, int])", ArgumentTypeError, "kind must be a class such as str"),
    ("consumer.receive_body(str, timeout='1')", ArgumentTypeError, "timeout must be seconds"),
    ("consumer.selectr = 'a = 1'", InvalidAttributeError, r"did you mean selector\?"),
    ("consumer.selector = 'a = 1'", InvalidAttributeError, "cannot be set; it is given when"),
    ("browser.queue = QUEUE", InvalidAttributeError, "cannot be set; it is given when"),
    ("Requestor(QUEUE, session)", ArgumentTypeError, "a session, or a context; the destination comes second"),
    ("Requestor(session, 'questions')", InvalidDestinationError, r"name a Queue\(…\)"),
    ("Requestor(transacted, QUEUE)", IllegalStateError, "needs a session that sends at once"),
    ("requestor.request('a', timeout='5')", ArgumentTypeError, "timeout must be seconds"),
    ("requestor.request(7, 1)", MessageFormatError, "No message can be made of int"),
    ("requestor.timeout = 5", InvalidAttributeError, "A Requestor has no attribute 'timeout'"),
    # Messages
    ("TextMessage(b'a')", MessageFormatError, "holds a str, not bytes; convert it, or use another kind"),
    ("BytesMessage('a')", MessageFormatError, "holds bytes, not str; encode it"),
    ("MapMessage([1])", MessageFormatError, "holds a mapping, not list; use another kind"),
    ("StreamMessage('abc')", MessageFormatError, "a sequence of values, such as a list, not str"),
    ("Message('a')", MessageFormatError, "use TextMessage, BytesMessage or another kind"),
    ("TextMessage('a', reply_to='replies')", InvalidDestinationError, r"must be a Queue\(…\), a Topic\(…\) or None"),
    ("TextMessage('a', correlation_id=5)", ArgumentTypeError, "correlation_id must be a str or None, not 5"),
    ("TextMessage('a', type=5)", ArgumentTypeError, "type must be a str or None, not 5"),
    ("TextMessage('a', properties=[1])", MessageFormatError, "a mapping from names to values, not list"),
    ("TextMessage('a', properties='a=1')", MessageFormatError, "a mapping from names to values, not str"),
    ("TextMessage('a', properties={'my-key': 1})", MessageFormatError, "an identifier as in Java"),
    ("TextMessage('a', properties={'JMSPriority': 1})", MessageFormatError, "Headers are attributes of the message"),
    ("TextMessage('a', properties={'a': [1]})", MessageFormatError, "it takes bool, int, float, str"),
    ("message.properties = 'a=1'", MessageFormatError, "a mapping from names to values"),
    ("message.prioritty = 9", AttributeError, "prioritty"),
    ("message.body = 5", MessageFormatError, "holds a str, not int"),
    ("message.get_body('str')", ArgumentTypeError, "kind must be a class such as str"),
    ("message.get_body(bytes)", MessageFormatError, "is not a bytes; it is str"),
    ("message.acknowledge()", IllegalStateError, "was not delivered by a session or a listener"),
    ("message.set_int_property('n', 'x')", MessageFormatError, "'x' is not a number that a Int can be"),
    ("StreamMessage([b'abc']).read_bytes(2)", JMSError, r"call reset\(\) to read"),
    ("BytesMessage(b'abc').read_int()", JMSError, r"call reset\(\) to read"),
    ("ObjectMessage({1}).body", MessageFormatError, "Name the classes"),
    # Adapters and specs
    ("ResourceAdapter(5)", InvalidURLError, "must be a str, such as"),
    ("ResourceAdapter(url, options=5)", InvalidOptionError, "text, or a mapping from names to texts, not int"),
    ("ResourceAdapter(url, options={'a': 5})", InvalidOptionError, "The option a must be a str, not int"),
    ("ResourceAdapter(url, options={'JMSJCA.selektor': 'a'})", InvalidOptionError, r"did you mean JMSJCA.selector\?"),
    ("ResourceAdapter(url, user_name=5)", ArgumentTypeError, "user_name must be a str or None"),
    ("ResourceAdapter(url, hooks=Hooks)", ArgumentTypeError, "a sequence of Hooks"),
    ("ResourceAdapter(url, executor=4)", ArgumentTypeError, "a concurrent.futures.Executor or None, not 4"),
    ("ResourceAdapter(url, limits={})", ArgumentTypeError, r"a Limits\(…\) or None"),
    (
        "adapter.activate({'destination': 'q'}, print)",
        ArgumentTypeError,
        r"an ActivationSpec\(…\); the handler comes second",
    ),
    (
        "adapter.activate(ActivationSpec(destination='q'), 'print')",
        ConfigurationError,
        "is a function or has a __call__",
    ),
    (
        "adapter.send('q', 'a', priorty=9)",
        ArgumentTypeError,
        r"A send has no option 'priorty' \(did you mean priority\?",
    ),
    ("adapter.send_many('q', 'a', time_to_life=9)", ArgumentTypeError, r"did you mean time_to_live\?"),
    ("adapter.send('hello', QUEUE)", MessageFormatError, r"Queue\(name='q'\) cannot be a body: .* destination first"),
    ("adapter.send('q', 'a', properties=[('a', 1)])", MessageFormatError, "properties must be a mapping from names to"),
    ("adapter.send_many('q', 'hello')", ArgumentTypeError, "a list of bodies, one for each message, .*, not str"),
    ("adapter.send_many('q', {'a': 1})", ArgumentTypeError, "a list of bodies, one for each message, .*, not dict"),
    ("adapter.publisher('q', str).send_many(b'a')", ArgumentTypeError, "a list of bodies, one for .*, not bytes"),
    ("adapter.send_many('q', None)", ArgumentTypeError, "a list of bodies, one for each message, .*, not NoneType"),
    ("adapter.listener('q')(Listener)", ConfigurationError, "Listener is a class, .* Give a function, a method of an"),
    ("adapter.listener('q')(Listener.on_order)", ConfigurationError, r"for its 'self'. Declare .*\(it.on_order\)"),
    (
        "adapter.listener(TOPIC, subscription_name='s')",
        InvalidActivationSpecError,
        "subscription_name='s' has no effect: .* Add subscription_durable=True",
    ),
    ("message.id", AttributeError, "the id is message.message_id"),
    ("message.headers", AttributeError, "each header is an attribute, as message.priority"),
    ("message.json()", AttributeError, "the content is message.body"),
    ("message.get_text()", AttributeError, "the content is message.body"),
    ("session.create_consumer(QUEUE, 'a = 1 && b = 2')", InvalidSelectorError, "Both is written AND"),
    ("session.create_consumer(QUEUE, 'a = 1 || b = 2')", InvalidSelectorError, "Either is written OR"),
    ("ConnectionFactory('AMQP://localhost').create_connection()", JMSError, r"AMQP:// \(did you mean amqp://\?\)"),
    ("asyncio.run(adapter.send_async('q', 'a', typ='t'))", ArgumentTypeError, r"did you mean type\?"),
    ("adapter.request('q', 'a', corelation_id='c')", ArgumentTypeError, r"did you mean correlation_id\?"),
    ("adapter.publisher('q', str).send('a', x=1)", ArgumentTypeError, r"\(there are .*correlation_id, "),
    ("adapter.start(wait='5')", ArgumentTypeError, "wait must be seconds"),
    ("adapter.start(wait=INFINITY)", InvalidArgumentError, "wait must be seconds from 0 .* not inf"),
    ("activation.stop('5')", ArgumentTypeError, "timeout must be seconds"),
    ("activation.restart('5')", ArgumentTypeError, "timeout must be seconds"),
    ("distributed.stop('5')", ArgumentTypeError, "timeout must be seconds"),
    ("activation.resize(2.0)", InvalidArgumentError, r"must be a whole number from 1 on, not 2\.0 \(float\)"),
    ("activation.resize(True)", InvalidArgumentError, "must be a whole number from 1 on, not True"),
    ("adapter.stop('5')", ArgumentTypeError, "timeout must be seconds"),
    ("adapter.run('5')", ArgumentTypeError, "timeout must be seconds"),
    ("ActivationSpec(destination=5)", InvalidActivationSpecError, "destination: .*string"),
    ("ActivationSpec(destination='q', selector=5)", InvalidActivationSpecError, "selector: .*string"),
    ("ActivationSpec(destination='q', batch_size='many')", InvalidActivationSpecError, "batch_size: .*integer"),
    ("ActivationSpec(destination='q', acknowledge_mode='AUT')", InvalidActivationSpecError, r"did you mean AUTO\?"),
    (
        "ActivationSpec(destination='q', acknowledge_mode='CLIENT')",
        InvalidActivationSpecError,
        "hold_until_ack=True lets",
    ),
    (
        "ActivationSpec(destination='q', subscription_durability='Durable', subscription_name='s')",
        InvalidActivationSpecError,
        "subscription_durability: a queue keeps its messages without a subscription: leave it out, or name a topic",
    ),
    # aio
    (
        "aio.connect(url)",
        ArgumentTypeError,
        r"a ConnectionFactory, as in connect\(ConnectionFactory\('embedded://'\)\)",
    ),
]


def test_there_are_enough():
    assert len({code for code, *_ in CALLS}) >= 60


@pytest.mark.parametrize(("code", "error", "text"), CALLS)
def test_mistake_is_refused(names, code, error, text):
    with pytest.raises(error, match=text) as caught:
        make(code, names)
    assert isinstance(caught.value, JMSError | AttributeError)


@pytest.mark.parametrize(("code", "error", "text"), CALLS)
def test_mistake_shows_no_secret_and_breaks_nothing(names, code, error, text):
    """No text of an error has the password, and the objects work as before."""
    with pytest.raises(error) as caught:
        make(code, names)
    assert "s3cret" not in str(caught.value)
    names["producer"].send("still there", time_to_live=60)
    assert names["consumer"].receive(0) is not None


# What is awaited, within ``aio``.
AWAITED = [
    ("session.create_consumer(QUEUE).receive(timeout=1)", InvalidAttributeError, r"write 'await create_consumer\(…\)'"),
    ("session.create_producer(QUEUE).send('a')", InvalidAttributeError, r"write 'await create_producer\(…\)'"),
    (
        "connection.create_session().commit()",
        InvalidAttributeError,
        r"write 'await create_session\(…\)', or 'async with'",
    ),
    (
        "aio.connect(factory).create_session()",
        InvalidAttributeError,
        r"connect\(…\) has no attribute 'create_session', bec",
    ),
    (
        "with session.create_consumer(QUEUE): pass",
        IllegalStateError,
        r"cannot be entered with 'with', because it was not",
    ),
    (
        "for _ in session.create_consumer(QUEUE): pass",
        IllegalStateError,
        "cannot be iterated, because it was not awaited",
    ),
    ("connection.create_session(AcknowledgeMode.CLIENT)", ArgumentTypeError, "the acknowledge mode is the argument"),
    ("connection.create_session(acknowledge_mode='CLEINT')", InvalidArgumentError, r"did you mean CLIENT\?"),
    ("await session.create_consumer('q')", InvalidDestinationError, r"name a Queue\(…\)"),
    ("await session.create_producer('q')", InvalidDestinationError, r"name a Queue\(…\)"),
    ("await consumer.receive(timeout='1')", ArgumentTypeError, "timeout must be seconds"),
    ("await producer.send(7)", MessageFormatError, "No message can be made of int"),
    (
        "await producer.send(session.create_producer(QUEUE))",
        MessageFormatError,
        "AwaitableContextManager; await it first",
    ),
    ("await producer.send('a', priority=10)", MessageFormatError, "from 0 to 9"),
    ("await session.acknowledge('a')", ArgumentTypeError, "a received message, or None for all"),
    ("await session.run_sync('commit')", ArgumentTypeError, "function must be a function, not 'commit'"),
    ("await connection.run_sync(None)", ArgumentTypeError, "function must be a function, not None"),
    ("producer.priority = 9", InvalidAttributeError, "no attribute 'priority' that can be set"),
    ("consumer.timeout = 9", InvalidAttributeError, "no attribute 'timeout'"),
    ("session.transacted = True", InvalidAttributeError, "no attribute 'transacted'"),
    ("connection.client_id = 'me'", InvalidAttributeError, "no attribute 'client_id'"),
]


@pytest.mark.parametrize(("code", "error", "text"), AWAITED)
def test_mistake_is_refused_in_asyncio(jms_connection_factory, code, error, text):
    async def make_it():
        async with (
            aio.connect(jms_connection_factory) as connection,
            connection.create_session() as session,
            session.create_consumer(QUEUE) as consumer,
            session.create_producer(QUEUE) as producer,
        ):
            given = {"connection": connection, "session": session, "consumer": consumer, "producer": producer}
            space = {**globals(), "factory": jms_connection_factory, **given}
            make(f"async def mistake():\n    {code}", space)
            with pytest.raises(error, match=text):
                await space["mistake"]()

    asyncio.run(make_it())


# What is closed, and what of it is read or set then.
CLOSED = [
    ("connection", "client_id", "capabilities", "metadata", "admin", "exception_listener", "start()", "stop()",
     "create_session()", "exception_listener = None"),
    ("session", "transacted", "acknowledge_mode", "create_consumer(QUEUE)", "create_producer(QUEUE)",
     "create_browser(QUEUE)", "create_queue('q')", "create_message()", "commit()", "recover()", "acknowledge()"),
    ("producer", "destination", "delivery_mode", "priority", "time_to_live", "delivery_delay", "disable_message_id",
     "disable_timestamp", "delivery_mode = DeliveryMode.PERSISTENT", "priority = 5", "time_to_live = 1",
     "delivery_delay = 1", "disable_message_id = True", "disable_timestamp = True", "send('a')"),
    ("consumer", "selector", "receive(0)", "receive_no_wait()", "receive_body(str, 0)"),
    ("browser", "queue", "selector", "__iter__()"),
    ("requestor", "producer", "replies", "request('a', 0)"),
    ("context", "transacted", "acknowledge_mode", "session_mode", "client_id", "capabilities", "metadata", "admin",
     "exception_listener", "exception_listener = None", "auto_start", "auto_start = False", "start()", "stop()",
     "create_context()", "create_producer()", "create_consumer(QUEUE)", "create_browser(QUEUE)"),
]  # fmt: skip
ENDED_WITH_IT = {
    "connection": ("session", "producer", "consumer", "browser"),
    "session": ("producer", "consumer", "browser"),
}


@pytest.mark.parametrize(("kind", "use"), [(kind, use) for kind, *uses in CLOSED for use in uses])
def test_closed_object_is_neither_read_nor_set(names, kind, use):
    """JMS 3.1, sections 6.1.8, 6.2.15, 7.1 and 8.8."""
    names[kind].close()
    with pytest.raises(IllegalStateError, match="closed"):
        make(f"{kind}.{use}", names)


@pytest.mark.parametrize(
    ("closed", "kind", "use"),
    [
        (closed, kind, use)
        for closed, ended in ENDED_WITH_IT.items()
        for kind, *uses in CLOSED
        if kind in ended
        for use in uses
    ],
)
def test_what_a_closed_session_or_connection_made_is_closed_too(names, closed, kind, use):
    names[closed].close()
    with pytest.raises(IllegalStateError, match="closed"):
        make(f"{kind}.{use}", names)


@pytest.mark.parametrize(
    "use", ["priority", "priority = 5", "properties", "reply_to", "reply_to = QUEUE", "send(QUEUE, 'a')"]
)
def test_producer_of_a_closed_context_is_neither_read_nor_set(names, use):
    names["context"].close()
    with pytest.raises(IllegalStateError, match="closed"):
        make(f"sender.{use}", names)


@pytest.mark.parametrize("kind", ["connection", "session", "producer", "consumer", "browser"])
def test_closed_tells_whether_it_is_closed(names, kind):
    assert not names[kind].closed
    names[kind].close()
    assert names[kind].closed


def test_closed_context_has_no_attributes_while_another_shares_its_connection(context):
    with context.create_context() as other:
        context.close()
        with pytest.raises(IllegalStateError, match="closed"):
            _ = context.client_id
        assert other.client_id is None


@pytest.mark.parametrize("given", ["CLIENT", "client", AcknowledgeMode.CLIENT])
def test_enum_is_given_by_member_or_name(connection, context, given):
    with connection.create_session(acknowledge_mode=given) as session, context.create_context(given) as other:
        assert session.acknowledge_mode is other.session_mode is AcknowledgeMode.CLIENT
    spec = ActivationSpec(destination="q", transaction="none", acknowledge_mode="DUPS_OK")
    assert spec.acknowledge_mode is AcknowledgeMode.DUPS_OK


@pytest.mark.parametrize("given", ["NON_PERSISTENT", "non_persistent", 1, DeliveryMode.NON_PERSISTENT])
def test_delivery_mode_is_given_by_member_or_name_or_number(names, given):
    names["producer"].delivery_mode = given
    assert names["producer"].delivery_mode is DeliveryMode.NON_PERSISTENT
    names["anonymous"].send(names["message"], QUEUE, delivery_mode=given)
    assert names["message"].delivery_mode is DeliveryMode.NON_PERSISTENT


@pytest.mark.parametrize("header", ["reply_to", "correlation_id", "type"])
def test_header_of_a_message_that_was_set_to_another_type_is_refused_by_the_send(names, header):
    """Nothing is sent, and the error names the header."""
    setattr(names["message"], header, 5)
    with pytest.raises(InvalidArgumentError if header != "reply_to" else InvalidDestinationError, match=header):
        names["producer"].send(names["message"])
    assert names["consumer"].receive(0) is None


def test_wrong_value_whose_repr_fails_is_refused_all_the_same(names):
    with pytest.raises(ArgumentTypeError, match=r"a value \(Secretive\)"):
        names["consumer"].receive(Secretive())


def test_missing_client_id_has_an_error_of_its_own(names):
    with pytest.raises(MissingClientIDError) as caught:
        names["session"].create_durable_consumer(TOPIC, "s")
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, RuntimeError)


def test_received_message_is_still_the_next_one_after_a_wrong_kind(names):
    names["producer"].send("a")
    with pytest.raises(ArgumentTypeError):
        names["consumer"].receive_body("str", 0)
    assert names["consumer"].receive_body(str, 0) == "a"


def test_received_properties_are_read_only(names):
    names["producer"].send("a")
    with pytest.raises(MessageNotWriteableError, match=re.escape("clear_properties()")):
        names["consumer"].receive(0).properties["a"] = 1


def test_nested_transaction_is_refused_and_nothing_of_the_outer_block_is_there(names):
    transacted, consumer = names["transacted"], names["consumer"]
    producer = transacted.create_producer(QUEUE)

    def nest():
        with transacted.transaction():
            producer.send("outer")
            with transacted.transaction():
                producer.send("inner")

    with pytest.raises(IllegalStateError, match=r"cannot be nested.*a second session"):
        nest()
    assert consumer.receive(0) is None
    with transacted.transaction():
        producer.send("afterwards")
    assert consumer.receive(1).body == "afterwards"


@pytest.mark.parametrize("blocking", [False, True])
def test_nested_transaction_is_refused_in_asyncio(jms_connection_factory, blocking):
    async def nest(session):
        async with session.transaction():
            await (await session.create_producer(QUEUE)).send("outer")
            if blocking:
                await session.run_sync(lambda session: session.transaction().__enter__())
            async with session.transaction():
                pass

    async def check():
        async with aio.connect(jms_connection_factory) as connection, connection.create_session(True) as session:
            with pytest.raises(IllegalStateError, match="cannot be nested"):
                await nest(session)
            async with session.create_consumer(QUEUE) as consumer:
                assert await consumer.receive(0) is None

    asyncio.run(check())


@pytest.mark.parametrize("how", ["session", "connection"])
def test_uncommitted_sends_of_a_closed_session_are_logged(names, caplog, how):
    producer = names["transacted"].create_producer(QUEUE)
    for _ in range(3):
        producer.send("lost")
    names["transacted" if how == "session" else "connection"].close()
    (record,) = (r for r in caplog.records if r.levelno == logging.WARNING)
    assert record.name == "jmsjca.outbound"
    assert re.search(r"3 sent message.*call commit\(\) first", record.getMessage())


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_ended_transaction_is_closed_without_a_warning(names, caplog, end):
    names["transacted"].create_producer(QUEUE).send("a")
    getattr(names["transacted"], end)()
    names["transacted"].close()
    assert caplog.records == []


@pytest.mark.parametrize("timeout", [0, 0.01])
def test_empty_receive_on_a_connection_that_was_never_started_is_logged_once(jms_connection_factory, caplog, timeout):
    connection = jms_connection_factory.create_connection()
    consumers = [connection.create_session().create_consumer(QUEUE) for _ in range(2)]
    assert [consumer.receive(timeout) for consumer in consumers * 2] == [None] * 4
    connection.close()
    (record,) = caplog.records
    assert (record.levelno, record.name) == (logging.WARNING, "jmsjca.outbound")
    assert "call connection.start()" in record.getMessage()


def test_empty_receive_on_a_stopped_connection_is_not_logged(names, caplog):
    names["connection"].stop()
    assert names["consumer"].receive(0.01) is None
    assert caplog.records == []


def test_a_subscription_name_that_a_selector_of_the_adapter_uses_is_none(jms_broker_url):
    adapter = ResourceAdapter(jms_broker_url, options={"JMSJCA.selector": "sub = '${subscribername}'"})
    adapter.listener(Topic("news"), subscription_name="s")(lambda message: None)
