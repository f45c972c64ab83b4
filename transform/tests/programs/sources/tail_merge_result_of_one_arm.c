/* The result of a call counts in one arm only: tail-merge once dropped that call, and printed 7 twice. What it calls is in another file. */
#include <stdio.h>
void first(int x), second(int x), note(int x);
int compute(int p);

int f(int c, int p)
{
    int r;
    if (c) { first(1);  note(p); r = compute(p); }
    else   { second(2); note(p); compute(p); r = 7; }
    return r;
}
int main(int argc, char **argv)
{
    (void)argv;
    printf("%d %d\n", f(argc, 10), f(argc - 1, 10));
    return 0;
}
