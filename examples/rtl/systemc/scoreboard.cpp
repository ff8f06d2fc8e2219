// A pipelined multiplier of e4m3fn in SystemC, and a scoreboard that judges every result by softnum.
//
//   $ softnum rtl build --out build
//   $ c++ -std=c++17 -Ibuild scoreboard.cpp build/libsoftnum_dpi.so -Wl,-rpath,$PWD/build -lsystemc -o scoreboard
//   $ ./scoreboard           all 65536 pairs of operands; with --bug the design loses the sticky bit: exit code 1
//
// --vcd writes scoreboard.vcd, in which values are their codes.
#include <systemc>

#include "softnum_dpi.hpp"

#include <cstring>
#include <deque>
#include <iostream>

using fp8 = softnum::value<softnum::e4m3fn>;
using byte = sc_dt::sc_uint<8>;

// The design: two stages, saturating, to nearest even. It knows nothing of softnum.
SC_MODULE(Multiplier) {
    sc_core::sc_in<bool> clock;
    sc_core::sc_in<bool> valid;
    sc_core::sc_in<byte> a, b;
    sc_core::sc_out<bool> done;
    sc_core::sc_out<byte> result;
    bool bug = false;

    SC_CTOR(Multiplier) {
        SC_METHOD(edge);
        sensitive << clock.pos();
        dont_initialize();
    }

  private:
    sc_core::sc_signal<bool> held;
    sc_core::sc_signal<byte> first, second;

    void edge() {
        held.write(valid.read());
        first.write(a.read());
        second.write(b.read());
        done.write(held.read());
        result.write(product(first.read().to_uint(), second.read().to_uint()));
    }

    unsigned shifted(unsigned significand) const { return significand >> 1 | (bug ? 0 : significand & 1); }

    unsigned product(unsigned x, unsigned y) const {
        const unsigned sign = (x ^ y) & 0x80, field_x = x >> 3 & 15, field_y = y >> 3 & 15;
        if ((x & 0x7F) == 0x7F || (y & 0x7F) == 0x7F) return 0x7F;
        unsigned significand = ((field_x != 0) << 3 | (x & 7)) * ((field_y != 0) << 3 | (y & 7));
        if (significand == 0) return sign;
        int field = int(field_x ? field_x : 1) + int(field_y ? field_y : 1) - 7;
        for (; significand < 64; field--) significand <<= 1;
        for (; significand >= 128; field++) significand = shifted(significand);
        for (; field < 1; field++) significand = shifted(significand);
        unsigned code = unsigned(field - 1) * 8 + (significand >> 3);
        const unsigned rest = significand & 7;
        code += rest > 4 || (rest == 4 && (code & 1));
        return sign | (code > 0x7E ? 0x7E : code);
    }
};

// Sends all pairs, with gaps.
SC_MODULE(Source) {
    sc_core::sc_in<bool> clock;
    sc_core::sc_out<bool> valid;
    sc_core::sc_out<byte> a, b;

    SC_CTOR(Source) {
        SC_THREAD(send);
        sensitive << clock.pos();
        dont_initialize();
    }

  private:
    void send() {
        for (unsigned pair = 0; pair < 1u << 16; pair++) {
            for (unsigned gap = pair % 7 == 3; gap > 0; gap--) {
                valid.write(false);
                wait();
            }
            valid.write(true);
            a.write(pair >> 8);
            b.write(pair & 0xFF);
            wait();
        }
        valid.write(false);
        for (int drained = 0; drained < 8; drained++) wait();
        sc_core::sc_stop();
    }
};

// Expects a result for each pair that was sent, in their order.
SC_MODULE(Scoreboard) {
    sc_core::sc_in<bool> clock;
    sc_core::sc_in<bool> valid, done;
    sc_core::sc_in<byte> a, b, result;
    sc_core::sc_signal<fp8> want; // of the last result, for waves
    unsigned long checked = 0, differ = 0;

    SC_CTOR(Scoreboard) : env(softnum::mode(softnum::rounding::nearest_even).saturate()) {
        SC_METHOD(edge);
        sensitive << clock.pos();
        dont_initialize();
    }
    std::size_t missing() const { return expected.size(); }
    softnum::flags seen() const { return env.raised; }

  private:
    struct item {
        fp8 a, b, want;
    };
    softnum::environment env;
    std::deque<item> expected;

    void edge() {
        if (done.read()) {
            if (expected.empty()) SC_REPORT_FATAL("scoreboard", "a result that nothing was sent for");
            const item due = expected.front();
            expected.pop_front();
            want.write(due.want);
            checked++;
            const fp8 got(result.read());
            if (got != due.want && ++differ <= 3)
                std::cout << sc_core::sc_time_stamp() << ": " << due.a << " * " << due.b << ": got " << got << ", want "
                          << due.want << "\n";
        }
        if (valid.read()) {
            const fp8 x(a.read()), y(b.read());
            expected.push_back({x, y, env.multiply(x, y)});
        }
    }
};

int sc_main(int count, char **words) {
    bool bug = false, waves = false;
    for (int i = 1; i < count; i++) {
        bug = bug || !std::strcmp(words[i], "--bug");
        waves = waves || !std::strcmp(words[i], "--vcd");
    }
    sc_core::sc_clock clock("clock", 10, sc_core::SC_NS);
    sc_core::sc_signal<bool> valid("valid"), done("done");
    sc_core::sc_signal<byte> a("a"), b("b"), result("result");
    Source source("source");
    Multiplier design("design");
    Scoreboard board("board");
    source.clock(clock), source.valid(valid), source.a(a), source.b(b);
    design.clock(clock), design.valid(valid), design.a(a), design.b(b), design.done(done), design.result(result);
    board.clock(clock), board.valid(valid), board.a(a), board.b(b), board.done(done), board.result(result);
    design.bug = bug;

    sc_core::sc_trace_file *file = waves ? sc_core::sc_create_vcd_trace_file("scoreboard") : nullptr;
    if (file) {
        sc_core::sc_trace(file, clock, "clock");
        sc_core::sc_trace(file, done, "done");
        sc_core::sc_trace(file, result, "result");
        sc_core::sc_trace(file, board.want, "want");
    }
    sc_core::sc_start();
    if (file) sc_core::sc_close_vcd_trace_file(file);
    std::cout << board.checked << " results checked, " << board.differ << " differ, " << board.missing()
              << " did not come; flags of all: " << board.seen() << "\n";
    return board.differ || board.missing() || board.checked != 1u << 16;
}
