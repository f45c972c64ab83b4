// What thread `id` does in each form of locks (see kinds.c): the inside of a function.
#if FORM == 0
    take(0);
    total[0] += inside(SHORT);
    give(0);
    own[id] += inside(WORK);
#elif FORM == 1
    for (int round = 0; round < 4; round++) {
        take(0);
        total[0] += inside(WORK / 4);
        give(0);
    }
#elif FORM == 2
    take(0);
    total[0] += inside(WORK / 2);
    take(1);
    total[1] += inside(WORK / 2);
    give(1);
    give(0);
#elif FORM == 3
    if (id & 1) {
        take(0);
        total[0] += inside(WORK);
        give(0);
    } else {
        own[id] += inside(WORK);
    }
#endif
