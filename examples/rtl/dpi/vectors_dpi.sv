// A vector file of `softnum vectors generate --no-header` judged inside the simulator, by DPI-C: every result and flag
// that the file holds against those of the C library.
//
//   $ softnum rtl build --out build
//   $ verilator --binary --timing -Wno-fatal +incdir+build build/softnum_pkg.sv vectors_dpi.sv \
//         $PWD/build/libsoftnum_dpi.so -LDFLAGS -Wl,-rpath,$PWD/build --top-module vectors_dpi
//   $ obj_dir/Vvectors_dpi +vectors=mul.txt +op=multiply +format=e5m2 +mode=0
//
// +mode is the number of softnum_modes.vh; +random says that the vectors hold random bits.
module vectors_dpi;
  import softnum_pkg::*;

  string path, op, text;
  longint unsigned formats, mode;
  logic [63:0] a, b, c, random, result, got, flags;
  logic [7:0] want_flags;
  int file, operands, vectors, differences, read;
  bit drawn;

  function automatic logic [63:0] computed(inout logic [63:0] raised);
    case (op)
      "add": return softnum_add(a, b, formats, mode, random, raised);
      "subtract": return softnum_subtract(a, b, formats, mode, random, raised);
      "multiply": return softnum_multiply(a, b, formats, mode, random, raised);
      "divide": return softnum_divide(a, b, formats, mode, random, raised);
      "remainder": return softnum_remainder(a, b, formats, mode, random, raised);
      "fma": return softnum_fma(a, b, c, formats, mode, random, raised);
      "sqrt": return softnum_sqrt(a, formats, mode, random, raised);
      "convert": return softnum_convert(a, formats, mode, random, raised);
      "tanh": return softnum_tanh(a, formats, mode, random, raised);
      default: $fatal(1, "vectors_dpi: +op=%s is not in this bench", op);
    endcase
    return 'x;
  endfunction

  initial begin
    if (!$value$plusargs("vectors=%s", path) || !$value$plusargs("op=%s", op) || !$value$plusargs("format=%s", text))
      $fatal(1, "state +vectors=FILE +op=NAME +format=NAME");
    if (!$value$plusargs("mode=%d", mode)) mode = SOFTNUM_NEAREST_EVEN;
    drawn = $test$plusargs("random") != 0;
    formats = softnum_format(text);
    operands = op == "fma" ? 3 : op == "sqrt" || op == "convert" || op == "tanh" ? 1 : 2;
    file = $fopen(path, "r");
    if (file == 0) $fatal(1, "cannot read %s", path);
    {a, b, c, random} = '0;
    while ($fscanf(file, "%h", a) == 1) begin
      read = 1;
      if (operands > 1) read += $fscanf(file, "%h", b);
      if (operands > 2) read += $fscanf(file, "%h", c);
      if (drawn) read += $fscanf(file, "%h", random);
      read += $fscanf(file, "%h", result);
      read += $fscanf(file, "%h", want_flags);
      if (read != operands + 2 + int'(drawn)) $fatal(1, "%s: vector %0d is cut short", path, vectors + 1);
      flags = 0;
      got = computed(flags);
      vectors++;
      if (got !== result || flags[7:0] !== want_flags) begin
        differences++;
        if (differences <= 10)
          $display("vector %0d: %h %h %h  random %h  file %h %h  DPI %h %h", vectors, a, b, c, random, result, want_flags,
                   got, flags[7:0]);
      end
    end
    $display("%0d vectors, %0d differences", vectors, differences);
    if (differences != 0 || vectors == 0) $fatal(1, "the file and the library differ");
    $finish;
  end
endmodule
