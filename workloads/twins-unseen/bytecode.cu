// compilers: an interpreter of small programs (Collatz, gcd, digits, bits), each thread runs one on numbers of its own
#include "../twins/twin.h"
enum { PUSH, LOAD, STORE, ADD, SUB, MUL, DIV, MOD, JUMP, JZERO, LESS, EQUAL, AND1, CALL, RET, HALT };
struct Data { const int *code; const int *entry; const int *arg; int fuel; int *result, *executed; };
HD int step(const int *code, int &pc, int *stack, int &sp, int *vars, int *calls, int &depth) { // 0 goes on, 1 ends, 2 is an error
    int op = code[pc], with = code[pc + 1];
    pc += 2;
    switch (op) {
    case PUSH: if (sp == 16) return 2; stack[sp++] = with; return 0;
    case LOAD: if (sp == 16) return 2; stack[sp++] = vars[with]; return 0;
    case STORE: vars[with] = stack[--sp]; return 0;
    case JUMP: pc = with; return 0;
    case JZERO: if (stack[--sp] == 0) pc = with; return 0;
    case CALL: if (depth == 4) return 2; calls[depth++] = pc; pc = with; return 0;
    case RET: if (depth == 0) return 1; pc = calls[--depth]; return 0;
    case HALT: return 1;
    }
    int b = stack[--sp], a = stack[sp - 1];
    switch (op) {
    case ADD: a += b; break;
    case SUB: a -= b; break;
    case MUL: a = (int)((u32)a * (u32)b & 0xfffff); break;
    case DIV: if (!b) return 2; a /= b; break;
    case MOD: if (!b) return 2; a %= b; break;
    case LESS: a = a < b; break;
    case EQUAL: a = a == b; break;
    case AND1: a = a & b & 1; break;
    default: return 2;
    }
    stack[sp - 1] = a;
    return 0;
}
HD void bytecode_body(int i, const Data &d) {
    int stack[16], vars[4] = {d.arg[2 * i], d.arg[2 * i + 1], 0, 0}, calls[4], sp = 0, depth = 0, pc = d.entry[i], executed = 0, ended = 0;
    while (!ended && executed < d.fuel) {
        ended = step(d.code, pc, stack, sp, vars, calls, depth);
        executed++;
    }
    d.result[i] = ended == 1 ? vars[2] : -ended; d.executed[i] = executed;
}
TWIN_KERNEL(bytecode, "omp parallel for schedule(dynamic, 32)")
int main() {
    const int n = 2048;
    const int collatz[] = {PUSH, 0, STORE, 2, LOAD, 0, PUSH, 1, EQUAL, 0, JZERO, 14, HALT, 0, LOAD, 2, PUSH, 1, ADD, 0, STORE, 2, LOAD, 0, PUSH, 1,
                           AND1, 0, JZERO, 42, LOAD, 0, PUSH, 3, MUL, 0, PUSH, 1, ADD, 0, JUMP, 48, LOAD, 0, PUSH, 2, DIV, 0, STORE, 0, JUMP, 4};
    const int gcd[] = {LOAD, 1, JZERO, 18, LOAD, 0, LOAD, 1, MOD, 0, LOAD, 1, STORE, 0, STORE, 1, JUMP, 0, LOAD, 0, STORE, 2, HALT, 0};
    const int digits[] = {LOAD, 0, JZERO, 28, CALL, 10, JUMP, 0, HALT, 0, LOAD, 2, LOAD, 0, PUSH, 10, MOD, 0, ADD, 0, STORE, 2, JUMP, 30, HALT, 0,
                          HALT, 0, HALT, 0, LOAD, 0, PUSH, 10, DIV, 0, STORE, 0, RET, 0};
    const int *programs[3] = {collatz, gcd, digits};
    const int sizes[3] = {sizeof collatz / 4, sizeof gcd / 4, sizeof digits / 4};
    std::vector<int> all;
    int at[3];
    for (int p = 0; p < 3; p++) {
        at[p] = all.size();
        for (int k = 0; k < sizes[p]; k += 2) {
            int op = programs[p][k], with = programs[p][k + 1];
            all.push_back(op);
            all.push_back(op == JUMP || op == JZERO || op == CALL ? with + at[p] : with);
        }
    }
    Buf<int> code(all.size()), entry(n), arg(2 * n), result(n), executed(n);
    code.h = all;
    for (int i = 0; i < n; i++) {
        entry[i] = at[mix2(i / 8, 1) % 4 % 3];
        arg[2 * i] = 1 + mix2(i, 2) % 300; arg[2 * i + 1] = 1 + mix2(i, 3) % 3000;
    }
    Data d = {code.up(), entry.up(), arg.up(), 1500, result.up(), executed.up()};
    RUN(bytecode, n, d);
    result.down(); executed.down();
    printf("bytecode %.0f %.0f\n", total(result), total(executed));
}
