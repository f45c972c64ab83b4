/* Two arms make the same two values and join them crosswise, or one of them with another value: what one phi takes from the two arms is no pair. */
#include <stdio.h>
volatile int sink;
__attribute__((noinline)) int twice(int a) { sink = a; return 2 * a; }
__attribute__((noinline)) int thrice(int a) { sink = a; return 3 * a; }
__attribute__((noinline)) int crosswise(int c, int p)
{
    int r, s;
    if (c) { r = twice(p); s = thrice(p); } else { s = twice(p); r = thrice(p); }
    return r * 100 + s;
}
__attribute__((noinline)) int with_another(int c, int p)
{
    int r, s;
    if (c) { r = twice(p); s = thrice(p); } else { r = twice(p); thrice(p); s = c - 1; }
    return r * 100 + s;
}
__attribute__((noinline)) int three_arms(int c, int p)
{
    int r;
    switch (c) {
    case 0: r = twice(p); thrice(p); break;
    case 1: twice(p); r = thrice(p); break;
    default: twice(p); thrice(p); r = 9;
    }
    return r;
}
int main(void)
{
    for (int c = 0; c < 3; c++)
        for (int p = 1; p < 9; p += 3) printf("%d %d %d\n", crosswise(c & 1, p), with_another(c & 1, p), three_arms(c, p));
    return 0;
}
