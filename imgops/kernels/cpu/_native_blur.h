/* A Gaussian on uint8 in OpenCV's integers: weights with 8 fraction bits, no rounding between the passes, one at the
 * end. Weights that are 0 in 8 bits are left out, which for the usual wide windows is most of them. Included by
 * _native.c alone.
 */
#define CHUNK 512

/* Where BORDER_REFLECT_101 sends a position outside of a row. */
static Py_ssize_t mirrored(Py_ssize_t i, Py_ssize_t size) {
    Py_ssize_t period = 2 * size - 2;
    i = period ? ((i % period) + period) % period : 0;
    return i < size ? i : period - i;
}

/* A row with `reach` pixels more on either side. */
static void widen(uint8_t *wide, const uint8_t *row, Py_ssize_t width, Py_ssize_t channels, Py_ssize_t reach) {
    Py_ssize_t i, c;
    memcpy(wide + reach * channels, row, (size_t)(width * channels));
    for (i = 1; i <= reach; i++)
        for (c = 0; c < channels; c++) {
            wide[(reach - i) * channels + c] = row[mirrored(-i, width) * channels + c];
            wide[(reach + width - 1 + i) * channels + c] = row[mirrored(width - 1 + i, width) * channels + c];
        }
}

/* weight: the middle one, then those farther and farther out */
INLINE void across(uint16_t *out, const uint8_t *wide, Py_ssize_t start, Py_ssize_t length, Py_ssize_t channels,
                   const uint16_t *weight, Py_ssize_t reach) {
    Py_ssize_t at, i, k, n;
    const uint8_t *middle = wide + reach * channels;
    for (at = start; at < length; at += CHUNK) {
        uint16_t sum[CHUNK], w = weight[0];
        const uint8_t *from = middle + at;
        n = length - at < CHUNK ? length - at : CHUNK;
        for (i = 0; i < n; i++) sum[i] = (uint16_t)(w * from[i]);
        for (k = 1; k <= reach; k++) {
            const uint8_t *left = from - k * channels, *right = from + k * channels;
            w = weight[k];
            for (i = 0; i < n; i++) sum[i] = (uint16_t)(sum[i] + w * (left[i] + right[i]));
        }
        for (i = 0; i < n; i++) out[at + i] = sum[i];
    }
}

INLINE void down(uint8_t *out, const uint16_t *const *rows, Py_ssize_t start, Py_ssize_t length, const uint16_t *weight,
                 Py_ssize_t reach) {
    Py_ssize_t at, i, k, n;
    for (at = start; at < length; at += CHUNK) {
        uint32_t sum[CHUNK], w = weight[0];
        const uint16_t *from = rows[reach] + at;
        n = length - at < CHUNK ? length - at : CHUNK;
        for (i = 0; i < n; i++) sum[i] = w * from[i] + 0x8000;
        for (k = 1; k <= reach; k++) {
            const uint16_t *above = rows[reach - k] + at, *below = rows[reach + k] + at;
            w = weight[k];
            for (i = 0; i < n; i++) sum[i] += w * ((uint32_t)above[i] + below[i]);
        }
        for (i = 0; i < n; i++) out[at + i] = (uint8_t)(sum[i] >> 16);
    }
}

#if X86
static __attribute__((target("avx2"))) Py_ssize_t across_avx2(uint16_t *out, const uint8_t *wide, Py_ssize_t length,
                                                             Py_ssize_t channels, const uint16_t *weight,
                                                             Py_ssize_t reach) {
    Py_ssize_t at, k;
    const uint8_t *middle = wide + reach * channels;
    for (at = 0; at + 16 <= length; at += 16) {
        const uint8_t *from = middle + at;
        __m256i sum = _mm256_mullo_epi16(_mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)from)),
                                         _mm256_set1_epi16((short)weight[0]));
        for (k = 1; k <= reach; k++) {
            __m256i left = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(from - k * channels)));
            __m256i right = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(from + k * channels)));
            __m256i both = _mm256_mullo_epi16(_mm256_add_epi16(left, right), _mm256_set1_epi16((short)weight[k]));
            sum = _mm256_add_epi16(sum, both);
        }
        _mm256_storeu_si256((__m256i *)(out + at), sum);
    }
    return at;
}

/* Two rows at a time: pairs of 16-bit values are multiplied and added by one instruction, which takes them as signed.
 * So 2^15 is taken from every value; as the weights sum to 256, what that takes from the sum is known. */
static __attribute__((target("avx2"))) Py_ssize_t down_avx2(uint8_t *out, const uint16_t *const *rows, Py_ssize_t length,
                                                           const uint16_t *weight, Py_ssize_t reach) {
    Py_ssize_t at, k, taps = 2 * reach + 1;
    const __m256i flip = _mm256_set1_epi16((short)0x8000), start = _mm256_set1_epi32(256 * 0x8000 + 0x8000);
    for (at = 0; at + 16 <= length; at += 16) {
        __m256i low = start, high = start;
        for (k = 0; k < taps; k += 2) {
            Py_ssize_t far_a = k < reach ? reach - k : k - reach, far_b = k + 1 < reach ? reach - k - 1 : k + 1 - reach;
            int b = k + 1 < taps;
            __m256i pair = _mm256_set1_epi32(weight[far_a] | (b ? (int)weight[far_b] << 16 : 0));
            __m256i x = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(rows[k] + at)), flip);
            __m256i y = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(rows[b ? k + 1 : k] + at)), flip);
            low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_unpacklo_epi16(x, y), pair));
            high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_unpackhi_epi16(x, y), pair));
        }
        low = _mm256_packus_epi32(_mm256_srli_epi32(low, 16), _mm256_srli_epi32(high, 16));
        low = _mm256_permute4x64_epi64(_mm256_packus_epi16(low, low), 0x08);
        _mm_storeu_si128((__m128i *)(out + at), _mm256_castsi256_si128(low));
    }
    return at;
}
#endif

INLINE int blur_planes(uint8_t *out, const uint8_t *in, Py_ssize_t planes, Py_ssize_t height, Py_ssize_t width,
                       Py_ssize_t channels, Py_ssize_t first, Py_ssize_t last, const uint16_t *wx, Py_ssize_t rx,
                       const uint16_t *wy, Py_ssize_t ry, int avx2) {
    Py_ssize_t length = width * channels, p, y, k;
    /* Only the rows that the second pass reads; a window wider than the image is mirrored to any of them. */
    Py_ssize_t from = ry < height && first > ry ? first - ry : 0, to = ry < height && last + ry < height ? last + ry : height;
    uint8_t *wide = malloc((size_t)(length + 2 * rx * channels));
    uint16_t *middle = malloc((size_t)((to - from) * length + 1) * sizeof(uint16_t));
    const uint16_t **rows = malloc((size_t)(2 * ry + 1) * sizeof(*rows));
    int done = wide && middle && rows;
    for (p = 0; done && p < planes; p++, in += height * length, out += height * length) {
        for (y = from; y < to; y++) {
            uint16_t *row = middle + (y - from) * length;
            widen(wide, in + y * length, width, channels, rx);
            k = 0;
#if X86
            if (avx2) k = across_avx2(row, wide, length, channels, wx, rx);
#endif
            across(row, wide, k, length, channels, wx, rx);
        }
        for (y = first; y < last; y++) {
            for (k = -ry; k <= ry; k++) rows[ry + k] = middle + (mirrored(y + k, height) - from) * length;
            k = 0;
#if X86
            if (avx2) k = down_avx2(out + y * length, rows, length, wy, ry);
#endif
            down(out + y * length, rows, k, length, wy, ry);
        }
    }
    (void)avx2;
    free(wide);
    free(middle);
    free(rows);
    return done;
}

#define MOST_WEIGHTS 129

/* Row `part` of (parts, n): the middle one first; of 8 fraction bits, so that more than 128 on a side cannot be above 0. */
static int are_weights(const Py_buffer *view, Py_ssize_t part) {
    Py_ssize_t i, count = view->shape[1];
    const int32_t *weight = (const int32_t *)view->buf + part * count;
    int32_t total = 0;
    if (!require(count >= 1 && count <= MOST_WEIGHTS, "weights must be 1 to 129 numbers")) return 0;
    for (i = 0; i < count; i++) {
        if (!require(weight[i] >= 0 && weight[i] <= 256, "weights must be from 0 to 256")) return 0;
        total += i ? 2 * weight[i] : weight[i];
    }
    return require(total == 256, "weights must sum to 256, both sides counted");
}

/* Returns how far they reach, without the zeros at the end. */
static Py_ssize_t gaussian_weights(const Py_buffer *view, Py_ssize_t part, uint16_t *to) {
    Py_ssize_t i, reach = 0, count = view->shape[1];
    const int32_t *weight = (const int32_t *)view->buf + part * count;
    for (i = 0; i < count; i++) {
        to[i] = (uint16_t)weight[i];
        if (weight[i]) reach = i;
    }
    return reach;
}

#define BLUR_ARGS                                                                                                    \
    (uint8_t *out, const uint8_t *in, Py_ssize_t planes, Py_ssize_t height, Py_ssize_t width, Py_ssize_t channels,    \
     Py_ssize_t first, Py_ssize_t last, const uint16_t *wx, Py_ssize_t rx, const uint16_t *wy, Py_ssize_t ry)
static int portable_blur BLUR_ARGS {
    return blur_planes(out, in, planes, height, width, channels, first, last, wx, rx, wy, ry, 0);
}
#if X86
static __attribute__((target("avx2"))) int avx2_blur BLUR_ARGS {
    return blur_planes(out, in, planes, height, width, channels, first, last, wx, rx, wy, ry, 1);
}
#endif
