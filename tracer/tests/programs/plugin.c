/* The library that `loads.c` loads. */
int answer(void) { return 42; }
