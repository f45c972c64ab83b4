/* Loads a library, calls it, unloads it. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    (void)argc;
    for (int i = 0; i < 2; i++) {
        void *library = dlopen(argv[1], RTLD_NOW);
        int (*answer)(void) = (int (*)(void))dlsym(library, "answer");
        printf("%d\n", answer());
        dlclose(library);
    }
    return 0;
}
