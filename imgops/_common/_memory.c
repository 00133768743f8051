/* Blocks of memory for large outputs, which return to a pool when the last reference to them ends.
 *
 * The C library maps memory of more than 32 MB anew for each call, and the kernel then clears and maps its pages one by
 * one, which takes longer than the work of most operators. A block of the pool has its pages already. Blocks of 2 MB and
 * more begin at a huge page. The GIL protects the state: no function releases it.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)
#define MOST_KEPT 1024
/* The pool keeps at most what was in use at once during the last one or two windows of this many allocations, or this
 * many bytes, so that outputs of a few sizes in turn find a block even if only one of them lives at a time. */
#define WINDOW 256
#define ALWAYS_KEPT ((size_t)32 << 20)

typedef struct {
    PyObject_HEAD
    char *data;
    size_t capacity;
} Block;

static struct {
    char *data;
    size_t capacity;
} kept[MOST_KEPT]; /* the oldest first */
static int kept_count;
static size_t kept_bytes, used_bytes, limit = (size_t)1 << 30;
static size_t peak, peak_before, allocations;
static PyTypeObject *block_type;

/* Sizes are rounded up to eighths of a power of two, so that batches of similar sizes use the same blocks. */
static size_t rounded(size_t size) {
    size_t step = (size_t)1 << 17;
    while (step * 16 <= size) step *= 2;
    return (size + step - 1) / step * step;
}

static char *map(size_t capacity) {
    const size_t more = capacity >= HUGE_PAGE ? HUGE_PAGE : 0;
    char *whole = mmap(NULL, capacity + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (whole == MAP_FAILED) return NULL;
    if (!more) return whole;
    const size_t before = (HUGE_PAGE - (size_t)whole % HUGE_PAGE) % HUGE_PAGE;
    if (before) munmap(whole, before);
    if (more - before) munmap(whole + before + capacity, more - before);
#ifdef MADV_HUGEPAGE
    madvise(whole + before, capacity, MADV_HUGEPAGE);
#endif
    return whole + before;
}

static void forget(int index) {
    kept_bytes -= kept[index].capacity;
    memmove(kept + index, kept + index + 1, (size_t)(--kept_count - index) * sizeof kept[0]);
}

/* Free the oldest blocks until there is room for one more, and at most these bytes are kept. */
static void shrink(size_t bytes) {
    while (kept_count && (kept_bytes > bytes || kept_count == MOST_KEPT)) {
        munmap(kept[0].data, kept[0].capacity);
        forget(0);
    }
}

static size_t bound(void) {
    size_t most = peak > peak_before ? peak : peak_before;
    if (most < ALWAYS_KEPT) most = ALWAYS_KEPT;
    return most < limit ? most : limit;
}

static PyObject *allocate(PyObject *self, PyObject *argument) {
    (void)self;
    const size_t size = PyLong_AsSize_t(argument);
    if (PyErr_Occurred()) return NULL;
    if (size == 0 || size > PTRDIFF_MAX / 2) {
        PyErr_SetString(PyExc_ValueError, "allocate: size must be positive and fit into memory");
        return NULL;
    }
    const size_t capacity = rounded(size);
    Block *block = PyObject_New(Block, block_type);
    if (!block) return NULL;
    block->data = NULL;
    block->capacity = capacity;
    int best = -1; /* the smallest block of at most twice the size; of equal ones the latest, which a cache may hold */
    for (int i = kept_count - 1; i >= 0; i--)
        if (kept[i].capacity >= capacity && kept[i].capacity / 2 <= capacity &&
            (best < 0 || kept[i].capacity < kept[best].capacity)) {
            best = i;
            if (kept[i].capacity == capacity) break;
        }
    if (best >= 0) {
        block->data = kept[best].data;
        block->capacity = kept[best].capacity;
        forget(best);
    } else { /* what is in use and what is kept stay within the bound together */
        const size_t most = bound(), needed = used_bytes + capacity;
        shrink(most > needed ? most - needed : 0);
        block->data = map(capacity);
        if (!block->data) { /* blocks of other sizes may have the rest of the memory */
            shrink(0);
            block->data = map(capacity);
        }
        if (!block->data) {
            block->capacity = 0;
            Py_DECREF(block);
            return PyErr_NoMemory();
        }
    }
    used_bytes += block->capacity;
    if (++allocations % WINDOW == 0) {
        peak_before = peak;
        peak = used_bytes;
        shrink(bound());
    } else if (used_bytes > peak)
        peak = used_bytes;
    return (PyObject *)block;
}

static void release(PyObject *self) {
    Block *block = (Block *)self;
    PyTypeObject *type = Py_TYPE(self);
    if (block->data) {
        used_bytes -= block->capacity;
        const size_t most = bound();
        if (block->capacity > most)
            munmap(block->data, block->capacity);
        else {
            shrink(most - block->capacity);
            kept[kept_count].data = block->data;
            kept[kept_count++].capacity = block->capacity;
            kept_bytes += block->capacity;
        }
    }
    PyObject_Free(self);
    Py_DECREF(type);
}

static int view(PyObject *self, Py_buffer *buffer, int flags) {
    Block *block = (Block *)self;
    return PyBuffer_FillInfo(buffer, self, block->data, (Py_ssize_t)block->capacity, 0, flags);
}

static PyObject *set_limit(PyObject *self, PyObject *argument) {
    (void)self;
    const size_t bytes = PyLong_AsSize_t(argument);
    if (PyErr_Occurred()) return NULL;
    limit = bytes < PTRDIFF_MAX ? bytes : PTRDIFF_MAX;
    shrink(bound());
    Py_RETURN_NONE;
}

static PyObject *statistics(PyObject *self, PyObject *arguments) {
    (void)self;
    (void)arguments;
    return Py_BuildValue("nnn", (Py_ssize_t)used_bytes, (Py_ssize_t)kept_bytes, (Py_ssize_t)limit);
}

static PyType_Slot slots[] = {
    {Py_tp_dealloc, release},
    {Py_bf_getbuffer, view},
    {0, NULL},
};
static PyType_Spec spec = {
    "imgops._common._memory.Block", sizeof(Block), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots,
};

static PyMethodDef methods[] = {
    {"allocate", allocate, METH_O,
     "allocate(size) -> Block\n\nReturn a writable buffer of at least this many bytes, of any values."},
    {"set_limit", set_limit, METH_O, "set_limit(bytes)\n\nSet how much memory the pool keeps at most; 0 keeps none."},
    {"statistics", statistics, METH_NOARGS,
     "statistics() -> (used, kept, limit)\n\nThe bytes of blocks in use, of blocks that wait for their next use, and the limit."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_memory", "A pool of memory for large outputs.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__memory(void) {
    if (!block_type) block_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return block_type ? PyModule_Create(&module) : NULL;
}
