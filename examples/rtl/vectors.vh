// What every bench needs; it lies in the package, where `softnum rtl bench` has it from.
`include "../../softnum/vectors/benches/vectors.vh"
