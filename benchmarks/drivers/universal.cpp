// Universal, called from Python: operations and conversions of arrays of codes. One thread.
#include <cstddef>
#include <cstdint>

#include <universal/number/cfloat/cfloat.hpp>
#include <universal/number/microfloat/microfloat.hpp>
#include <universal/number/posit/posit.hpp>

namespace {

using namespace sw::universal;

template <typename code, typename number> number read(code c) {
    number x;
    x.setbits(c);
    return x;
}

template <unsigned nbits, unsigned es, typename bt> std::uint64_t code_of(const posit<nbits, es, bt> &x) {
    return x.encoding();
}
template <unsigned nbits, unsigned es, typename bt, bool sub, bool max, bool sat>
std::uint64_t code_of(const cfloat<nbits, es, bt, sub, max, sat> &x) {
    std::uint64_t bits = 0;
    for (unsigned i = 0; i < nbits; i++)
        bits |= std::uint64_t(x.at(i)) << i;
    return bits;
}
template <unsigned nbits, unsigned es, bool inf, bool nan, bool sat>
std::uint64_t code_of(const microfloat<nbits, es, inf, nan, sat> &x) {
    return x.bits();
}

// op: 0 addition, 1 subtraction, 2 multiplication, 3 division
template <typename code, typename number> void operate(int op, const code *a, const code *b, code *out, std::size_t n) {
    for (std::size_t i = 0; i < n; i++) {
        const number x = read<code, number>(a[i]), y = read<code, number>(b[i]);
        out[i] = code(code_of(op == 0 ? x + y : op == 1 ? x - y : op == 2 ? x * y : x / y));
    }
}

template <typename code, typename number> void encode(const float *x, code *out, std::size_t n) {
    for (std::size_t i = 0; i < n; i++)
        out[i] = code(code_of(number(x[i])));
}

template <typename code, typename number> void decode(const code *x, float *out, std::size_t n) {
    for (std::size_t i = 0; i < n; i++)
        out[i] = float(read<code, number>(x[i]));
}

} // namespace

#define NUMBERS(name, code, ...)                                                                                       \
    extern "C" void name##_operate(int op, const code *a, const code *b, code *out, std::size_t n) {                   \
        operate<code, __VA_ARGS__>(op, a, b, out, n);                                                                  \
    }                                                                                                                  \
    extern "C" void name##_encode(const float *x, code *out, std::size_t n) { encode<code, __VA_ARGS__>(x, out, n); }  \
    extern "C" void name##_decode(const code *x, float *out, std::size_t n) { decode<code, __VA_ARGS__>(x, out, n); }

NUMBERS(posit8, std::uint8_t, posit<8, 2, std::uint8_t>)
NUMBERS(posit16, std::uint16_t, posit<16, 2, std::uint16_t>)
NUMBERS(posit32, std::uint32_t, posit<32, 2, std::uint32_t>)
NUMBERS(binary16, std::uint16_t, cfloat<16, 5, std::uint16_t, true, false, false>)
NUMBERS(bfloat16, std::uint16_t, cfloat<16, 8, std::uint16_t, true, false, false>)
NUMBERS(e4m3fn, std::uint8_t, microfloat<8, 4, false, true, false>)
NUMBERS(e5m2, std::uint8_t, microfloat<8, 5, true, true, false>)
