/* Makes children in the way that the argument names, one after another, and waits for each. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static volatile int handled;
static int shared_counter;

static int wait_for(pid_t pid) {
    int status = 0;
    if (waitpid(pid, &status, __WALL) != pid)
        return -1;
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int work(int rounds) {
    volatile int sum = 0;
    for (int i = 0; i < rounds; i++)
        sum += i % 7;
    return sum;
}

static void handler(int signal) { handled += signal; }

/* A child that forks again, and so on. */
static int nested(int depth) {
    pid_t pid = fork();
    if (pid == 0)
        _exit(depth == 0 ? work(1000) % 100 : nested(depth - 1) + 1);
    return wait_for(pid);
}

static int forked(void) {
    int sum = 0;
    for (int i = 0; i < 3; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(work(100 * (i + 1)) % 50);
        sum += wait_for(pid);
    }
    return sum;
}

/* Handlers are inherited; the child's new one is its own. */
static int with_handlers(void) {
    signal(SIGUSR1, handler);
    pid_t pid = fork();
    if (pid == 0) {
        raise(SIGUSR1);
        signal(SIGUSR1, SIG_IGN);
        raise(SIGUSR1);
        _exit(handled);
    }
    int sum = wait_for(pid);
    raise(SIGUSR1);
    return sum * 100 + handled;
}

static int executed(void) {
    pid_t pid = vfork();
    if (pid == 0) {
        execl("/bin/echo", "echo", "executed", (char *)0);
        _exit(99);
    }
    return wait_for(pid);
}

static int spawned(void) {
    char *arguments[] = {"false", 0};
    pid_t pid;
    if (posix_spawn(&pid, "/bin/false", 0, 0, arguments, environ) != 0)
        return -1;
    int sum = wait_for(pid);
    /* One that fails: the child reports it through the memory that it shares. */
    arguments[0] = "no-such-program";
    return sum * 10 + (posix_spawn(&pid, "/no/such/program", 0, 0, arguments, environ) != 0);
}

static int in_shared_memory(void *argument) {
    shared_counter += work(500) + (int)(long)argument;
    return 3;
}

/* No thread, but in the same memory, while the maker runs on; and one that has neither the memory nor a signal at its end. */
static int cloned(void) {
    size_t size = 64 << 10;
    char *stack = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    int sum = wait_for(clone(in_shared_memory, stack + size, CLONE_VM | SIGCHLD, (void *)4));
    sum = sum * 10000 + shared_counter;
    sum += wait_for(clone(in_shared_memory, stack + size, CLONE_VM | CLONE_SIGHAND | CLONE_FILES, (void *)4));
    sum += wait_for(clone(in_shared_memory, stack + size, 0, (void *)5));
    return sum;
}

/* Who makes such a child wants no tracer to know of it. */
static int untraced(void) {
    char *stack = malloc(64 << 10);
    return wait_for(clone(in_shared_memory, stack + (64 << 10), CLONE_UNTRACED | SIGCHLD, (void *)5));
}

static int killed(void) {
    pid_t pid = fork();
    if (pid == 0) {
        raise(SIGKILL);
        _exit(1);
    }
    int sum = wait_for(pid);
    pid = fork();
    if (pid == 0) {
        *(volatile int *)8 = 1;
        _exit(1);
    }
    return sum * 10 + wait_for(pid);
}

/* Code that both write to, each in its own copy: what one writes is not the other's. */
static int generating(void) {
    unsigned char *code =
        mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, "\xb8\x01\x00\x00\x00\xc3", 6); /* mov eax, 1; ret */
    int (*run)(void) = (int (*)(void))code;
    int sum = run();
    pid_t pid = fork();
    if (pid == 0) {
        sum += run();
        code[1] = 7;
        sum += run();
        _exit(sum);
    }
    sum = sum * 100 + wait_for(pid);
    sum += run();
    code[1] = 20;
    return sum + run();
}

static pthread_barrier_t barrier;
static volatile int leave;

static void *thread(void *unused) {
    pthread_barrier_wait(&barrier);
    while (!leave) {
        work(1000);
        usleep(50);
    }
    return unused;
}

/* Forks while other threads run, from the first thread and from another. */
static void *forking(void *result) {
    for (int i = 0; i < 10; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(work(300) % 40 + i);
        *(int *)result += wait_for(pid);
    }
    return 0;
}

static int threaded(void) {
    pthread_t threads[4];
    int sums[2] = {0, 0};
    pthread_barrier_init(&barrier, 0, 4);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, thread, 0);
    pthread_barrier_wait(&barrier);
    pthread_create(&threads[3], 0, forking, &sums[0]);
    forking(&sums[1]);
    pthread_join(threads[3], 0);
    leave = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
    return sums[0] + sums[1];
}

/* Many short ones. */
static int many(void) {
    int sum = 0;
    for (int i = 0; i < 200; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(i % 3);
        sum += wait_for(pid);
    }
    return sum;
}

/* Many at once, which all wait for the last one. */
static int crowd(void) {
    int ends[2], sum = 0;
    pid_t pids[30];
    if (pipe(ends) != 0)
        return -1;
    for (int i = 0; i < 30; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            char byte;
            close(ends[1]);
            _exit(read(ends[0], &byte, 1) + work(100) % 7);
        }
    }
    close(ends[1]);
    for (int i = 0; i < 30; i++)
        sum += wait_for(pids[i]);
    return sum;
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        int (*run)(void);
    } ways[] = {{"forked", forked},   {"handlers", with_handlers}, {"executed", executed}, {"spawned", spawned},
                {"cloned", cloned},   {"untraced", untraced}, {"killed", killed},          {"generating", generating},
                {"threaded", threaded}, {"many", many},         {"crowd", crowd}};
    setvbuf(stdout, 0, _IONBF, 0);
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++)
        if (count > 1 && strcmp(arguments[1], ways[i].name) == 0)
            printf("%s: %d\n", ways[i].name, ways[i].run());
    if (count > 1 && strcmp(arguments[1], "nested") == 0)
        printf("nested: %d\n", nested(4));
    return 0;
}
