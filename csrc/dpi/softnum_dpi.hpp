// softnum as the reference model of C++17 and SystemC: values of named formats and operations, header-only, over the C
// functions of softnum_dpi.h. Link libsoftnum_dpi.so, which `softnum rtl build` makes and puts this file beside.
// softnum_dpi_units.hpp has the units.
//
//   using fp8 = softnum::value<softnum::e4m3fn>;
//   softnum::environment env(softnum::mode(softnum::rounding::up).saturate());
//   fp8 product = env.multiply(fp8::from_code(0x3C), fp8::from_code(0x43));
//   auto wide = env.multiply<softnum::binary16>(fp8(1.5), fp8(2.0));    // rounded once, to binary16
//   if (env.raised.inexact()) ...                                       // flags are OR-ed until env.raised = {}
//
// A format is a type with a name that softnum.format knows and the width of its codes:
//   struct e6m9 { static constexpr const char *name = "e6m9"; static constexpr unsigned bits = 16; };
//
// What has no answer (an unknown name, a code that is none, a mode that a format does not know, a stochastic mode
// without a random word) throws softnum::error with the C library's message. Included after <systemc>, values are
// traced, printed, and made from sc_uint, sc_biguint, sc_bv and sc_lv, whose unknown bits are an error.
#ifndef SOFTNUM_DPI_HPP
#define SOFTNUM_DPI_HPP

#include "softnum_dpi.h"

#include <cstdint>
#include <cstdio>
#include <ostream>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace softnum {

struct error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// ---- formats --------------------------------------------------------------------------------------------------------
#define SOFTNUM_FORMAT(type, width)                                                                                    \
    struct type {                                                                                                      \
        static constexpr const char *name = #type;                                                                     \
        static constexpr unsigned bits = width;                                                                        \
    };
SOFTNUM_FORMAT(binary64, 64)
SOFTNUM_FORMAT(binary32, 32)
SOFTNUM_FORMAT(binary16, 16)
SOFTNUM_FORMAT(bfloat16, 16)
SOFTNUM_FORMAT(tf32, 19)
SOFTNUM_FORMAT(dlfloat16, 16)
SOFTNUM_FORMAT(e5m2, 8)
SOFTNUM_FORMAT(e4m3, 8)
SOFTNUM_FORMAT(e4m3fn, 8)
SOFTNUM_FORMAT(e3m4, 8)
SOFTNUM_FORMAT(e5m2fnuz, 8)
SOFTNUM_FORMAT(e4m3fnuz, 8)
SOFTNUM_FORMAT(e4m3b11fnuz, 8)
SOFTNUM_FORMAT(e8m0fnu, 8)
SOFTNUM_FORMAT(e3m2fn, 6)
SOFTNUM_FORMAT(e2m3fn, 6)
SOFTNUM_FORMAT(e2m1fn, 4)
#undef SOFTNUM_FORMAT

namespace detail {
inline sn_u64 handle(const std::string &text) {
    const sn_u64 found = softnum_dpi_format(text.c_str());
    if (found == SOFTNUM_NO_HANDLE) throw error(softnum_dpi_message());
    return found;
}

template <class F> sn_u64 own_handle() {
    static const sn_u64 found = [] {
        const sn_u64 made = handle(F::name);
        if (softnum_dpi_bits(made) != F::bits)
            throw error(std::string(F::name) + " has codes of " + std::to_string(softnum_dpi_bits(made)) +
                        " bits, not of " + std::to_string(F::bits));
        return made;
    }();
    return found;
}

// "A,B->OUT", each type checked.
template <class Out, class... In> sn_u64 handle_of() {
    static const sn_u64 found = [] {
        own_handle<Out>();
        std::string text;
        ((own_handle<In>(), text += (text.empty() ? "" : ",") + std::string(In::name)), ...);
        return handle(text + "->" + Out::name);
    }();
    return found;
}
} // namespace detail

// ---- modes and flags ------------------------------------------------------------------------------------------------
enum class rounding : sn_u64 {
    nearest_even,
    nearest_away,
    nearest_zero,
    nearest_up,
    nearest_down,
    toward_zero,
    away_from_zero,
    up,
    down,
    to_odd,
    stochastic,
    stochastic_floor,
    stochastic_fast,
    stochastic_even,
    stochastic_odd,
    stochastic_equal
};

// A rounding mode with options, each returned as a new mode: mode(rounding::up).saturate().tininess_before().
class mode {
    sn_u64 number_;
    constexpr explicit mode(sn_u64 number) : number_(number) {}
    constexpr mode with(int shift, sn_u64 width, sn_u64 field) const {
        return mode((number_ & ~(((sn_u64{1} << width) - 1) << shift)) | field << shift);
    }

  public:
    constexpr mode(rounding r = rounding::nearest_even) : number_(static_cast<sn_u64>(r)) {}
    constexpr sn_u64 number() const { return number_; }
    constexpr bool is_stochastic() const { return (number_ & 0xFF) >= static_cast<sn_u64>(rounding::stochastic); }
    constexpr mode infinity() const { return with(SOFTNUM_OVERFLOW_SHIFT, 4, 1); }
    constexpr mode saturate() const { return with(SOFTNUM_OVERFLOW_SHIFT, 4, 2); }
    constexpr mode saturate_finite() const { return with(SOFTNUM_OVERFLOW_SHIFT, 4, 3); }
    constexpr mode wrap() const { return with(SOFTNUM_OVERFLOW_SHIFT, 4, 4); }
    constexpr mode always_infinity() const { return mode(number_).with(SOFTNUM_OVERFLOW_SHIFT, 4, 5); } // of fused_dot
    constexpr mode tininess_before() const { return mode(number_ | SOFTNUM_TININESS_BEFORE); }
    constexpr mode flush_inputs() const { return mode(number_ | SOFTNUM_FLUSH_INPUTS); }
    constexpr mode flush_before() const { return with(SOFTNUM_FLUSH_SHIFT, 2, 1); } // results tiny before rounding
    constexpr mode flush_after() const { return with(SOFTNUM_FLUSH_SHIFT, 2, 2); }
    constexpr mode nan_x86() const { return with(SOFTNUM_NAN_SHIFT, 4, 1); }
    constexpr mode nan_arm() const { return with(SOFTNUM_NAN_SHIFT, 4, 2); }
    // How many random bits a stochastic mode takes, 1 to 32.
    mode random_bits(unsigned r) const {
        if (r < 1 || r > 32) throw error("random bits lie in 1..32, got " + std::to_string(r));
        return with(SOFTNUM_BITS_SHIFT, 8, r);
    }
};

struct flags {
    sn_u64 bits = 0;
    constexpr bool inexact() const { return (bits & 1) != 0; }
    constexpr bool underflow() const { return (bits & 2) != 0; }
    constexpr bool overflow() const { return (bits & 4) != 0; }
    constexpr bool divide_by_zero() const { return (bits & 8) != 0; }
    constexpr bool invalid() const { return (bits & 16) != 0; }
    constexpr flags &operator|=(flags other) { return bits |= other.bits, *this; }
    friend constexpr bool operator==(flags a, flags b) { return a.bits == b.bits; }
    friend constexpr bool operator!=(flags a, flags b) { return a.bits != b.bits; }
    friend std::ostream &operator<<(std::ostream &out, flags f) {
        static constexpr const char *names[] = {"inexact", "underflow", "overflow", "divide_by_zero", "invalid"};
        if (!f.bits) return out << "none";
        for (int i = 0, some = 0; i < 5; i++)
            if (f.bits >> i & 1) out << (some++ ? "|" : "") << names[i];
        return out;
    }
};

// ---- values ---------------------------------------------------------------------------------------------------------
// A code of a format. == compares codes: NaNs of one code are equal, zeros of two signs are not.
template <class F> class value {
    sn_u64 code_ = 0;

  public:
    using format = F;
    static constexpr unsigned bits = F::bits;
    static constexpr sn_u64 mask = F::bits == 64 ? ~sn_u64{0} : (sn_u64{1} << F::bits % 64) - 1;

    constexpr value() = default;
    // Rounded to nearest even, with the format's rule of overflow; environment::quantize has modes and flags.
    explicit value(double number) {
        sn_u64 raised = 0;
        code_ = softnum_dpi_from_real(number, detail::own_handle<F>(), 0, 0, &raised);
        if (raised & SOFTNUM_ERROR) throw error(softnum_dpi_message());
        if ((raised & 16) && number != number) throw error(std::string(F::name) + " has no code for NaN");
    }
    static value from_code(sn_u64 code) {
        if (code & ~mask)
            throw error(std::to_string(code) + " is no code of " + F::name + ", which has " +
                        std::to_string(F::bits) + " bits");
        value made;
        made.code_ = code;
        return made;
    }
    constexpr sn_u64 code() const { return code_; }
    // The value, which binary64 must hold exactly.
    double to_double() const {
        sn_u64 raised = 0;
        const double number = softnum_dpi_to_real(code_, detail::own_handle<F>(), &raised);
        if (raised & SOFTNUM_ERROR) throw error(softnum_dpi_message());
        if (raised & 1) throw error(std::string(F::name) + ": binary64 does not hold the value");
        return number;
    }
    friend constexpr bool operator==(value a, value b) { return a.code_ == b.code_; }
    friend constexpr bool operator!=(value a, value b) { return a.code_ != b.code_; }
    // "3c (1.5)": the code in hexadecimal, and the value.
    friend std::ostream &operator<<(std::ostream &out, const value &v) {
        char text[64];
        std::snprintf(text, sizeof text, "%0*llx", static_cast<int>((F::bits + 3) / 4),
                      static_cast<unsigned long long>(v.code_));
        out << text;
        sn_u64 raised = 0;
        std::snprintf(text, sizeof text, " (%.17g)", softnum_dpi_to_real(v.code_, detail::own_handle<F>(), &raised));
        return raised & SOFTNUM_ERROR ? out : out << text;
    }
#ifdef SYSTEMC_VERSION
    template <int W> explicit value(const sc_dt::sc_uint<W> &word) : value(sc_dt::sc_lv<W>(word)) {}
    template <int W> explicit value(const sc_dt::sc_biguint<W> &word) : value(sc_dt::sc_bv<W>(word)) {}
    template <int W> explicit value(const sc_dt::sc_bv<W> &word) : value(sc_dt::sc_lv<W>(word)) {}
    template <int W> explicit value(const sc_dt::sc_lv<W> &word) {
        static_assert(W == int(F::bits), "the word is as wide as the format's codes");
        if (!word.is_01()) throw error(std::string(F::name) + ": a code has unknown bits, " + word.to_string());
        *this = from_code(word.to_uint64());
    }
    operator sc_dt::sc_uint<static_cast<int>(F::bits)>() const { return code_; }
    friend void sc_trace(sc_core::sc_trace_file *file, const value &v, const std::string &name) {
        sc_core::sc_trace(file, v.code_, name, static_cast<int>(F::bits));
    }
#endif
};

// ---- operations -----------------------------------------------------------------------------------------------------
enum class order { less, equal, greater, unordered };
enum class kind {
    signaling_nan,
    quiet_nan,
    negative_infinity,
    negative_normal,
    negative_subnormal,
    negative_zero,
    positive_zero,
    positive_subnormal,
    positive_normal,
    positive_infinity
};

namespace detail {
template <class Out, class A> using out_of = std::conditional_t<std::is_void_v<Out>, A, Out>;

// What a result's code stands for.
template <class T> struct answer {
    static T of(sn_u64 code) { return static_cast<T>(code); }
};
template <class F> struct answer<value<F>> {
    static value<F> of(sn_u64 code) { return value<F>::from_code(code); }
};

// The number of each operation, by which those that answer something else than a value are told.
enum class operation {
#define SOFTNUM_NAMED(name, operands) name,
    SN_OPERATIONS(SOFTNUM_NAMED)
#undef SOFTNUM_NAMED
};
template <operation, class Out> struct result { using type = value<Out>; };
template <class Out> struct result<operation::compare, Out> { using type = order; };
template <class Out> struct result<operation::compare_signaling, Out> { using type = order; };
template <class Out> struct result<operation::total_order, Out> { using type = bool; };
template <class Out> struct result<operation::classify, Out> { using type = kind; };
} // namespace detail

// Bits of two's complement, the result of to_integer.
template <unsigned Bits, bool Signed = true> struct integer {
    static_assert(Bits >= 1 && Bits <= 64, "integers have 1 to 64 bits");
    static constexpr unsigned bits = Bits;
    inline static const std::string text = (Signed ? "q" : "uq") + std::to_string(Bits) + ".0";
    inline static const char *const name = text.c_str();
};

// A mode, the flags that were raised, and the random word that the next stochastic rounding takes.
class environment {
    sn_u64 random_ = 0;
    bool drawn_ = false;

  public:
    softnum::mode mode;
    flags raised;

    environment() = default;
    explicit environment(softnum::mode m) : mode(m) {}
    // The random word of the next operation, which uses it up.
    environment &random(std::uint32_t word) { return random_ = word, drawn_ = true, *this; }
    // The same, as Python's key=(seed, stream) draws it for element `index`.
    environment &draw(sn_u64 seed, sn_u64 stream, sn_u64 index) {
        return random(static_cast<std::uint32_t>(softnum_dpi_random(seed, stream, index)));
    }

    // call(random, flags) of a C function, with the flags and errors delivered.
    template <class T, class Call> T answered(bool stochastic, Call call) {
        if (stochastic && !drawn_)
            throw error("a stochastic mode takes a random word: random() or draw() before each operation");
        sn_u64 own = 0;
        const sn_u64 code = call(stochastic ? random_ : 0, &own);
        if (own & SOFTNUM_ERROR) throw error(softnum_dpi_message());
        drawn_ = drawn_ && !stochastic;
        raised |= flags{own};
        return detail::answer<T>::of(code);
    }

    // A number, rounded once.
    template <class Out> value<Out> quantize(double number) {
        return answered<value<Out>>(mode.is_stochastic(), [&](sn_u64 random, sn_u64 *own) {
            return softnum_dpi_from_real(number, detail::own_handle<Out>(), mode.number(), random, own);
        });
    }

    // The operations of softnum_dpi.h: env.add(a, b), or env.add<binary32>(a, b) with the exact result rounded once to
    // another format. compare: an order; classify: a kind; total_order: a bool. convert and to_integer state where to:
    // convert<e5m2>(a), to_integer<integer<32>>(a).
#define SOFTNUM_1(name)                                                                                                \
    template <class Out = void, class A> auto name(value<A> a) {                                                       \
        using to = detail::out_of<Out, A>;                                                                             \
        using type = typename detail::result<detail::operation::name, to>::type;                                       \
        return answered<type>(mode.is_stochastic(), [&](sn_u64 random, sn_u64 *own) {                                  \
            return softnum_dpi_##name(a.code(), detail::handle_of<to, A>(), mode.number(), random, own);               \
        });                                                                                                            \
    }
#define SOFTNUM_2(name)                                                                                                \
    template <class Out = void, class A, class B> auto name(value<A> a, value<B> b) {                                  \
        using to = detail::out_of<Out, A>;                                                                             \
        using type = typename detail::result<detail::operation::name, to>::type;                                       \
        static_assert(detail::operation::name != detail::operation::scalb || sizeof(A) == 0, "scalb takes an integer");\
        return answered<type>(mode.is_stochastic(), [&](sn_u64 random, sn_u64 *own) {                                  \
            return softnum_dpi_##name(a.code(), b.code(), detail::handle_of<to, A, B>(), mode.number(), random, own);  \
        });                                                                                                            \
    }
#define SOFTNUM_3(name)                                                                                                \
    template <class Out = void, class A, class B, class C> auto name(value<A> a, value<B> b, value<C> c) {             \
        using to = detail::out_of<Out, A>;                                                                             \
        return answered<value<to>>(mode.is_stochastic(), [&](sn_u64 random, sn_u64 *own) {                             \
            return softnum_dpi_##name(a.code(), b.code(), c.code(), detail::handle_of<to, A, B, C>(), mode.number(),   \
                                      random, own);                                                                    \
        });                                                                                                            \
    }
#define SOFTNUM_MEMBER(name, operands) SOFTNUM_##operands(name)
    SN_OPERATIONS(SOFTNUM_MEMBER)
#undef SOFTNUM_MEMBER
#undef SOFTNUM_1
#undef SOFTNUM_2
#undef SOFTNUM_3

    // a * 2^exponent
    template <class Out = void, class A> auto scalb(value<A> a, std::int64_t exponent) {
        using to = detail::out_of<Out, A>;
        return answered<value<to>>(mode.is_stochastic(), [&](sn_u64 random, sn_u64 *own) {
            return softnum_dpi_scalb(a.code(), static_cast<sn_u64>(exponent), detail::handle_of<to, A>(),
                                     mode.number(), random, own);
        });
    }
};

// To nearest even, the flags not looked at. A NaN that the format has no code for is an error.
namespace detail {
template <class F, class Operation> value<F> plain(Operation operation) {
    environment env;
    const value<F> found = operation(env);
    if (env.raised.invalid() && env.classify(found) > kind::quiet_nan)
        throw error(std::string("the result is NaN, for which ") + F::name + " has no code");
    return found;
}
} // namespace detail
template <class F> value<F> operator+(value<F> a, value<F> b) {
    return detail::plain<F>([&](environment &env) { return env.add(a, b); });
}
template <class F> value<F> operator-(value<F> a, value<F> b) {
    return detail::plain<F>([&](environment &env) { return env.subtract(a, b); });
}
template <class F> value<F> operator*(value<F> a, value<F> b) {
    return detail::plain<F>([&](environment &env) { return env.multiply(a, b); });
}
template <class F> value<F> operator/(value<F> a, value<F> b) {
    return detail::plain<F>([&](environment &env) { return env.divide(a, b); });
}
template <class F> value<F> operator-(value<F> a) {
    return detail::plain<F>([&](environment &env) { return env.negate(a); });
}

} // namespace softnum
#endif
