/* uint8: PIL's arithmetic with vector instructions. Included by _native.c alone.
 *
 * Two passes, each a sum of whole rows with 22-bit weights, rounded to 8 bits. A weight is kept as high * 2^11 +
 * low, so that one instruction multiplies and adds pairs of 16-bit values; the sums are the same integers as PIL's.
 * The horizontal pass works on transposed blocks of 16 rows.
 */
#define BITS 22
#define LOW 11
#define LANES 16

/* A table in PIL's integers, in pairs of taps. A pair begins at an even input, so that transposed
 * blocks can be stored in pairs too; each weight is high * 2^11 + low, both of which fit 16 bits. */
typedef struct {
    int32_t *first;       /* first pair */
    int32_t *pairs;       /* how many */
    int32_t *high, *low;  /* (out, width) two 16-bit weights each */
    Py_ssize_t width;
} Pairs;

static int32_t pil_weight(double w) {
    return (int32_t)(w < 0 ? -0.5 + w * (1 << BITS) : 0.5 + w * (1 << BITS));
}

/* NULL memory or a weight that 16 bits cannot hold: 0; the caller then takes PIL's own way. */
static int make_pairs(Pairs *p, const Table *t) {
    Py_ssize_t o, k;
    p->width = t->taps / 2 + 2;
    p->first = malloc(t->out * 2 * sizeof(int32_t));
    p->high = calloc((size_t)t->out * p->width * 2, sizeof(int32_t));
    if (!p->first || !p->high) return 0;
    p->pairs = p->first + t->out;
    p->low = p->high + (size_t)t->out * p->width;
    for (o = 0; o < t->out; o++) {
        int16_t *high = (int16_t *)(p->high + o * p->width), *low = (int16_t *)(p->low + o * p->width);
        Py_ssize_t odd = t->start[o] & 1;
        p->first[o] = t->start[o] >> 1;
        p->pairs[o] = (int32_t)((t->length[o] + odd + 1) >> 1);
        for (k = 0; k < t->length[o]; k++) {
            double w = t->weight[o * t->taps + k];
            int32_t q;
            if (!(w > -15 && w < 15)) return 0;
            q = pil_weight(w);
            high[k + odd] = (int16_t)(q >> LOW);
            low[k + odd] = (int16_t)(q & ((1 << LOW) - 1));
        }
    }
    return 1;
}

static void free_pairs(Pairs *p) {
    free(p->first);
    free(p->high);
}

/* Unsigned sums: where thousands of taps overflow 32 bits, they wrap as PIL's and those of the vector units do. */
INLINE uint8_t round_level(uint32_t high, uint32_t low) {
    int32_t sum = (int32_t)((high << LOW) + low + (1u << (BITS - 1)));
    sum >>= BITS;
    return sum < 0 ? 0 : sum > 255 ? 255 : (uint8_t)sum;
}

/* out[x] = sum over taps of weight * row[tap][x], for one output row of `length` bytes. */
INLINE void rows_scalar(uint8_t *out, const uint8_t *in, Py_ssize_t stride, Py_ssize_t rows, Py_ssize_t from,
                        Py_ssize_t length, int32_t first, int32_t pairs, const int32_t *high, const int32_t *low) {
    Py_ssize_t x;
    int32_t k;
    const int16_t *h = (const int16_t *)high, *l = (const int16_t *)low;
    for (x = from; x < length; x++) {
        uint32_t sum_high = 0, sum_low = 0;
        for (k = 0; k < 2 * pairs; k++) {
            Py_ssize_t row = 2 * (Py_ssize_t)first + k;
            int32_t value = row < rows ? in[row * stride + x] : 0;
            sum_high += (uint32_t)(value * h[k]);
            sum_low += (uint32_t)(value * l[k]);
        }
        out[x] = round_level(sum_high, sum_low);
    }
}

#if X86
INLINE AVX2 __m128i pack_levels(__m256i high_a, __m256i low_a, __m256i high_b, __m256i low_b) {
    const __m256i half = _mm256_set1_epi32(1 << (BITS - 1));
    __m256i a = _mm256_add_epi32(_mm256_add_epi32(_mm256_slli_epi32(high_a, LOW), low_a), half);
    __m256i b = _mm256_add_epi32(_mm256_add_epi32(_mm256_slli_epi32(high_b, LOW), low_b), half);
    __m256i words = _mm256_packs_epi32(_mm256_srai_epi32(a, BITS), _mm256_srai_epi32(b, BITS));
    words = _mm256_permute4x64_epi64(words, 0xD8);
    return _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

static AVX2 void rows_avx2(uint8_t *out, const uint8_t *in, Py_ssize_t stride, Py_ssize_t rows, Py_ssize_t length,
                           int32_t first, int32_t pairs, const int32_t *high, const int32_t *low) {
    Py_ssize_t x = 0;
    for (; x + LANES <= length; x += LANES) {
        __m256i ha = _mm256_setzero_si256(), la = ha, hb = ha, lb = ha;
        const uint8_t *row = in + 2 * (Py_ssize_t)first * stride + x;
        int32_t k;
        for (k = 0; k < pairs; k++, row += 2 * stride) {
            Py_ssize_t next = 2 * ((Py_ssize_t)first + k) + 1 < rows ? stride : 0; /* its weight is 0 */
            __m128i a = _mm_loadu_si128((const __m128i *)row);
            __m128i b = _mm_loadu_si128((const __m128i *)(row + next));
            __m256i front = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b));
            __m256i back = _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b));
            __m256i wh = _mm256_set1_epi32(high[k]), wl = _mm256_set1_epi32(low[k]);
            ha = _mm256_add_epi32(ha, _mm256_madd_epi16(front, wh));
            hb = _mm256_add_epi32(hb, _mm256_madd_epi16(back, wh));
            la = _mm256_add_epi32(la, _mm256_madd_epi16(front, wl));
            lb = _mm256_add_epi32(lb, _mm256_madd_epi16(back, wl));
        }
        _mm_storeu_si128((__m128i *)(out + x), pack_levels(ha, la, hb, lb));
    }
    rows_scalar(out, in, stride, rows, x, length, first, pairs, high, low);
}

/* A 16 x 16 block of bytes, transposed. */
INLINE AVX2 void transpose16(__m128i r[16]) {
    __m128i t[16];
    int i;
#define STEP(to, from, op)                                              \
    for (i = 0; i < 8; i++) {                                           \
        to[2 * i] = _mm_unpacklo_##op(from[i], from[i + 8]);            \
        to[2 * i + 1] = _mm_unpackhi_##op(from[i], from[i + 8]);        \
    }
    STEP(t, r, epi8)
    STEP(r, t, epi8)
    STEP(t, r, epi8)
    STEP(r, t, epi8)
#undef STEP
}

/* Two columns of 16 bytes to 16-bit pairs of horizontal neighbors. */
INLINE AVX2 void store_pair(uint8_t *to, __m128i a, __m128i b) {
    _mm256_storeu_si256((__m256i *)to, _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b)));
    _mm256_storeu_si256((__m256i *)(to + 32), _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b)));
}

INLINE AVX2 __m128i load_column(const uint8_t *in, Py_ssize_t stride) {
    uint8_t column[LANES];
    int i;
    for (i = 0; i < LANES; i++) column[i] = in[i * stride];
    return _mm_loadu_si128((const __m128i *)column);
}

/* Bytes of a row that are whole vectors and whole pairs of pixels; the most that one step transposes. */
#define STEP_BYTES(channels) ((channels) == 3 ? 48 : 16 / (2 * (channels)) * 2 * (channels))

/* 16 rows from byte x on, transposed and paired: 64 bytes for each pair of pixels and each channel.
 * Returns where it got to. */
INLINE AVX2 Py_ssize_t to_pairs(uint8_t *paired, const uint8_t *in, Py_ssize_t x, Py_ssize_t stride,
                                Py_ssize_t length, const int channels) {
    const int step = STEP_BYTES(channels);
    int i, c, v;
    if (step && x + (step + 15) / 16 * 16 <= length) {
        __m128i r[48];
        for (v = 0; v < (step + 15) / 16; v++) {
            for (i = 0; i < 16; i++) r[16 * v + i] = _mm_loadu_si128((const __m128i *)(in + i * stride + x + 16 * v));
            transpose16(r + 16 * v);
        }
        for (i = 0; i < step; i += 2 * channels)
            for (c = 0; c < channels; c++)
                store_pair(paired + ((x + i) / 2 + c) * 4 * LANES, r[i + c], r[i + channels + c]);
        return x + step;
    }
    for (c = 0; c < channels; c++) {
        __m128i a = load_column(in + x + c, stride), b = _mm_setzero_si128();
        if (x + channels < length) b = load_column(in + x + channels + c, stride);
        store_pair(paired + (x / 2 + c) * 4 * LANES, a, b);
    }
    return x + 2 * channels;
}

static AVX2 void from_columns(uint8_t *out, const uint8_t *columns, Py_ssize_t stride, Py_ssize_t length) {
    Py_ssize_t x = 0, i;
    __m128i r[16];
    for (; x + 16 <= length; x += 16) {
        for (i = 0; i < 16; i++) r[i] = _mm_loadu_si128((const __m128i *)(columns + (x + i) * LANES));
        transpose16(r);
        for (i = 0; i < 16; i++) _mm_storeu_si128((__m128i *)(out + i * stride + x), r[i]);
    }
    for (; x < length; x++)
        for (i = 0; i < 16; i++) out[i * stride + x] = columns[x * LANES + i];
}

/* 16 bytes of output from the pairs at `at` and every `step` bytes on. */
INLINE AVX2 void mix_avx2(uint8_t *to, const uint8_t *at, Py_ssize_t step, int32_t pairs, const int32_t *high,
                          const int32_t *low) {
    __m256i ha = _mm256_setzero_si256(), la = ha, hb = ha, lb = ha;
    int32_t k;
    for (k = 0; k < pairs; k++, at += step) {
        __m256i front = _mm256_loadu_si256((const __m256i *)at);
        __m256i back = _mm256_loadu_si256((const __m256i *)(at + 32));
        __m256i wh = _mm256_set1_epi32(high[k]), wl = _mm256_set1_epi32(low[k]);
        ha = _mm256_add_epi32(ha, _mm256_madd_epi16(front, wh));
        hb = _mm256_add_epi32(hb, _mm256_madd_epi16(back, wh));
        la = _mm256_add_epi32(la, _mm256_madd_epi16(front, wl));
        lb = _mm256_add_epi32(lb, _mm256_madd_epi16(back, wl));
    }
    _mm_storeu_si128((__m128i *)to, pack_levels(ha, la, hb, lb));
}

/* The same by AVX-512, VNNI and its instruction that multiplies pairs and adds them to the sum. */
INLINE AVX512_FMA __m128i levels_avx512(__m512i high, __m512i low) {
    __m512i sum = _mm512_add_epi32(_mm512_slli_epi32(high, LOW), low);
    sum = _mm512_srai_epi32(_mm512_add_epi32(sum, _mm512_set1_epi32(1 << (BITS - 1))), BITS);
    return _mm512_cvtusepi32_epi8(_mm512_max_epi32(sum, _mm512_setzero_si512()));
}

INLINE AVX512_FMA void mix_avx512(uint8_t *to, const uint8_t *at, Py_ssize_t step, int32_t pairs, const int32_t *high,
                          const int32_t *low) {
    __m512i h = _mm512_setzero_si512(), l = h;
    int32_t k;
    for (k = 0; k < pairs; k++, at += step) {
        __m512i pair = _mm512_loadu_si512(at);
        h = _mm512_dpwssd_epi32(h, pair, _mm512_set1_epi32(high[k]));
        l = _mm512_dpwssd_epi32(l, pair, _mm512_set1_epi32(low[k]));
    }
    _mm_storeu_si128((__m128i *)to, levels_avx512(h, l));
}

static AVX512_FMA void rows_avx512(uint8_t *out, const uint8_t *in, Py_ssize_t stride, Py_ssize_t rows, Py_ssize_t length,
                           int32_t first, int32_t pairs, const int32_t *high, const int32_t *low) {
    Py_ssize_t x = 0;
    for (; x + LANES <= length; x += LANES) {
        __m512i h = _mm512_setzero_si512(), l = h;
        const uint8_t *row = in + 2 * (Py_ssize_t)first * stride + x;
        int32_t k;
        for (k = 0; k < pairs; k++, row += 2 * stride) {
            Py_ssize_t next = 2 * ((Py_ssize_t)first + k) + 1 < rows ? stride : 0; /* its weight is 0 */
            __m512i a = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)row));
            __m512i b = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(row + next)));
            __m512i pair = _mm512_or_si512(a, _mm512_slli_epi32(b, 16));
            h = _mm512_dpwssd_epi32(h, pair, _mm512_set1_epi32(high[k]));
            l = _mm512_dpwssd_epi32(l, pair, _mm512_set1_epi32(low[k]));
        }
        _mm_storeu_si128((__m128i *)(out + x), levels_avx512(h, l));
    }
    rows_scalar(out, in, stride, rows, x, length, first, pairs, high, low);
}

/* Rows by fours: a weight in three signed digits of 8 bits, and one instruction that multiplies four bytes by four digits
 * and adds the products. Joining bytes of four rows within quarters of a register, and packing sums back, leave every
 * pixel in its place. 0: a weight that three digits cannot hold, or too many taps; the other function takes those. */
#define MOST_FOURS 32

static AVX512_FMA int fours_avx512(uint8_t *out, const uint8_t *in, Py_ssize_t stride, Py_ssize_t rows, Py_ssize_t length,
                                   int32_t first, int32_t pairs, const int32_t *high, const int32_t *low) {
    const int16_t *h = (const int16_t *)high, *l = (const int16_t *)low;
    const __m512i half = _mm512_set1_epi32(1 << (BITS - 1));
    int32_t digit[3][MOST_FOURS];
    Py_ssize_t begin = 2 * (Py_ssize_t)first, taps = 2 * (Py_ssize_t)pairs, fours, k, x;
    int j;
    while (taps && !h[taps - 1] && !l[taps - 1]) taps--;
    while (taps && !h[0] && !l[0]) h++, l++, begin++, taps--;
    fours = (taps + 3) / 4;
    if (fours > MOST_FOURS || begin + taps > rows) return 0;
    for (k = 0; k < fours; k++) {
        uint32_t packed[3] = {0};
        for (j = 0; j < 4 && 4 * k + j < taps; j++) {
            int32_t q = (int32_t)h[4 * k + j] * (1 << LOW) + l[4 * k + j], d0 = (int8_t)q, rest = (q - d0) >> 8, d1 = (int8_t)rest;
            int32_t d2 = (rest - d1) >> 8;
            if (d2 < -128 || d2 > 127) return 0;
            packed[0] |= (uint32_t)(uint8_t)d0 << 8 * j;
            packed[1] |= (uint32_t)(uint8_t)d1 << 8 * j;
            packed[2] |= (uint32_t)(uint8_t)d2 << 8 * j;
        }
        for (j = 0; j < 3; j++) digit[j][k] = (int32_t)packed[j];
    }
    for (x = 0; x < length; x += 64) {
        __mmask64 some = length - x >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << (length - x)) - 1;
        __m512i sum[3][4];
        int i;
        for (j = 0; j < 3; j++)
            for (i = 0; i < 4; i++) sum[j][i] = _mm512_setzero_si512();
        for (k = 0; k < fours; k++) {
            const uint8_t *row = in + (begin + 4 * k) * stride + x;
            Py_ssize_t left = taps - 4 * k - 1; /* rows after the first; what is not there has the weight 0 */
            __m512i r0 = _mm512_maskz_loadu_epi8(some, row);
            __m512i r1 = _mm512_maskz_loadu_epi8(some, row + (left < 1 ? left : 1) * stride);
            __m512i r2 = _mm512_maskz_loadu_epi8(some, row + (left < 2 ? left : 2) * stride);
            __m512i r3 = _mm512_maskz_loadu_epi8(some, row + (left < 3 ? left : 3) * stride);
            __m512i a = _mm512_unpacklo_epi8(r0, r1), b = _mm512_unpackhi_epi8(r0, r1);
            __m512i c = _mm512_unpacklo_epi8(r2, r3), d = _mm512_unpackhi_epi8(r2, r3);
            __m512i four[4] = {_mm512_unpacklo_epi16(a, c), _mm512_unpackhi_epi16(a, c), _mm512_unpacklo_epi16(b, d),
                               _mm512_unpackhi_epi16(b, d)};
            for (j = 0; j < 3; j++) {
                __m512i weights = _mm512_set1_epi32(digit[j][k]);
                for (i = 0; i < 4; i++) sum[j][i] = _mm512_dpbusd_epi32(sum[j][i], four[i], weights);
            }
        }
        for (i = 0; i < 4; i++) {
            __m512i total = _mm512_add_epi32(_mm512_slli_epi32(sum[2][i], 16), _mm512_slli_epi32(sum[1][i], 8));
            total = _mm512_add_epi32(_mm512_add_epi32(total, sum[0][i]), half);
            sum[0][i] = _mm512_srai_epi32(total, BITS);
        }
        _mm512_mask_storeu_epi8(out + x, some,
                                _mm512_packus_epi16(_mm512_packs_epi32(sum[0][0], sum[0][1]),
                                                    _mm512_packs_epi32(sum[0][2], sum[0][3])));
    }
    return 1;
}

/* Columns by fours, without a transposition: one instruction picks, out of a window of the row, the four bytes that each of
 * 16 output bytes is made of; weights in three signed digits as above. 0: a window or weights that do not fit; the blocks
 * below then begin anew. */
#define MOST_QUADS 4
#define VBMI_FMA __attribute__((target("avx2,fma,avx512f,avx512bw,avx512vl,avx512vnni,avx512vbmi")))

typedef struct {
    __m512i place[MOST_QUADS], digit[3][MOST_QUADS];
    __mmask64 window[2]; /* bytes of the row that may be read */
    __mmask16 lanes;
    Py_ssize_t base;
    int quads, wide;
} Group;

/* The 16 output bytes from `at` on. */
static VBMI_FMA int make_group(Group *group, Py_ssize_t at, Py_ssize_t outputs, Py_ssize_t length, int channels,
                               const Pairs *p) {
    Py_ssize_t begin[16], taps[16], base = length, most = 0, n = outputs - at < 16 ? outputs - at : 16, j, k, left;
    int16_t const *high[16], *low[16];
    uint8_t place[MOST_QUADS][64] = {{0}};
    int8_t digit[3][MOST_QUADS][64] = {{{0}}};
    int t, far = 0;
    for (j = 0; j < n; j++) {
        Py_ssize_t o = (at + j) / channels, first = 2 * (Py_ssize_t)p->first[o];
        high[j] = (const int16_t *)(p->high + o * p->width);
        low[j] = (const int16_t *)(p->low + o * p->width);
        taps[j] = 2 * (Py_ssize_t)p->pairs[o];
        while (taps[j] && !high[j][taps[j] - 1] && !low[j][taps[j] - 1]) taps[j]--;
        while (taps[j] && !*high[j] && !*low[j]) high[j]++, low[j]++, first++, taps[j]--;
        begin[j] = first * channels + (at + j) % channels;
        if (taps[j] && begin[j] < base) base = begin[j];
        if (taps[j] > most) most = taps[j];
    }
    group->base = base;
    group->quads = (int)((most + 3) / 4);
    if (group->quads > MOST_QUADS) return 0;
    for (j = 0; j < n; j++)
        for (k = 0; k < taps[j]; k++) {
            Py_ssize_t from = begin[j] + k * channels - base, q = k / 4, lane = 4 * j + k % 4;
            int32_t w = (int32_t)high[j][k] * (1 << LOW) + low[j][k], d0 = (int8_t)w, rest = (w - d0) >> 8;
            int32_t d1 = (int8_t)rest, d2 = (rest - d1) >> 8;
            if (from > 127 || d2 < -128 || d2 > 127) return 0;
            far |= from > 63;
            place[q][lane] = (uint8_t)from;
            digit[0][q][lane] = (int8_t)d0;
            digit[1][q][lane] = (int8_t)d1;
            digit[2][q][lane] = (int8_t)d2;
        }
    for (k = 0; k < MOST_QUADS; k++) {
        group->place[k] = _mm512_loadu_si512(place[k]);
        for (t = 0; t < 3; t++) group->digit[t][k] = _mm512_loadu_si512(digit[t][k]);
    }
    for (t = 0; t < 2; t++) {
        left = length - base - 64 * t;
        group->window[t] = left >= 64 ? ~(__mmask64)0 : left > 0 ? ((__mmask64)1 << left) - 1 : 0;
    }
    group->lanes = (__mmask16)(n == 16 ? 0xFFFF : (1 << n) - 1);
    group->wide = far;
    return 1;
}

INLINE VBMI_FMA void run_group(uint8_t *out, const uint8_t *in, Py_ssize_t stride, Py_ssize_t out_stride, Py_ssize_t rows,
                               const Group *group, const int quads, const int wide) {
    __m512i place[MOST_QUADS], digit[3][MOST_QUADS];
    const __m512i half = _mm512_set1_epi32(1 << (BITS - 1)), zero = _mm512_setzero_si512();
    Py_ssize_t y;
    int k, t;
    for (k = 0; k < quads; k++) {
        place[k] = group->place[k];
        for (t = 0; t < 3; t++) digit[t][k] = group->digit[t][k];
    }
    for (y = 0; y < rows; y++, in += stride, out += out_stride) {
        __m512i x = _mm512_maskz_loadu_epi8(group->window[0], in), far = zero, sum[3] = {half, zero, zero};
        if (wide) far = _mm512_maskz_loadu_epi8(group->window[1], in + 64);
        for (k = 0; k < quads; k++) {
            __m512i four = wide ? _mm512_permutex2var_epi8(x, place[k], far) : _mm512_permutexvar_epi8(place[k], x);
            for (t = 0; t < 3; t++) sum[t] = _mm512_dpbusd_epi32(sum[t], four, digit[t][k]);
        }
        sum[0] = _mm512_add_epi32(_mm512_add_epi32(_mm512_slli_epi32(sum[2], 16), _mm512_slli_epi32(sum[1], 8)), sum[0]);
        sum[0] = _mm512_max_epi32(_mm512_srai_epi32(sum[0], BITS), zero);
        _mm_mask_storeu_epi8(out, group->lanes, _mm512_cvtusepi32_epi8(sum[0]));
    }
}

static VBMI_FMA int horizontal_vbmi(uint8_t *out, const uint8_t *in, Py_ssize_t stride, Py_ssize_t from, Py_ssize_t to,
                                    Py_ssize_t width, Py_ssize_t out_width, int channels, const Pairs *p) {
    Py_ssize_t length = width * channels, outputs = out_width * channels, at;
    Group group;
    for (at = 0; at < outputs; at += 16) {
        const uint8_t *source;
        if (!make_group(&group, at, outputs, length, channels, p)) return 0;
        source = in + from * stride + group.base;
#define GROUP(quads, wide) run_group(out + at, source, stride, outputs, to - from, &group, quads, wide)
        switch (2 * group.quads + group.wide) {
        case 2: GROUP(1, 0); break;
        case 3: GROUP(1, 1); break;
        case 4: GROUP(2, 0); break;
        case 5: GROUP(2, 1); break;
        case 6: GROUP(3, 0); break;
        case 7: GROUP(3, 1); break;
        case 8: GROUP(4, 0); break;
        default: GROUP(4, 1);
        }
    }
    return 1;
}

/* One block of 16 rows; a constant number of channels lets the compiler unroll. Pairs are made just before
 * the first output that needs them, so that they are still in the first cache. */
typedef void (*Block)(uint8_t *, const uint8_t *, Py_ssize_t, uint8_t *, uint8_t *, Py_ssize_t, Py_ssize_t, int,
                      const Pairs *);
#define BLOCK(name, target, mix, count)                                                                           \
    static target void name(uint8_t *out, const uint8_t *in, Py_ssize_t stride, uint8_t *columns, uint8_t *paired, \
                            Py_ssize_t width, Py_ssize_t out_width, int any, const Pairs *p) {                    \
        const int channels = count ? count : any;                                                                 \
        Py_ssize_t o, made = (Py_ssize_t)p->first[0] * 2 * channels, step = channels * 4 * LANES, c;              \
        for (o = 0; o < out_width; o++) {                                                                         \
            const int32_t *high = p->high + o * p->width, *low = p->low + o * p->width;                           \
            const uint8_t *at = paired + p->first[o] * step;                                                      \
            while (made < ((Py_ssize_t)p->first[o] + p->pairs[o]) * 2 * channels)                                 \
                made = to_pairs(paired, in, made, stride, width * channels, channels);                            \
            for (c = 0; c < channels; c++)                                                                        \
                mix(columns + (o * channels + c) * LANES, at + c * 4 * LANES, step, p->pairs[o], high, low);      \
        }                                                                                                         \
        from_columns(out, columns, out_width * channels, out_width * channels);                                   \
    }
BLOCK(avx2_1, AVX2, mix_avx2, 1)
BLOCK(avx2_3, AVX2, mix_avx2, 3)
BLOCK(avx2_4, AVX2, mix_avx2, 4)
BLOCK(avx2_any, AVX2, mix_avx2, 0)
BLOCK(avx512_1, AVX512_FMA, mix_avx512, 1)
BLOCK(avx512_3, AVX512_FMA, mix_avx512, 3)
BLOCK(avx512_4, AVX512_FMA, mix_avx512, 4)
BLOCK(avx512_any, AVX512_FMA, mix_avx512, 0)

static Block block_of(int channels, int simd) {
    static const Block blocks[2][4] = {{avx2_1, avx2_3, avx2_4, avx2_any}, {avx512_1, avx512_3, avx512_4, avx512_any}};
    return blocks[simd - 1][channels == 1 ? 0 : channels == 3 ? 1 : channels == 4 ? 2 : 3];
}
#endif

static void columns_scalar(uint8_t *out, const uint8_t *in, Py_ssize_t width, Py_ssize_t out_width,
                           int channels, const Pairs *p) {
    Py_ssize_t o, c;
    int32_t k;
    for (o = 0; o < out_width; o++) {
        const int16_t *h = (const int16_t *)(p->high + o * p->width), *l = (const int16_t *)(p->low + o * p->width);
        for (c = 0; c < channels; c++) {
            uint32_t sum_high = 0, sum_low = 0;
            for (k = 0; k < 2 * p->pairs[o]; k++) {
                Py_ssize_t x = 2 * (Py_ssize_t)p->first[o] + k;
                int32_t value = x < width ? in[x * channels + c] : 0;
                sum_high += (uint32_t)(value * h[k]);
                sum_low += (uint32_t)(value * l[k]);
            }
            out[o * channels + c] = round_level(sum_high, sum_low);
        }
    }
}

/* Rows [from, to) of one plane, each `width` pixels of `channels` bytes, to `out_width` pixels. */
static int horizontal(uint8_t *out, const uint8_t *in, Py_ssize_t stride, Py_ssize_t from, Py_ssize_t to,
                      Py_ssize_t width, Py_ssize_t out_width, int channels, const Pairs *p, int simd) {
    Py_ssize_t out_length = out_width * channels, y = from;
#if X86
    Py_ssize_t length = width * channels;
    if (simd == 2 && __builtin_cpu_supports("avx512vbmi") &&
        horizontal_vbmi(out, in, stride, from, to, width, out_width, channels, p))
        return 1;
    if (simd && to - from >= LANES) {
        uint8_t *columns = malloc((size_t)out_length * LANES), *paired = malloc((size_t)(length + channels) * 2 * LANES);
        if (!columns || !paired) {
            free(columns);
            free(paired);
            return 0;
        }
        while (y < to) {
            if (y + LANES > to) y = to - LANES; /* the last block repeats a few rows */
            block_of(channels, simd)(out + (y - from) * out_length, in + y * stride, stride, columns, paired, width,
                                     out_width, channels, p);
            y += LANES;
        }
        free(columns);
        free(paired);
        return 1;
    }
#else
    (void)simd;
#endif
    for (; y < to; y++)
        columns_scalar(out + (y - from) * out_length, in + y * stride, width, out_width, channels, p);
    return 1;
}

/* `in` begins at row `from`, which is even, and ends before row `to`. */
static void vertical(uint8_t *out, const uint8_t *in, Py_ssize_t stride, Py_ssize_t from, Py_ssize_t to,
                     Py_ssize_t out_height, Py_ssize_t length, const Pairs *p, int simd) {
    Py_ssize_t o, rows = to - from;
    for (o = 0; o < out_height; o++) {
        int32_t first = (int32_t)(p->first[o] - from / 2);
        const int32_t *high = p->high + o * p->width, *low = p->low + o * p->width;
#if X86
        if (simd == 2 && fours_avx512(out + o * length, in, stride, rows, length, first, p->pairs[o], high, low)) continue;
        if (simd) {
            (simd == 1 ? rows_avx2 : rows_avx512)(out + o * length, in, stride, rows, length, first, p->pairs[o],
                                                 high, low);
            continue;
        }
#else
        (void)simd;
#endif
        rows_scalar(out + o * length, in, stride, rows, 0, length, first, p->pairs[o], high, low);
    }
}

/* `plane` bytes from one plane of `in` to the next, `stride` from one row to the next. */
static int resample_u8(uint8_t *out, const uint8_t *in, Py_ssize_t plane, Py_ssize_t stride, Py_ssize_t planes,
                       Py_ssize_t height, Py_ssize_t width, int channels, const Table *ty, const Table *tx, int rows_first, int simd) {
    Py_ssize_t out_height = ty->weight ? ty->out : height, out_width = tx->weight ? tx->out : width;
    Py_ssize_t length = width * channels, out_length = out_width * channels, i, from = 0, to = height;
    Pairs py = {0}, px = {0};
    uint8_t *middle = NULL;
    int done = (!ty->weight || make_pairs(&py, ty)) && (!tx->weight || make_pairs(&px, tx));
    if (done && ty->weight && tx->weight && rows_first) {
        middle = malloc((size_t)out_height * length + 1);
        done = middle != NULL;
    } else if (done && ty->weight) { /* only the rows that the vertical pass reads */
        from = (Py_ssize_t)py.first[0] * 2;
        to = 0;
        for (i = 0; i < out_height; i++) {
            Py_ssize_t first = (Py_ssize_t)py.first[i] * 2, end = first + 2 * (Py_ssize_t)py.pairs[i];
            if (first < from) from = first;
            if (end > to) to = end;
        }
        if (to > height) to = height;
        if (tx->weight) {
            middle = malloc((size_t)(to - from) * out_length + 1);
            done = middle != NULL;
        }
    }
    for (i = 0; done && i < planes; i++, in += plane, out += out_height * out_length) {
        if (!tx->weight)
            vertical(out, in, stride, 0, height, out_height, out_length, &py, simd);
        else if (!ty->weight)
            done = horizontal(out, in, stride, 0, height, width, out_width, channels, &px, simd);
        else if (rows_first) {
            vertical(middle, in, stride, 0, height, out_height, length, &py, simd);
            done = horizontal(out, middle, length, 0, out_height, width, out_width, channels, &px, simd);
        } else if ((done = horizontal(middle, in, stride, from, to, width, out_width, channels, &px, simd)))
            vertical(out, middle, out_length, from, to, out_height, out_length, &py, simd);
    }
    free(middle);
    free_pairs(&py);
    free_pairs(&px);
    return done;
}

