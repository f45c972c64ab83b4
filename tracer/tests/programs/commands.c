/* system and popen. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

int main(void) {
    char line[64];
    int status = system("exit 6");
    FILE *pipe = popen("echo from a pipe", "r");
    if (!fgets(line, sizeof line, pipe)) return 1;
    printf("%d %s", WEXITSTATUS(status), line);
    return pclose(pipe);
}
