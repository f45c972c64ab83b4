/* Runs until it is ended. "ignore": ignores SIGINT; "handle": ends by itself when SIGINT comes; "wait": waits in the kernel;
   "leave": leaves a child that ignores SIGINT. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t asked;
static void note(int number) { asked = number; }

int main(int argc, char **argv) {
    const char *mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "ignore") == 0) signal(SIGINT, SIG_IGN);
    if (strcmp(mode, "handle") == 0) signal(SIGINT, note);
    if (strcmp(mode, "leave") == 0) {
        signal(SIGINT, SIG_IGN);
        if (fork() != 0) return 0;
    }
    if (write(1, "ready\n", 6) != 6) return 1;
    if (strcmp(mode, "wait") == 0) pause();
    while (!asked) {
    }
    return 11;
}
