// A vector file of `softnum vectors generate --no-header` judged inside Icarus Verilog, by VPI: every result and flag
// that the file holds against those of the C library.
//
//   $ softnum rtl build --out build
//   $ iverilog -g2012 -I build -L build -m softnum_vpi -o vectors_vpi vectors_vpi.v
//   $ vvp -M build vectors_vpi +vectors=mul.txt +op=multiply +format=e5m2 +mode=0
//
// +mode is the number of softnum_modes.vh; +random says that the vectors hold random bits.
module vectors_vpi;
`include "softnum_modes.vh"

  reg [8 * 256 - 1:0] path;
  reg [8 * 16 - 1:0] op;
  string text;
  reg [63:0] formats, mode, a, b, c, random, result, got;
  reg [7:0] want_flags, flags;
  integer file, operands, vectors, differences, read, drawn;

  initial begin
    if (!$value$plusargs("vectors=%s", path) || !$value$plusargs("op=%s", op) || !$value$plusargs("format=%s", text))
    begin
      $display("state +vectors=FILE +op=NAME +format=NAME");
      $finish_and_return(2);
    end
    if (!$value$plusargs("mode=%d", mode)) mode = SOFTNUM_NEAREST_EVEN;
    drawn = $test$plusargs("random");
    formats = $softnum_format(text);
    operands = op == "fma" ? 3 : op == "sqrt" || op == "convert" || op == "tanh" ? 1 : 2;
    file = $fopen(path, "r");
    a = 0;
    b = 0;
    c = 0;
    random = 0;
    vectors = 0;
    differences = 0;
    while ($fscanf(file, "%h", a) == 1) begin
      read = 1;
      if (operands > 1) read = read + $fscanf(file, "%h", b);
      if (operands > 2) read = read + $fscanf(file, "%h", c);
      if (drawn) read = read + $fscanf(file, "%h", random);
      read = read + $fscanf(file, "%h", result);
      read = read + $fscanf(file, "%h", want_flags);
      if (read != operands + 2 + drawn) begin
        $display("%0s: vector %0d is cut short", path, vectors + 1);
        $finish_and_return(2);
      end
      flags = 0;
      got = 64'bx;
      case (op)
        "add": got = $softnum_add(a, b, formats, mode, random, flags);
        "subtract": got = $softnum_subtract(a, b, formats, mode, random, flags);
        "multiply": got = $softnum_multiply(a, b, formats, mode, random, flags);
        "divide": got = $softnum_divide(a, b, formats, mode, random, flags);
        "remainder": got = $softnum_remainder(a, b, formats, mode, random, flags);
        "fma": got = $softnum_fma(a, b, c, formats, mode, random, flags);
        "sqrt": got = $softnum_sqrt(a, formats, mode, random, flags);
        "convert": got = $softnum_convert(a, formats, mode, random, flags);
        "tanh": got = $softnum_tanh(a, formats, mode, random, flags);
      endcase
      vectors = vectors + 1;
      if (got !== result || flags !== want_flags) begin
        differences = differences + 1;
        if (differences <= 10)
          $display("vector %0d: %h %h %h  random %h  file %h %h  VPI %h %h", vectors, a, b, c, random, result, want_flags,
                   got, flags);
      end
    end
    $display("%0d vectors, %0d differences", vectors, differences);
    $finish_and_return(differences != 0 || vectors == 0);
  end
endmodule
