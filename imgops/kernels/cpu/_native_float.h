/* float32 and float64: sums of whole rows, in the order of passes that costs less. Included by _native.c alone. */

/* From this many taps on sums are kept in double precision: thousands of products would lose bits of a float. */
#define MANY_TAPS 256

#define FLOATS(real)                                                                                                                  \
    INLINE void vertical_##real(real *out, const real *in, Py_ssize_t length, const Table *t, Py_ssize_t first) {                     \
        Py_ssize_t o, x;                                                                                                              \
        int32_t k;                                                                                                                    \
        for (o = 0; o < t->out; o++, out += length) {                                                                                 \
            const real *row = in + ((Py_ssize_t)t->start[o] - first) * length;                                                        \
            const double *w = t->weight + o * t->taps;                                                                                \
            for (x = 0; x < length; x += 1024) { /* a strip stays in the first cache while taps go by */                              \
                Py_ssize_t end = x + 1024 < length ? x + 1024 : length, i;                                                            \
                if (t->length[o] >= MANY_TAPS) {                                                                                      \
                    double sum[1024];                                                                                                 \
                    for (i = x; i < end; i++) sum[i - x] = 0;                                                                         \
                    for (k = 0; k < t->length[o]; k++) {                                                                              \
                        const real *from = row + k * length;                                                                          \
                        double weight = w[k];                                                                                         \
                        for (i = x; i < end; i++) sum[i - x] += weight * (double)from[i];                                             \
                    }                                                                                                                 \
                    for (i = x; i < end; i++) out[i] = (real)sum[i - x];                                                              \
                    continue;                                                                                                         \
                }                                                                                                                     \
                for (i = x; i < end; i++) out[i] = 0;                                                                                 \
                for (k = 0; k < t->length[o]; k++) {                                                                                  \
                    const real *from = row + k * length;                                                                              \
                    real weight = (real)w[k];                                                                                         \
                    for (i = x; i < end; i++) out[i] += weight * from[i];                                                             \
                }                                                                                                                     \
            }                                                                                                                         \
        }                                                                                                                             \
    }                                                                                                                                 \
    INLINE real long_sum_##real(const real *from, Py_ssize_t channels, const double *w, int32_t count) {                              \
        double sum = 0;                                                                                                               \
        int32_t k;                                                                                                                    \
        for (k = 0; k < count; k++, from += channels) sum += w[k] * (double)*from;                                                    \
        return (real)sum;                                                                                                             \
    }                                                                                                                                 \
/* Four rows at a time: four sums that do not wait for each other, and one loop count for all. */                                     \
    INLINE void horizontal_##real(real *out, const real *in, Py_ssize_t rows, Py_ssize_t width,                                       \
                                  Py_ssize_t channels, const Table *t, const real *weight) {                                          \
        Py_ssize_t length = width * channels, out_length = t->out * channels, y = 0, o, c;                                            \
        int32_t k;                                                                                                                    \
        for (; y + 4 <= rows; y += 4, in += 4 * length, out += 4 * out_length)                                                        \
            for (o = 0; o < t->out; o++) {                                                                                            \
                const real *w = weight + o * t->taps;                                                                                 \
                for (c = 0; c < channels; c++) {                                                                                      \
                    const real *from = in + (Py_ssize_t)t->start[o] * channels + c;                                                   \
                    real *to = out + o * channels + c, s0 = 0, s1 = 0, s2 = 0, s3 = 0;                                                \
                    if (t->length[o] >= MANY_TAPS) {                                                                                  \
                        for (k = 0; k < 4; k++)                                                                                       \
                            to[k * out_length] = long_sum_##real(from + k * length, channels, t->weight + o * t->taps, t->length[o]); \
                        continue;                                                                                                     \
                    }                                                                                                                 \
                    for (k = 0; k < t->length[o]; k++, from += channels) {                                                            \
                        s0 += w[k] * from[0];                                                                                         \
                        s1 += w[k] * from[length];                                                                                    \
                        s2 += w[k] * from[2 * length];                                                                                \
                        s3 += w[k] * from[3 * length];                                                                                \
                    }                                                                                                                 \
                    to[0] = s0;                                                                                                       \
                    to[out_length] = s1;                                                                                              \
                    to[2 * out_length] = s2;                                                                                          \
                    to[3 * out_length] = s3;                                                                                          \
                }                                                                                                                     \
            }                                                                                                                         \
        for (; y < rows; y++, in += length, out += out_length)                                                                        \
            for (o = 0; o < t->out; o++)                                                                                              \
                for (c = 0; c < channels; c++) {                                                                                      \
                    const real *from = in + (Py_ssize_t)t->start[o] * channels + c;                                                   \
                    real sum = 0;                                                                                                     \
                    if (t->length[o] >= MANY_TAPS) {                                                                                  \
                        out[o * channels + c] = long_sum_##real(from, channels, t->weight + o * t->taps, t->length[o]);               \
                        continue;                                                                                                     \
                    }                                                                                                                 \
                    for (k = 0; k < t->length[o]; k++) sum += weight[o * t->taps + k] * from[k * channels];                           \
                    out[o * channels + c] = sum;                                                                                      \
                }                                                                                                                     \
    }                                                                                                                                 \
    INLINE int both_##real(real *out, const real *in, Py_ssize_t planes, Py_ssize_t height, Py_ssize_t width,                         \
                           Py_ssize_t channels, const Table *ty, const Table *tx) {                                                   \
        Py_ssize_t out_height = ty->weight ? ty->out : height, out_width = tx->weight ? tx->out : width, i;                           \
        Py_ssize_t length = width * channels, out_length = out_width * channels;                                                      \
        /* Whichever axis shrinks more goes first: the other then has less to do. */                                                  \
        int rows_first = (ty->weight ? ty->whole : height) * width <= height * out_width;                                             \
        real *middle = NULL, *weight = NULL;                                                                                          \
        Py_ssize_t from = 0, to = height;                                                                                             \
        int done = 1;                                                                                                                 \
        if (tx->weight) {                                                                                                             \
            weight = malloc((size_t)tx->out * tx->taps * sizeof(real));                                                               \
            done = weight != NULL;                                                                                                    \
            for (i = 0; done && i < tx->out * tx->taps; i++) weight[i] = (real)tx->weight[i];                                         \
        }                                                                                                                             \
        if (tx->weight && ty->weight && !rows_first) { /* only the rows that the vertical pass reads */                               \
            for (from = height, to = i = 0; i < out_height; i++) {                                                                    \
                if (ty->start[i] < from) from = ty->start[i];                                                                         \
                if (ty->start[i] + ty->length[i] > to) to = ty->start[i] + ty->length[i];                                             \
            }                                                                                                                         \
            if (to < from) from = to;                                                                                                 \
        }                                                                                                                             \
        if (tx->weight && ty->weight) {                                                                                               \
            middle = malloc((size_t)((rows_first ? out_height * length : (to - from) * out_length) + 1) * sizeof(real));              \
            done = done && middle != NULL;                                                                                            \
        }                                                                                                                             \
        for (i = 0; done && i < planes; i++, in += height * length, out += out_height * out_length) {                                 \
            if (!tx->weight)                                                                                                          \
                vertical_##real(out, in, length, ty, 0);                                                                              \
            else if (!ty->weight)                                                                                                     \
                horizontal_##real(out, in, height, width, channels, tx, weight);                                                      \
            else if (rows_first) {                                                                                                    \
                vertical_##real(middle, in, length, ty, 0);                                                                           \
                horizontal_##real(out, middle, out_height, width, channels, tx, weight);                                              \
            } else {                                                                                                                  \
                horizontal_##real(middle, in + from * length, to - from, width, channels, tx, weight);                                \
                vertical_##real(out, middle, out_length, ty, from);                                                                   \
            }                                                                                                                         \
        }                                                                                                                             \
        free(middle);                                                                                                                 \
        free(weight);                                                                                                                 \
        return done;                                                                                                                  \
    }

FLOATS(float)
FLOATS(double)

#define ARGS(real)                                                                                               \
    (real *out, const real *in, Py_ssize_t planes, Py_ssize_t height, Py_ssize_t width, Py_ssize_t channels,      \
     const Table *ty, const Table *tx)
#define CALL (out, in, planes, height, width, channels, ty, tx)
#if X86
static AVX2 int avx2_float ARGS(float) { return both_float CALL; }
static AVX2 int avx2_double ARGS(double) { return both_double CALL; }
#endif
static int portable_float ARGS(float) { return both_float CALL; }
static int portable_double ARGS(double) { return both_double CALL; }
