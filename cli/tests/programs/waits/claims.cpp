// Places that threads claim and nobody gives back: a hash set, what a search has reached, slots, bits. Each is free at -1
// and has a neighbour that becomes -1; a second round begins with all free again.
#include <atomic>
#include <pthread.h>
#include <string.h>

enum { LANES = 8, ITEMS = 2000, PLACES = 1 << 15 };

struct Entry {
    std::atomic<int> key;
    int next, value;
};
struct Slot {
    std::atomic<long> owner;
    long begin, end;
};
static Entry *entries;
static Slot *slots;
static std::atomic<int> *levels;
static std::atomic<unsigned long> *bits;
static int *queues[LANES];
static pthread_barrier_t meet;

static void insert(int key) {
    for (unsigned hash = key * 2654435761u;; hash++) {
        Entry &entry = entries[hash % PLACES];
        int none = -1;
        if (entry.key.compare_exchange_strong(none, key)) {
            entry.next = -1;
            entry.value = key;
            return;
        }
        if (none == key) return;
    }
}

static void *work(void *a) {
    long me = (long)a;
    for (int round = 0; round < 2; round++) {
        int queued = 0;
        for (int i = 0; i < ITEMS; i++) {
            insert((i * 7 + me * 3) % 5000);
            int none = -1, place = (i * 31 + me) % PLACES;
            if (levels[place] == -1 && levels[place].compare_exchange_strong(none, i)) queues[me][queued++] = place;
            long nobody = -1;
            Slot &slot = slots[(i * LANES + me) % PLACES];
            if (slot.owner.compare_exchange_strong(nobody, me)) slot.begin = -1, slot.end = i;
            unsigned long before = bits[place / 64];
            while (!bits[place / 64].compare_exchange_weak(before, before | 1ul << place % 64)) {
            }
        }
        pthread_barrier_wait(&meet);
        if (round) continue;
        for (int i = me * (PLACES / LANES); i < (me + 1) * (PLACES / LANES); i++) {
            entries[i].key.store(-1, std::memory_order_relaxed);
            slots[i].owner.store(-1, std::memory_order_relaxed);
            levels[i].store(-1, std::memory_order_relaxed);
        }
        pthread_barrier_wait(&meet);
    }
    return a;
}

int main() {
    entries = new Entry[PLACES], slots = new Slot[PLACES], levels = new std::atomic<int>[PLACES];
    bits = new std::atomic<unsigned long>[PLACES / 64]();
    memset((void *)entries, -1, sizeof(Entry) * PLACES);
    memset((void *)slots, -1, sizeof(Slot) * PLACES);
    memset((void *)levels, -1, sizeof(int) * PLACES);
    for (int *&queue : queues) queue = new int[PLACES];
    pthread_barrier_init(&meet, 0, LANES);
    pthread_t threads[LANES];
    for (long i = 0; i < LANES; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (pthread_t thread : threads) pthread_join(thread, 0);
}
