/* Color, pixel by pixel: PIL's arithmetic on uint8, real arithmetic on float32. Included by _native.c alone.
 *
 * An image is (planes of) pixels with a step between pixels and one between channels, so that planar and interleaved
 * memory take the same code. Pixels go through small blocks of planes, where every loop is one vector loop. The
 * expressions are those of the decompositions, operation by operation, and no multiplication is fused with an
 * addition: the bits are the same on every machine.
 */
#define STRIP 512

/* The two usual steps are written out, so that compilers make shuffles of them instead of single loads. */
#define LOAD(type, to, in, at, n, c)                                     \
    {                                                                    \
        const type *from = in + at * pixel_step + c * channel_step;      \
        if (pixel_step == 1)                                             \
            for (i = 0; i < n; i++) to[i] = from[i];                     \
        else if (pixel_step == 3)                                        \
            for (i = 0; i < n; i++) to[i] = from[3 * i];                 \
        else                                                             \
            for (i = 0; i < n; i++) to[i] = from[i * pixel_step];        \
    }
#define STORE(type, out, at, n, c, from)                                 \
    {                                                                    \
        type *to = out + at * pixel_step + c * channel_step;             \
        if (pixel_step == 1)                                             \
            for (i = 0; i < n; i++) to[i] = from[i];                     \
        else if (pixel_step == 3)                                        \
            for (i = 0; i < n; i++) to[3 * i] = from[i];                 \
        else                                                             \
            for (i = 0; i < n; i++) to[i * pixel_step] = from[i];        \
    }

INLINE int32_t luma_u8(int32_t r, int32_t g, int32_t b) { return (r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16; }
INLINE float luma_f32(float r, float g, float b) { return 0.299f * r + 0.587f * g + 0.114f * b; }

/* PIL's blend: truncated, clamped to the range. */
/* NaN becomes 0. */
INLINE float clamp_level(float value) { return value > 0.0f ? (value < 255.0f ? value : 255.0f) : 0.0f; }
INLINE uint8_t level_of(float value) { return (uint8_t)(int32_t)clamp_level(value); }
INLINE uint8_t mix_u8(int32_t from, int32_t to, float factor) { return level_of((float)from + factor * (float)(to - from)); }
INLINE float clamp_unit(float value) { return value < 0.0f ? 0.0f : value > 1.0f ? 1.0f : value; }
INLINE float mix_f32(float from, float to, float factor, float rest) { return clamp_unit(to * factor + from * rest); }

typedef struct {
    void *out;
    const void *in, *other;
    Py_ssize_t pixels, pixel_step, channel_step;
    float amount, constant;
} Color;

/* out = blend of a constant with in. (What is read in a loop is local: a byte written might be anything.) */
INLINE void constant_u8(const Color *job) {
    uint8_t *out = job->out;
    const uint8_t *in = job->in;
    int32_t from = level_of(job->constant);
    float amount = job->amount;
    Py_ssize_t i, pixels = job->pixels;
    for (i = 0; i < pixels; i++) out[i] = mix_u8(from, in[i], amount);
}
INLINE void constant_f32(const Color *job) {
    float *out = job->out, amount = job->amount, rest = 1.0f - amount, from = job->constant;
    const float *in = job->in;
    Py_ssize_t i, pixels = job->pixels;
    for (i = 0; i < pixels; i++) out[i] = mix_f32(from, in[i], amount, rest);
}

/* out = blend of other with in */
INLINE void images_u8(const Color *job) {
    uint8_t *out = job->out;
    const uint8_t *in = job->in, *other = job->other;
    float amount = job->amount;
    Py_ssize_t i, pixels = job->pixels;
    for (i = 0; i < pixels; i++) out[i] = mix_u8(other[i], in[i], amount);
}
INLINE void images_f32(const Color *job) {
    float *out = job->out, amount = job->amount, rest = 1.0f - amount;
    const float *in = job->in, *other = job->other;
    Py_ssize_t i, pixels = job->pixels;
    for (i = 0; i < pixels; i++) out[i] = in[i] * amount + other[i] * rest;
}

#define PIXELS(type, wide)                                                                        \
    type *out = job->out;                                                                         \
    const type *in = job->in;                                                                     \
    Py_ssize_t pixel_step = job->pixel_step, channel_step = job->channel_step, pixels = job->pixels, at, i, n;          \
    type r[STRIP], g[STRIP], b[STRIP];                                                            \
    wide gray[STRIP];                                                                             \
    for (at = 0; at < pixels; at += STRIP) {                                                 \
        n = pixels - at < STRIP ? pixels - at : STRIP;                                   \
        LOAD(type, r, in, at, n, 0);                                                              \
        LOAD(type, g, in, at, n, 1);                                                              \
        LOAD(type, b, in, at, n, 2);

/* out (one plane) = luma */
INLINE void gray_u8(const Color *job) {
    PIXELS(uint8_t, int32_t)
        for (i = 0; i < n; i++) gray[i] = luma_u8(r[i], g[i], b[i]);
        for (i = 0; i < n; i++) out[at + i] = (uint8_t)gray[i];
    }
}
INLINE void gray_f32(const Color *job) {
    PIXELS(float, float)
        for (i = 0; i < n; i++) gray[i] = luma_f32(r[i], g[i], b[i]);
        for (i = 0; i < n; i++) out[at + i] = gray[i];
    }
}

/* out (one double) = the mean luma; sums that do not wait for each other */
INLINE void mean_f32(const Color *job) {
    double total = 0;
    double *out = (double *)job->out;
    const float *in = job->in;
    Py_ssize_t pixel_step = job->pixel_step, channel_step = job->channel_step, pixels = job->pixels, at, i, k, n;
    float x[STRIP], y[STRIP], z[STRIP];
    for (at = 0; at < pixels; at += STRIP) {
        const float *r = in + at, *g = r + channel_step, *b = g + channel_step;
        float part[64] = {0};
        n = pixels - at < STRIP ? pixels - at : STRIP;
        if (pixel_step != 1) {
            LOAD(float, x, in, at, n, 0);
            LOAD(float, y, in, at, n, 1);
            LOAD(float, z, in, at, n, 2);
            r = x, g = y, b = z;
        }
        for (i = 0; i + 64 <= n; i += 64)
            for (k = 0; k < 64; k++) part[k] += luma_f32(r[i + k], g[i + k], b[i + k]);
        for (; i < n; i++) part[i % 64] += luma_f32(r[i], g[i], b[i]);
        for (k = 0; k < 64; k++) total += part[k];
    }
    *out = total / (double)pixels;
}

/* out = a 3 x 4 matrix (other) of the channels and 1 */
INLINE void matrix_f32(const Color *job) {
    float *out = job->out, r[STRIP], g[STRIP], b[STRIP], sum[STRIP];
    const float *in = job->in, *m = job->other;
    Py_ssize_t pixel_step = job->pixel_step, channel_step = job->channel_step, pixels = job->pixels, at, i, n;
    int d;
    for (at = 0; at < pixels; at += STRIP) {
        n = pixels - at < STRIP ? pixels - at : STRIP;
        LOAD(float, r, in, at, n, 0);
        LOAD(float, g, in, at, n, 1);
        LOAD(float, b, in, at, n, 2);
        for (d = 0; d < 3; d++) {
            float x = m[4 * d], y = m[4 * d + 1], z = m[4 * d + 2], c = m[4 * d + 3];
            for (i = 0; i < n; i++) sum[i] = x * r[i] + y * g[i] + z * b[i] + c;
            STORE(float, out, at, n, d, sum);
        }
    }
}

/* PIL's sharpness: a blend with the mean of a pixel and its neighbors, which counts the pixel five times; the outermost pixels
 * stay. Thirteenths are rounded by integers: there are no ties. */
INLINE void sharpen_from(uint8_t *out, const uint8_t *in, Py_ssize_t height, Py_ssize_t width, int channels, float factor) {
    Py_ssize_t length = width * channels, y, x;
    for (y = 0; y < height; y++, out += length, in += length) {
        const uint8_t *above = in - length, *below = in + length;
        if (y == 0 || y == height - 1 || width < 3) {
            memcpy(out, in, (size_t)length);
            continue;
        }
        memcpy(out, in, (size_t)channels);
        memcpy(out + length - channels, in + length - channels, (size_t)channels);
        for (x = channels; x < length - channels; x++) {
            uint32_t sum = (uint32_t)(above[x - channels] + above[x] + above[x + channels] + in[x - channels] + 5 * in[x] +
                                      in[x + channels] + below[x - channels] + below[x] + below[x + channels]);
            out[x] = mix_u8((int32_t)(((2 * sum + 13) * 20165) >> 19), in[x], factor);
        }
    }
}

/* ---- hue ----------------------------------------------------------------------------------------
 *
 * Along the color circle each channel rises, stays, falls and stays again, a third of the circle after the one before:
 * how far it is below the greatest, as a share of `one`, at a place that is `one` for each sixth of the circle.
 */
INLINE float fall(float place, float one) {
    float left;
    place = place < 6.0f * one ? place : place - 6.0f * one;
    left = 4.0f * one - place;
    place = place < left ? place : left;
    return place < 0.0f ? 0.0f : place > one ? one : place;
}

/* PIL's mode HSV and back, with `shift` of 256 hues in between. PIL rounds a hue as these floats do; the other results have
 * the bits of whole numbers: all sums and products stay below 2^24. */
INLINE void turn_u8(float *r, float *g, float *b, Py_ssize_t n, float shift) {
    Py_ssize_t i;
    for (i = 0; i < n; i++) {
        float x = r[i], y = g[i], z = b[i], most = x > y ? x : y, least = x < y ? x : y, chroma, from, base, hue, color;
        most = most > z ? most : z;
        least = least < z ? least : z;
        chroma = most - least;
        from = least == z ? x - y : least == x ? y - z : z - x;
        base = least == z ? 1.0f : least == x ? 3.0f : from < 0.0f ? -1.0f : 5.0f;
        hue = (base - from / (chroma > 1.0f ? chroma : 1.0f)) / 6.0f;
        hue = floorf((hue < 0.0f ? hue + 1.0f : hue) * 255.0f) + shift;
        hue = 2.0f * (hue < 256.0f ? hue : hue - 256.0f);
        color = most * floorf(255.0f * chroma / (most > 1.0f ? most : 1.0f));
        r[i] = most - floorf((color * fall(hue + 425.0f, 85.0f) + 10837.5f) * (1.0f / 21675.0f));
        g[i] = most - floorf((color * fall(hue + 255.0f, 85.0f) + 10837.5f) * (1.0f / 21675.0f));
        b[i] = most - floorf((color * fall(hue + 85.0f, 85.0f) + 10837.5f) * (1.0f / 21675.0f));
    }
}

/* The same in real numbers; `turn` is a share of the circle. */
INLINE void turn_f32(float *r, float *g, float *b, Py_ssize_t n, float turn) {
    float shift = turn * 6.0f;
    Py_ssize_t i;
    for (i = 0; i < n; i++) {
        float x = r[i], y = g[i], z = b[i];
        float most = x > y ? x : y, least = x < y ? x : y, chroma, safe, at, if_r, if_g, if_b;
        most = most > z ? most : z;
        least = least < z ? least : z;
        chroma = most - least;
        safe = chroma == 0.0f ? 1.0f : chroma;
        safe = 1.0f / safe;
        if_r = (y - z) * safe;
        if_g = (z - x) * safe + 2.0f;
        if_b = (x - y) * safe + 4.0f;
        at = (most == x ? if_r : most == y ? if_g : if_b) + shift;
        at = at - 6.0f * floorf(at * (1.0f / 6.0f));
        r[i] = clamp_unit(most - chroma * fall(at + 5.0f, 1.0f));
        g[i] = clamp_unit(most - chroma * fall(at + 3.0f, 1.0f));
        b[i] = clamp_unit(most - chroma * fall(at + 1.0f, 1.0f));
    }
}

/* ---- several steps in one pass ------------------------------------------------------------------
 *
 * A strip of pixels stays in the first cache while brightness, saturation and hue go over it, as floats: levels
 * are whole numbers, which floats hold exactly, and so is PIL's luma, whose sum stays below 2^24. Only contrast needs
 * to have seen the whole image; what comes before it then takes a pass of its own.
 */
enum { BRIGHTNESS, CONTRAST, SATURATION, HUE_TURN };
#define HUES "the hues of bytes must be from 0 to 255"

INLINE float whole(float value) { return floorf(clamp_level(value)); }
INLINE float luma_whole(float r, float g, float b) {
    return floorf((r * 19595.0f + g * 38470.0f + b * 7471.0f + 32768.0f) * (1.0f / 65536.0f));
}
INLINE float blend_u8(float from, float to, float amount, float rest) {
    (void)rest;
    return whole(from + amount * (to - from));
}
INLINE float blend_f32(float from, float to, float amount, float rest) { return clamp_unit(to * amount + from * rest); }

#define STEPS(type, suffix, luma, cast, mean)                                                                             \
    INLINE void step_##suffix(float *r, float *g, float *b, Py_ssize_t n, int32_t kind, float amount, float constant) { \
        float gray[STRIP], rest = 1.0f - amount;                                                                     \
        Py_ssize_t i;                                                                                                \
        if (kind == BRIGHTNESS || kind == CONTRAST) {                                                                \
            for (i = 0; i < n; i++) r[i] = blend_##suffix(constant, r[i], amount, rest);                             \
            for (i = 0; i < n; i++) g[i] = blend_##suffix(constant, g[i], amount, rest);                             \
            for (i = 0; i < n; i++) b[i] = blend_##suffix(constant, b[i], amount, rest);                             \
        } else if (kind == SATURATION) {                                                                             \
            for (i = 0; i < n; i++) gray[i] = luma(r[i], g[i], b[i]);                                                \
            for (i = 0; i < n; i++) r[i] = blend_##suffix(gray[i], r[i], amount, rest);                              \
            for (i = 0; i < n; i++) g[i] = blend_##suffix(gray[i], g[i], amount, rest);                              \
            for (i = 0; i < n; i++) b[i] = blend_##suffix(gray[i], b[i], amount, rest);                              \
        } else                                                                                                       \
            turn_##suffix(r, g, b, n, amount);                                                                       \
    }                                                                                                                \
    INLINE void sequence_##suffix(type *out, const type *in, Py_ssize_t pixels, Py_ssize_t pixel_step,                \
                                  Py_ssize_t channel_step, const int32_t *kinds, const float *amounts, int count) {  \
        int start = 0, stop, ready = 0, k; /* ready: the mean that the contrast at `start` needs is known */         \
        float constant = 0.0f;                                                                                       \
        for (; start < count; start = stop) {                                                                        \
            double total = 0;                                                                                        \
            Py_ssize_t at, i, n;                                                                                     \
            for (stop = start + ready; stop < count && kinds[stop] != CONTRAST; stop++) {                            \
            }                                                                                                        \
            for (at = 0; at < pixels; at += STRIP) {                                                                 \
                float r[STRIP], g[STRIP], b[STRIP], part[8] = {0};                                                   \
                n = pixels - at < STRIP ? pixels - at : STRIP;                                                       \
                LOAD(type, r, in, at, n, 0);                                                                         \
                LOAD(type, g, in, at, n, 1);                                                                         \
                LOAD(type, b, in, at, n, 2);                                                                         \
                for (k = start; k < stop; k++)                                                                       \
                    step_##suffix(r, g, b, n, kinds[k], amounts[k], kinds[k] == CONTRAST ? constant : 0.0f);         \
                if (stop > start) {                                                                                  \
                    STORE(type, out, at, n, 0, (type)(cast)r);                                                       \
                    STORE(type, out, at, n, 1, (type)(cast)g);                                                       \
                    STORE(type, out, at, n, 2, (type)(cast)b);                                                       \
                }                                                                                                    \
                if (stop < count) {                                                                                  \
                    for (i = 0; i < n; i++) r[i] = luma(r[i], g[i], b[i]);                                           \
                    for (i = n; i % 8; i++) r[i] = 0;                                                                \
                    for (i = 0; i < n; i += 8)                                                                       \
                        for (k = 0; k < 8; k++) part[k] += r[i + k];                                                 \
                    for (k = 0; k < 8; k++) total += part[k];                                                        \
                }                                                                                                    \
            }                                                                                                        \
            constant = mean(total / (double)pixels);                                                                 \
            if (stop > start) in = out;                                                                              \
            ready = 1;                                                                                               \
        }                                                                                                            \
    }

#define MEAN_LEVEL(value) ((float)(int32_t)((value) + 0.5))
#define MEAN_REAL(value) ((float)(value))
STEPS(uint8_t, u8, luma_whole, int32_t, MEAN_LEVEL)
STEPS(float, f32, luma_f32, float, MEAN_REAL)

#define SEQUENCE_ARGS(type)                                                                                          \
    (type *out, const type *in, Py_ssize_t pixels, Py_ssize_t pixel_step, Py_ssize_t channel_step,                    \
     const int32_t *kinds, const float *amounts, int count)
#define SEQUENCE_CALL (out, in, pixels, pixel_step, channel_step, kinds, amounts, count)
static void portable_sequence_u8 SEQUENCE_ARGS(uint8_t) { sequence_u8 SEQUENCE_CALL; }
static void portable_sequence_f32 SEQUENCE_ARGS(float) { sequence_f32 SEQUENCE_CALL; }
#if X86
static __attribute__((target("avx2"))) void avx2_sequence_u8 SEQUENCE_ARGS(uint8_t) { sequence_u8 SEQUENCE_CALL; }
static __attribute__((target("avx2"))) void avx2_sequence_f32 SEQUENCE_ARGS(float) { sequence_f32 SEQUENCE_CALL; }
static AVX512 void avx512_sequence_u8 SEQUENCE_ARGS(uint8_t) { sequence_u8 SEQUENCE_CALL; }
static AVX512 void avx512_sequence_f32 SEQUENCE_ARGS(float) { sequence_f32 SEQUENCE_CALL; }
static void(*const sequences_u8[]) SEQUENCE_ARGS(uint8_t) = {portable_sequence_u8, avx2_sequence_u8, avx512_sequence_u8};
static void(*const sequences_f32[]) SEQUENCE_ARGS(float) = {portable_sequence_f32, avx2_sequence_f32, avx512_sequence_f32};
#else
static void(*const sequences_u8[]) SEQUENCE_ARGS(uint8_t) = {portable_sequence_u8};
static void(*const sequences_f32[]) SEQUENCE_ARGS(float) = {portable_sequence_f32};
#endif

#define SHARPEN_ARGS (uint8_t *out, const uint8_t *in, Py_ssize_t height, Py_ssize_t width, int channels, float factor)
#define SHARPEN(prefix, target)                                                                        \
    static target void prefix##_sharpen SHARPEN_ARGS {                                                 \
        if (channels == 1)                                                                             \
            sharpen_from(out, in, height, width, 1, factor);                                           \
        else                                                                                           \
            sharpen_from(out, in, height, width, channels, factor);                                    \
    }
SHARPEN(portable, )
#if X86
SHARPEN(avx2, __attribute__((target("avx2"))))
SHARPEN(avx512, AVX512)
static void(*const sharpens[]) SHARPEN_ARGS = {portable_sharpen, avx2_sharpen, avx512_sharpen};
#else
static void(*const sharpens[]) SHARPEN_ARGS = {portable_sharpen};
#endif
