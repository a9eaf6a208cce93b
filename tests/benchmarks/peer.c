/*
 * A peer that costs a client of AMQP 1.0 next to nothing: it keeps no messages and writes nothing down.
 *
 *     peer PRODUCT FILE
 *
 * It calls itself PRODUCT, listens on a port of 127.0.0.1 that it prints, and is ended by a signal. Who attaches a
 * receiver gets the encoded message in FILE, again and again, as credit allows; what is sent to it is accepted. It is a
 * toy of a coordinator, too: it declares what it is asked to and discharges all with success.
 */

#include <proton/condition.h>
#include <proton/connection.h>
#include <proton/delivery.h>
#include <proton/link.h>
#include <proton/listener.h>
#include <proton/message.h>
#include <proton/netaddr.h>
#include <proton/proactor.h>
#include <proton/sasl.h>
#include <proton/session.h>
#include <proton/transport.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 2000, BYTES = 1 << 20, DECLARE = 0x31, DECLARED = 0x33, TRANSACTIONAL = 0x34, ACCEPTED = 0x24 };

static const char *product;
static char message[BYTES], arrived[BYTES];
static size_t message_size;
static const char declaration[] = "amqp:declare:list";
static const pn_bytes_t transaction = {4, "\xff\x00\xfe\x01"}; /* ids are binary */

static void read_message(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || !(message_size = fread(message, 1, sizeof message, file))) {
        perror(path);
        exit(1);
    }
    fclose(file);
}

static void on_connection(pn_connection_t *connection) {
    pn_data_t *properties = pn_connection_properties(connection);
    pn_data_put_map(properties);
    pn_data_enter(properties);
    pn_data_put_symbol(properties, pn_bytes(7, "product"));
    pn_data_put_string(properties, pn_bytes(strlen(product), product));
    pn_connection_set_container(connection, "peer");
    pn_connection_open(connection);
}

static void on_attach(pn_link_t *link) {
    pn_terminus_copy(pn_link_source(link), pn_link_remote_source(link));
    pn_terminus_copy(pn_link_target(link), pn_link_remote_target(link));
    pn_link_open(link);
    if (pn_link_is_receiver(link)) pn_link_flow(link, WINDOW);
}

static void give_messages(pn_link_t *link) {
    static uint64_t number;
    while (pn_link_credit(link) > 0) {
        number++;
        pn_delivery(link, pn_dtag((const char *)&number, sizeof number));
        pn_link_send(link, message, message_size);
        pn_link_advance(link);
    }
    if (pn_link_get_drain(link)) pn_link_drained(link);
}

static int is_declaration(size_t size) {
    pn_message_t *command = pn_message();
    int declares = 0;
    if (!pn_message_decode(command, arrived, size)) {
        pn_data_t *body = pn_message_body(command);
        pn_data_next(body);
        pn_data_enter(body);
        pn_data_next(body);
        pn_bytes_t name = pn_data_get_symbol(body);
        int is_name = name.size == sizeof declaration - 1 && !memcmp(name.start, declaration, name.size);
        declares = is_name || pn_data_get_ulong(body) == DECLARE;
    }
    pn_message_free(command);
    return declares;
}

static void put_state(pn_delivery_t *delivery, uint64_t type) {
    pn_data_t *data = pn_disposition_data(pn_delivery_local(delivery));
    pn_data_put_list(data);
    pn_data_enter(data);
    pn_data_put_binary(data, transaction);
    if (type == TRANSACTIONAL) {
        pn_data_put_described(data);
        pn_data_enter(data);
        pn_data_put_ulong(data, ACCEPTED);
        pn_data_put_list(data);
    }
    pn_delivery_update(delivery, type);
}

static void answer(pn_link_t *link, pn_delivery_t *delivery, size_t size) {
    int to_coordinator = pn_terminus_get_type(pn_link_remote_target(link)) == PN_COORDINATOR;
    if (to_coordinator && is_declaration(size)) put_state(delivery, DECLARED);
    else if (pn_delivery_remote_state(delivery) == TRANSACTIONAL) put_state(delivery, TRANSACTIONAL);
    else pn_delivery_update(delivery, PN_ACCEPTED);
    pn_delivery_settle(delivery);
}

static void on_delivery(pn_delivery_t *delivery) {
    pn_link_t *link = pn_delivery_link(delivery);
    if (pn_link_is_sender(link)) {
        if (pn_delivery_settled(delivery)) pn_delivery_settle(delivery);
    } else if (pn_delivery_readable(delivery) && !pn_delivery_partial(delivery)) {
        ssize_t size = pn_link_recv(link, arrived, sizeof arrived);
        pn_link_advance(link);
        answer(link, delivery, size > 0 ? (size_t)size : 0);
        if (pn_link_credit(link) < WINDOW / 2) pn_link_flow(link, WINDOW - pn_link_credit(link));
    }
}

static void on_listening(pn_listener_t *listener) {
    char port[PN_MAX_ADDR];
    pn_netaddr_host_port(pn_listener_addr(listener), NULL, 0, port, sizeof port);
    printf("%s\n", port);
    fflush(stdout);
}

static void on_incoming(pn_listener_t *listener) {
    pn_transport_t *transport = pn_transport();
    pn_transport_set_server(transport);
    pn_sasl_allowed_mechs(pn_sasl(transport), "ANONYMOUS");
    pn_transport_set_max_frame(transport, 65536);
    pn_listener_accept2(listener, NULL, transport);
}

static void handle(pn_event_t *event) {
    switch (pn_event_type(event)) {
        case PN_LISTENER_OPEN: on_listening(pn_event_listener(event)); break;
        case PN_LISTENER_ACCEPT: on_incoming(pn_event_listener(event)); break;
        case PN_CONNECTION_REMOTE_OPEN: on_connection(pn_event_connection(event)); break;
        case PN_SESSION_REMOTE_OPEN: pn_session_open(pn_event_session(event)); break;
        case PN_LINK_REMOTE_OPEN: on_attach(pn_event_link(event)); break;
        case PN_LINK_FLOW: if (pn_link_is_sender(pn_event_link(event))) give_messages(pn_event_link(event)); break;
        case PN_DELIVERY: on_delivery(pn_event_delivery(event)); break;
        case PN_LINK_REMOTE_DETACH: pn_link_detach(pn_event_link(event)); break;
        case PN_LINK_REMOTE_CLOSE: pn_link_close(pn_event_link(event)); break;
        case PN_SESSION_REMOTE_CLOSE: pn_session_close(pn_event_session(event)); break;
        case PN_CONNECTION_REMOTE_CLOSE: pn_connection_close(pn_event_connection(event)); break;
        default: break;
    }
}

int main(int count, char **arguments) {
    if (count != 3) return fprintf(stderr, "usage: peer PRODUCT FILE\n"), 2;
    product = arguments[1];
    read_message(arguments[2]);
    pn_proactor_t *proactor = pn_proactor();
    pn_proactor_listen(proactor, pn_listener(), "127.0.0.1:0", 16);
    for (;;) {
        pn_event_batch_t *batch = pn_proactor_wait(proactor);
        for (pn_event_t *event; (event = pn_event_batch_next(batch));) handle(event);
        pn_proactor_done(proactor, batch);
    }
}
