"""Ids of messages that handlers with an inbox send: no two processes have the same, also after a fork."""

from jmsjca import ConnectionFactory, Queue
from tests.unit.providers.embedded.processes import heard, process

CHILDREN, MESSAGES = 3, 5
SCRIPT = f"""
import sqlalchemy as sa
from jmsjca import Hooks, ResourceAdapter
from jmsjca.transactions import SqlInbox
engine = sa.create_engine(f"sqlite:///{{url.partition('//')[2]}}.rows", poolclass=sa.NullPool)
inbox = SqlInbox(engine)
class Settled(Hooks):
    def __init__(self):
        self.left, self.all_there = {MESSAGES}, threading.Event()
    def settled(self, endpoint, outcome, messages):
        self.left -= messages
        if not self.left:
            self.all_there.set()
def forward(name):
    settled = Settled()
    adapter = ResourceAdapter(url, hooks=[settled])
    @adapter.listener(name, transaction="required", inbox=inbox)
    def handler(message, session):
        session.create_producer(Queue("out")).send(session.create_text_message("a"))
    with adapter:
        for _ in range({MESSAGES}):
            adapter.send(name, "a")
        assert settled.all_there.wait(60)
connection.close()
forward("parent")
children = []
for number in range({CHILDREN}):
    child = os.fork()
    if not child:
        signal.alarm(60)
        forward(f"child {{number}}")
        os._exit(0)
    children.append(child)
forward("parent")
tell([os.waitpid(child, 0)[1] for child in children])
"""


def test_ids_are_unique_across_forks(broker_file):
    with process(broker_file, SCRIPT) as parent:
        assert heard(parent) == str([0] * CHILDREN)
    with ConnectionFactory(f"embedded://{broker_file}").create_connection() as connection:
        sent = list(connection.create_session().create_browser(Queue("out")))
    assert len(sent) == (CHILDREN + 2) * MESSAGES
    for ids in ({message.message_id for message in sent}, {message.properties["_AMQ_DUPL_ID"] for message in sent}):
        assert len(ids) == len(sent)
