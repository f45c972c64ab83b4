// 8 threads take a spin lock that they find by a pointer, and give it on two ways; who is done stores 0 to another place
// by the same register.
#include <pthread.h>

struct Lock {
    char is_taken;
    long left, sum;
};
static struct Lock *lock;

__attribute__((noinline)) static void inside(struct Lock *l) {
    for (int i = 0; i < 5000; i++) __asm__ volatile("incq %0" : "+m"(l->sum));
}

__attribute__((noinline)) static void take_all(void) {
    struct Lock *l = lock;
    for (;;) {
        __asm__ volatile("1: xorl %%eax, %%eax; movl $1, %%ecx; lock cmpxchgb %%cl, (%0); je 3f; 2: pause; cmpb $0, (%0); "
                         "jne 2b; jmp 1b; 3:" : : "b"(l) : "rax", "rcx", "memory", "cc");
        inside(l);
        if (l->left == 0) {
            __asm__ volatile("movb $0, (%0)" : : "b"(l) : "memory");
            return;
        }
        l->left--;
        __asm__ volatile("movb $0, (%0)" : : "b"(l) : "memory");
    }
}

__attribute__((noinline)) static void *leave(char *done) {
    __asm__ volatile("movb $0, (%0)" : : "b"(done) : "memory");
    return done;
}

static void *thread(void *done) {
    take_all();
    return leave(done);
}

int main(void) {
    static struct Lock the_lock = {0, 64, 0};
    static char done[8];
    pthread_t threads[8];
    lock = &the_lock;
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], 0, thread, &done[i]);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
}
