// text: file names against patterns with *, ? and [a-z], by backtracking to the last star
#include "../twins/twin.h"
struct Data { const char *names, *patterns; const int *name_at, *pattern_at; int patterns_n; int *hits; };
HD bool in_class(const char *&p, char c) { // p stands behind '['; moves behind ']'
    bool negated = *p == '!', found = false;
    if (negated) p++;
    while (*p && *p != ']') {
        char low = *p++, high = low;
        if (p[0] == '-' && p[1] && p[1] != ']') { high = p[1]; p += 2; }
        if (low <= c && c <= high) found = true;
    }
    if (*p) p++;
    return found != negated;
}
HD bool match(const char *p, const char *s) {
    const char *star = 0, *resume = 0;
    while (*s) {
        bool ok = false;
        const char *q = p;
        switch (*p) {
        case '*': star = ++p; resume = s; continue;
        case '?': q = p + 1; ok = true; break;
        case '[': q = p + 1; ok = in_class(q, *s); break;
        default: q = p + 1; ok = *p == *s; break;
        }
        if (ok) { p = q; s++; continue; }
        if (!star) return false;
        p = star;
        s = ++resume;
    }
    while (*p == '*') p++;
    return !*p;
}
HD void glob_body(int i, const Data &d) {
    int first = -1, count = 0;
    for (int k = 0; k < d.patterns_n; k++) {
        if (!match(d.patterns + d.pattern_at[k], d.names + d.name_at[i])) continue;
        if (first < 0) first = k;
        if (++count == 3) break;
    }
    d.hits[i] = (first + 1) * 4 + count;
}
TWIN_KERNEL(glob, "omp parallel for")
int main() {
    const int n = 8192, m = 12;
    static const char *const globs[m] = {"*.c", "src/*/[a-f]*.h", "*test*", "lib??.so*", "[!m-z]*/*", "*a*b*c*", "*/main.*",
                                         "doc/[0-9]*.md", "*.[ch]pp", "tmp*~", "?*?*?*.txt", "*core"};
    static const char *const parts[8] = {"src/", "lib", "test", "main", "a", "core", "doc/", "b"};
    static const char *const ends[8] = {".c", ".h", ".cpp", ".md", ".so.1", ".txt", "~", "core"};
    std::vector<char> text, pats;
    Buf<int> at(n), pat(m), hits(n);
    for (int k = 0; k < m; k++) { pat[k] = pats.size(); pats.insert(pats.end(), globs[k], globs[k] + strlen(globs[k]) + 1); }
    for (int i = 0; i < n; i++) {
        at[i] = text.size();
        int pieces = 1 + mix2(i, 1) % 5;
        for (int k = 0; k < pieces; k++) {
            u32 r = mix2(i * 8 + k, 2);
            const char *p = parts[r % 8];
            text.insert(text.end(), p, p + strlen(p));
            for (u32 q = r / 8 % 4; q > 0; q--) text.push_back("abcdefgh012xyz/_"[mix2(r, q) % 16]);
        }
        const char *e = ends[mix2(i, 3) % 8];
        text.insert(text.end(), e, e + strlen(e) + 1);
    }
    Buf<char> t(text.size()), p(pats.size());
    t.h = text; p.h = pats;
    Data d = {t.up(), p.up(), at.up(), pat.up(), m, hits.up()};
    RUN(glob, n, d);
    hits.down();
    printf("glob %.0f\n", total(hits));
}
