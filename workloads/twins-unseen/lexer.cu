// compilers: a lexer by a table of states: the longest token wins, back to the last state that accepts, keywords by hash
#include "../twins/twin.h"
enum { SPACE, LETTER, DIGIT, DOT, QUOTE, SLASH, STAR, SIGN, EQUALS, BRACKET, NEWLINE, ODD, CLASSES };
enum { START, NAME, INT, POINT, REAL, TEXT, TEXT_END, SLASH1, LINE, BLOCK, BLOCK_STAR, COMMENT, OP, OP_EQ, PUNCT, BLANK, STATES };
struct Data { const u8 *text; const int *start; const u8 *classes; const signed char *table; const u8 *accepts; const u32 *keywords; int *out; };
HD bool keyword(const Data &d, u32 h) {
    int lo = 0, hi = 15;
    while (lo < hi) {
        int mid = (lo + hi) >> 1;
        if (d.keywords[mid] < h) lo = mid + 1; else hi = mid;
    }
    return d.keywords[lo] == h;
}
HD void lexer_body(int i, const Data &d) {
    int at = d.start[i], end = d.start[i + 1], tokens = 0, keywords = 0, errors = 0;
    u32 sum = 0;
    while (at < end) {
        int state = START, good = -1, good_end = at, p = at;
        u32 h = 17;
        while (p < end) {
            u8 c = d.text[p];
            state = d.table[state * CLASSES + d.classes[c]];
            if (state < 0) break;
            p++;
            h = h * 131 + c;
            if (d.accepts[state]) { good = state; good_end = p; }
        }
        if (good < 0) { errors++; at++; continue; }
        at = good_end;
        if (good == BLANK || good == COMMENT || good == LINE) continue;
        tokens++;
        if (good == NAME && keyword(d, h)) { keywords++; good = STATES; }
        sum = sum * 5 + good;
    }
    d.out[i] = (int)(sum % 1000) + 1000 * (tokens + keywords + errors);
}
TWIN_KERNEL(lexer, "omp parallel for")
int main() {
    const int n = 4096;
    Buf<u8> classes(256, (u8)ODD), accepts(STATES);
    Buf<signed char> table(STATES * CLASSES, (signed char)-1);
    Buf<u32> keys(16);
    for (int c = 'a'; c <= 'z'; c++) classes[c] = classes[c - 32] = LETTER;
    for (int c = '0'; c <= '9'; c++) classes[c] = DIGIT;
    classes['_'] = LETTER; classes[' '] = SPACE; classes['.'] = DOT; classes['"'] = QUOTE; classes['/'] = SLASH;
    classes['*'] = STAR; classes['+'] = classes['-'] = classes['<'] = SIGN; classes['='] = EQUALS;
    classes['('] = classes[')'] = classes[';'] = BRACKET; classes['\n'] = NEWLINE;
    auto arc = [&](int from, int c, int to) { table[from * CLASSES + c] = to; };
    const int first[CLASSES] = {BLANK, NAME, INT, PUNCT, TEXT, SLASH1, OP, OP, OP, PUNCT, BLANK, -1};
    for (int c = 0; c < CLASSES; c++) {
        arc(START, c, first[c]);
        if (c != NEWLINE) { arc(TEXT, c, c == QUOTE ? TEXT_END : TEXT); arc(LINE, c, LINE); }
        arc(BLOCK, c, c == STAR ? BLOCK_STAR : BLOCK);
        arc(BLOCK_STAR, c, c == SLASH ? COMMENT : c == STAR ? BLOCK_STAR : BLOCK);
    }
    arc(NAME, LETTER, NAME); arc(NAME, DIGIT, NAME); arc(INT, DIGIT, INT); arc(INT, DOT, POINT); arc(POINT, DIGIT, REAL); arc(REAL, DIGIT, REAL);
    arc(SLASH1, SLASH, LINE); arc(SLASH1, STAR, BLOCK); arc(SLASH1, EQUALS, OP_EQ); arc(OP, EQUALS, OP_EQ); arc(BLANK, SPACE, BLANK);
    for (int s : {NAME, INT, REAL, TEXT_END, SLASH1, LINE, COMMENT, OP, OP_EQ, PUNCT, BLANK}) accepts[s] = 1;
    static const char *const words[24] = {"if", "while", "x", "total", "return", "y2", "int", "for", "3", "41", "2.75", "7.", "\"a b\"", "\"open", "//n",
                                          "/*c*d*/", "+=", "==", "/", "(", ")", ";", "name_of_it", "#"};
    for (int k = 0; k < 16; k++) { u32 h = 17; for (const char *p = words[k % 8]; *p; p++) h = h * 131 + (u8)*p; keys[k] = k < 8 ? h : mix(k); }
    for (int a = 0; a < 16; a++) for (int b = 0; b < a; b++) if (keys[a] < keys[b]) { u32 t = keys[a]; keys[a] = keys[b]; keys[b] = t; }
    std::vector<u8> text;
    Buf<int> start(n + 1), out(n);
    for (int i = 0; i < n; i++) {
        start[i] = text.size();
        for (int k = 8 + mix2(i, 1) % 20; k > 0; k--) {
            u32 r = mix2(i * 32 + k, 2);
            for (const char *p = words[r % 24]; *p; p++) text.push_back(*p);
            text.push_back(r / 32 % 16 ? ' ' : '\n');
        }
    }
    start[n] = text.size();
    Buf<u8> t(text.size());
    t.h = text;
    Data d = {t.up(), start.up(), classes.up(), table.up(), accepts.up(), keys.up(), out.up()};
    RUN(lexer, n, d);
    out.down();
    printf("lexer %.0f\n", total(out));
}
