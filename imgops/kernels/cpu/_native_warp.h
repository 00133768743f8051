/* Affine warps of bytes, OpenCV's: of three channels to the nearest pixel, and below of up to four channels by bilinear weights.
 * Positions are in single precision, one product fused with its sum, rounded half to even. The bytes of a pixel are read as one
 * word, so that a position is looked up once. Included by _native.c alone.
 */
#define WARPED 512
/* OpenCV sums the positions of the last pixels of a row, fewer than these, in another order. */
#define UNROLLED 16

/* The positions in the source of n pixels of a row y, from `at` on, by the inverse matrix. */
INLINE void positions_of(float *u, float *v, const float *m, Py_ssize_t y, Py_ssize_t at, Py_ssize_t n, Py_ssize_t width) {
    float across = m[1] * (float)y, down = m[4] * (float)y, left = across + m[2], top = down + m[5];
    Py_ssize_t early = width / UNROLLED * UNROLLED, split = early - at < n ? early - at : n, i;
    for (i = 0; i < split; i++) {
        float x = (float)(int32_t)(at + i);
        u[i] = fmaf(m[0], x, left);
        v[i] = fmaf(m[3], x, top);
    }
    for (i = split; i < n; i++) {
        float x = (float)(int32_t)(at + i);
        u[i] = fmaf(m[0], x, across) + m[2];
        v[i] = fmaf(m[3], x, down) + m[5];
    }
}

INLINE void words_of(uint32_t *words, const uint8_t *in, Py_ssize_t pixels, int interleaved) {
    const uint8_t *g = in + pixels, *b = g + pixels;
    Py_ssize_t i;
    if (interleaved)
        for (i = 0; i < pixels; i++)
            words[i] = (uint32_t)in[3 * i] | (uint32_t)in[3 * i + 1] << 8 | (uint32_t)in[3 * i + 2] << 16;
    else
        for (i = 0; i < pixels; i++) words[i] = (uint32_t)in[i] | (uint32_t)g[i] << 8 | (uint32_t)b[i] << 16;
}

/* `m`: the inverse matrix; words[pixels] is what lies outside. */
INLINE void warp_rows(uint8_t *out, const uint32_t *words, Py_ssize_t height, Py_ssize_t width, Py_ssize_t out_height,
                      Py_ssize_t out_width, const float *m, int interleaved) {
    float x_most = (float)(width - 1), y_most = (float)(height - 1);
    int32_t step = (int32_t)width, outside = (int32_t)(height * width);
    Py_ssize_t plane = out_height * out_width, y, at, i, n;
    for (y = 0; y < out_height; y++) {
        for (at = 0; at < out_width; at += WARPED) {
            int32_t place[WARPED];
            uint32_t found[WARPED];
            float across[WARPED], down[WARPED];
            Py_ssize_t first = y * out_width + at;
            uint8_t *r = out + first, *g = r + plane, *b = g + plane, *pixel = out + 3 * first;
            n = out_width - at < WARPED ? out_width - at : WARPED;
            positions_of(across, down, m, y, at, n, out_width);
            for (i = 0; i < n; i++) {
                float u = rintf(across[i]), v = rintf(down[i]);
                int inside = (u >= 0.0f) & (u <= x_most) & (v >= 0.0f) & (v <= y_most);
                float safe_u = inside ? u : 0.0f, safe_v = inside ? v : 0.0f;
                place[i] = inside ? (int32_t)safe_v * step + (int32_t)safe_u : outside;
            }
            for (i = 0; i < n; i++) found[i] = words[place[i]];
            if (interleaved) {
                for (i = 0; i < n; i++) {
                    pixel[3 * i] = (uint8_t)found[i];
                    pixel[3 * i + 1] = (uint8_t)(found[i] >> 8);
                    pixel[3 * i + 2] = (uint8_t)(found[i] >> 16);
                }
                continue;
            }
            for (i = 0; i < n; i++) r[i] = (uint8_t)found[i];
            for (i = 0; i < n; i++) g[i] = (uint8_t)(found[i] >> 8);
            for (i = 0; i < n; i++) b[i] = (uint8_t)(found[i] >> 16);
        }
    }
}

/* ---- bilinear weights ------------------------------------------------------------------------------
 *
 * OpenCV's arithmetic: positions and weights in single precision with fused products, sums rounded half to even.
 */
typedef struct {
    Py_ssize_t height, width, channels;
    int interleaved;
} Frame;

/* The pixels of an image as words, the first channel lowest, with one more column and row on each side, of the color outside. */
INLINE void framed_words(uint32_t *words, const uint8_t *in, const Frame *f, uint32_t color) {
    Py_ssize_t wide = f->width + 2, plane = f->height * f->width, pixel = f->interleaved ? f->channels : 1, x, y, c;
    for (x = 0; x < wide; x++) words[x] = words[(f->height + 1) * wide + x] = color;
    for (y = 0; y < f->height; y++) {
        uint32_t *to = words + (y + 1) * wide + 1;
        const uint8_t *from = in + y * f->width * pixel;
        to[-1] = to[f->width] = color;
        if (pixel == 3)
            for (x = 0; x < f->width; x++)
                to[x] = (uint32_t)from[3 * x] | (uint32_t)from[3 * x + 1] << 8 | (uint32_t)from[3 * x + 2] << 16;
        else if (pixel == 4)
            for (x = 0; x < f->width; x++)
                to[x] = (uint32_t)from[4 * x] | (uint32_t)from[4 * x + 1] << 8 | (uint32_t)from[4 * x + 2] << 16 |
                        (uint32_t)from[4 * x + 3] << 24;
        else {
            for (x = 0; x < f->width; x++) to[x] = from[x];
            for (c = 1; c < f->channels; c++)
                for (x = 0; x < f->width; x++) to[x] |= (uint32_t)from[c * plane + x] << 8 * c;
        }
    }
}

/* `f`: the format of the source; `m`: the inverse matrix. */
INLINE void blend_rows(uint8_t *out, const uint32_t *words, const Frame *f, Py_ssize_t height, Py_ssize_t width, const float *m) {
    float x_most = (float)(f->width - 1), y_most = (float)(f->height - 1);
    int32_t wide = (int32_t)f->width + 2;
    Py_ssize_t channels = f->channels, y, at, i, c, n;
    for (y = 0; y < height; y++) {
        for (at = 0; at < width; at += WARPED) {
            int32_t place[WARPED];
            uint32_t upper[2 * WARPED], lower[2 * WARPED]; /* pairs of neighbors */
            float u[WARPED], v[WARPED];
            uint8_t levels[4][WARPED], *to;
            n = width - at < WARPED ? width - at : WARPED;
            positions_of(u, v, m, y, at, n, width);
            for (i = 0; i < n; i++) {
                float column = floorf(u[i]), row = floorf(v[i]);
                int inside = (column >= -1.0f) & (column <= x_most) & (row >= -1.0f) & (row <= y_most);
                float safe_column = inside ? column : -1.0f, safe_row = inside ? row : -1.0f;
                place[i] = ((int32_t)safe_row + 1) * wide + (int32_t)safe_column + 1;
                u[i] = inside ? u[i] - column : 0.0f; /* the upper left word alone, which is the color outside */
                v[i] = inside ? v[i] - row : 0.0f;
            }
            for (i = 0; i < n; i++) {
                memcpy(upper + 2 * i, words + place[i], 2 * sizeof *words);
                memcpy(lower + 2 * i, words + place[i] + wide, 2 * sizeof *words);
            }
            for (c = 0; c < channels; c++)
                for (i = 0; i < n; i++) {
                    float p = (float)(int32_t)(upper[2 * i] >> 8 * c & 255), q = (float)(int32_t)(upper[2 * i + 1] >> 8 * c & 255);
                    float r = (float)(int32_t)(lower[2 * i] >> 8 * c & 255), s = (float)(int32_t)(lower[2 * i + 1] >> 8 * c & 255);
                    float above = fmaf(u[i], q - p, p), below = fmaf(u[i], s - r, r);
                    levels[c][i] = (uint8_t)(int32_t)rintf(fmaf(v[i], below - above, above));
                }
            to = out + (y * width + at) * (f->interleaved ? channels : 1);
            if (!f->interleaved)
                for (c = 0; c < channels; c++) memcpy(to + c * height * width, levels[c], (size_t)n);
            else if (channels == 3)
                for (i = 0; i < n; i++) to[3 * i] = levels[0][i], to[3 * i + 1] = levels[1][i], to[3 * i + 2] = levels[2][i];
            else
                for (c = 0; c < channels; c++)
                    for (i = 0; i < n; i++) to[i * channels + c] = levels[c][i];
        }
    }
}

#define BLEND_ARGS                                                                                                       \
    (uint8_t *out, const uint8_t *in, uint32_t *words, const Frame *f, Py_ssize_t height, Py_ssize_t width, uint32_t color, \
     const float *m)
#define BLEND(prefix, target)                                                                                            \
    static target void prefix##_blend BLEND_ARGS {                                                                       \
        framed_words(words, in, f, color);                                                                               \
        blend_rows(out, words, f, height, width, m);                                                                     \
    }
BLEND(portable, )
#if X86
BLEND(avx2, AVX2)
BLEND(avx512, AVX512_FMA_WIDE)
static void(*const blends[]) BLEND_ARGS = {portable_blend, avx2_blend, avx512_blend};
#else
static void(*const blends[]) BLEND_ARGS = {portable_blend};
#endif

#define WARP_ARGS                                                                                                        \
    (uint8_t *out, const uint8_t *in, uint32_t *words, Py_ssize_t height, Py_ssize_t width, Py_ssize_t out_height,      \
     Py_ssize_t out_width, const float *m, int interleaved)
#define WARP(prefix, target)                                                                                             \
    static target void prefix##_warp WARP_ARGS {                                                                         \
        words_of(words, in, height *width, interleaved);                                                                 \
        warp_rows(out, words, height, width, out_height, out_width, m, interleaved);                                     \
    }
WARP(portable, )
#if X86
WARP(avx2, AVX2)
WARP(avx512, AVX512_FMA_WIDE)
static void(*const warps[]) WARP_ARGS = {portable_warp, avx2_warp, avx512_warp};
#else
static void(*const warps[]) WARP_ARGS = {portable_warp};
#endif
