"""What frames are made of: the composite types of AMQP 1.0 with their fields, in the order of the specification."""

from amqp_peer.encoding import Composite

__all__ = [
    "RECEIVER",
    "SENDER",
    "Accepted",
    "Attach",
    "Begin",
    "Close",
    "Coordinator",
    "Declare",
    "Declared",
    "Detach",
    "Discharge",
    "Disposition",
    "End",
    "Error",
    "Flow",
    "Init",
    "Mechanisms",
    "Modified",
    "Open",
    "Outcome",
    "Rejected",
    "Released",
    "Source",
    "Target",
    "Transactional",
    "Transfer",
]

SENDER, RECEIVER = False, True


class Open(Composite):
    CODE = 0x10
    FIELDS = (
        "container_id hostname max_frame_size:uint channel_max:ushort idle_time_out:uint outgoing_locales "
        "incoming_locales offered_capabilities desired_capabilities properties"
    )


class Begin(Composite):
    CODE = 0x11
    FIELDS = "remote_channel:ushort next_outgoing_id:uint incoming_window:uint outgoing_window:uint handle_max:uint"


class Attach(Composite):
    CODE = 0x12
    FIELDS = (
        "name handle:uint role snd_settle_mode:ubyte rcv_settle_mode:ubyte source target unsettled "
        "incomplete_unsettled initial_delivery_count:uint max_message_size offered_capabilities "
        "desired_capabilities properties"
    )


class Flow(Composite):
    CODE = 0x13
    FIELDS = (
        "next_incoming_id:uint incoming_window:uint next_outgoing_id:uint outgoing_window:uint handle:uint "
        "delivery_count:uint link_credit:uint available:uint drain echo properties"
    )


class Transfer(Composite):
    CODE = 0x14
    FIELDS = (
        "handle:uint delivery_id:uint delivery_tag message_format:uint settled more rcv_settle_mode:ubyte state "
        "resume aborted batchable"
    )


class Disposition(Composite):
    CODE = 0x15
    FIELDS = "role first:uint last:uint settled state batchable"


class Detach(Composite):
    CODE = 0x16
    FIELDS = "handle:uint closed error"


class End(Composite):
    CODE = 0x17
    FIELDS = "error"


class Close(Composite):
    CODE = 0x18
    FIELDS = "error"


class Error(Composite):
    CODE = 0x1D
    FIELDS = "condition:symbol description info"


class Received(Composite):
    CODE = 0x23
    FIELDS = "section_number:uint section_offset"


class Accepted(Composite):
    CODE = 0x24


class Rejected(Composite):
    CODE = 0x25
    FIELDS = "error"


class Released(Composite):
    CODE = 0x26


class Modified(Composite):
    CODE = 0x27
    FIELDS = "delivery_failed undeliverable_here message_annotations"


class Source(Composite):
    CODE = 0x28
    FIELDS = (
        "address durable:uint expiry_policy:symbol timeout:uint dynamic dynamic_node_properties "
        "distribution_mode:symbol filter default_outcome outcomes capabilities"
    )


class Target(Composite):
    CODE = 0x29
    FIELDS = "address durable:uint expiry_policy:symbol timeout:uint dynamic dynamic_node_properties capabilities"


class Coordinator(Composite):
    CODE = 0x30
    FIELDS = "capabilities"


class Declare(Composite):
    CODE = 0x31
    FIELDS = "global_id"


class Discharge(Composite):
    CODE = 0x32
    FIELDS = "txn_id fail"


class Declared(Composite):
    CODE = 0x33
    FIELDS = "txn_id"


class Transactional(Composite):
    CODE = 0x34
    FIELDS = "txn_id outcome"


class Mechanisms(Composite):
    CODE = 0x40
    FIELDS = "offered"


class Init(Composite):
    CODE = 0x41
    FIELDS = "mechanism initial_response hostname"


class Outcome(Composite):
    CODE = 0x44
    FIELDS = "code:ubyte additional_data"
