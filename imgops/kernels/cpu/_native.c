/* PIL's arithmetic with vector instructions: resampling by banded tables (_native_uint8.h, _native_float.h,
 * _native_tables.h), color (_native_color.h) and levels (_native_levels.h); OpenCV's Gaussian on
 * uint8 (_native_blur.h).
 *
 * The module is optional: without it imgops calls PIL itself and gets the same pixels, later. Arrays come from Python by
 * the buffer protocol; their types, shapes and strides are checked before a kernel sees an address, so a wrong call
 * raises. It holds no state.
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
#define AVX512_FMA __attribute__((target("avx2,fma,avx512f,avx512bw,avx512vl,avx512vnni")))
#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))
#define AVX512_FMA_WIDE __attribute__((target("fma,avx512f,avx512bw,avx512vl,avx512vnni")))
#else
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni,prefer-vector-width=512")))
#define AVX512_FMA_WIDE __attribute__((target("fma,avx512f,avx512bw,avx512vl,avx512vnni,prefer-vector-width=512")))
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
    Py_ssize_t out, taps, whole; /* a table may be some rows of a whole one */
} Table;

#include "_native_arrays.h"
#include "_native_threads.h"
#include "_native_tables.h"
#include "_native_uint8.h"
#include "_native_float.h"
#include "_native_color.h"
#include "_native_levels.h"
#include "_native_blur.h"
#include "_native_warp.h"
#define REAL float
#include "_native_gradient.h"
#undef REAL
#define REAL double
#include "_native_gradient.h"
#undef REAL

/* The SIMD level of this machine: 0 portable C, 1 AVX2, 2 AVX-512 with VNNI. */
static int machine_simd(void) {
#if X86
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 0;
    return 1 + (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni"));
#else
    return 0;
#endif
}

static int usable_simd(int wanted) {
    int most = machine_simd();
    return wanted < 0 ? 0 : wanted < most ? wanted : most;
}

static PyObject *simd_level(PyObject *self, PyObject *args) {
    (void)self;
    if (!PyArg_ParseTuple(args, "")) return NULL;
    return PyLong_FromLong(machine_simd());
}

/* ---- resampling -------------------------------------------------------------------------------- */

/* None is the identity, which has no weights. */
static int table_of(Arrays *arrays, PyObject *object, const char *name, Table *table, Py_ssize_t size, Py_ssize_t out) {
    PyObject *start, *length, *weight;
    const Py_buffer *s, *l, *w;
    Py_ssize_t o;
    memset(table, 0, sizeof *table);
    if (object == Py_None) return require(size == out, "without a table sizes must be equal");
    if (!PyArg_ParseTuple(object, "OOO", &start, &length, &weight)) return 0;
    if (!(s = array_of(arrays, start, name, "i", 1, CONTIGUOUS)) ||
        !(l = array_of(arrays, length, name, "i", 1, CONTIGUOUS)) ||
        !(w = array_of(arrays, weight, name, "d", 2, CONTIGUOUS)))
        return 0;
    table->start = s->buf;
    table->length = l->buf;
    table->weight = w->buf;
    table->out = table->whole = out;
    table->taps = w->shape[1];
    if (!require(s->shape[0] == out && l->shape[0] == out && w->shape[0] == out && out > 0,
                 "a table must have a row for each output"))
        return 0;
    for (o = 0; o < out; o++) {
        Py_ssize_t from = table->start[o], count = table->length[o];
        if (!require(from >= 0 && count >= 0 && count <= table->taps && from + count <= size,
                     "a table must read inside of the image"))
            return 0;
    }
    return 1;
}

/* out and image for resampling: (planes, height, width, channels) of one type. Rows of bytes may lie apart. */
static int frames_of(Arrays *arrays, PyObject *out_object, PyObject *image_object, const Py_buffer **out,
                     const Py_buffer **image) {
    const Py_buffer *view;
    if (!(*out = array_of(arrays, out_object, "out", "Bfd", 4, CONTIGUOUS | WRITABLE)) ||
        !(*image = view = array_of(arrays, image_object, "image", "Bfd", 4, 0)))
        return 0;
    return require(kind_of(*out) == kind_of(view), "out must have the type of image") &&
           require((*out)->shape[0] == view->shape[0] && (*out)->shape[3] == view->shape[3],
                   "out must have the planes and channels of image") &&
           require(view->shape[1] > 0 && view->shape[2] > 0 && view->shape[3] > 0 && view->shape[3] < 1 << 20,
                   "image must have pixels") &&
           require(is_contiguous(view) ||
                       (kind_of(view) == 'B' && (view->strides[3] == 1 || view->shape[3] == 1) && view->strides[2] == view->shape[3] &&
                        view->strides[1] >= view->shape[2] * view->shape[3] && view->strides[0] >= 0),
                   "image must be contiguous, or of bytes in rows that are");
}

typedef struct {
    const Py_buffer *out, *image;
    const Table *ty, *tx;
    int rows_first, simd, failed;
} Resample;

static void run_resample(void *job, Py_ssize_t start, Py_ssize_t stop) {
    Resample *r = job;
    const Py_ssize_t *s = r->image->shape, planes = stop - start;
    char *out = (char *)r->out->buf + start * r->out->shape[1] * r->out->shape[2] * s[3] * r->out->itemsize;
    const char *image = (const char *)r->image->buf + start * r->image->strides[0];
    char kind = kind_of(r->out);
    int done;
#define RESAMPLE(function, type) function((type *)out, (const type *)image, planes, s[1], s[2], s[3], r->ty, r->tx)
    if (kind == 'B')
        done = resample_u8((uint8_t *)out, (const uint8_t *)image, r->image->strides[0], r->image->strides[1], planes, s[1],
                           s[2], (int)s[3], r->ty, r->tx, r->rows_first, r->simd);
#if X86
    else if (r->simd)
        done = kind == 'f' ? RESAMPLE(avx2_float, float) : RESAMPLE(avx2_double, double);
#endif
    else
        done = kind == 'f' ? RESAMPLE(portable_float, float) : RESAMPLE(portable_double, double);
    if (!done) r->failed = 1;
}

static int resampled(const Py_buffer *out, const Py_buffer *image, const Table *ty, const Table *tx, int rows_first,
                     int threads, int simd) {
    Resample job = {out, image, ty, tx, rows_first, simd, 0};
    in_parallel(threads, image->shape[0], run_resample, &job);
    return !job.failed;
}

static PyObject *resample(PyObject *self, PyObject *args) {
    PyObject *out_object, *image_object, *rows, *columns, *result = NULL;
    const Py_buffer *out, *image;
    Arrays arrays = {0};
    Table ty, tx;
    int done, rows_first, threads, simd;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOpii", &out_object, &image_object, &rows, &columns, &rows_first, &threads, &simd))
        return NULL;
    if (!frames_of(&arrays, out_object, image_object, &out, &image) ||
        !require(rows != Py_None || columns != Py_None, "one table at least must be given") ||
        !table_of(&arrays, rows, "rows", &ty, image->shape[1], out->shape[1]) ||
        !table_of(&arrays, columns, "columns", &tx, image->shape[2], out->shape[2]))
        goto end;
    simd = usable_simd(simd);
    Py_BEGIN_ALLOW_THREADS
    done = resampled(out, image, &ty, &tx, rows_first, threads, simd);
    Py_END_ALLOW_THREADS
    result = PyBool_FromLong(done);
end:
    release(&arrays);
    return result;
}

/* PIL's table of a filter over [low, high) of `size` pixels, which PIL keeps in single precision; 0 without memory. */
static int pil_axis(Table *t, size_t filter, Py_ssize_t size, double low, double high, Py_ssize_t out, int single) {
    double extent = single ? (double)((float)high - (float)low) : high - low, stretch = extent / (double)out;
    double support = filters[filter].support;
    char *memory;
    memset(t, 0, sizeof *t);
    if (size == out && low == 0.0 && high == (double)size) return 1;
    t->out = t->whole = out;
    t->taps = (Py_ssize_t)ceil(support * (stretch < 1.0 ? 1.0 : stretch)) * 2 + 1;
    memory = malloc((size_t)out * ((size_t)t->taps * sizeof(double) + 2 * sizeof(int32_t)));
    if (!memory) return 0;
    t->weight = (double *)memory;
    t->start = (int32_t *)(memory + (size_t)out * (size_t)t->taps * sizeof(double));
    t->length = t->start + out;
    pil_table(filters[filter].weight, support, size, single ? (double)(float)low : low, extent, out, t->taps,
              (int32_t *)t->start, (int32_t *)t->length, (double *)t->weight);
    return 1;
}

static PyObject *pil_resize(PyObject *self, PyObject *args) {
    const char *name;
    PyObject *out_object, *image_object, *result = NULL;
    const Py_buffer *out, *image;
    Arrays arrays = {0};
    Table ty = {0}, tx = {0};
    double left, top, right, bottom;
    size_t filter;
    Py_ssize_t first, height;
    int done = 0, rows_first, single, threads, simd;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOsddddnnppii", &out_object, &image_object, &name, &left, &top, &right, &bottom, &first,
                          &height, &rows_first, &single, &threads, &simd))
        return NULL;
    for (filter = 0; filter < sizeof filters / sizeof *filters && strcmp(filters[filter].name, name); filter++) {
    }
    if (!require(filter < sizeof filters / sizeof *filters, "filter must be one of PIL's") ||
        !frames_of(&arrays, out_object, image_object, &out, &image) ||
        !require(out->shape[1] > 0 && out->shape[2] > 0, "out must have pixels") ||
        !require(0 <= first && first <= height - out->shape[1] && height <= INT32_MAX, "out must be rows of the result") ||
        !require(image->shape[1] <= INT32_MAX && image->shape[2] <= INT32_MAX && 0 <= left && left <= right &&
                     right <= (double)image->shape[2] && 0 <= top && top <= bottom && bottom <= (double)image->shape[1],
                 "the region must lie in the image"))
        goto end;
    simd = usable_simd(simd);
    Py_BEGIN_ALLOW_THREADS
    if (pil_axis(&ty, filter, image->shape[1], top, bottom, height, single) &&
        pil_axis(&tx, filter, image->shape[2], left, right, out->shape[2], single) &&
        (ty.weight || (tx.weight && height == out->shape[1]))) {
        Table band = ty;
        if (ty.weight) {
            band.start += first;
            band.length += first;
            band.weight += first * ty.taps;
            band.out = out->shape[1];
        }
        done = resampled(out, image, &band, &tx, rows_first, threads, simd);
    }
    free((void *)ty.weight);
    free((void *)tx.weight);
    Py_END_ALLOW_THREADS
    result = PyBool_FromLong(done);
end:
    release(&arrays);
    return result;
}

static PyObject *table(PyObject *self, PyObject *args) {
    const char *name;
    PyObject *start_object, *length_object, *weight_object, *result = NULL;
    const Py_buffer *start, *length, *weight;
    Arrays arrays = {0};
    Py_ssize_t size, out;
    double low, extent;
    size_t i;
    (void)self;
    if (!PyArg_ParseTuple(args, "snddOOO", &name, &size, &low, &extent, &start_object, &length_object, &weight_object))
        return NULL;
    if (!(start = array_of(&arrays, start_object, "start", "i", 1, CONTIGUOUS | WRITABLE)) ||
        !(length = array_of(&arrays, length_object, "length", "i", 1, CONTIGUOUS | WRITABLE)) ||
        !(weight = array_of(&arrays, weight_object, "weight", "d", 2, CONTIGUOUS | WRITABLE)))
        goto end;
    out = start->shape[0];
    if (!require(length->shape[0] == out && weight->shape[0] == out, "start, length and weight must have equal rows") ||
        !require(size > 0 && size <= INT32_MAX && fabs(low) <= INT32_MAX && extent >= 0 && extent <= INT32_MAX,
                 "the samples must lie among 32-bit positions"))
        goto end;
    for (i = 0; i < sizeof filters / sizeof *filters; i++)
        if (!strcmp(filters[i].name, name)) {
            pil_table(filters[i].weight, filters[i].support, size, low, extent, out, weight->shape[1], start->buf,
                      length->buf, weight->buf);
            result = Py_NewRef(Py_None);
            goto end;
        }
    PyErr_Format(PyExc_ValueError, "native: filter must be one of PIL's, got '%s'", name);
end:
    release(&arrays);
    return result;
}

/* ---- color and levels -------------------------------------------------------------------------- */

static void (*pass_of(const char *name, char kind, int simd))(const Color *) {
    size_t i;
    for (i = 0; i < sizeof passes / sizeof *passes; i++)
        if (!strcmp(passes[i].name, name)) {
            void (*pass)(const Color *) = (kind == 'B' ? passes[i].u8 : passes[i].f32)[simd];
            if (pass) return pass;
        }
    PyErr_Format(PyExc_ValueError, "native: pass must be one that exists for the type '%c', got '%s'", kind, name);
    return NULL;
}

/* One pass over equal frames, which may be cut into pieces of pixels. Steps (from frame to frame) and sizes (from pixel to
 * pixel) are in bytes. The frames of a group of `group` are `group_step` apart.
 */
typedef struct {
    void (*pass)(const Color *);
    Color first;
    Py_ssize_t frames, group, piece, out_step, in_step, other_step, group_step, out_size, in_size, other_size;
    const float *amounts, *constants;
} Passes;

static Py_ssize_t pieces_of(Py_ssize_t pixels, Py_ssize_t piece) { return piece ? (pixels + piece - 1) / piece : 1; }

/* The pixels of the piece that begins at one. */
static Py_ssize_t pixels_from(Py_ssize_t at, Py_ssize_t pixels, Py_ssize_t piece) {
    return piece && pixels - at > piece ? piece : pixels - at;
}

static void run_passes(void *job, Py_ssize_t start, Py_ssize_t stop) {
    const Passes *p = job;
    Py_ssize_t u, pixels = p->first.pixels, pieces = pieces_of(pixels, p->piece);
    for (u = start; u < stop; u++) {
        Py_ssize_t frame = u / pieces, at = u % pieces * p->piece;
        Color own = p->first;
        own.out = (char *)own.out + frame * p->out_step + at * p->out_size;
        own.in = (const char *)own.in + frame / p->group * p->in_step + frame % p->group * p->group_step + at * p->in_size;
        if (own.other) own.other = (const char *)own.other + frame * p->other_step + at * p->other_size;
        own.pixels = pixels_from(at, pixels, p->piece);
        if (p->amounts) own.amount = p->amounts[frame];
        if (p->constants) own.constant = p->constants[frame];
        p->pass(&own);
    }
}

/* The pixels of a piece, a multiple of `unit`, so that threads find enough of them; 0 if frames are enough. */
static Py_ssize_t piece_for(int threads, Py_ssize_t frames, Py_ssize_t pixels, Py_ssize_t unit) {
    Py_ssize_t pieces, piece;
    if (threads < 2 || frames >= threads * PARTS_PER_THREAD || !frames) return 0;
    pieces = (threads * PARTS_PER_THREAD + frames - 1) / frames;
    piece = (pixels + pieces - 1) / pieces;
    return (piece + unit - 1) / unit * unit;
}

static void run_frames(Passes *p, int threads) {
    in_parallel(threads, p->frames * pieces_of(p->first.pixels, p->piece), run_passes, p);
}

static PyObject *point(PyObject *self, PyObject *args) {
    const char *name;
    PyObject *out_object, *image_object, *other_object, *amounts_object, *constants_object, *result = NULL;
    const Py_buffer *out, *image, *other = NULL, *amounts, *constants;
    Arrays arrays = {0};
    Py_ssize_t parts, step, size;
    void (*pass)(const Color *);
    int threads, simd;
    (void)self;
    if (!PyArg_ParseTuple(args, "sOOOOOii", &name, &out_object, &image_object, &other_object, &amounts_object,
                          &constants_object, &threads, &simd))
        return NULL;
    if (!(out = array_of(&arrays, out_object, "out", "Bf", ANY_DIMENSIONS, CONTIGUOUS | WRITABLE)) ||
        !(image = array_of(&arrays, image_object, "image", "Bf", ANY_DIMENSIONS, CONTIGUOUS)) ||
        !(amounts = array_of(&arrays, amounts_object, "amounts", "f", 1, CONTIGUOUS)) ||
        !(constants = array_of(&arrays, constants_object, "constants", "f", 1, CONTIGUOUS)))
        goto end;
    if (other_object != Py_None &&
        !(other = array_of(&arrays, other_object, "other", "Bf", ANY_DIMENSIONS, CONTIGUOUS)))
        goto end;
    if (!require(strcmp(name, "constant") == 0 || strcmp(name, "images") == 0 || strcmp(name, "invert_above") == 0 ||
                     strcmp(name, "floor_to_steps") == 0,
                 "pass must be one of single values") ||
        !require((strcmp(name, "images") == 0) == (other != NULL), "other must be given to 'images' alone") ||
        !(pass = pass_of(name, kind_of(out), usable_simd(simd))))
        goto end;
    parts = amounts->shape[0];
    if (!require(kind_of(image) == kind_of(out) && image->len == out->len, "image must have the type and size of out") ||
        !require(!other || (kind_of(other) == kind_of(out) && other->len == out->len),
                 "other must have the type and size of out") ||
        !require(parts > 0 && constants->shape[0] == parts && values_of(out) % parts == 0,
                 "amounts and constants must be those of equal parts"))
        goto end;
    step = values_of(out) / parts;
    size = step * out->itemsize;
    {
        Passes p = {pass, {out->buf, image->buf, other ? other->buf : NULL, step, 1, 0, 0, 0}, parts, 1,
                    piece_for(threads, parts, step, 64), size, size, size, 0, out->itemsize, out->itemsize, out->itemsize,
                    amounts->buf, constants->buf};
        Py_BEGIN_ALLOW_THREADS
        run_frames(&p, threads);
        Py_END_ALLOW_THREADS
    }
    result = Py_NewRef(Py_None);
end:
    release(&arrays);
    return result;
}

static PyObject *lut(PyObject *self, PyObject *args) {
    PyObject *out_object, *image_object, *tables_object, *result = NULL;
    const Py_buffer *out, *image, *tables;
    Arrays arrays = {0};
    Py_ssize_t parts, period, step;
    void (*pass)(const Color *);
    int threads, simd;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOii", &out_object, &image_object, &tables_object, &threads, &simd)) return NULL;
    if (!(out = array_of(&arrays, out_object, "out", "Bf", ANY_DIMENSIONS, CONTIGUOUS | WRITABLE)) ||
        !(image = array_of(&arrays, image_object, "image", "B", ANY_DIMENSIONS, CONTIGUOUS)) ||
        !(tables = array_of(&arrays, tables_object, "tables", "Bf", 3, CONTIGUOUS)) ||
        !require(kind_of(out) == kind_of(tables), "tables must have the type of out") ||
        !(pass = pass_of("lut", kind_of(out), usable_simd(simd))))
        goto end;
    parts = tables->shape[0];
    period = tables->shape[1];
    if (!require(tables->shape[2] == 256, "a table must have 256 values") ||
        !require(image->len == values_of(out), "image must have the size of out") ||
        !require(parts > 0 && period > 0 && image->len % parts == 0 && image->len / parts % period == 0,
                 "tables must be those of equal parts"))
        goto end;
    step = image->len / parts;
    {
        Passes p = {pass, {out->buf, image->buf, tables->buf, step, 1, period, 0, 0}, parts, 1,
                    piece_for(threads, parts, step, 64 * period), step * out->itemsize, step, 256 * period * tables->itemsize,
                    0, out->itemsize, 1, 0, NULL, NULL};
        Py_BEGIN_ALLOW_THREADS
        run_frames(&p, threads);
        Py_END_ALLOW_THREADS
    }
    result = Py_NewRef(Py_None);
end:
    release(&arrays);
    return result;
}

static PyObject *move(PyObject *self, PyObject *args) {
    const char *name;
    PyObject *out_object, *image_object, *result = NULL;
    const Py_buffer *out, *image;
    Arrays arrays = {0};
    Py_ssize_t i;
    int simd, mirror;
    (void)self;
    if (!PyArg_ParseTuple(args, "sOOi", &name, &out_object, &image_object, &simd)) return NULL;
    mirror = !strcmp(name, "mirror");
    if (!require(mirror || !strcmp(name, "split"), "move must be 'mirror' or 'split'") ||
        !(out = array_of(&arrays, out_object, "out", "B", mirror ? 2 : 3, CONTIGUOUS | WRITABLE)) ||
        !(image = array_of(&arrays, image_object, "image", "B", mirror ? 2 : 3, CONTIGUOUS)))
        goto end;
    if (mirror ? !require(out->shape[0] == image->shape[0] && out->shape[1] == image->shape[1],
                          "image must have the size of out")
               : !require(image->shape[2] == 3 && out->shape[1] == 3 && out->shape[0] == image->shape[0] &&
                              out->shape[2] == image->shape[1],
                          "image must be (frames, pixels, 3) and out (frames, 3, pixels)"))
        goto end;
    simd = usable_simd(simd);
    Py_BEGIN_ALLOW_THREADS
    if (mirror)
        mirror_rows(out->buf, image->buf, out->shape[0], out->shape[1], simd);
    else
        for (i = 0; i < out->shape[0]; i++) {
            Py_ssize_t at = i * 3 * out->shape[2];
            split_frame((uint8_t *)out->buf + at, (const uint8_t *)image->buf + at, out->shape[2], simd);
        }
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
end:
    release(&arrays);
    return result;
}

static PyObject *sharpen(PyObject *self, PyObject *args) {
    PyObject *out_object, *image_object, *factors_object, *result = NULL;
    const Py_buffer *out, *image, *factors;
    Arrays arrays = {0};
    Py_ssize_t i, size;
    int simd, d;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOi", &out_object, &image_object, &factors_object, &simd)) return NULL;
    if (!(out = array_of(&arrays, out_object, "out", "B", 4, CONTIGUOUS | WRITABLE)) ||
        !(image = array_of(&arrays, image_object, "image", "B", 4, CONTIGUOUS)) ||
        !(factors = array_of(&arrays, factors_object, "factors", "f", 1, CONTIGUOUS)) ||
        !require(out->buf != image->buf, "out must not be image") ||
        !require(factors->shape[0] == out->shape[0] && out->shape[3] > 0 && out->shape[3] < 1 << 20,
                 "there must be a factor for each plane or frame"))
        goto end;
    for (d = 0; d < 4; d++)
        if (!require(out->shape[d] == image->shape[d], "image must have the size of out")) goto end;
    size = out->shape[1] * out->shape[2] * out->shape[3];
    simd = usable_simd(simd);
    Py_BEGIN_ALLOW_THREADS
    for (i = 0; i < out->shape[0]; i++)
        sharpens[simd]((uint8_t *)out->buf + i * size, (const uint8_t *)image->buf + i * size, out->shape[1], out->shape[2],
                       (int)out->shape[3], ((const float *)factors->buf)[i]);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
end:
    release(&arrays);
    return result;
}

static PyObject *warp(PyObject *self, PyObject *args) {
    PyObject *out_object, *image_object, *matrix_object, *fill_object, *result = NULL;
    const Py_buffer *out, *image, *matrix, *fill;
    Arrays arrays = {0};
    Py_ssize_t frames, i, pixels, size, out_size;
    int simd, done = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOi", &out_object, &image_object, &matrix_object, &fill_object, &simd)) return NULL;
    if (!(out = array_of(&arrays, out_object, "out", "B", 4, CONTIGUOUS | WRITABLE)) ||
        !(image = array_of(&arrays, image_object, "image", "B", 4, CONTIGUOUS)) ||
        !(matrix = array_of(&arrays, matrix_object, "matrix", "f", 3, CONTIGUOUS)) ||
        !(fill = array_of(&arrays, fill_object, "fill", "q", 1, CONTIGUOUS)) ||
        !require(out->shape[1] == 3 && image->shape[1] == 3, "out and image must have three planes"))
        goto end;
    frames = out->shape[0];
    if (!require(image->shape[0] == frames && matrix->shape[0] == frames && fill->shape[0] == frames && matrix->shape[1] == 2 &&
                     matrix->shape[2] == 3,
                 "each frame must have a matrix (2, 3) and a fill"))
        goto end;
    pixels = image->shape[2] * image->shape[3];
    size = 3 * pixels;
    out_size = 3 * out->shape[2] * out->shape[3];
    if (!require(pixels < 1 << 24 && out_size / 3 < 1 << 24, "images must have less than 2^24 pixels")) goto end;
    for (i = 0; i < frames; i++)
        if (!require(((const int64_t *)fill->buf)[i] >= 0 ||
                         (out->shape[2] == image->shape[2] && out->shape[3] == image->shape[3]),
                     "out must have the size of image where a frame is copied"))
            goto end;
    simd = usable_simd(simd);
    Py_BEGIN_ALLOW_THREADS
    {
        uint32_t *words = malloc(((size_t)pixels + 1) * sizeof(uint32_t));
        for (i = 0; words && i < frames; i++) {
            uint8_t *to = (uint8_t *)out->buf + i * out_size;
            const uint8_t *from = (const uint8_t *)image->buf + i * size;
            int64_t color = ((const int64_t *)fill->buf)[i];
            if (color < 0) {
                memcpy(to, from, (size_t)size);
                continue;
            }
            words[pixels] = (uint32_t)color;
            warps[simd](to, from, words, image->shape[2], image->shape[3], out->shape[2], out->shape[3],
                        (const float *)matrix->buf + i * 6, 0);
        }
        done = words != NULL;
        free(words);
    }
    Py_END_ALLOW_THREADS
    result = PyBool_FromLong(done);
end:
    release(&arrays);
    return result;
}

/* (frames, channels, pixels) with any strides: planar and interleaved images alike. */
typedef struct {
    const char *at;
    Py_ssize_t frames, channels, pixels, frame_step, channel_step, pixel_step; /* of frames in bytes, else in values */
} Pixels;

static Pixels pixels_of(const Py_buffer *view) {
    Py_ssize_t item = view->itemsize;
    Pixels p = {view->buf,           view->shape[0],           view->shape[1],          view->shape[2],
                view->strides[0], view->strides[1] / item, view->strides[2] / item};
    return p;
}

/* Numbers about each plane: `name` of (frames, channels, pixels) fills (frames, channels, size). */
static PyObject *statistics(PyObject *self, PyObject *args) {
    const char *name;
    PyObject *out_object, *image_object, *result = NULL;
    const Py_buffer *out, *image;
    Arrays arrays = {0};
    Pixels p;
    void (*pass)(const Color *);
    int threads, simd, histogram;
    (void)self;
    if (!PyArg_ParseTuple(args, "sOOii", &name, &out_object, &image_object, &threads, &simd)) return NULL;
    histogram = strcmp(name, "histogram") == 0;
    if (!require(histogram || strcmp(name, "extremes") == 0, "name must be histogram or extremes") ||
        !(out = array_of(&arrays, out_object, "out", histogram ? "q" : "Bf", 3, CONTIGUOUS | WRITABLE)) ||
        !(image = array_of(&arrays, image_object, "image", histogram ? "B" : "Bf", 3, 0)) ||
        !(pass = pass_of(name, kind_of(image), usable_simd(simd))))
        goto end;
    p = pixels_of(image);
    if (!require(histogram || (kind_of(out) == kind_of(image) && p.pixels > 0), "extremes must be those of pixels") ||
        !require(out->shape[0] == p.frames && out->shape[1] == p.channels && out->shape[2] == (histogram ? 256 : 2),
                 "out must have numbers for each plane"))
        goto end;
    {
        Passes job = {pass, {out->buf, p.at, NULL, p.pixels, p.pixel_step, 0, 0, 0}, p.frames * p.channels, p.channels, 0,
                      out->shape[2] * out->itemsize, p.frame_step, 0, p.channel_step * image->itemsize, 0, 0, 0, NULL, NULL};
        Py_BEGIN_ALLOW_THREADS
        run_frames(&job, threads);
        Py_END_ALLOW_THREADS
    }
    result = Py_NewRef(Py_None);
end:
    release(&arrays);
    return result;
}

/* The luma of each pixel ("gray"), or its mean ("mean", in doubles). */
static PyObject *luma(PyObject *self, PyObject *args) {
    const char *name;
    PyObject *out_object, *image_object, *result = NULL;
    const Py_buffer *out, *image;
    Arrays arrays = {0};
    Pixels p;
    Py_ssize_t size;
    void (*pass)(const Color *);
    int threads, simd, mean;
    (void)self;
    if (!PyArg_ParseTuple(args, "sOOii", &name, &out_object, &image_object, &threads, &simd)) return NULL;
    mean = strcmp(name, "mean") == 0;
    if (!require(mean || strcmp(name, "gray") == 0, "name must be gray or mean") ||
        !(out = array_of(&arrays, out_object, "out", mean ? "d" : "Bf", 2, CONTIGUOUS | WRITABLE)) ||
        !(image = array_of(&arrays, image_object, "image", mean ? "f" : "Bf", 3, 0)) ||
        !(pass = pass_of(name, kind_of(image), usable_simd(simd))))
        goto end;
    p = pixels_of(image);
    size = mean ? 1 : p.pixels;
    if (!require(p.channels == 3, "image must have 3 channels") ||
        !require(mean ? p.pixels > 0 : kind_of(out) == kind_of(image), "out must have the type of image") ||
        !require(out->shape[0] == p.frames && out->shape[1] == size, "out must have a value for each pixel or frame"))
        goto end;
    {
        Passes job = {pass, {out->buf, p.at, NULL, p.pixels, p.pixel_step, p.channel_step, 0, 0}, p.frames, 1,
                      mean ? 0 : piece_for(threads, p.frames, p.pixels, 64), size * out->itemsize, p.frame_step, 0, 0,
                      out->itemsize, p.pixel_step * image->itemsize, 0, NULL, NULL};
        Py_BEGIN_ALLOW_THREADS
        run_frames(&job, threads);
        Py_END_ALLOW_THREADS
    }
    result = Py_NewRef(Py_None);
end:
    release(&arrays);
    return result;
}

/* out and image have equal strides, but for frames. */
static int alike(const Py_buffer *out, const Py_buffer *image) {
    Pixels a = pixels_of(out), b = pixels_of(image);
    return require(kind_of(out) == kind_of(image), "out must have the type of image") &&
           require(a.channels == 3 && b.channels == 3, "image must have 3 channels") &&
           require(a.frames == b.frames && a.pixels == b.pixels, "out must have the size of image") &&
           require(a.pixel_step == b.pixel_step && a.channel_step == b.channel_step,
                   "out must have the memory format of image");
}

static PyObject *matrix(PyObject *self, PyObject *args) {
    PyObject *out_object, *image_object, *matrices_object, *result = NULL;
    const Py_buffer *out, *image, *matrices;
    Arrays arrays = {0};
    Pixels p;
    void (*pass)(const Color *);
    int threads, simd;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOii", &out_object, &image_object, &matrices_object, &threads, &simd)) return NULL;
    if (!(out = array_of(&arrays, out_object, "out", "f", 3, WRITABLE)) ||
        !(image = array_of(&arrays, image_object, "image", "f", 3, 0)) ||
        !(matrices = array_of(&arrays, matrices_object, "matrices", "f", 3, CONTIGUOUS)) || !alike(out, image) ||
        !(pass = pass_of("matrix", 'f', usable_simd(simd))))
        goto end;
    p = pixels_of(image);
    if (!require(matrices->shape[1] == 3 && matrices->shape[2] == 4 &&
                     (matrices->shape[0] == p.frames || matrices->shape[0] == 1),
                 "matrices must be 3 x 4, one for all or one for each frame"))
        goto end;
    {
        Py_ssize_t own = matrices->shape[0] == 1 ? 0 : 12 * matrices->itemsize, pixel = p.pixel_step * image->itemsize;
        Passes job = {pass, {out->buf, p.at, matrices->buf, p.pixels, p.pixel_step, p.channel_step, 0, 0}, p.frames, 1,
                      piece_for(threads, p.frames, p.pixels, 64), out->strides[0], p.frame_step, own, 0, pixel, pixel, 0,
                      NULL, NULL};
        Py_BEGIN_ALLOW_THREADS
        run_frames(&job, threads);
        Py_END_ALLOW_THREADS
    }
    result = Py_NewRef(Py_None);
end:
    release(&arrays);
    return result;
}

/* A frame as it is; both have the same strides. */
static void copy_frame(char *out, const char *in, Pixels p, Py_ssize_t size) {
    Py_ssize_t c, i, pixel = p.pixel_step * size;
    if (out == in) return;
    for (c = 0; c < 3; c++, out += p.channel_step * size, in += p.channel_step * size)
        if (p.pixel_step == 1)
            memcpy(out, in, (size_t)(p.pixels * size));
        else
            for (i = 0; i < p.pixels; i++) memcpy(out + i * pixel, in + i * pixel, (size_t)size);
}

/* How many steps come before the end of a row of kinds. */
static int steps_of(const int32_t *kinds, Py_ssize_t most) {
    int count = 0;
    while (count < most && kinds[count] >= 0) count++;
    return count;
}

typedef struct {
    char *out;
    Py_ssize_t out_step, rows, most, piece, itemsize;
    Pixels p;
    const int32_t *kinds;
    const float *amounts;
    int simd;
} Sequence;

static void run_sequence(void *job, Py_ssize_t start, Py_ssize_t stop) {
    const Sequence *s = job;
    Py_ssize_t u, pieces = pieces_of(s->p.pixels, s->piece);
    for (u = start; u < stop; u++) {
        Py_ssize_t i = u / pieces, at = u % pieces * s->piece, skip = at * s->p.pixel_step * s->itemsize;
        const int32_t *own = s->kinds + i % s->rows * s->most;
        const float *numbers = s->amounts + i % s->rows * s->most;
        char *to = s->out + i * s->out_step + skip;
        Pixels p = s->p;
        int count = steps_of(own, s->most);
        p.at += i * p.frame_step + skip;
        p.pixels = pixels_from(at, p.pixels, s->piece);
        if (!count)
            copy_frame(to, p.at, p, s->itemsize);
        else if (s->itemsize == 1)
            sequences_u8[s->simd]((uint8_t *)to, (const uint8_t *)p.at, p.pixels, p.pixel_step, p.channel_step, own, numbers,
                                  count);
        else
            sequences_f32[s->simd]((float *)to, (const float *)p.at, p.pixels, p.pixel_step, p.channel_step, own, numbers,
                                   count);
    }
}

static PyObject *sequence(PyObject *self, PyObject *args) {
    PyObject *out_object, *image_object, *kinds_object, *amounts_object, *result = NULL;
    const Py_buffer *out, *image, *kinds, *amounts;
    Arrays arrays = {0};
    Pixels p;
    Py_ssize_t i, rows, most;
    int threads, simd, is_whole = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOii", &out_object, &image_object, &kinds_object, &amounts_object, &threads, &simd))
        return NULL;
    if (!(out = array_of(&arrays, out_object, "out", "Bf", 3, WRITABLE)) ||
        !(image = array_of(&arrays, image_object, "image", "Bf", 3, 0)) ||
        !(kinds = array_of(&arrays, kinds_object, "kinds", "i", 2, CONTIGUOUS)) ||
        !(amounts = array_of(&arrays, amounts_object, "amounts", "f", 2, CONTIGUOUS)) || !alike(out, image))
        goto end;
    p = pixels_of(image);
    rows = kinds->shape[0];
    most = kinds->shape[1];
    if (!require(most > 0 && most < 1 << 20 && amounts->shape[0] == rows && amounts->shape[1] == most,
                 "amounts must be those of the kinds") ||
        !require(rows == 1 || rows == p.frames, "kinds must be those of all frames or of each"))
        goto end;
    for (i = 0; i < rows * most; i++) {
        int32_t kind = ((const int32_t *)kinds->buf)[i];
        float amount = ((const float *)amounts->buf)[i];
        if (!require(kind >= -1 && kind <= HUE_TURN, "kinds must be from 0 to 3, or -1 at the end") ||
            !require(kind != HUE_TURN || kind_of(out) != 'B' || (amount >= 0 && amount <= 255), HUES))
            goto end;
        is_whole = is_whole || kind == CONTRAST; /* it depends on all pixels */
    }
    if (!require(p.pixels > 0, "image must have pixels")) goto end;
    simd = usable_simd(simd);
    {
        Py_ssize_t piece = is_whole ? 0 : piece_for(threads, p.frames, p.pixels, 64);
        Sequence job = {out->buf, out->strides[0], rows, most, piece, out->itemsize, p, kinds->buf, amounts->buf, simd};
        Py_BEGIN_ALLOW_THREADS
        in_parallel(threads, p.frames * pieces_of(p.pixels, piece), run_sequence, &job);
        Py_END_ALLOW_THREADS
    }
    result = Py_NewRef(Py_None);
end:
    release(&arrays);
    return result;
}

typedef struct {
    char *out;
    const char *grad;
    double *sums;
    Py_ssize_t out_step, grad_step, rows, most, itemsize;
    Pixels p;
    const int32_t *kinds;
    const double *amounts;
    int simd;
} SequenceBack;

static void run_sequence_back(void *job, Py_ssize_t start, Py_ssize_t stop) {
    const SequenceBack *s = job;
    const Pixels p = s->p;
    Py_ssize_t i;
    for (i = start; i < stop; i++) {
        const int32_t *own = s->kinds + i % s->rows * s->most;
        const double *numbers = s->amounts + i % s->rows * s->most;
        double *found = s->sums + i * s->most;
        void *to = s->out ? s->out + i * s->out_step : NULL;
        const void *from = p.at + i * p.frame_step, *with = s->grad + i * s->grad_step;
        int count = steps_of(own, s->most);
        if (s->itemsize == sizeof(float))
            sequences_back_float[s->simd](to, found, from, with, p.pixels, p.pixel_step, p.channel_step, own, numbers, count);
        else
            sequences_back_double[s->simd](to, found, from, with, p.pixels, p.pixel_step, p.channel_step, own, numbers, count);
    }
}

static PyObject *sequence_back(PyObject *self, PyObject *args) {
    PyObject *out_object, *sums_object, *image_object, *grad_object, *kinds_object, *amounts_object, *result = NULL;
    const Py_buffer *out = NULL, *sums, *image, *grad, *kinds, *amounts;
    Arrays arrays = {0};
    Pixels p;
    Py_ssize_t i, rows, most;
    int threads, simd;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOOOii", &out_object, &sums_object, &image_object, &grad_object, &kinds_object,
                          &amounts_object, &threads, &simd))
        return NULL;
    if (!(image = array_of(&arrays, image_object, "image", "fd", 3, 0)) ||
        !(grad = array_of(&arrays, grad_object, "grad", "fd", 3, 0)) || !alike(grad, image) ||
        !(kinds = array_of(&arrays, kinds_object, "kinds", "i", 2, CONTIGUOUS)) ||
        !(amounts = array_of(&arrays, amounts_object, "amounts", "d", 2, CONTIGUOUS)) ||
        !(sums = array_of(&arrays, sums_object, "sums", "d", 2, CONTIGUOUS | WRITABLE)))
        goto end;
    if (out_object != Py_None &&
        (!(out = array_of(&arrays, out_object, "out", "fd", 3, WRITABLE)) || !alike(out, image)))
        goto end;
    p = pixels_of(image);
    rows = kinds->shape[0];
    most = kinds->shape[1];
    if (!require(most > 0 && most <= TAPE_STEPS && amounts->shape[0] == rows && amounts->shape[1] == most,
                 "amounts must be those of the kinds, at most 8") ||
        !require(rows == 1 || rows == p.frames, "kinds must be those of all frames or of each") ||
        !require(sums->shape[0] == p.frames && sums->shape[1] == most, "sums must have a value for each frame and kind") ||
        !require(p.pixels > 0, "image must have pixels"))
        goto end;
    for (i = 0; i < rows * most; i++) {
        int32_t kind = ((const int32_t *)kinds->buf)[i];
        int is_last = i % most == most - 1;
        if (!require(kind >= -1 && kind <= (is_last ? LAST_KIND : HUE_TURN),
                     "kinds must be from 0 to 3, or -1 at the end, or for the last one 4 or 5"))
            goto end;
    }
    simd = usable_simd(simd);
    {
        SequenceBack job = {out ? out->buf : NULL, grad->buf, sums->buf, out ? out->strides[0] : 0, grad->strides[0], rows,
                            most, image->itemsize, p, kinds->buf, amounts->buf, simd};
        Py_BEGIN_ALLOW_THREADS
        in_parallel(threads, p.frames, run_sequence_back, &job);
        Py_END_ALLOW_THREADS
    }
    result = Py_NewRef(Py_None);
end:
    release(&arrays);
    return result;
}

typedef struct {
    char *out;
    const char *grad, *image;
    char *slope;
    const char *map;
    const double *outside;
    Py_ssize_t maps, colors, itemsize, position;
    Warped p;
    int taps, simd;
} RemapBack;

static void run_remap_back(void *job, Py_ssize_t start, Py_ssize_t stop) {
    const RemapBack *r = job;
    const Warped *p = &r->p;
    Py_ssize_t i, pixels = p->height * p->width;
    for (i = start; i < stop; i++) {
        Py_ssize_t own = i * p->planes * r->itemsize;
        void *to = r->out ? r->out + own * pixels : NULL;
        void *towards = r->slope ? r->slope + 2 * i * p->count * r->position : NULL;
        const void *given = r->grad + own * p->count, *from = r->slope ? r->image + own * pixels : NULL;
        const void *at = r->map + i % r->maps * 2 * p->count * r->position;
        const double *color = r->outside ? r->outside + i % r->colors * p->planes : NULL;
        if (r->itemsize == sizeof(float))
            remaps_back_float[r->simd](to, towards, given, from, at, color, p, r->taps);
        else
            remaps_back_double[r->simd](to, towards, given, from, at, color, p, r->taps);
    }
}

static PyObject *remap_back(PyObject *self, PyObject *args) {
    PyObject *out_object, *slope_object, *grad_object, *image_object, *map_object, *outside_object, *result = NULL;
    const Py_buffer *out = NULL, *slope = NULL, *grad, *image = NULL, *map, *outside = NULL;
    Arrays arrays = {0};
    Warped p;
    Py_ssize_t maps, colors, frames;
    int threads, simd, taps;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOOOnniiii", &out_object, &slope_object, &grad_object, &image_object, &map_object,
                          &outside_object, &p.height, &p.width, &taps, &p.border, &threads, &simd))
        return NULL;
    if (!(grad = array_of(&arrays, grad_object, "grad", "fd", 3, CONTIGUOUS)) ||
        !(map = array_of(&arrays, map_object, "map", "fd", 3, CONTIGUOUS)) ||
        (out_object != Py_None && !(out = array_of(&arrays, out_object, "out", "fd", 3, CONTIGUOUS | WRITABLE))) ||
        (slope_object != Py_None &&
         (!(slope = array_of(&arrays, slope_object, "slope", "fd", 3, CONTIGUOUS | WRITABLE)) ||
          !(image = array_of(&arrays, image_object, "image", "fd", 3, CONTIGUOUS)))) ||
        (outside_object != Py_None && !(outside = array_of(&arrays, outside_object, "outside", "d", 2, CONTIGUOUS))))
        goto end;
    frames = grad->shape[0];
    p.planes = grad->shape[1];
    p.count = grad->shape[2];
    p.single = kind_of(map) == 'f';
    maps = map->shape[0];
    colors = outside ? outside->shape[0] : 1;
    if (!require(p.height > 0 && p.width > 0 && p.height < 1 << 24 && p.width < 1 << 24, "image must have pixels") ||
        !require(taps == 1 || taps == 2 || taps == 4, "taps must be 1, 2 or 4") ||
        !require(p.border >= 0 && p.border <= WRAP_BORDER, "border must be from 0 to 4") ||
        !require((maps == 1 || maps == frames) && map->shape[1] == 2 && map->shape[2] == p.count,
                 "map must have two positions for each value of grad") ||
        !require((colors == 1 || colors == frames) && (!outside || outside->shape[1] == p.planes),
                 "outside must have a color for each plane"))
        goto end;
    if (out && !require(kind_of(out) == kind_of(grad) && out->shape[0] == frames && out->shape[1] == p.planes &&
                            out->shape[2] == p.height * p.width,
                        "out must have the type, frames and planes of grad"))
        goto end;
    if (slope && !require(kind_of(image) == kind_of(grad) && image->shape[0] == frames && image->shape[1] == p.planes &&
                              image->shape[2] == p.height * p.width && slope->shape[0] == frames && slope->shape[1] == 2 &&
                              slope->shape[2] == p.count && kind_of(slope) == kind_of(map),
                          "image and slope must have the types, frames and planes of grad and map"))
        goto end;
    simd = usable_simd(simd);
    {
        RemapBack job = {out ? out->buf : NULL, grad->buf, slope ? image->buf : NULL, slope ? slope->buf : NULL, map->buf,
                         outside ? outside->buf : NULL, maps, colors, grad->itemsize, map->itemsize, p, taps, simd};
        Py_BEGIN_ALLOW_THREADS
        in_parallel(threads, frames, run_remap_back, &job);
        Py_END_ALLOW_THREADS
    }
    result = Py_NewRef(Py_None);
end:
    release(&arrays);
    return result;
}

/* A float32 or float64 plane and others of its type and shape. */
static int planes_like(Arrays *arrays, PyObject *object, const char *name, const Py_buffer *like, int flags,
                       const Py_buffer **found) {
    return (*found = array_of(arrays, object, name, "fd", 2, CONTIGUOUS | flags)) &&
           require(kind_of(*found) == kind_of(like) && (*found)->shape[0] == like->shape[0] &&
                       (*found)->shape[1] == like->shape[1],
                   "all planes must have one type and shape");
}

static PyObject *select_back(PyObject *self, PyObject *args) {
    PyObject *back_object, *wide_object, *chosen_object, *grad_object, *offsets_object, *result = NULL;
    const Py_buffer *back, *wide, *chosen, *grad, *offsets;
    Arrays arrays = {0};
    Py_ssize_t count, i, last, wide_width;
    Py_ssize_t *place = NULL;
    int simd, first, inside = 1;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOOpi", &back_object, &wide_object, &chosen_object, &grad_object, &offsets_object, &first,
                          &simd))
        return NULL;
    if (!(wide = array_of(&arrays, wide_object, "wide", "fd", 2, CONTIGUOUS)) ||
        !planes_like(&arrays, back_object, "back", wide, WRITABLE, &back) ||
        !(chosen = array_of(&arrays, chosen_object, "chosen", "fd", 2, CONTIGUOUS)) ||
        !planes_like(&arrays, grad_object, "grad", chosen, 0, &grad) ||
        !(offsets = array_of(&arrays, offsets_object, "offsets", "i", 2, CONTIGUOUS)) ||
        !require(kind_of(wide) == kind_of(chosen), "all planes must have one type") ||
        !require(offsets->shape[1] == 2 && offsets->shape[0] < 1 << 30, "offsets must be rows and columns"))
        goto end;
    count = offsets->shape[0];
    wide_width = wide->shape[1];
    if (!(place = malloc((size_t)(count + 1) * sizeof *place))) {
        PyErr_NoMemory();
        goto end;
    }
    for (i = 0; i < count; i++) {
        const int32_t *own = (const int32_t *)offsets->buf + 2 * i;
        inside = inside && own[0] >= 0 && own[1] >= 0 && own[0] + chosen->shape[0] <= wide->shape[0] &&
                 own[1] + chosen->shape[1] <= wide_width;
        place[i] = own[0] * wide_width + own[1];
    }
    last = chosen->shape[0] * chosen->shape[1];
    if (!require(inside, "offsets must lie inside of wide")) goto end;
    simd = usable_simd(simd);
    Py_BEGIN_ALLOW_THREADS
    if (last && kind_of(wide) == 'f')
        selects_back_float[simd](back->buf, wide->buf, chosen->buf, grad->buf, chosen->shape[0], chosen->shape[1], wide_width,
                                 place, count, first);
    else if (last)
        selects_back_double[simd](back->buf, wide->buf, chosen->buf, grad->buf, chosen->shape[0], chosen->shape[1], wide_width,
                                  place, count, first);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
end:
    free(place);
    release(&arrays);
    return result;
}

typedef struct {
    char *out;
    const char *image, *grad;
    Py_ssize_t count, itemsize;
    int simd;
} StretchBack;

static void run_stretch_back(void *job, Py_ssize_t start, Py_ssize_t stop) {
    const StretchBack *s = job;
    Py_ssize_t i;
    for (i = start; i < stop; i++) {
        Py_ssize_t own = i * s->count * s->itemsize;
        if (s->itemsize == sizeof(float))
            stretches_back_float[s->simd]((float *)(s->out + own), (const float *)(s->image + own),
                                          (const float *)(s->grad + own), s->count);
        else
            stretches_back_double[s->simd]((double *)(s->out + own), (const double *)(s->image + own),
                                           (const double *)(s->grad + own), s->count);
    }
}

static PyObject *stretch_back(PyObject *self, PyObject *args) {
    PyObject *out_object, *image_object, *grad_object, *result = NULL;
    const Py_buffer *out, *image, *grad;
    Arrays arrays = {0};
    int threads, simd;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOii", &out_object, &image_object, &grad_object, &threads, &simd)) return NULL;
    if (!(image = array_of(&arrays, image_object, "image", "fd", 2, CONTIGUOUS)) ||
        !planes_like(&arrays, out_object, "out", image, WRITABLE, &out) ||
        !planes_like(&arrays, grad_object, "grad", image, 0, &grad) ||
        !require(image->shape[1] > 0, "image must have pixels"))
        goto end;
    simd = usable_simd(simd);
    {
        StretchBack job = {out->buf, image->buf, grad->buf, image->shape[1], image->itemsize, simd};
        Py_BEGIN_ALLOW_THREADS
        in_parallel(threads, image->shape[0], run_stretch_back, &job);
        Py_END_ALLOW_THREADS
    }
    result = Py_NewRef(Py_None);
end:
    release(&arrays);
    return result;
}

static PyObject *blur(PyObject *self, PyObject *args) {
    PyObject *out_object, *image_object, *across_object, *down_object, *result = NULL;
    const Py_buffer *out, *image, *across_view, *down_view;
    Arrays arrays = {0};
    Py_ssize_t first, last, parts, i;
    int simd, same = 1, done = 1;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOnni", &out_object, &image_object, &across_object, &down_object, &first, &last, &simd))
        return NULL;
    if (!(out = array_of(&arrays, out_object, "out", "B", 4, CONTIGUOUS | WRITABLE)) ||
        !(image = array_of(&arrays, image_object, "image", "B", 4, CONTIGUOUS)) ||
        !(across_view = array_of(&arrays, across_object, "across", "i", 2, CONTIGUOUS)) ||
        !(down_view = array_of(&arrays, down_object, "down", "i", 2, CONTIGUOUS)))
        goto end;
    for (i = 0; i < 4; i++) same = same && out->shape[i] == image->shape[i];
    parts = across_view->shape[0];
    if (!require(same, "image must have the shape of out") ||
        !require(out->buf != image->buf || !out->len, "out must be other memory than image") ||
        !require(parts > 0 && down_view->shape[0] == parts && out->shape[0] % parts == 0,
                 "weights must be those of equal parts of the planes") ||
        !require(0 <= first && first <= last && last <= out->shape[1], "the rows must be rows of the image"))
        goto end;
    for (i = 0; i < parts; i++)
        if (!are_weights(across_view, i) || !are_weights(down_view, i)) goto end;
    if (out->len) {
        const Py_ssize_t *s = out->shape;
        Py_ssize_t planes = s[0] / parts, size = planes * s[1] * s[2] * s[3];
        int (*pass) BLUR_ARGS = portable_blur;
#if X86
        if (usable_simd(simd)) pass = avx2_blur;
#endif
        Py_BEGIN_ALLOW_THREADS
        for (i = 0; done && i < parts; i++) {
            uint16_t wx[MOST_WEIGHTS], wy[MOST_WEIGHTS];
            Py_ssize_t rx = gaussian_weights(across_view, i, wx), ry = gaussian_weights(down_view, i, wy);
            done = pass((uint8_t *)out->buf + i * size, (const uint8_t *)image->buf + i * size, planes, s[1], s[2], s[3],
                        first, last, wx, rx, wy, ry);
        }
        Py_END_ALLOW_THREADS
    }
    result = PyBool_FromLong(done);
end:
    release(&arrays);
    return result;
}

#include "_native_images.h"
#include "_native_program.h"
#include "_native_sources.h"

static PyMethodDef methods[] = {
    {"simd_level", simd_level, METH_VARARGS,
     "simd_level() -> int\n\nThe most that this machine can: 0 portable C, 1 AVX2, 2 AVX-512 with VNNI. Functions\n"
     "take the most threads that may work on a call, and the level to use at most, as their last arguments."},
    {"resample", resample, METH_VARARGS,
     "resample(out, image, rows, columns, rows_first, threads, simd) -> bool\n\n"
     "Apply a banded table (start, length, weight), or None, to each axis of (planes, height, width, channels). False when\n"
     "it was not done, for want of memory or because of weights that 16 bits cannot hold."},
    {"pil_resize", pil_resize, METH_VARARGS,
     "pil_resize(out, image, filter, left, top, right, bottom, first, height, rows_first, single, threads, simd) -> bool\n\n"
     "The same by PIL's tables of a filter over a region, which PIL keeps in single precision. out has the rows from first\n"
     "on of a result of this height. False too where the sizes and the region say that nothing is to be done."},
    {"table", table, METH_VARARGS,
     "table(filter, size, low, extent, start, length, weight)\n\nFill the three arrays with PIL's weights."},
    {"blur", blur, METH_VARARGS,
     "blur(out, image, across, down, first, last, simd) -> bool\n\n"
     "The rows from first to last of (planes, height, width, channels), by weights (parts, n) along each axis in 256ths,\n"
     "the middle one first, of equal parts of the planes. False without memory."},
    {"point", point, METH_VARARGS,
     "point(name, out, image, other, amounts, constants, threads, simd)\n\n"
     "One pass over single values; equal parts of memory have an amount and a constant each. out may be image."},
    {"lut", lut, METH_VARARGS,
     "lut(out, image, tables, threads, simd)\n\n"
     "Look bytes up in (parts, period, 256) tables of bytes or floats, which take turns in each equal part of memory."},
    {"sharpen", sharpen, METH_VARARGS,
     "sharpen(out, image, factors, simd)\n\n"
     "PIL's sharpness of (planes, height, width, channels), a factor for each plane."},
    {"warp", warp, METH_VARARGS,
     "warp(out, image, matrix, fill, simd) -> bool\n\n"
     "The nearest pixels of frames (frames, 3, height, width) by the float32 inverses (frames, 2, 3) of affine matrices;\n"
     "fill: the bytes outside as int64, the first lowest, or -1 to copy a frame. False without memory."},
    {"move", move, METH_VARARGS,
     "move(name, out, image, simd)\n\n"
     "mirror: each row of (rows, bytes) from its end; split: frames (frames, pixels, 3) to planes (frames, 3, pixels)."},
    {"statistics", statistics, METH_VARARGS,
     "statistics(name, out, image, threads, simd)\n\nThe histogram or the extremes of each plane of (frames, channels, pixels)."},
    {"luma", luma, METH_VARARGS,
     "luma(name, out, image, threads, simd)\n\nThe luma of (frames, 3, pixels), pixel by pixel (gray) or its mean."},
    {"matrix", matrix, METH_VARARGS,
     "matrix(out, image, matrices, threads, simd)\n\nMultiply (frames, 3, pixels) by matrices (frames or 1, 3, 4)."},
    {"sequence", sequence, METH_VARARGS,
     "sequence(out, image, kinds, amounts, threads, simd)\n\n"
     "Brightness (0), contrast (1), saturation (2) and hue (3) in a given order, for all frames (1, steps) or for each; -1\n"
     "ends it. The amount of hue is a share of the circle, on bytes a number of PIL's 256 hues. out may be image."},
    {"sequence_back", sequence_back, METH_VARARGS,
     "sequence_back(out, sums, image, grad, kinds, amounts, threads, simd)\n\n"
     "The gradients of a sequence of float32 or float64: that of the image in out, if it is not None, and those of the\n"
     "amounts (1 or frames, steps) for each frame in sums (frames, steps). out, image and grad have equal strides, but\n"
     "for frames."},
    {"remap_back", remap_back, METH_VARARGS,
     "remap_back(out, slope, grad, image, map, outside, height, width, taps, border, threads, simd)\n\n"
     "The gradients of a remap of float32 or float64 by positions (1 or frames, 2, count) of either: that of the images\n"
     "(frames, planes, height * width) in out and that of the positions in slope (frames, 2, count), each if it is not None.\n"
     "outside has the colors (1 or frames, planes) beyond the image."},
    {"select_back", select_back, METH_VARARGS,
     "select_back(back, wide, chosen, grad, offsets, first, simd)\n\n"
     "Add the gradient of a plane of chosen pixels to back, the gradient of the wide plane they were chosen from, at the\n"
     "offsets (n, 2) of the members of a window. Equal pixels share it, or the first one gets it."},
    {"stretch_back", stretch_back, METH_VARARGS,
     "stretch_back(out, image, grad, threads, simd)\n\nThe gradient of float autocontrast of each of (planes, pixels)."},
    {"crop", crop, METH_VARARGS,
     "crop(out, image, left, top, threads) -> bool\n\n"
     "Show a tensor from a place on, zeros outside. False where the two are not of one memory format and type."},
    {"crop_each", crop_each, METH_VARARGS,
     "crop_each(out, image, boxes, threads) -> bool\n\nThe same, with the left and top of each of equal parts."},
    {"resized_crops", resized_crops, METH_VARARGS,
     "resized_crops(out, image, boxes, filter, shrinks_rows_first, simd) -> bool\n\n"
     "PIL's antialiased resize of what boxes (parts, 4) cut out of equal parts of a tensor of bytes."},
    {"mirror_chosen", mirror_chosen, METH_VARARGS,
     "mirror_chosen(out, image, chosen, simd) -> bool\n\n"
     "Each row of bytes from its end, in the equal parts of a tensor for which a byte is not 0; copies of the others."},
    {"levels", levels, METH_VARARGS,
     "levels(out, image, table, simd) -> bool\n\nLook the bytes of a tensor up in a table of 256."},
    {"stretch_levels", stretch_levels, METH_VARARGS,
     "stretch_levels(out, image, equalize, simd) -> bool\n\n"
     "PIL's autocontrast or equalize of each plane of a tensor of bytes."},
    {"gray", gray, METH_VARARGS,
     "gray(out, image, chosen, simd) -> bool\n\n"
     "PIL's gray of a tensor of bytes of three channels, in three channels, of the frames for which a byte of chosen is not\n"
     "0; copies of the others."},
    {"run_program", run_program, METH_VARARGS,
     "run_program(out, image, steps, numbers, tables, counter, scratch, shrinks_rows_first, simd) -> int\n\n"
     "Run steps (n, 6) on each image of a tensor of bytes, by a row of numbers for each of equal parts; then look the bytes\n"
     "up in tables of floats, if there are any. Threads share the counter of images, and have a scratch buffer each. 0\n"
     "where the program cannot run, before anything is written, or without memory; 2 where no step changed an image."},
    {"run_sources", run_sources, METH_VARARGS,
     "run_sources(out, data, facts, decoder, steps, numbers, tables, done, counter, scratch, interleaved, shrinks_rows_first,\n"
     "            simd) -> int\n\n"
     "The same for images of different sizes that lie in bytes `data`: facts (n, 4) are where each begins and ends, its height\n"
     "and width. With a decoder, the capsule of _native_jpeg, they are files. The first step is a window. done (n) tells of\n"
     "which images the files were decoded."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_native", "PIL's resampling, color and levels with vector instructions.", -1, methods, NULL,
    NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void) {
    prepare_threads();
    return make_names() ? PyModule_Create(&module) : NULL;
}
