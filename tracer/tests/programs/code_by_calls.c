/* Code that system calls write, over code that has run: read, readv and recvmsg, and a call whose buffer really is not there. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* mov eax, N; ret */
static const unsigned char *number(int n) {
    static unsigned char code[] = {0xb8, 0, 0, 0, 0, 0xc3};
    memcpy(code + 1, &n, sizeof n);
    return code;
}

int main(void) {
    unsigned char *code = mmap(0, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int (*call)(void) = (int (*)(void))(code + 4000);
    int pipes[2], sockets[2], sum = 0;
    if (pipe(pipes) != 0 || socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets) != 0) return 1;
    memcpy(code + 4000, number(1), 6);
    sum += call();
    for (int n = 2; n <= 4; n++) {
        if (write(pipes[1], number(n), 6) != 6 || read(pipes[0], code + 4000, 6) != 6) return 2;
        printf("%d\n", call());
        sum += call();
    }
    struct iovec parts[2] = {{code + 4000, 3}, {code + 4003, 3}};
    if (write(pipes[1], number(5), 6) != 6 || readv(pipes[0], parts, 2) != 6) return 3;
    sum += call();
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (send(sockets[1], number(6), 6, 0) != 6 || recvmsg(sockets[0], &message, 0) != 6) return 4;
    sum += call();
    if (write(pipes[1], number(7), 6) != 6) return 5;
    if (read(pipes[0], (void *)16, 6) != -1 || errno != EFAULT) return 6;
    printf("%d\n", sum);
    return sum;
}
