/* Markers of the part of a program's run that lockstep records:
 *
 *     #include <lockstep.h>
 *     ...
 *     LOCKSTEP_BEGIN;
 *     the part to be recorded
 *     LOCKSTEP_END;
 *
 * and `trace --markers PROGRAM`. Any thread may reach a marker, in any place and as often as it likes: all threads are
 * recorded as long as more LOCKSTEP_BEGIN than LOCKSTEP_END have run, over all threads; an END without a BEGIN counts
 * for nothing. The two may stand in different functions.
 *
 * `replay --region markers` replays what each thread runs between its own markers, of a trace with or without
 * `--markers`.
 *
 * A marker is one instruction that does nothing (a nop of 8 bytes), so the header needs no library, and the program
 * runs as well without lockstep. The compiler moves no access to memory across a marker and takes none of them out. C
 * and C++, gcc and clang, x86-64 Linux; elsewhere the markers are empty. */
#ifndef LOCKSTEP_H
#define LOCKSTEP_H

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
/* nopl N(%rax,%rax,1), where N is 'L' 'k' 'S' and the number of the marker. */
#define LOCKSTEP_MARKER_(number) __asm__ __volatile__(".byte 0x0f, 0x1f, 0x84, 0x00, 0x4c, 0x6b, 0x53, " #number ::: "memory")
#else
#define LOCKSTEP_MARKER_(number) ((void)0)
#endif

/* From here on, all threads are recorded. */
#define LOCKSTEP_BEGIN LOCKSTEP_MARKER_(1)
/* Here the recording pauses, unless another LOCKSTEP_BEGIN is still to be ended. */
#define LOCKSTEP_END LOCKSTEP_MARKER_(2)

/* Where the threads of a warp had better wait for each other, for `replay --predict marks` (docs/speculation.md).
 * LOCKSTEP_RECONVERGE(name) stands at the place at which they are collected, LOCKSTEP_PREDICT(name) before it, in the
 * same function:
 *
 *     LOCKSTEP_PREDICT(body);
 *     for (i = 0; i < n; i++) {
 *         if (is_hard(i)) {
 *             LOCKSTEP_RECONVERGE(body);
 *             expensive(i);
 *         }
 *     }
 *
 * LOCKSTEP_PREDICT_SOFT(name, LANES) has so many waiting threads be enough. Threads that reach LOCKSTEP_PREDICT
 * before the loop are collected over all its turns; in the turn of an outer loop, within that turn.
 *
 * LOCKSTEP_PREDICT_FUNCTION(f) has threads collected where the function f begins that is called behind it in the same
 * function, wherever there: it stands before the branch whose sides both call f. f is the plain name of a declared
 * function that is not inlined: gcc is told so by the mark in C; in C++ and with clang write LOCKSTEP_APART before the
 * function's definition. LOCKSTEP_PREDICT_FUNCTION_SOFT(f, LANES) has so many be enough.
 *
 * No instruction is made for a mark, but the optimiser takes it for a statement with an effect: it makes no vectors of
 * a loop with one, and may lay out code around it differently; clang does not unroll such a loop unless asked to
 * (#pragma clang loop unroll_count(2)). Marks lie in a section of the binary that is never
 * loaded, .lockstep.marks: address, kind (1 begins, 2 waits, 3 begins for a function), threads (0: all), name.
 * In code for a GPU (clang for NVPTX or AMDGPU) a mark is a comment, for `lockstep transform --pass speculative`.
 * LOCKSTEP_NO_MARKS leaves them out. */
#if (defined(__NVPTX__) || defined(__AMDGCN__)) && defined(__clang__) && !defined(LOCKSTEP_NO_MARKS)
#define LOCKSTEP_PLACE_(kind, lanes, name) __asm__ __volatile__("// .lockstep.marks " #kind ", " #lanes ", " #name)
#elif defined(__x86_64__) && !defined(__CUDA_ARCH__) && (defined(__clang__) || defined(__GNUC__) && __GNUC__ >= 9) && !defined(LOCKSTEP_NO_MARKS)
#define LOCKSTEP_PLACE_(kind, lanes, name)                                                                                                           \
    __asm__ __volatile__ __inline__("7654:\n\t.pushsection .lockstep.marks, \"?\", @progbits\n\t.quad 7654b\n\t.long " #kind ", " #lanes            \
                                    "\n\t.asciz \"" #name "\"\n\t.popsection" ::)
#else
#define LOCKSTEP_PLACE_(kind, lanes, name) ((void)0)
#endif
#define LOCKSTEP_PREDICT(name) LOCKSTEP_PLACE_(1, 0, name)
#define LOCKSTEP_PREDICT_SOFT(name, lanes) LOCKSTEP_PLACE_(1, lanes, name)
#define LOCKSTEP_RECONVERGE(name) LOCKSTEP_PLACE_(2, 0, name)
#if defined(__clang__)
#define LOCKSTEP_APART __attribute__((__noinline__))
#elif defined(__GNUC__)
#define LOCKSTEP_APART __attribute__((__noipa__))
#else
#define LOCKSTEP_APART
#endif
#if defined(__GNUC__) && !defined(__clang__) && !defined(__cplusplus) && !defined(LOCKSTEP_NO_MARKS)
#define LOCKSTEP_DECLARED_(f) extern __typeof__(f) f LOCKSTEP_APART
#else
#define LOCKSTEP_DECLARED_(f) ((void)0)
#endif
#define LOCKSTEP_PREDICT_FUNCTION_SOFT(f, lanes)                                                                                                     \
    do {                                                                                                                                             \
        LOCKSTEP_DECLARED_(f);                                                                                                                       \
        LOCKSTEP_PLACE_(3, lanes, f);                                                                                                                \
    } while (0)
#define LOCKSTEP_PREDICT_FUNCTION(f) LOCKSTEP_PREDICT_FUNCTION_SOFT(f, 0)

/* Says that NUMBER is the calling thread's own: threads have 0, 1, 2, … in the order in which they become lanes. It is
 * NUMBER again. For `lockstep analyze`, where it cannot see the number itself, as when it comes out of a queue:
 *
 *     long id = lockstep_tid(next_number());
 *
 * No instruction is made for it; the compiler only cannot know any more what NUMBER is, if it did. */
#if defined(__GNUC__) || defined(__clang__)
static inline __attribute__((always_inline, unused)) long lockstep_tid(long number) {
    __asm__("# lockstep_tid" : "+r"(number));
    return number;
}
#else
static long lockstep_tid(long number) { return number; }
#endif

#endif
