// Proton's C++ client, as its documentation shows it, timed: reads "receive QUEUE COUNT" or "send QUEUE COUNT", line by
// line, and answers with the seconds that it took and the seconds of this process's processor time.

#include <chrono>
#include <ctime>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <proton/annotation_key.hpp>
#include <proton/binary.hpp>
#include <proton/connection.hpp>
#include <proton/connection_options.hpp>
#include <proton/container.hpp>
#include <proton/delivery.hpp>
#include <proton/message.hpp>
#include <proton/message_id.hpp>
#include <proton/messaging_handler.hpp>
#include <proton/receiver_options.hpp>
#include <proton/sender.hpp>
#include <proton/sender_options.hpp>
#include <proton/source_options.hpp>
#include <proton/symbol.hpp>
#include <proton/target_options.hpp>
#include <proton/tracker.hpp>
#include <proton/value.hpp>

namespace {

const int ahead = 100;
const std::size_t size = 1024;
const std::vector<proton::symbol> a_queue{"queue"};

class loop : public proton::messaging_handler {
  public:
    loop(std::string url, std::string queue, int count) : url_(url), queue_(queue), count_(count) {}

    double elapsed = 0, processor = 0;

  protected:
    const std::string url_, queue_;
    const int count_;

    void on_container_start(proton::container &container) override {
        container.connect(url_, proton::connection_options().sasl_allowed_mechs("ANONYMOUS"));
    }

    void begin() {
        wall_ = std::chrono::steady_clock::now();
        used_ = std::clock();
    }

    void count(proton::connection connection) {
        if (++done_ == count_) {
            elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_).count();
            processor = double(std::clock() - used_) / CLOCKS_PER_SEC;
            connection.close();
        }
    }

  private:
    int done_ = 0;
    std::chrono::steady_clock::time_point wall_;
    std::clock_t used_ = 0;
};

class receiving : public loop {
    using loop::loop;

    void on_connection_open(proton::connection &connection) override {
        begin();
        auto source = proton::source_options().capabilities(a_queue);
        connection.open_receiver(queue_, proton::receiver_options().credit_window(ahead).source(source));
    }

    void on_message(proton::delivery &delivery, proton::message &message) override {
        if (proton::get<proton::binary>(message.body()).size() != size) {
            throw std::runtime_error("another body was expected");
        }
        count(delivery.connection());
    }
};

class sending : public loop {
    using loop::loop;

    int sent_ = 0;

    void on_connection_open(proton::connection &connection) override {
        begin();
        auto target = proton::target_options().capabilities(a_queue);
        connection.open_sender(queue_, proton::sender_options().target(target));
    }

    void on_sendable(proton::sender &sender) override {
        for (; sender.credit() && sent_ < count_; ++sent_) sender.send(message());
    }

    void on_tracker_accept(proton::tracker &tracker) override { count(tracker.connection()); }

    proton::message message() const {
        proton::message message(proton::binary(std::string(size, 'x')));
        message.inferred(true);
        message.durable(true);
        message.id(proton::message_id("ID:" + queue_ + "-" + std::to_string(sent_)));
        message.to(queue_);
        message.creation_time(proton::timestamp::now());
        message.content_type("application/octet-stream");
        message.message_annotations().put(proton::annotation_key("x-opt-jms-dest"), std::int8_t(0));
        message.message_annotations().put(proton::annotation_key("x-opt-jms-msg-type"), std::int8_t(3));
        return message;
    }
};

template <class Loop> void carry_out(const std::string &url, const std::string &queue, int count) {
    Loop loop(url, queue, count);
    proton::container(loop).run();
    std::cout << loop.elapsed << " " << loop.processor << std::endl;
}

} // namespace

int main(int, char **words) {
    std::string line, what, queue;
    for (int count; std::getline(std::cin, line);) {
        std::istringstream(line) >> what >> queue >> count;
        (what == "receive" ? carry_out<receiving> : carry_out<sending>)(words[1], queue, count);
    }
}
