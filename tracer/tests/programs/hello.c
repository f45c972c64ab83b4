/* Prints to both outputs and ends with a status of its own. */
#include <stdio.h>

int main(int argc, char **argv) {
    printf("hello");
    for (int i = 1; i < argc; i++) printf(" %s", argv[i]);
    printf("\n");
    fprintf(stderr, "to stderr\n");
    return 7;
}
