/* Colour, pixel by pixel: PIL's arithmetic on uint8, real arithmetic on float32. Included by _native.c alone.
 *
 * An image is (planes of) pixels with a step between pixels and one between channels, so that planar and interleaved
 * memory take the same code. Pixels go through small blocks of planes, where every loop is one vector loop. The
 * expressions are those of the decompositions, operation by operation, and no multiplication is fused with an
 * addition: the bits are the same on every machine.
 */
#define STRIP 256

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

/* PIL's blend: truncated, held in the range. */
INLINE uint8_t level_of(float value) { return (uint8_t)(int32_t)(value < 0.0f ? 0.0f : value > 255.0f ? 255.0f : value); }
INLINE uint8_t mix_u8(int32_t from, int32_t to, float factor) { return level_of((float)from + factor * (float)(to - from)); }
INLINE float hold(float value) { return value < 0.0f ? 0.0f : value > 1.0f ? 1.0f : value; }
INLINE float mix_f32(float from, float to, float factor, float rest) { return hold(to * factor + from * rest); }

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
    int32_t from = (int32_t)job->constant;
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

/* out (a double) = sum of luma */
INLINE void total_u8(const Color *job) {
    int64_t sum = 0;
    PIXELS(uint8_t, int32_t)
        int32_t part = 0;
        for (i = 0; i < n; i++) gray[i] = luma_u8(r[i], g[i], b[i]);
        for (i = 0; i < n; i++) part += gray[i];
        sum += part;
    }
    *(double *)(void *)out = (double)sum;
}
INLINE void total_f32(const Color *job) {
    double sum = 0;
    PIXELS(float, float)
        float part[8] = {0};
        for (i = 0; i < n; i++) gray[i] = luma_f32(r[i], g[i], b[i]);
        for (i = n; i % 8; i++) gray[i] = 0;
        for (i = 0; i < n; i += 8) {
            int k;
            for (k = 0; k < 8; k++) part[k] += gray[i + k];
        }
        for (i = 0; i < 8; i++) sum += part[i];
    }
    *(double *)(void *)out = sum;
}

/* out = blend of luma with in */
INLINE void saturation_u8(const Color *job) {
    float amount = job->amount;
    PIXELS(uint8_t, int32_t)
        for (i = 0; i < n; i++) gray[i] = luma_u8(r[i], g[i], b[i]);
        for (i = 0; i < n; i++) r[i] = mix_u8(gray[i], r[i], amount);
        for (i = 0; i < n; i++) g[i] = mix_u8(gray[i], g[i], amount);
        for (i = 0; i < n; i++) b[i] = mix_u8(gray[i], b[i], amount);
        STORE(uint8_t, out, at, n, 0, r);
        STORE(uint8_t, out, at, n, 1, g);
        STORE(uint8_t, out, at, n, 2, b);
    }
}
INLINE void saturation_f32(const Color *job) {
    float amount = job->amount, rest = 1.0f - job->amount;
    PIXELS(float, float)
        for (i = 0; i < n; i++) gray[i] = luma_f32(r[i], g[i], b[i]);
        for (i = 0; i < n; i++) r[i] = mix_f32(gray[i], r[i], amount, rest);
        for (i = 0; i < n; i++) g[i] = mix_f32(gray[i], g[i], amount, rest);
        for (i = 0; i < n; i++) b[i] = mix_f32(gray[i], b[i], amount, rest);
        STORE(float, out, at, n, 0, r);
        STORE(float, out, at, n, 1, g);
        STORE(float, out, at, n, 2, b);
    }
}

/* A channel of the colour whose hue is `turn` sixths round, of the given value and chroma; n: 5, 3, 1 for r, g, b. */
INLINE float channel(float turn, float value, float chroma, float n) {
    float k = n + turn, ramp;
    k = k - 6.0f * floorf(k / 6.0f);
    ramp = k < 4.0f - k ? k : 4.0f - k;
    return value - chroma * hold(ramp);
}
#define HUE(type, scale, held)                                                                          \
    for (i = 0; i < n; i++) {                                                                     \
        float x = r[i], y = g[i], z = b[i];                                                       \
        float most = x > y ? x : y, least = x < y ? x : y, chroma, safe, turn, if_r, if_g, if_b;         \
        most = most > z ? most : z;                                                               \
        least = least < z ? least : z;                                                            \
        chroma = most - least;                                                                    \
        safe = chroma == 0.0f ? 1.0f : chroma;                                                    \
        if_r = (y - z) / safe;                                                                       \
        if_g = (z - x) / safe + 2.0f;                                                               \
        if_b = (x - y) / safe + 4.0f;                                                                \
        turn = most == x ? if_r : most == y ? if_g : if_b;                                                \
        turn = turn + shift;                                                                      \
        red[i] = channel(turn, most, chroma, 5.0f) * scale;                                       \
        green[i] = channel(turn, most, chroma, 3.0f) * scale;                                     \
        blue[i] = channel(turn, most, chroma, 1.0f) * scale;                                      \
    }                                                                                             \
    for (i = 0; i < n; i++) r[i] = held(red[i]);                                                  \
    for (i = 0; i < n; i++) g[i] = held(green[i]);                                                \
    for (i = 0; i < n; i++) b[i] = held(blue[i]);                                                 \
    STORE(type, out, at, n, 0, r);                                                                      \
    STORE(type, out, at, n, 1, g);                                                                      \
    STORE(type, out, at, n, 2, b);

/* amount: a part of the circle. uint8 is rounded as torchvision rounds a float image to it. */
INLINE void hue_u8(const Color *job) {
    float shift = job->amount * 6.0f, red[STRIP], green[STRIP], blue[STRIP];
    PIXELS(uint8_t, float)
        (void)gray;
        HUE(uint8_t, 1.003917647f, level_of)
    }
}
INLINE void hue_f32(const Color *job) {
    float shift = job->amount * 6.0f, red[STRIP], green[STRIP], blue[STRIP];
    PIXELS(float, float)
        (void)gray;
        HUE(float, 1.0f, hold)
    }
}

#define COLORS(MODE)                                     \
    MODE(constant)                                       \
    MODE(images)                                         \
    MODE(gray)                                           \
    MODE(total)                                          \
    MODE(saturation)                                     \
    MODE(hue)
#define PLAIN(name)                                                     \
    static void plain_##name##_u8(const Color *job) { name##_u8(job); } \
    static void plain_##name##_f32(const Color *job) { name##_f32(job); }
COLORS(PLAIN)
#if X86
/* Without FMA: see above. */
#define WIDE(name)                                                                             \
    static __attribute__((target("avx2"))) void wide_##name##_u8(const Color *job) { name##_u8(job); } \
    static __attribute__((target("avx2"))) void wide_##name##_f32(const Color *job) { name##_f32(job); }
COLORS(WIDE)
#define ENTRY(name) {#name, plain_##name##_u8, plain_##name##_f32, wide_##name##_u8, wide_##name##_f32},
#else
#define ENTRY(name) {#name, plain_##name##_u8, plain_##name##_f32, plain_##name##_u8, plain_##name##_f32},
#endif

static const struct {
    const char *name;
    void (*plain_u8)(const Color *), (*plain_f32)(const Color *), (*wide_u8)(const Color *), (*wide_f32)(const Color *);
} colors[] = {COLORS(ENTRY)};
