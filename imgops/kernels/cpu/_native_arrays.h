/* Arrays from Python, by the buffer protocol: type, dimensions, strides and alignment are checked here, so that a wrong
 * call raises. Included by _native.c and _native_jpeg.c.
 */
#define MOST_ARRAYS 9
enum { CONTIGUOUS = 1, WRITABLE = 2, ANY_DIMENSIONS = -1 };

typedef struct {
    Py_buffer view[MOST_ARRAYS];
    int count;
} Arrays;

static void release(Arrays *arrays) {
    while (arrays->count) PyBuffer_Release(&arrays->view[--arrays->count]);
}

/* 'B' uint8, 'i' int32, 'q' int64, 'f' float32, 'd' float64; 0 anything else. */
static char kind_of(const Py_buffer *view) {
    const char *format = view->format ? view->format : "B";
    if (*format == '@' || *format == '=') format++;
    if (!format[0] || format[1]) return 0;
    switch (*format) {
    case 'B': return view->itemsize == 1 ? 'B' : 0;
    case 'i':
    case 'l':
    case 'q': return view->itemsize == 4 ? 'i' : view->itemsize == 8 ? 'q' : 0;
    case 'f': return view->itemsize == 4 ? 'f' : 0;
    case 'd': return view->itemsize == 8 ? 'd' : 0;
    default: return 0;
    }
}

static int is_contiguous(const Py_buffer *view) {
    Py_ssize_t step = view->itemsize;
    int i;
    for (i = view->ndim - 1; i >= 0; i--) {
        if (view->shape[i] == 0) return 1;
        if (view->shape[i] != 1 && view->strides[i] != step) return 0;
        step *= view->shape[i];
    }
    return 1;
}

/* An array of one of `kinds`; NULL, and an exception, where `object` is none. */
static const Py_buffer *array_of(Arrays *arrays, PyObject *object, const char *name, const char *kinds, int dimensions,
                                 int flags) {
    Py_buffer *view = &arrays->view[arrays->count];
    int i, aligned, writable = flags & WRITABLE ? PyBUF_WRITABLE : 0;
    char kind;
    if (PyObject_GetBuffer(object, view, PyBUF_FORMAT | PyBUF_STRIDES | writable) < 0) return NULL;
    arrays->count++;
    kind = kind_of(view);
    if (!kind || !strchr(kinds, kind)) {
        PyErr_Format(PyExc_TypeError, "native: %s must have a type of '%s', got '%s'", name, kinds,
                     view->format ? view->format : "B");
        return NULL;
    }
    if (dimensions != ANY_DIMENSIONS && view->ndim != dimensions) {
        PyErr_Format(PyExc_ValueError, "native: %s must have %d dimensions, got %d", name, dimensions, view->ndim);
        return NULL;
    }
    aligned = (uintptr_t)view->buf % (size_t)view->itemsize == 0;
    for (i = 0; i < view->ndim; i++) aligned = aligned && view->strides[i] % view->itemsize == 0;
    if (!aligned) {
        PyErr_Format(PyExc_ValueError, "native: %s must be aligned, got strides or an address that are not", name);
        return NULL;
    }
    if (flags & CONTIGUOUS && !is_contiguous(view)) {
        PyErr_Format(PyExc_ValueError, "native: %s must be contiguous, got strides", name);
        return NULL;
    }
    return view;
}

static inline Py_ssize_t values_of(const Py_buffer *view) { return view->len / view->itemsize; }

static int require(int condition, const char *must) {
    if (!condition) PyErr_Format(PyExc_ValueError, "native: %s", must);
    return condition;
}
