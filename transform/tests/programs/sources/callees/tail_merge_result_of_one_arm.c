/* What tail_merge_result_of_one_arm.c calls, in another file, so that its compiler knows nothing about it. */
int log_calls, seen;
void first(int x) { seen = x; }
void second(int x) { seen = -x; }
void note(int x) { log_calls++; seen += x; }
int compute(int p) { seen ^= p; return p * 3 + 1; }
