/* Levels: tables of 256 bytes, how often each level occurs, extremes, and float functions of single values.
 * Included by _native.c alone.
 */

/* out = table[in]; `channel_step` tables take turns, one for each channel of an interleaved frame. */
INLINE void lut_from(const Color *job, Py_ssize_t at) {
    uint8_t *out = job->out;
    const uint8_t *in = job->in, *table = job->other;
    Py_ssize_t i, c, period = job->channel_step, pixels = job->pixels;
    if (period == 1) {
        for (i = at; i < pixels; i++) out[i] = table[in[i]];
        return;
    }
    for (i = at, c = at % period; i < pixels; i++) {
        out[i] = table[256 * c + in[i]];
        if (++c == period) c = 0;
    }
}
static void portable_lut_u8(const Color *job) { lut_from(job, 0); }

#if X86
#define VBMI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi")))
#define TABLES 4

static VBMI void avx512_lut_u8(const Color *job) {
    uint8_t *out = job->out;
    const uint8_t *in = job->in, *table = job->other;
    Py_ssize_t at, period = job->channel_step, phase = 0;
    __m512i part[TABLES][4];
    __mmask64 turn[TABLES][TABLES]; /* by the channel that a block begins with: where the table of each is meant */
    int t, k, j;
    if (!__builtin_cpu_supports("avx512vbmi") || period > TABLES) {
        lut_from(job, 0);
        return;
    }
    for (t = 0; t < period; t++) {
        for (k = 0; k < 4; k++) part[t][k] = _mm512_loadu_si512(table + 256 * t + 64 * k);
        for (k = 0; k < period; k++) {
            turn[k][t] = 0;
            for (j = 0; j < 64; j++)
                if ((k + j) % period == t) turn[k][t] |= (__mmask64)1 << j;
        }
    }
    for (at = 0; at + 64 <= job->pixels; at += 64) {
        __m512i x = _mm512_loadu_si512(in + at), found = x;
        __mmask64 upper = _mm512_movepi8_mask(x);
        for (t = 0; t < period; t++) {
            __m512i low = _mm512_permutex2var_epi8(part[t][0], x, part[t][1]);
            __m512i high = _mm512_permutex2var_epi8(part[t][2], x, part[t][3]);
            found = _mm512_mask_blend_epi8(turn[phase][t], found, _mm512_mask_blend_epi8(upper, low, high));
        }
        _mm512_storeu_si512(out + at, found);
        phase = (phase + 64) % period;
    }
    lut_from(job, at);
}
#endif

/* The same into floats. */
INLINE void lut_floats_from(const Color *job, Py_ssize_t at) {
    float *out = job->out;
    const uint8_t *in = job->in;
    const float *table = job->other;
    Py_ssize_t i, c, period = job->channel_step, pixels = job->pixels;
    if (period == 1) {
        for (i = at; i < pixels; i++) out[i] = table[in[i]];
        return;
    }
    for (i = at, c = at % period; i < pixels; i++) {
        out[i] = table[256 * c + in[i]];
        if (++c == period) c = 0;
    }
}
static void portable_lut_f32(const Color *job) { lut_floats_from(job, 0); }

#if X86
/* Each of the four bytes of a float has a table of its own in four registers. What is looked up is put in such an order
 * that joining bytes to floats within quarters of a register leaves the floats in theirs. */
static VBMI void avx512_lut_f32(const Color *job) {
    float *out = job->out;
    const uint8_t *in = job->in;
    const float *table = job->other;
    uint8_t bytes[4][256], order[64];
    __m512i part[4][4], places;
    Py_ssize_t at;
    int b, k;
    if (!__builtin_cpu_supports("avx512vbmi") || job->channel_step != 1 || job->pixels < 1024) {
        lut_floats_from(job, 0);
        return;
    }
    for (k = 0; k < 256; k++) {
        uint32_t bits;
        memcpy(&bits, table + k, sizeof bits);
        for (b = 0; b < 4; b++) bytes[b][k] = (uint8_t)(bits >> 8 * b);
    }
    for (b = 0; b < 4; b++)
        for (k = 0; k < 4; k++) part[b][k] = _mm512_loadu_si512(bytes[b] + 64 * k);
    for (k = 0; k < 64; k++) order[k] = (uint8_t)(k / 4 % 4 * 16 + k / 16 * 4 + k % 4);
    places = _mm512_loadu_si512(order);
    for (at = 0; at + 64 <= job->pixels; at += 64) {
        __m512i x = _mm512_permutexvar_epi8(places, _mm512_loadu_si512(in + at)), found[4], low, high, low2, high2;
        __mmask64 upper = _mm512_movepi8_mask(x);
        for (b = 0; b < 4; b++) {
            __m512i first = _mm512_permutex2var_epi8(part[b][0], x, part[b][1]);
            __m512i second = _mm512_permutex2var_epi8(part[b][2], x, part[b][3]);
            found[b] = _mm512_mask_blend_epi8(upper, first, second);
        }
        low = _mm512_unpacklo_epi8(found[0], found[1]);
        high = _mm512_unpackhi_epi8(found[0], found[1]);
        low2 = _mm512_unpacklo_epi8(found[2], found[3]);
        high2 = _mm512_unpackhi_epi8(found[2], found[3]);
        _mm512_storeu_si512(out + at, _mm512_unpacklo_epi16(low, low2));
        _mm512_storeu_si512(out + at + 16, _mm512_unpackhi_epi16(low, low2));
        _mm512_storeu_si512(out + at + 32, _mm512_unpacklo_epi16(high, high2));
        _mm512_storeu_si512(out + at + 48, _mm512_unpackhi_epi16(high, high2));
    }
    lut_floats_from(job, at);
}
#endif

/* Bytes moved about: each of `other` rows of `pixels` bytes from its end, and the three channels of an interleaved frame
 * into planes. */
INLINE void mirror_row(uint8_t *out, const uint8_t *in, Py_ssize_t from, Py_ssize_t length) {
    Py_ssize_t i;
    for (i = from; i < length; i++) out[i] = in[length - 1 - i];
}
INLINE void split_from(uint8_t *out, const uint8_t *in, Py_ssize_t at, Py_ssize_t pixels) {
    uint8_t *second = out + pixels, *third = second + pixels;
    for (; at < pixels; at++) {
        out[at] = in[3 * at];
        second[at] = in[3 * at + 1];
        third[at] = in[3 * at + 2];
    }
}

#if X86
static VBMI void avx512_mirror(uint8_t *out, const uint8_t *in, Py_ssize_t rows, Py_ssize_t length) {
    uint8_t order[64];
    __m512i places;
    int k;
    for (k = 0; k < 64; k++) order[k] = (uint8_t)(63 - k);
    places = _mm512_loadu_si512(order);
    for (; rows; rows--, in += length, out += length) {
        Py_ssize_t x = 0;
        for (; x + 64 <= length; x += 64)
            _mm512_storeu_si512(out + x,
                                _mm512_permutexvar_epi8(places, _mm512_loadu_si512(in + length - 64 - x)));
        mirror_row(out, in, x, length);
    }
}
static VBMI void avx512_split(uint8_t *out, const uint8_t *in, Py_ssize_t pixels) {
    uint8_t order[2][3][64];
    Py_ssize_t at;
    int c, k;
    for (c = 0; c < 3; c++)
        for (k = 0; k < 64; k++) { /* from the first two of three registers, then from that and the third */
            int from = 3 * k + c;
            order[0][c][k] = (uint8_t)(from < 128 ? from : 0);
            order[1][c][k] = (uint8_t)(from < 128 ? k : 64 + from - 128);
        }
    for (at = 0; at + 64 <= pixels; at += 64) {
        __m512i x = _mm512_loadu_si512(in + 3 * at), y = _mm512_loadu_si512(in + 3 * at + 64);
        __m512i z = _mm512_loadu_si512(in + 3 * at + 128);
        for (c = 0; c < 3; c++) {
            __m512i found = _mm512_permutex2var_epi8(x, _mm512_loadu_si512(order[0][c]), y);
            found = _mm512_permutex2var_epi8(found, _mm512_loadu_si512(order[1][c]), z);
            _mm512_storeu_si512(out + c * pixels + at, found);
        }
    }
    split_from(out, in, at, pixels);
}
#define HAS_VBMI (simd == 2 && __builtin_cpu_supports("avx512vbmi"))
#endif

static void mirror_rows(uint8_t *out, const uint8_t *in, Py_ssize_t rows, Py_ssize_t length, int simd) {
    (void)simd;
#if X86
    if (HAS_VBMI) {
        avx512_mirror(out, in, rows, length);
        return;
    }
#endif
    for (; rows; rows--, in += length, out += length) mirror_row(out, in, 0, length);
}

static void split_frame(uint8_t *out, const uint8_t *in, Py_ssize_t pixels, int simd) {
    (void)simd;
#if X86
    if (HAS_VBMI) {
        avx512_split(out, in, pixels);
        return;
    }
#endif
    split_from(out, in, 0, pixels);
}

/* out (256 of int64) = how often each level occurs; four counts, for a level often follows itself. */
static void portable_histogram_u8(const Color *job) {
    int64_t *out = job->out;
    const uint8_t *in = job->in;
    Py_ssize_t i, k, step = job->pixel_step, pixels = job->pixels;
    uint32_t count[4][256];
    for (k = 0; k < 256; k++) out[k] = 0;
    while (pixels > 0) {
        Py_ssize_t n = pixels < (1 << 30) ? pixels : 1 << 30;
        memset(count, 0, sizeof count);
        for (i = 0; i + 4 <= n; i += 4)
            for (k = 0; k < 4; k++) count[k][in[(i + k) * step]]++;
        for (; i < n; i++) count[0][in[i * step]]++;
        for (k = 0; k < 256; k++) out[k] += (int64_t)count[0][k] + count[1][k] + count[2][k] + count[3][k];
        in += n * step;
        pixels -= n;
    }
}

/* out[0], out[1] = the least and the greatest value; NaN where there is one. At least one value. */
#define EXTREMES(type, suffix)                                                                   \
    INLINE void extremes_##suffix(const Color *job) {                                            \
        type *out = job->out, x[STRIP], low[STRIP], high[STRIP];                                 \
        const type *in = job->in;                                                                \
        Py_ssize_t pixel_step = job->pixel_step, channel_step = 0, pixels = job->pixels, at, i, n; \
        int32_t odd[STRIP] = {0};                                                                \
        for (i = 0; i < STRIP; i++) low[i] = high[i] = in[0];                                    \
        for (at = 0; at < pixels; at += STRIP) {                                                 \
            n = pixels - at < STRIP ? pixels - at : STRIP;                                       \
            LOAD(type, x, in, at, n, 0);                                                         \
            for (i = n; i < STRIP; i++) x[i] = x[0];                                             \
            for (i = 0; i < STRIP; i++) low[i] = x[i] < low[i] ? x[i] : low[i];                  \
            for (i = 0; i < STRIP; i++) high[i] = x[i] > high[i] ? x[i] : high[i];               \
            for (i = 0; i < STRIP; i++) odd[i] |= x[i] != x[i];                                  \
        }                                                                                        \
        for (i = 1; i < STRIP; i++) {                                                            \
            low[0] = low[i] < low[0] ? low[i] : low[0];                                          \
            high[0] = high[i] > high[0] ? high[i] : high[0];                                     \
            odd[0] |= odd[i];                                                                    \
        }                                                                                        \
        out[0] = odd[0] ? (type)NAN : low[0];                                                    \
        out[1] = odd[0] ? (type)NAN : high[0];                                                   \
    }
EXTREMES(uint8_t, u8)
EXTREMES(float, f32)

#define VALUES(name, expression)                              \
    INLINE void name##_f32(const Color *job) {                \
        float *out = job->out;                                \
        const float *in = job->in;                            \
        float amount = job->amount, constant = job->constant; \
        Py_ssize_t i, pixels = job->pixels;                   \
        (void)constant;                                       \
        for (i = 0; i < pixels; i++) {                        \
            float x = in[i];                                  \
            out[i] = expression;                              \
        }                                                     \
    }
INLINE float step_of(float value, float most) { return value < 0.0f ? 0.0f : value > most ? most : value; }
VALUES(invert_above, x >= amount ? 1.0f - x : x)
/* amount: the number of levels, a power of two, and constant its inverse */
VALUES(floor_to_steps, step_of(floorf(x * amount), amount - 1.0f) * constant)

/* ---- all passes of the header above and of this one, by the vector instructions of the machine ---- */

#define PASSES(BOTH, REAL) \
    BOTH(constant)         \
    BOTH(images)           \
    BOTH(gray)             \
    BOTH(extremes)         \
    REAL(mean)             \
    REAL(matrix)           \
    REAL(invert_above)         \
    REAL(floor_to_steps)
#define MADE(prefix, attribute, name, suffix) \
    static attribute void prefix##_##name##_##suffix(const Color *job) { name##_##suffix(job); }
#define PORTABLE_REAL(name) MADE(portable, , name, f32)
#define PORTABLE(name) MADE(portable, , name, u8) PORTABLE_REAL(name)
PASSES(PORTABLE, PORTABLE_REAL)
#if X86
#define SIMD_256_REAL(name) MADE(avx2, __attribute__((target("avx2"))), name, f32)
#define SIMD_256(name) MADE(avx2, __attribute__((target("avx2"))), name, u8) SIMD_256_REAL(name)
PASSES(SIMD_256, SIMD_256_REAL)
#define SIMD_512_REAL(name) MADE(avx512, AVX512, name, f32)
#define SIMD_512(name) MADE(avx512, AVX512, name, u8) SIMD_512_REAL(name)
PASSES(SIMD_512, SIMD_512_REAL)
#define THREE(name, suffix) {portable_##name##_##suffix, avx2_##name##_##suffix, avx512_##name##_##suffix}
#define LUT {portable_lut_u8, portable_lut_u8, avx512_lut_u8}
#define LUT_FLOATS {portable_lut_f32, portable_lut_f32, avx512_lut_f32}
#define HISTOGRAM {portable_histogram_u8, portable_histogram_u8, portable_histogram_u8}
#else
#define THREE(name, suffix) {portable_##name##_##suffix}
#define LUT {portable_lut_u8}
#define LUT_FLOATS {portable_lut_f32}
#define HISTOGRAM {portable_histogram_u8}
#endif
#define ENTRY(name) {#name, THREE(name, u8), THREE(name, f32)},
#define ENTRY_REAL(name) {#name, {0}, THREE(name, f32)},

static const struct {
    const char *name;
    void (*u8[3])(const Color *), (*f32[3])(const Color *);
} passes[] = {PASSES(ENTRY, ENTRY_REAL){"lut", LUT, LUT_FLOATS}, {"histogram", HISTOGRAM, {0}}};
/* Where those stand that are called without a name. */
#define PLACE(name) name##_place,
enum { PASSES(PLACE, PLACE) LUT_PASS, HISTOGRAM_PASS, EXTREMES_PASS = extremes_place, GRAY_PASS = gray_place };
