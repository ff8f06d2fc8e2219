/* Instructions of floating-point units (softnum_dpi.h, SOFTNUM_INSTRUCTIONS): the operation each is made of, what the
 * rules of machines change, and what they require of formats. Internal. */
#ifndef SOFTNUM_DPI_INSTRUCTIONS_H
#define SOFTNUM_DPI_INSTRUCTIONS_H

#include "names.h"

/* The numbers of instructions, after those of operations. */
enum {
    INSTRUCTION_BEFORE = SN_OPERATION_COUNT - 1,
#define INSTRUCTION_ID(name, operands) SOFTNUM_OP_##name,
    SOFTNUM_INSTRUCTIONS(INSTRUCTION_ID)
#undef INSTRUCTION_ID
};

/* What bits 32 to 39 of a mode state, and NaNs of GPUs. */
typedef struct {
    int minmax, integer, mask, silent, cuda;
} softnum_rules;

/* The rules of a mode, taken out of it; 0, with a message, where there is no such rule. */
int softnum_take_rules(const char *who, sn_u64 *mode, softnum_rules *r);

/* The operation that an instruction is made of. */
int softnum_operation_of(int op);

/* What instructions, and operations by a rule, ask of formats; 0, with a message, where that does not hold. */
int softnum_instruction_suits(int op, const char *who, const sn_format *in, const sn_format *out, const sn_u32 *field,
                              sn_u32 to, const softnum_rules *r);

/* Whether results are codes that an operation makes: not of another kind, or bits that are moved. */
int softnum_makes_codes(int op);

/* a, b and c as the operation that the instruction is made of takes them. */
void softnum_into_operation(int op, const sn_format *in, const sn_env *env, sn_u64 *codes);

/* What a comparison's result is for an instruction. */
sn_u64 softnum_out_of_operation(int op, sn_u64 result);

/* Operation op of codes as the core takes them, by the rules. */
sn_u64 softnum_computed(int op, const sn_format *in, const sn_u64 *codes, const sn_format *out, const sn_env *env,
                        const softnum_rules *r, sn_u32 random, sn_u32 *raised);

#endif
