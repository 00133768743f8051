/* The draws of transforms: what torch.rand, uniform_, randint and randperm draw from a generator, without their calls.
 *
 * One call draws for all samples of a batch. It copies the state of a torch.Generator on the CPU, runs ATen's mt19937,
 * and then lets PyTorch take the words that were used from the generator itself, which is atomic. If another thread has
 * drawn meanwhile, these are other words: they are left out, and all is drawn again. tests/test_draws.py fails if
 * PyTorch changes:
 *
 * - the state, 5056 bytes: seed (8 bytes), left (4), seeded (4), next (8), 624 words of 8 bytes, whose lower halves
 *   count; then 40 bytes with the second number of a normal pair, which stay as they are. Before each word, left falls
 *   by 1; at 0 all words are renewed. Words are read in order, so that next + left is 625 except after a new seed.
 * - float32 from a word: its lower 24 bits / 2^24. float64 from two words, the first of which is the upper half: the
 *   lower 53 bits / 2^53. In a range: x * (high - low) + low, where high - low has the dtype, and the rest is double.
 *   For float64, ATen fuses the product with the sum on machines that can; instructions say which.
 * - an integer from a range: a word % range; from 2^28 on, two words % range.
 * - randperm(n): each place i but the last is exchanged with the place i + word % (n - i).
 *
 * A rule is an array of doubles: instructions of the form (operation, column, number of operands, length of the block,
 * operands, block). A block is a list of instructions that run under a condition. A rule may come from anywhere, so
 * that it is copied and checked before it runs.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define WORDS 624
#define SHIFT 397
#define STATE_SIZE 5056
#define LEFT_AT 8
#define SEEDED_AT 12
#define NEXT_AT 16
#define WORDS_AT 24
#define MOST_ATTEMPTS 8
#define DEEPEST 16

enum { CHANCE, WHEN, PUT, COPY, UNIFORM, INTEGER, PERMUTATION, ROTATION, PLACE, CROP, ERASE, POLICY, OPERATIONS };
enum { LESS, AT_MOST, AT_LEAST };                     /* how CHANCE compares */
enum { SINGLE, SINGLE_ROUNDED, DOUBLE, DOUBLE_FUSED }; /* the arithmetic of UNIFORM */
enum { HAS_MAGNITUDE = 1, HAS_SIGN = 2 };             /* a step of POLICY */

/* -- the generator ------------------------------------------------------------------------------------------------ */

typedef struct {
    uint32_t words[WORDS];
    int left, next;
    Py_ssize_t taken; /* how many words */
} Engine;

static uint32_t mix(uint32_t a, uint32_t b, uint32_t far) {
    const uint32_t y = (a & 0x80000000u) | (b & 0x7fffffffu);
    return far ^ (y >> 1) ^ (b & 1 ? 0x9908b0dfu : 0);
}

static void renew(Engine *e) {
    uint32_t *w = e->words;
    for (int i = 0; i < WORDS - SHIFT; i++) w[i] = mix(w[i], w[i + 1], w[i + SHIFT]);
    for (int i = WORDS - SHIFT; i < WORDS - 1; i++) w[i] = mix(w[i], w[i + 1], w[i + SHIFT - WORDS]);
    w[WORDS - 1] = mix(w[WORDS - 1], w[0], w[SHIFT - 1]);
    e->left = WORDS;
    e->next = 0;
}

static uint32_t word(Engine *e) {
    if (--e->left == 0) renew(e);
    e->taken++;
    uint32_t y = e->words[e->next++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

static uint64_t two_words(Engine *e) {
    const uint64_t upper = word(e);
    return upper << 32 | word(e);
}

/* Read the engine from a state; return 0 if no generator has this state. */
static int read_state(Engine *e, const char *state) {
    int32_t left, seeded;
    uint64_t next, wide[WORDS];
    memcpy(&left, state + LEFT_AT, 4);
    memcpy(&seeded, state + SEEDED_AT, 4);
    memcpy(&next, state + NEXT_AT, 8);
    memcpy(wide, state + WORDS_AT, sizeof wide);
    if (seeded != 1 || left < 1 || left > WORDS || (left == 1 ? next > WORDS : next != WORDS + 1 - (uint64_t)left))
        return 0;
    for (int i = 0; i < WORDS; i++) e->words[i] = (uint32_t)wide[i];
    e->left = left;
    e->next = (int)next;
    e->taken = 0;
    return 1;
}

/* -- numbers ------------------------------------------------------------------------------------------------------ */

static float single(Engine *e, double low, double high) {
    const float from = (float)low, to = (float)high;
    const double x = (word(e) & 0xffffff) * (1.0 / (1 << 24)); /* the product with 24 bits is exact, fused or not */
    return (float)(x * (double)(to - from) + (double)from);
}

static double in_double(Engine *e, double low, double high, int is_fused) {
    const double x = (double)(two_words(e) & (((uint64_t)1 << 53) - 1)) * (1.0 / ((uint64_t)1 << 53));
    return is_fused ? fma(x, high - low, low) : x * (high - low) + low;
}

static uint64_t integer(Engine *e, uint64_t range) {
    return range >= (uint64_t)1 << 28 ? two_words(e) % range : word(e) % range;
}

/* Draw the area and the ratio of a box, and compute its sides as torchvision does. The ratio is torch.exp of a float32,
 * whose last bits depend on the library and on the machine: return 0 if they decide a side. */
static int sides(Engine *e, const double *o, const double *size, double *by_product, double *by_quotient) {
    const double area = size[0] * size[1] * single(e, o[2], o[3]);
    const float power = single(e, o[4], o[5]);
    float low = (float)exp((double)power), high = low;
    for (int i = 0; i < 2; i++) {
        low = nextafterf(low, 0.0f);
        high = nextafterf(high, INFINITY);
    }
    *by_product = rint(sqrt(area * low));
    *by_quotient = rint(sqrt(area / low));
    return *by_product == rint(sqrt(area * high)) && *by_quotient == rint(sqrt(area / high));
}

/* The height and width of a sample's image: those of the operands, or if they are 0, its own. */
static const double *size_of(const double *o, const double *own) { return o[0] > 0 ? o : own; }

/* One coordinate of RandomCrop: size, whether it is along x, and the number of places less the image's side. */
static int place(Engine *e, const double *o, const double *own, double *row) {
    const double places = size_of(o, own)[(int)o[2]] + o[3];
    if (places < 1) return 0;
    *row = places > 1 ? (double)integer(e, (uint64_t)places) : 0;
    return 1;
}

/* RandomResizedCrop: size, scale, logarithms of the ratio, least and greatest ratio. */
static int crop(Engine *e, const double *o, const double *own, double *row) {
    const double *size = size_of(o, own);
    double high = size[0], wide = size[1];
    for (int i = 0; i < 10; i++) {
        if (!sides(e, o, size, &wide, &high)) return 0;
        if (0 < wide && wide <= size[1] && 0 < high && high <= size[0]) {
            row[0] = (double)integer(e, (uint64_t)(size[0] - high) + 1);
            row[1] = (double)integer(e, (uint64_t)(size[1] - wide) + 1);
            row[2] = high;
            row[3] = wide;
            return 1;
        }
    }
    const double ratio = size[1] / size[0];
    high = ratio < o[6] ? rint(size[1] / o[6]) : size[0];
    wide = !(ratio < o[6]) && ratio > o[7] ? rint(size[0] * o[7]) : size[1];
    row[0] = floor((size[0] - high) / 2);
    row[1] = floor((size[1] - wide) / 2);
    row[2] = high;
    row[3] = wide;
    return 1;
}

/* RandomErasing: size, scale, logarithms of the ratio. Without a box that fits, the row stays. */
static int erase(Engine *e, const double *o, const double *own, double *row) {
    const double *size = size_of(o, own);
    double high, wide;
    for (int i = 0; i < 10; i++) {
        if (!sides(e, o, size, &high, &wide)) return 0;
        if (high < size[0] && wide < size[1]) {
            row[1] = (double)integer(e, (uint64_t)(size[0] - high) + 1);
            row[0] = (double)integer(e, (uint64_t)(size[1] - wide) + 1);
            row[2] = row[0] + wide;
            row[3] = row[1] + high;
            return 1;
        }
    }
    return 1;
}

/* A step of an automatic policy: its index, the index of its magnitude, and whether its sign is changed. Operands: the
 * number of magnitudes, 0 if none is drawn, and for each step whether it has a magnitude and a sign. */
static void policy(Engine *e, const double *o, int count, double *row) {
    const int step = (int)integer(e, (uint64_t)(count - 1)), flags = (int)o[1 + step];
    row[0] = step;
    row[1] = row[2] = 0;
    if (flags & HAS_MAGNITUDE && o[0] > 0) row[1] = (double)integer(e, (uint64_t)o[0]);
    if (flags & HAS_SIGN) row[2] = single(e, 0, 1) <= 0.5f;
}

static int holds(int relation, float x, float p) {
    return relation == LESS ? x < p : relation == AT_MOST ? x <= p : x >= p;
}

/* Run instructions that were checked; return 0 if torchvision's code must draw, because the last bits of torch.exp decide
 * a number, or to raise. */
static int run(Engine *e, const double *code, const double *end, const double *own, double *row) {
    while (code < end) {
        const int operation = (int)code[0], count = (int)code[2];
        const double *o = code + 4;
        double *to = row + (int)code[1];
        code = o + count;
        const double *after = code + (Py_ssize_t)o[-1];
        switch (operation) {
        case CHANCE:
            if (!holds((int)o[0], single(e, 0, 1), (float)o[1])) code = after;
            break;
        case WHEN: /* a negative value means: any number above 0 */
            if (!(o[0] < 0 ? *to > 0 : *to == o[0])) code = after;
            break;
        case PUT: *to = o[0]; break;
        case COPY: *to = row[(int)o[0]]; break;
        case UNIFORM:
            if (o[0] == SINGLE)
                *to = single(e, o[1], o[2]);
            else if (o[0] == SINGLE_ROUNDED)
                *to = rint(single(e, o[1], o[2])) + 0.0; /* an integer has no negative zero */
            else
                *to = in_double(e, o[1], o[2], o[0] == DOUBLE_FUSED);
            break;
        case INTEGER: *to = o[0] + o[1] * (double)integer(e, (uint64_t)o[2]); break;
        case PERMUTATION:
            memcpy(to, o, (size_t)count * sizeof *o);
            for (int i = 0; i < count - 1; i++) {
                const int other = i + (int)(word(e) % (uint32_t)(count - i));
                const double x = to[i];
                to[i] = to[other];
                to[other] = x;
            }
            break;
        case ROTATION: {
            const double first = to[0];
            memmove(to, to + 1, (size_t)(o[0] - 1) * sizeof *to);
            to[(int)o[0] - 1] = first;
            break;
        }
        case PLACE:
            if (!place(e, o, own, to)) return 0;
            break;
        case CROP:
            if (!crop(e, o, own, to)) return 0;
            break;
        case ERASE:
            if (!erase(e, o, own, to)) return 0;
            break;
        case POLICY: policy(e, o, count, to); break;
        }
    }
    return 1;
}

/* -- checks ------------------------------------------------------------------------------------------------------- */

#define MOST 9007199254740992.0 /* 2^53 */

static int is_whole(double x, double low, double high) { return x >= low && x <= high && x == floor(x); }

/* Return whether operands are a range of floats that ATen accepts, and whose width is one. */
static int is_range(const double *o) { return o[0] <= o[1] && fabs(o[0]) <= 1e30 && fabs(o[1]) <= 1e30; }

static int is_size(const double *o) { return is_whole(o[0], 1, 1 << 30) && is_whole(o[1], 1, 1 << 30); }

static int is_size_or_own(const double *o) { return is_size(o) || (o[0] == 0 && o[1] == 0); }

static int is_box(const double *o) {
    return is_size_or_own(o) && is_range(o + 2) && o[2] >= 0 && o[3] <= 1e6 && is_range(o + 4) && fabs(o[4]) <= 40 &&
           fabs(o[5]) <= 40;
}

/* Return the number of columns that an instruction uses from its own on; 0 if its operands are wrong. */
static Py_ssize_t width_of(int operation, const double *o, int count, Py_ssize_t columns) {
    switch (operation) {
    case CHANCE: return count == 2 && is_whole(o[0], LESS, AT_LEAST) && fabs(o[1]) <= 1e30;
    case WHEN: return count == 1 && o[0] == o[0];
    case PUT: return count == 1 && o[0] == o[0];
    case COPY: return count == 1 && is_whole(o[0], 0, (double)columns - 1);
    case UNIFORM: return count == 3 && is_whole(o[0], SINGLE, DOUBLE_FUSED) && is_range(o + 1);
    case INTEGER:
        return count == 3 && is_whole(o[0], -MOST, MOST) && is_whole(o[1], -MOST, MOST) && is_whole(o[2], 1, MOST);
    case PERMUTATION: return count;
    case ROTATION: return count == 1 && is_whole(o[0], 1, (double)columns) ? (Py_ssize_t)o[0] : 0;
    case PLACE: return count == 4 && is_size_or_own(o) && is_whole(o[2], 0, 1) && is_whole(o[3], -(1 << 30), 1 << 30);
    case CROP: return count == 8 && is_box(o) && o[6] > 1e-30 && o[6] <= o[7] && o[7] <= 1e30 ? 4 : 0;
    case ERASE: return count == 6 && is_box(o) ? 4 : 0;
    case POLICY:
        if (count < 2 || !is_whole(o[0], 0, 1 << 24)) return 0;
        for (int i = 1; i < count; i++)
            if (!is_whole(o[i], 0, HAS_MAGNITUDE | HAS_SIGN)) return 0;
        return 3;
    }
    return 0;
}

/* Return whether a list of instructions stays inside of itself and of the columns. */
static int is_valid(const double *code, const double *end, Py_ssize_t columns, int depth) {
    if (depth > DEEPEST) return 0;
    while (code < end) {
        if (end - code < 4 || !is_whole(code[0], 0, OPERATIONS - 1) || !is_whole(code[1], 0, (double)columns - 1) ||
            !is_whole(code[2], 0, (double)(end - code - 4)))
            return 0;
        const int operation = (int)code[0], count = (int)code[2];
        if (!is_whole(code[3], 0, (double)(end - code - 4 - count))) return 0;
        const Py_ssize_t block = (Py_ssize_t)code[3];
        if (block && operation != CHANCE && operation != WHEN) return 0;
        const Py_ssize_t width = width_of(operation, code + 4, count, columns);
        if (width < 1 || width > columns - (Py_ssize_t)code[1]) return 0;
        code += 4 + count;
        if (block && !is_valid(code, code + block, columns, depth + 1)) return 0;
        code += block;
    }
    return 1;
}

/* -- the module --------------------------------------------------------------------------------------------------- */

/* Read the engine of a generator; return 0 with an error set. */
static int get_engine(PyObject *generator, Engine *e) {
    PyObject *state = PyObject_CallMethod(generator, "get_state", NULL);
    PyObject *array = state ? PyObject_CallMethod(state, "numpy", NULL) : NULL;
    Py_XDECREF(state);
    Py_buffer bytes;
    const int failed = !array || PyObject_GetBuffer(array, &bytes, PyBUF_SIMPLE) < 0;
    Py_XDECREF(array); /* the buffer holds it */
    if (failed) return 0;
    const int known = bytes.len == STATE_SIZE && read_state(e, bytes.buf);
    if (!known)
        PyErr_Format(PyExc_ValueError, "draw: generator must have a state of PyTorch's of %d bytes, got %zd other bytes",
                     STATE_SIZE, bytes.len);
    PyBuffer_Release(&bytes);
    return known;
}

/* Let ``take(generator, count)`` take words from a generator; return whether they are those of the engine: 1 or 0, -1
 * with an error set. It returns int32, to which ATen gives the lower 31 bits of a word. */
static int take_words(PyObject *take, PyObject *generator, Engine *e, Py_ssize_t count) {
    PyObject *array = PyObject_CallFunction(take, "On", generator, count);
    Py_buffer words;
    const int failed = !array || PyObject_GetBuffer(array, &words, PyBUF_SIMPLE) < 0;
    Py_XDECREF(array);
    if (failed) return -1;
    int same = words.len == count * 4;
    for (Py_ssize_t i = 0; same && i < count; i++) {
        uint32_t other;
        memcpy(&other, (const char *)words.buf + 4 * i, 4);
        same = other == (word(e) & 0x7fffffffu);
    }
    PyBuffer_Release(&words);
    return same;
}

typedef struct {
    const double *code, *neutral; /* copies */
    Py_ssize_t length, columns;
    int has_own_sizes; /* whether there are sizes for each sample, and not for all */
    const Py_buffer *gate, *sizes, *out;
    double *row; /* for the row that is drawn */
} Task;

/* Draw the rows from ``first`` on; return the index of the first row that was not drawn, and the words for the others. */
static Py_ssize_t rows(Engine *e, const Task *t, Py_ssize_t first, Py_ssize_t *taken) {
    const Py_ssize_t count = t->gate->len, size = (Py_ssize_t)sizeof(double) * t->columns;
    for (Py_ssize_t i = first; i < count; i++) {
        double own[2];
        *taken = e->taken;
        memcpy(t->row, t->neutral, (size_t)size);
        memcpy(own, (const char *)t->sizes->buf + (t->has_own_sizes ? (size_t)i * sizeof own : 0), sizeof own);
        if (((const unsigned char *)t->gate->buf)[i] &&
            (!is_size(own) || !run(e, t->code, t->code + t->length, own, t->row)))
            return i;
        memcpy((char *)t->out->buf + i * size, t->row, (size_t)size);
    }
    *taken = e->taken;
    return count;
}

static Py_ssize_t draw_rows(PyObject *generator, PyObject *take, const Task *task, Py_ssize_t first) {
    for (int attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
        Engine engine, before;
        Py_ssize_t taken = 0;
        if (!get_engine(generator, &engine)) return -1;
        before = engine;
        const Py_ssize_t done = rows(&engine, task, first, &taken);
        const int same = taken ? take_words(take, generator, &before, taken) : 1;
        if (same) return same < 0 ? -1 : done;
    }
    return first; /* PyTorch draws for a sample, and does so in any case */
}

static PyObject *draw(PyObject *self, PyObject *arguments) {
    (void)self;
    PyObject *generator, *take, *result = NULL;
    Py_buffer code, neutral, gate, sizes, out;
    Py_ssize_t first;
    if (!PyArg_ParseTuple(arguments, "OOy*y*y*y*w*n:draw", &generator, &take, &code, &neutral, &gate, &sizes, &out,
                          &first))
        return NULL;
    const Py_ssize_t number = sizeof(double), pair = 2 * number;
    double *memory = NULL;
    if (code.len % number || neutral.len % number)
        PyErr_SetString(PyExc_ValueError, "draw: rules and neutral must be float64");
    else if ((neutral.len && gate.len > PY_SSIZE_T_MAX / neutral.len) || out.len != gate.len * neutral.len)
        PyErr_Format(PyExc_ValueError, "draw: out must have %zd rows of %zd bytes, got %zd bytes", gate.len, neutral.len,
                     out.len);
    else if (sizes.len != pair && (gate.len > PY_SSIZE_T_MAX / pair || sizes.len != gate.len * pair))
        PyErr_Format(PyExc_ValueError, "draw: sizes must have 1 or %zd pairs, got %zd bytes", gate.len, sizes.len);
    else if (first < 0 || first > gate.len)
        PyErr_Format(PyExc_ValueError, "draw: first must be a row of %zd, got %zd", gate.len, first);
    else if (!(memory = PyMem_Malloc((size_t)code.len + 2 * (size_t)neutral.len + 1)))
        PyErr_NoMemory();
    else { /* copies, because the arguments may share their memory with out */
        const Py_ssize_t length = code.len / number, columns = neutral.len / number;
        double *copied = memory + length;
        memcpy(memory, code.buf, (size_t)code.len);
        memcpy(copied, neutral.buf, (size_t)neutral.len);
        const Task task = {memory, copied, length, columns, sizes.len != pair, &gate, &sizes, &out, copied + columns};
        if (!is_valid(memory, memory + length, columns, 0))
            PyErr_SetString(PyExc_ValueError, "draw: rules must be instructions, got other numbers");
        else {
            const Py_ssize_t done = draw_rows(generator, take, &task, first);
            if (done >= 0) result = PyLong_FromSsize_t(done);
        }
    }
    PyMem_Free(memory);
    PyBuffer_Release(&code);
    PyBuffer_Release(&neutral);
    PyBuffer_Release(&gate);
    PyBuffer_Release(&sizes);
    PyBuffer_Release(&out);
    return result;
}

static PyObject *check(PyObject *self, PyObject *arguments) {
    (void)self;
    Py_buffer code;
    Py_ssize_t columns;
    if (!PyArg_ParseTuple(arguments, "y*n:check", &code, &columns)) return NULL;
    double *copied = code.len % (Py_ssize_t)sizeof(double) ? NULL : PyMem_Malloc((size_t)code.len + 1);
    int valid = 0;
    if (copied) {
        memcpy(copied, code.buf, (size_t)code.len);
        valid = is_valid(copied, copied + code.len / (Py_ssize_t)sizeof(double), columns, 0);
    }
    PyMem_Free(copied);
    PyBuffer_Release(&code);
    return PyBool_FromLong(valid);
}

static PyMethodDef methods[] = {
    {"check", check, METH_VARARGS,
     "check(rules, columns) -> bool\n\nReturn whether draw takes these rules for rows of so many numbers."},
    {"draw", draw, METH_VARARGS,
     "draw(generator, take, rules, neutral, gate, sizes, out, first) -> int\n\nDraw numbers for the samples from "
     "``first`` on whose gate is open; the others get the neutral numbers. ``sizes`` are the height and width of all "
     "samples or of each. Return the index of the first sample that was not drawn, because torchvision's code must draw "
     "it; the generator is then in the state before this sample."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_draws", "The draws of transforms from PyTorch's generators.", -1, methods, NULL, NULL,
    NULL,                  NULL,
};

PyMODINIT_FUNC PyInit__draws(void) { return PyModule_Create(&module); }
