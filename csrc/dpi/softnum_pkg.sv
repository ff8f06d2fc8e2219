// softnum as the reference model of a SystemVerilog test bench, by DPI-C: compile this file with the bench, and link
// libsoftnum_dpi.so. softnum_dpi.h is the contract of the functions, softnum_modes.vh holds the numbers of modes.
//
//   import softnum_pkg::*;
//   longint unsigned fp8;
//   initial fp8 = softnum_format("e4m3fn");
//   ...  want = softnum_multiply(a, b, fp8, SOFTNUM_NEAREST_EVEN, 0, flags);
//
// What has no answer ends the simulation by $fatal, with a message. An operand or random word with x or z bits makes
// the result and the flags x.
package softnum_pkg;
`include "softnum_modes.vh"

  localparam longint unsigned SOFTNUM_ERROR = 64'h8000000000000000;
  localparam int SOFTNUM_WORD_BITS = 4096;

  import "DPI-C" function longint unsigned softnum_dpi_format(input string text);
  import "DPI-C" function longint unsigned softnum_dpi_define(
      input string name, input longint unsigned exponent_bits, input longint unsigned mantissa_bits,
      input longint bias, input longint unsigned facts);
  import "DPI-C" function longint unsigned softnum_dpi_bits(input longint unsigned formats);
  import "DPI-C" function string softnum_dpi_message();
  import "DPI-C" function longint unsigned softnum_dpi_random(
      input longint unsigned seed, input longint unsigned stream, input longint unsigned index);
  import "DPI-C" function real softnum_dpi_to_real(
      input longint unsigned code, input longint unsigned formats, inout longint unsigned flags);
  import "DPI-C" function longint unsigned softnum_dpi_from_real(
      input real value, input longint unsigned formats, input longint unsigned mode, input longint unsigned random,
      inout longint unsigned flags);
  import "DPI-C" function longint unsigned softnum_dpi_mac(
      input longint unsigned acc, input longint unsigned a, input longint unsigned b, input longint unsigned formats,
      input longint unsigned mode, input longint unsigned product_mode, input longint unsigned random,
      inout longint unsigned flags);
  import "DPI-C" function longint unsigned softnum_dpi_exact_dot(
      input bit [4095:0] a, input bit [4095:0] b, input longint unsigned length, input longint unsigned c,
      input longint unsigned formats, input longint unsigned mode, input longint unsigned random,
      inout longint unsigned flags);
  import "DPI-C" function longint unsigned softnum_dpi_fused_dot(
      input bit [4095:0] a, input bit [4095:0] b, input longint unsigned length, input longint unsigned c,
      input longint unsigned formats, input longint unsigned mode, input longint unsigned terms,
      input longint unsigned fraction_bits, input longint min_exponent, input longint truncate_fraction,
      input longint unsigned c_after, inout longint unsigned flags);

  import "DPI-C" function longint unsigned softnum_dpi_unit(input string name);
  import "DPI-C" function longint unsigned softnum_dpi_dot(
      input bit [4095:0] a, input bit [4095:0] b, input longint unsigned length, input longint unsigned c,
      input longint unsigned with_c, input longint unsigned unit, input longint unsigned seed,
      input longint unsigned stream, inout longint unsigned flags);
  import "DPI-C" function longint unsigned softnum_dpi_block_dot(
      input bit [4095:0] a, input bit [4095:0] b, input bit [4095:0] scale_a, input bit [4095:0] scale_b,
      input longint unsigned length, input longint unsigned c, input longint unsigned with_c,
      input longint unsigned unit, input longint unsigned seed, input longint unsigned stream,
      input longint unsigned tensor_a, input longint unsigned tensor_b, inout longint unsigned flags);

  // ---- what the calls have in common --------------------------------------------------------------------------------
  // The exceptions of a call OR-ed into flags; no answer: the end.
  function automatic void softnum_deliver(input longint unsigned raised, inout logic [63:0] flags);
    if ((raised & SOFTNUM_ERROR) != 0) $fatal(1, "%s", softnum_dpi_message());
    flags = flags | raised;
  endfunction

  // The handle of formats: "e5m2", or "e4m3fn,e5m2->binary16" where they differ.
  function automatic longint unsigned softnum_format(input string text);
    softnum_format = softnum_dpi_format(text);
    if (softnum_format == 64'hFFFFFFFFFFFFFFFF) $fatal(1, "softnum_format: %s", softnum_dpi_message());
  endfunction

  // A name for a float format of these facts (SOFTNUM_NANS_ALL_ONES ...), which softnum_format knows from then on.
  function automatic longint unsigned softnum_define(
      input string name, input longint unsigned exponent_bits, input longint unsigned mantissa_bits,
      input longint bias, input longint unsigned facts);
    softnum_define = softnum_dpi_define(name, exponent_bits, mantissa_bits, bias, facts);
    if (softnum_define == 64'hFFFFFFFFFFFFFFFF) $fatal(1, "%s", softnum_dpi_message());
  endfunction

  // Width of a code of the result's format.
  function automatic int softnum_bits(input longint unsigned formats);
    softnum_bits = int'(softnum_dpi_bits(formats));
    if (softnum_bits == 0) $fatal(1, "softnum_bits: %h is no handle of softnum_format", formats);
  endfunction

  // The random word that Python's key=(seed, stream) gives element `index`.
  function automatic logic [63:0] softnum_random(
      input longint unsigned seed, input longint unsigned stream, input longint unsigned index);
    return softnum_dpi_random(seed, stream, index);
  endfunction

  // The value of a code, for display; NaN where bits are unknown.
  function automatic real softnum_to_real(
      input logic [63:0] code, input longint unsigned formats, inout logic [63:0] flags);
    longint unsigned raised = 0;
    if ($isunknown(code)) begin
      flags = 'x;
      return $bitstoreal(64'h7FF8000000000000);
    end
    softnum_to_real = softnum_dpi_to_real(code, formats, raised);
    softnum_deliver(raised, flags);
  endfunction

  function automatic logic [63:0] softnum_from_real(
      input real value, input longint unsigned formats, input longint unsigned mode, input logic [63:0] random,
      inout logic [63:0] flags);
    longint unsigned raised = 0;
    if ($isunknown(random)) begin
      flags = 'x;
      return 'x;
    end
    softnum_from_real = softnum_dpi_from_real(value, formats, mode, random, raised);
    softnum_deliver(raised, flags);
  endfunction

  // ---- the operations: softnum_add(a, b, formats, mode, random, flags) and so on ---------------------------------------
`define SOFTNUM_1(NAME) \
  import "DPI-C" function longint unsigned softnum_dpi_``NAME( \
      input longint unsigned a, input longint unsigned formats, \
      input longint unsigned mode, input longint unsigned random, inout longint unsigned flags); \
  function automatic logic [63:0] softnum_``NAME( \
      input logic [63:0] a, input longint unsigned formats, \
      input longint unsigned mode, input logic [63:0] random, inout logic [63:0] flags); \
    longint unsigned raised = 0; \
    if ($isunknown({a, random})) begin \
      flags = 'x; \
      return 'x; \
    end \
    softnum_``NAME = softnum_dpi_``NAME(a, formats, mode, random, raised); \
    softnum_deliver(raised, flags); \
  endfunction
`define SOFTNUM_2(NAME) \
  import "DPI-C" function longint unsigned softnum_dpi_``NAME( \
      input longint unsigned a, input longint unsigned b, input longint unsigned formats, \
      input longint unsigned mode, input longint unsigned random, inout longint unsigned flags); \
  function automatic logic [63:0] softnum_``NAME( \
      input logic [63:0] a, input logic [63:0] b, input longint unsigned formats, \
      input longint unsigned mode, input logic [63:0] random, inout logic [63:0] flags); \
    longint unsigned raised = 0; \
    if ($isunknown({a, b, random})) begin \
      flags = 'x; \
      return 'x; \
    end \
    softnum_``NAME = softnum_dpi_``NAME(a, b, formats, mode, random, raised); \
    softnum_deliver(raised, flags); \
  endfunction
`define SOFTNUM_3(NAME) \
  import "DPI-C" function longint unsigned softnum_dpi_``NAME( \
      input longint unsigned a, input longint unsigned b, input longint unsigned c, input longint unsigned formats, \
      input longint unsigned mode, input longint unsigned random, inout longint unsigned flags); \
  function automatic logic [63:0] softnum_``NAME( \
      input logic [63:0] a, input logic [63:0] b, input logic [63:0] c, input longint unsigned formats, \
      input longint unsigned mode, input logic [63:0] random, inout logic [63:0] flags); \
    longint unsigned raised = 0; \
    if ($isunknown({a, b, c, random})) begin \
      flags = 'x; \
      return 'x; \
    end \
    softnum_``NAME = softnum_dpi_``NAME(a, b, c, formats, mode, random, raised); \
    softnum_deliver(raised, flags); \
  endfunction
  // SN_OPERATIONS: a line for each, put in by softnum.vectors.simulators
`undef SOFTNUM_1
`undef SOFTNUM_2
`undef SOFTNUM_3

  // ---- units: sums of products --------------------------------------------------------------------------------------
  // One step of a MadUnit: acc + a * b. The third of the formats' operands, if there is one, rounds the product first.
  function automatic logic [63:0] softnum_mac(
      input logic [63:0] acc, input logic [63:0] a, input logic [63:0] b, input longint unsigned formats,
      input longint unsigned mode, input longint unsigned product_mode, input logic [63:0] random,
      inout logic [63:0] flags);
    longint unsigned raised = 0;
    if ($isunknown({acc, a, b, random})) begin
      flags = 'x;
      return 'x;
    end
    softnum_mac = softnum_dpi_mac(acc, a, b, formats, mode, product_mode, random, raised);
    softnum_deliver(raised, flags);
  endfunction

  // Words of elements: element 0 in the lowest bits.
  function automatic logic [63:0] softnum_exact_dot(
      input logic [4095:0] a, input logic [4095:0] b, input longint unsigned length, input logic [63:0] c,
      input longint unsigned formats, input longint unsigned mode, input logic [63:0] random,
      inout logic [63:0] flags);
    longint unsigned raised = 0;
    if ($isunknown({a, b, c, random})) begin
      flags = 'x;
      return 'x;
    end
    softnum_exact_dot = softnum_dpi_exact_dot(a, b, length, c, formats, mode, random, raised);
    softnum_deliver(raised, flags);
  endfunction

  function automatic logic [63:0] softnum_fused_dot(
      input logic [4095:0] a, input logic [4095:0] b, input longint unsigned length, input logic [63:0] c,
      input longint unsigned formats, input longint unsigned mode, input longint unsigned terms,
      input longint unsigned fraction_bits, input longint min_exponent, input longint truncate_fraction,
      input longint unsigned c_after, inout logic [63:0] flags);
    longint unsigned raised = 0;
    if ($isunknown({a, b, c})) begin
      flags = 'x;
      return 'x;
    end
    softnum_fused_dot = softnum_dpi_fused_dot(
        a, b, length, c, formats, mode, terms, fraction_bits, min_exponent, truncate_fraction, c_after, raised);
    softnum_deliver(raised, flags);
  endfunction

  // A unit that the library was built with, and its dot products.
  function automatic longint unsigned softnum_unit(input string name);
    softnum_unit = softnum_dpi_unit(name);
    if (softnum_unit == 64'hFFFFFFFFFFFFFFFF) $fatal(1, "%s", softnum_dpi_message());
  endfunction

  function automatic logic [63:0] softnum_dot(
      input logic [4095:0] a, input logic [4095:0] b, input longint unsigned length, input logic [63:0] c,
      input longint unsigned with_c, input longint unsigned unit, input longint unsigned seed,
      input longint unsigned stream, inout logic [63:0] flags);
    longint unsigned raised = 0;
    if ($isunknown({a, b}) || (with_c != 0 && $isunknown(c))) begin
      flags = 'x;
      return 'x;
    end
    softnum_dot = softnum_dpi_dot(a, b, length, c, with_c, unit, seed, stream, raised);
    softnum_deliver(raised, flags);
  endfunction

  // The same of blocks: words of their scales, the first block's lowest, and scales of arrays, of formats that have one.
  function automatic logic [63:0] softnum_block_dot(
      input logic [4095:0] a, input logic [4095:0] b, input logic [4095:0] scale_a, input logic [4095:0] scale_b,
      input longint unsigned length, input logic [63:0] c, input longint unsigned with_c,
      input longint unsigned unit, input longint unsigned seed, input longint unsigned stream,
      input logic [63:0] tensor_a, input logic [63:0] tensor_b, inout logic [63:0] flags);
    longint unsigned raised = 0;
    if ($isunknown({a, b, scale_a, scale_b, tensor_a, tensor_b}) || (with_c != 0 && $isunknown(c))) begin
      flags = 'x;
      return 'x;
    end
    softnum_block_dot = softnum_dpi_block_dot(
        a, b, scale_a, scale_b, length, c, with_c, unit, seed, stream, tensor_a, tensor_b, raised);
    softnum_deliver(raised, flags);
  endfunction
endpackage
