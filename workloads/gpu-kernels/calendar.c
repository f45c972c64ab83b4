/* A number of days as a date: years, then months, are taken off one by one. */
#include "kernel.h"

static inline u32 leap(u32 year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static inline u32 body(u32 lane, const u32 *in, u32 *mem)
{
    u32 s = 0;
    (void)mem;
    for (u32 i = 0; i < 12; i++) {
        u32 days = in[i * 32 + lane] % 30000, year = 1970, month = 1;
        while (days >= 365 + leap(year)) {
            days -= 365 + leap(year);
            year++;
        }
        for (;;) {
            u32 length = 31;
            if (month == 2)
                length = 28 + leap(year);
            else if (month == 4 || month == 6 || month == 9 || month == 11)
                length = 30;
            if (days < length)
                break;
            days -= length;
            month++;
        }
        if (month == 12 && days > 23)
            s += 7;
        s = s * 3 + year * 400 + month * 32 + days;
    }
    return s;
}
