/* An affine warp of three planes of bytes to the nearest pixel, OpenCV's: positions in single precision, one product fused
 * with its sum, rounded half to even. The three bytes of a pixel are read as one word, so that a position is looked up once. Included by _native.c alone.
 */
#define WARPED 512

INLINE void words_of(uint32_t *words, const uint8_t *in, Py_ssize_t pixels) {
    const uint8_t *g = in + pixels, *b = g + pixels;
    Py_ssize_t i;
    for (i = 0; i < pixels; i++) words[i] = (uint32_t)in[i] | (uint32_t)g[i] << 8 | (uint32_t)b[i] << 16;
}

/* `m`: the inverse matrix; words[pixels] is what lies outside. */
INLINE void warp_rows(uint8_t *out, const uint32_t *words, Py_ssize_t height, Py_ssize_t width, Py_ssize_t out_height,
                      Py_ssize_t out_width, const float *m) {
    float x_most = (float)(width - 1), y_most = (float)(height - 1);
    int32_t step = (int32_t)width, outside = (int32_t)(height * width);
    Py_ssize_t plane = out_height * out_width, y, at, i, n;
    for (y = 0; y < out_height; y++) {
        float left = m[1] * (float)y + m[2], top = m[4] * (float)y + m[5];
        for (at = 0; at < out_width; at += WARPED) {
            int32_t place[WARPED];
            uint32_t found[WARPED];
            uint8_t *r = out + y * out_width + at, *g = r + plane, *b = g + plane;
            n = out_width - at < WARPED ? out_width - at : WARPED;
            for (i = 0; i < n; i++) {
                float x = (float)(int32_t)(at + i), u = rintf(fmaf(m[0], x, left)), v = rintf(fmaf(m[3], x, top));
                int inside = (u >= 0.0f) & (u <= x_most) & (v >= 0.0f) & (v <= y_most);
                float safe_u = inside ? u : 0.0f, safe_v = inside ? v : 0.0f;
                place[i] = inside ? (int32_t)safe_v * step + (int32_t)safe_u : outside;
            }
            for (i = 0; i < n; i++) found[i] = words[place[i]];
            for (i = 0; i < n; i++) r[i] = (uint8_t)found[i];
            for (i = 0; i < n; i++) g[i] = (uint8_t)(found[i] >> 8);
            for (i = 0; i < n; i++) b[i] = (uint8_t)(found[i] >> 16);
        }
    }
}

#define WARP(prefix, target)                                                                                             \
    static target void prefix##_warp(uint8_t *out, const uint8_t *in, uint32_t *words, Py_ssize_t height,               \
                                     Py_ssize_t width, Py_ssize_t out_height, Py_ssize_t out_width, const float *m) {    \
        words_of(words, in, height *width);                                                                              \
        warp_rows(out, words, height, width, out_height, out_width, m);                                                  \
    }
WARP(portable, )
#if X86
WARP(avx2, AVX2)
WARP(avx512, AVX512_FMA_WIDE)
static void (*const warps[])(uint8_t *, const uint8_t *, uint32_t *, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t,
                             const float *) = {portable_warp, avx2_warp, avx512_warp};
#else
static void (*const warps[])(uint8_t *, const uint8_t *, uint32_t *, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t,
                             const float *) = {portable_warp};
#endif
