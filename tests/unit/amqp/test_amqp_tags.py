"""Messages are told apart by tags as long as the broker has not answered them (AMQP 1.0, section 2.6.12)."""

from proton import Connection

from jmsjca.providers.amqp.engine.proton_ffi import DeliveryTags, ffi, lib, pointer_to, send


def tag_of(delivery):
    tag = lib.pn_delivery_tag(delivery)
    return bytes(ffi.buffer(tag.start, tag.size))


def test_each_message_of_a_link_has_a_tag_of_its_own():
    connection, tags = Connection(), DeliveryTags()
    link = connection.session().sender("link")
    sent = [delivery for _ in range(700) for delivery in send(pointer_to(link), tags, [b"message"] * 100)]
    found = {tag_of(delivery) for delivery in sent}
    assert len(found) == len(sent)
    assert max(map(len, found)) <= 32  # the longest that AMQP allows
