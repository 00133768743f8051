/* Separable resampling by banded tables, PIL's antialiased resize and the adjoint of every resize; and colour
 * (_native_color.h, _native_levels.h); Gaussians (_native_blur.h); PIL's tables (_native_tables.h).
 *
 * PIL's own arithmetic on uint8 (22-bit integer weights; a horizontal and a vertical pass, in the order that
 * the caller names; each rounded to 8 bits), arranged for vector units: both passes are sums of whole rows,
 * the horizontal one over transposed blocks of 16 rows. Results are PIL's to the bit. On float the order of
 * the passes is free.
 *
 * The module is optional: without it imgops calls PIL itself and gets the same pixels, later.
 * It reads no Python object but its arguments (addresses that the caller keeps alive) and holds no state.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__) && defined(__x86_64__)
#include <immintrin.h>
#define X86 1
#define AVX2 __attribute__((target("avx2,fma")))
#define VNNI __attribute__((target("avx2,fma,avx512f,avx512bw,avx512vl,avx512vnni")))
#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))
#else
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni,prefer-vector-width=512")))
#endif
#else
#define X86 0
#if defined(_MSC_VER)
#define INLINE static __forceinline
#else
#define INLINE static inline
#endif
#endif

typedef struct {
    const int32_t *start, *length;
    const double *weight;
    Py_ssize_t out, taps;
} Table;

#include "_native_tables.h"
#include "_native_uint8.h"
#include "_native_color.h"
#include "_native_levels.h"
#include "_native_blur.h"

/* ---- float32 and float64 ----------------------------------------------------------------------- */

#define FLOATS(real)                                                                                             \
    INLINE void vertical_##real(real *out, const real *in, Py_ssize_t length, const Table *t) {                   \
        Py_ssize_t o, x;                                                                                         \
        int32_t k;                                                                                               \
        for (o = 0; o < t->out; o++, out += length) {                                                            \
            const real *row = in + (Py_ssize_t)t->start[o] * length;                                             \
            const double *w = t->weight + o * t->taps;                                                           \
            for (x = 0; x < length; x += 1024) { /* a strip stays in the first cache while taps go by */         \
                Py_ssize_t end = x + 1024 < length ? x + 1024 : length, i;                                       \
                for (i = x; i < end; i++) out[i] = 0;                                                            \
                for (k = 0; k < t->length[o]; k++) {                                                              \
                    const real *from = row + k * length;                                                         \
                    real weight = (real)w[k];                                                                    \
                    for (i = x; i < end; i++) out[i] += weight * from[i];                                        \
                }                                                                                                \
            }                                                                                                    \
        }                                                                                                        \
    }                                                                                                            \
/* Four rows at a time: four sums that do not wait for each other, and one loop count for all. */                \
    INLINE void horizontal_##real(real *out, const real *in, Py_ssize_t rows, Py_ssize_t width,                      \
                                  Py_ssize_t channels, const Table *t, const real *weight) {                         \
        Py_ssize_t length = width * channels, out_length = t->out * channels, y = 0, o, c;                           \
        int32_t k;                                                                                                   \
        for (; y + 4 <= rows; y += 4, in += 4 * length, out += 4 * out_length)                                       \
            for (o = 0; o < t->out; o++) {                                                                           \
                const real *w = weight + o * t->taps;                                                                \
                for (c = 0; c < channels; c++) {                                                                     \
                    const real *from = in + (Py_ssize_t)t->start[o] * channels + c;                                  \
                    real *to = out + o * channels + c, s0 = 0, s1 = 0, s2 = 0, s3 = 0;                               \
                    for (k = 0; k < t->length[o]; k++, from += channels) {                                           \
                        s0 += w[k] * from[0];                                                                        \
                        s1 += w[k] * from[length];                                                                   \
                        s2 += w[k] * from[2 * length];                                                               \
                        s3 += w[k] * from[3 * length];                                                               \
                    }                                                                                                \
                    to[0] = s0;                                                                                      \
                    to[out_length] = s1;                                                                             \
                    to[2 * out_length] = s2;                                                                         \
                    to[3 * out_length] = s3;                                                                         \
                }                                                                                                    \
            }                                                                                                        \
        for (; y < rows; y++, in += length, out += out_length)                                                       \
            for (o = 0; o < t->out; o++)                                                                             \
                for (c = 0; c < channels; c++) {                                                                     \
                    const real *from = in + (Py_ssize_t)t->start[o] * channels + c;                                  \
                    real sum = 0;                                                                                    \
                    for (k = 0; k < t->length[o]; k++) sum += weight[o * t->taps + k] * from[k * channels];          \
                    out[o * channels + c] = sum;                                                                     \
                }                                                                                                    \
    }                                                                                                                \
    INLINE int both_##real(real *out, const real *in, Py_ssize_t planes, Py_ssize_t height, Py_ssize_t width,     \
                           Py_ssize_t channels, const Table *ty, const Table *tx) {                              \
        Py_ssize_t out_height = ty->weight ? ty->out : height, out_width = tx->weight ? tx->out : width, i;      \
        Py_ssize_t length = width * channels, out_length = out_width * channels;                                 \
        /* Whichever axis shrinks more goes first: the other then has less to do. */                             \
        int rows_first = out_height * width <= height * out_width;                                               \
        real *middle = NULL, *weight = NULL;                                                                     \
        int done = 1;                                                                                            \
        if (tx->weight) {                                                                                        \
            weight = malloc((size_t)tx->out * tx->taps * sizeof(real));                                          \
            done = weight != NULL;                                                                               \
            for (i = 0; done && i < tx->out * tx->taps; i++) weight[i] = (real)tx->weight[i];                    \
        }                                                                                                        \
        if (tx->weight && ty->weight) {                                                                          \
            middle = malloc((size_t)(rows_first ? out_height * length : height * out_length) * sizeof(real));    \
            done = done && middle != NULL;                                                                       \
        }                                                                                                        \
        for (i = 0; done && i < planes; i++, in += height * length, out += out_height * out_length) {            \
            if (!tx->weight)                                                                                     \
                vertical_##real(out, in, length, ty);                                                            \
            else if (!ty->weight)                                                                                \
                horizontal_##real(out, in, height, width, channels, tx, weight);                                 \
            else if (rows_first) {                                                                               \
                vertical_##real(middle, in, length, ty);                                                         \
                horizontal_##real(out, middle, out_height, width, channels, tx, weight);                         \
            } else {                                                                                             \
                horizontal_##real(middle, in, height, width, channels, tx, weight);                              \
                vertical_##real(out, middle, out_length, ty);                                                    \
            }                                                                                                    \
        }                                                                                                        \
        free(middle);                                                                                            \
        free(weight);                                                                                            \
        return done;                                                                                             \
    }

FLOATS(float)
FLOATS(double)

#define ARGS(real)                                                                                               \
    (real *out, const real *in, Py_ssize_t planes, Py_ssize_t height, Py_ssize_t width, Py_ssize_t channels,      \
     const Table *ty, const Table *tx)
#define CALL (out, in, planes, height, width, channels, ty, tx)
#if X86
static AVX2 int wide_float ARGS(float) { return both_float CALL; }
static AVX2 int wide_double ARGS(double) { return both_double CALL; }
#endif
static int plain_float ARGS(float) { return both_float CALL; }
static int plain_double ARGS(double) { return both_double CALL; }

/* ---- Python ------------------------------------------------------------------------------------ */

/* The vector instructions of this machine: 0 none that are used here, 1 AVX2, 2 AVX-512 with VNNI. */
static int machine_level(void) {
#if X86
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 0;
    return 1 + (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni"));
#else
    return 0;
#endif
}

static PyObject *resample(PyObject *self, PyObject *args) {
    const char *kind;
    unsigned long long out, in, sy, cy, wy, sx, cx, wx;
    Py_ssize_t planes, height, width, channels;
    Table ty, tx;
    int done = 0, rows_first, level;
    (void)self;
    if (!PyArg_ParseTuple(args, "sKKnnnn(KKKnn)(KKKnn)pi", &kind, &out, &in, &planes, &height, &width, &channels, &sy,
                          &cy, &wy, &ty.out, &ty.taps, &sx, &cx, &wx, &tx.out, &tx.taps, &rows_first,
                          &level))
        return NULL;
    ty.start = (const int32_t *)(uintptr_t)sy;
    ty.length = (const int32_t *)(uintptr_t)cy;
    ty.weight = (const double *)(uintptr_t)wy;
    tx.start = (const int32_t *)(uintptr_t)sx;
    tx.length = (const int32_t *)(uintptr_t)cx;
    tx.weight = (const double *)(uintptr_t)wx;
    if (level > machine_level()) level = machine_level();
    Py_BEGIN_ALLOW_THREADS
    if (!ty.weight && !tx.weight)
        done = 0;
    else if (*kind == 'B')
        done = resample_u8((uint8_t *)(uintptr_t)out, (const uint8_t *)(uintptr_t)in, planes, height, width, (int)channels,
                           &ty, &tx, rows_first, level);
#if X86
    else if (level && *kind == 'f')
        done = wide_float((float *)(uintptr_t)out, (const float *)(uintptr_t)in, planes, height, width, channels, &ty, &tx);
    else if (level && *kind == 'd')
        done = wide_double((double *)(uintptr_t)out, (const double *)(uintptr_t)in, planes, height, width, channels, &ty, &tx);
#endif
    else if (*kind == 'f')
        done = plain_float((float *)(uintptr_t)out, (const float *)(uintptr_t)in, planes, height, width, channels, &ty, &tx);
    else if (*kind == 'd')
        done = plain_double((double *)(uintptr_t)out, (const double *)(uintptr_t)in, planes, height, width, channels, &ty, &tx);
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(done);
}

static PyObject *table(PyObject *self, PyObject *args) {
    const char *name;
    unsigned long long start, length, weight;
    Py_ssize_t size, out, taps;
    double low, extent;
    size_t i;
    (void)self;
    if (!PyArg_ParseTuple(args, "snddKKKnn", &name, &size, &low, &extent, &start, &length, &weight, &out, &taps))
        return NULL;
    for (i = 0; i < sizeof filters / sizeof *filters; i++)
        if (!strcmp(filters[i].name, name)) {
            pil_table(filters[i].weight, filters[i].support, size, low, extent, out, taps, (int32_t *)(uintptr_t)start,
                      (int32_t *)(uintptr_t)length, (double *)(uintptr_t)weight);
            Py_RETURN_NONE;
        }
    PyErr_Format(PyExc_ValueError, "no such filter: %s", name);
    return NULL;
}

static PyObject *color(PyObject *self, PyObject *args) {
    const char *kind, *name;
    unsigned long long out, in, other;
    Color job;
    size_t i;
    int level;
    (void)self;
    if (!PyArg_ParseTuple(args, "ssKKKnnnffi", &name, &kind, &out, &in, &other, &job.pixels, &job.pixel_step,
                          &job.channel_step, &job.amount, &job.constant, &level))
        return NULL;
    job.out = (void *)(uintptr_t)out;
    job.in = (const void *)(uintptr_t)in;
    job.other = (const void *)(uintptr_t)other;
    if (level > machine_level()) level = machine_level();
    for (i = 0; i < sizeof colors / sizeof *colors; i++)
        if (!strcmp(colors[i].name, name)) {
            void (*pass)(const Color *) = (*kind == 'B' ? colors[i].u8 : colors[i].f32)[level];
            if (!pass) break;
            Py_BEGIN_ALLOW_THREADS
            pass(&job);
            Py_END_ALLOW_THREADS
            Py_RETURN_NONE;
        }
    PyErr_Format(PyExc_ValueError, "no such kernel: %s", name);
    return NULL;
}

static PyObject *sequence(PyObject *self, PyObject *args) {
    const char *kind;
    unsigned long long out, in, kinds, amounts;
    Py_ssize_t pixels, pixel_step, channel_step;
    int count, level;
    (void)self;
    if (!PyArg_ParseTuple(args, "sKKnnnKKii", &kind, &out, &in, &pixels, &pixel_step, &channel_step, &kinds, &amounts,
                          &count, &level))
        return NULL;
    if (level > machine_level()) level = machine_level();
#define RUN(call, type)                                                                                              \
    call((type *)(uintptr_t)out, (const type *)(uintptr_t)in, pixels, pixel_step, channel_step,                       \
         (const int32_t *)(uintptr_t)kinds, (const float *)(uintptr_t)amounts, count)
    Py_BEGIN_ALLOW_THREADS
    if (*kind == 'B')
        RUN(sequences_u8[level], uint8_t);
    else
        RUN(sequences_f32[level], float);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *blur(PyObject *self, PyObject *args) {
    unsigned long long out, in, wx, wy;
    Py_ssize_t planes, height, width, channels, rx, ry;
    int done, level;
    (void)self;
    if (!PyArg_ParseTuple(args, "KKnnnnKnKni", &out, &in, &planes, &height, &width, &channels, &wx, &rx, &wy, &ry,
                          &level))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
#if X86
    done = (level && machine_level() ? wide_blur : plain_blur)(
#else
    done = plain_blur(
#endif
        (uint8_t *)(uintptr_t)out, (const uint8_t *)(uintptr_t)in, planes, height, width, channels,
        (const uint16_t *)(uintptr_t)wx, rx, (const uint16_t *)(uintptr_t)wy, ry);
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(done);
}

static PyMethodDef methods[] = {
    {"resample", resample, METH_VARARGS,
     "resample(kind, out, in, planes, height, width, channels, rows, columns, rows_first, level)"
     " -> bool\n\nApply a banded table to each axis; False when it was not done and nothing useful was written.\n"
     "level: the vector instructions to use at most; 0 none, 1 AVX2, 2 AVX-512 with VNNI."},
    {"table", table, METH_VARARGS,
     "table(filter, size, low, extent, start, length, weight, out, taps)\n\nPIL's weights; see Table in _tables.py."},
    {"color", color, METH_VARARGS,
     "color(name, kind, out, in, other, pixels, pixel_step, channel_step, amount, constant, level)\n\n"
     "One pass over an image, whose steps are counted in values; in and out may be the same memory."},
    {"sequence", sequence, METH_VARARGS,
     "sequence(kind, out, in, pixels, pixel_step, channel_step, kinds, amounts, count, level)\n\n"
     "Brightness (0), contrast (1), saturation (2) and hue (3) in a given order; at least one."},
    {"blur", blur, METH_VARARGS,
     "blur(out, in, planes, height, width, channels, across, reach, down, reach, level) -> bool\n\n"
     "A symmetric separable filter of uint8 by weights of 8 fraction bits; False without memory for its buffers."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_native", "Separable resampling by banded tables, colour, and Gaussians.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void) { return PyModule_Create(&module); }
