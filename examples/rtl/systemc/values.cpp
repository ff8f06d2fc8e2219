// softnum in plain C++: values of named formats, modes, flags, units. Prints a line for each, code and flags.
//
//   $ softnum rtl build --out build
//   $ c++ -std=c++17 -Ibuild values.cpp build/libsoftnum_dpi.so -Wl,-rpath,$PWD/build -o values && ./values

#include "softnum_dpi_units.hpp"

#include <cmath>
#include <iostream>

using namespace softnum;

// A format that the headers do not name: any of softnum's.
struct e6m9 {
    static constexpr const char *name = "e6m9";
    static constexpr unsigned bits = 16;
};

struct wrong_width {
    static constexpr const char *name = "e5m2";
    static constexpr unsigned bits = 9;
};

template <class F> void line(const char *what, value<F> v, const environment &env) {
    std::cout << what << ": " << v << ", " << env.raised << "\n";
}

template <class Call> void refused(const char *what, Call call) {
    try {
        call();
        std::cout << what << ": was not refused\n";
    } catch (const error &e) {
        std::cout << what << ": " << e.what() << "\n";
    }
}

int main() {
    using fp8 = value<e4m3fn>;
    const fp8 a(0.0546875), b(1.5);
    std::cout << "a + b, a * b, -a: " << a + b << " " << a * b << " " << -a << "\n";

    for (mode m : {mode(rounding::nearest_even), mode(rounding::up), mode(rounding::to_odd).saturate()}) {
        environment env(m);
        line("multiply", env.multiply(fp8(448.0), fp8(1.125)), env);
        env.raised = {};
        line("divide", env.divide(fp8(1.0), fp8(3.0)), env);
        env.raised = {};
        line("fma to binary16", env.fma<binary16>(fp8(3.0), value<e5m2>(7.0), value<binary32>(1e-9)), env);
    }
    environment env;
    line("quantize", env.quantize<binary16>(0.1), env);
    line("sqrt", env.sqrt(value<binary32>(2.0)), env);
    line("scalb", env.scalb(fp8(1.5), -9), env);
    line("tanh", env.tanh(value<bfloat16>(0.7)), env);
    line("convert", env.convert<e5m2>(value<binary16>(70.0)), env);
    env.raised = {};
    const auto whole = env.to_integer<integer<8>>(value<binary16>(-200.0));
    std::cout << "to_integer: " << whole.code() << ", " << env.raised << "\n";
    std::cout << "compare: " << int(env.compare(a, b)) << " " << int(env.compare(a, fp8(NAN))) << ", classify "
              << int(env.classify(-a)) << ", total order " << env.total_order(a, b) << "\n";

    environment drawn(mode(rounding::stochastic).random_bits(12));
    for (sn_u64 i = 0; i < 4; i++)
        std::cout << "stochastic: " << drawn.draw(7, 3, i).convert<e5m2>(value<binary16>(1.1)) << "\n";

    // Units: a step at a time, exactly, and as tensor cores have it.
    const std::vector<value<e5m2>> x{value<e5m2>(1.75), value<e5m2>(-3.0), value<e5m2>(0.0625)}, y(3, value<e5m2>(1.25));
    environment sums;
    value<e6m9> acc;
    const mad_unit<e6m9, e5m2> mac;
    for (std::size_t k = 0; k < x.size(); k++) acc = mac.step(sums, acc, x[k], y[k]);
    line("mac", acc, sums);
    line("exact dot", exact_dot(sums, x, y, value<e6m9>(0.001)), sums);
    environment cut(rounding::toward_zero);
    line("fused dot", fused_dot_unit<binary32>{4, 23}(cut, x, y, value<binary32>(0.1)), cut);

    refused("code", [] { fp8::from_code(0x100); });
    refused("width", [] { value<wrong_width>(1.0); });
    refused("NaN", [] { value<e2m1fn>(0.0) / value<e2m1fn>(0.0); });
    refused("NaN", [] { value<e2m1fn>{NAN}; });
    refused("mode", [] { environment(mode().wrap()).add(fp8(1.0), fp8(1.0)); });
    refused("random", [] { environment(rounding::stochastic).add(fp8(1.0), fp8(1.0)); });
    refused("lengths", [&] { exact_dot(sums, x, std::vector<value<e5m2>>(2), acc); });
    refused("to_double", [] { value<integer<64>>::from_code((1ull << 62) + 1).to_double(); });
}
