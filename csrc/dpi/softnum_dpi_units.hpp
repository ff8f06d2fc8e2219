// Units of softnum in C++17 and SystemC: multiply-add steps, and dot products that are exact or fused in steps.
#ifndef SOFTNUM_DPI_UNITS_HPP
#define SOFTNUM_DPI_UNITS_HPP

#include "softnum_dpi.hpp"

#include <cstddef>
#include <vector>

namespace softnum {

// MadUnit(Acc, operand=(A, B), product=Product): acc + a * b, a step at a time. Without Product the product is exact.
// The environment's mode rounds the sum, product_mode the product. Where one of them is stochastic, a random word of 64
// bits is given: its low half is the product's, its high half the sum's.
template <class Acc, class A, class B = A, class Product = void> struct mad_unit {
    mode product_mode;

    value<Acc> step(environment &env, value<Acc> acc, value<A> a, value<B> b) const {
        if (env.mode.is_stochastic() || product_mode.is_stochastic())
            throw error("a stochastic mode takes a random word: step(env, acc, a, b, random)");
        return step(env, acc, a, b, 0);
    }
    value<Acc> step(environment &env, value<Acc> acc, value<A> a, value<B> b, sn_u64 random) const {
        return env.template answered<value<Acc>>(false, [&](sn_u64, sn_u64 *own) {
            return softnum_dpi_mac(acc.code(), a.code(), b.code(), handle(), env.mode.number(), product_mode.number(),
                                   random, own);
        });
    }

  private:
    static sn_u64 handle() {
        if constexpr (std::is_void_v<Product>) return detail::handle_of<Acc, A, B>();
        else return detail::handle_of<Acc, A, B, Product>();
    }
};

namespace detail {
// Codes side by side, element 0 lowest.
template <class F> std::vector<sn_u32> word_of(const std::vector<value<F>> &elements) {
    if (elements.size() * F::bits > SOFTNUM_WORD_BITS)
        throw error(std::to_string(elements.size()) + " elements of " + F::name + " are more than a word's " +
                    std::to_string(int(SOFTNUM_WORD_BITS)) + " bits");
    std::vector<sn_u32> word(SOFTNUM_WORD_BITS / 32, 0);
    for (std::size_t i = 0; i < elements.size(); i++)
        for (unsigned bit = 0; bit < F::bits; bit++)
            word[(i * F::bits + bit) / 32] |= static_cast<sn_u32>(elements[i].code() >> bit & 1)
                                              << (i * F::bits + bit) % 32;
    return word;
}

template <class A, class B> void same_length(const std::vector<value<A>> &a, const std::vector<value<B>> &b) {
    if (a.size() != b.size())
        throw error("a has " + std::to_string(a.size()) + " elements, b has " + std::to_string(b.size()));
}
} // namespace detail

// ExactDotUnit(Out): c and all products, exactly added and rounded once.
template <class Out, class A, class B>
value<Out> exact_dot(environment &env, const std::vector<value<A>> &a, const std::vector<value<B>> &b,
                     value<Out> c = {}) {
    detail::same_length(a, b);
    return env.template answered<value<Out>>(env.mode.is_stochastic(), [&](sn_u64 random, sn_u64 *own) {
        return softnum_dpi_exact_dot(detail::word_of(a).data(), detail::word_of(b).data(), a.size(), c.code(),
                                     detail::handle_of<Out, A, B>(), env.mode.number(), random, own);
    });
}

// FusedDotUnit(terms, fraction_bits, Acc, output=Out): products and the accumulator cut to fraction_bits below the
// largest exponent, then added, `terms` at a time. The environment's mode rounds to Out. CAfter: c is added last.
template <class Acc, class Out = Acc, bool CAfter = false> struct fused_dot_unit {
    static constexpr sn_i64 no_floor = -(sn_i64{1} << 30);
    using addend = value<std::conditional_t<CAfter, Out, Acc>>;
    sn_u64 terms, fraction_bits;
    sn_i64 min_exponent = no_floor, truncate_fraction = -1;

    template <class A, class B>
    value<Out> operator()(environment &env, const std::vector<value<A>> &a, const std::vector<value<B>> &b,
                          addend c = {}) const {
        detail::same_length(a, b);
        return env.template answered<value<Out>>(false, [&](sn_u64, sn_u64 *own) {
            return softnum_dpi_fused_dot(detail::word_of(a).data(), detail::word_of(b).data(), a.size(), c.code(),
                                         detail::handle_of<Out, A, B, Acc>(), env.mode.number(), terms, fraction_bits,
                                         min_exponent, truncate_fraction, CAfter, own);
        });
    }
};

} // namespace softnum
#endif
