/* Calls of a mutex that is taken already, from many places: each answers EBUSY. Prints how many did. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int busy;

#define TRY_1 busy += pthread_mutex_trylock(&lock) == EBUSY;
#define TRY_10 TRY_1 TRY_1 TRY_1 TRY_1 TRY_1 TRY_1 TRY_1 TRY_1 TRY_1 TRY_1

int main(void) {
    pthread_mutex_lock(&lock);
    for (int round = 0; round < 40; round++) { TRY_10 TRY_10 TRY_10 TRY_10 TRY_10 }
    pthread_mutex_unlock(&lock);
    printf("%d\n", busy);
    return 0;
}
