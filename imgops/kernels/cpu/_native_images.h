/* Images of PyTorch, asked for their memory by their own methods: for a small image an array in between costs more than
 * the pixels. Whatever is not a tensor of one of the two memory formats is declined, and the caller goes another way.
 * Included by _native.c alone.
 */
#define MOST_DIMENSIONS 16

typedef struct {
    char *at;
    int dimensions, interleaved;
    Py_ssize_t shape[MOST_DIMENSIONS], itemsize, values;
    /* planar: a plane for each channel, of rows of pixels; interleaved: a frame, whose pixels have all channels */
    Py_ssize_t planes, height, width, channels;
} Image;

static PyObject *shape_name, *itemsize_name, *stride_name, *pointer_name;

static int make_names(void) {
    return (shape_name = PyUnicode_InternFromString("shape")) && (stride_name = PyUnicode_InternFromString("stride")) &&
           (itemsize_name = PyUnicode_InternFromString("itemsize")) &&
           (pointer_name = PyUnicode_InternFromString("data_ptr"));
}

/* -1 and an exception where it is none. */
static Py_ssize_t number_of(PyObject *number) {
    Py_ssize_t value;
    if (!number) return -1;
    value = PyLong_AsSsize_t(number);
    Py_DECREF(number);
    return value;
}

static int numbers_of(PyObject *tuple, Py_ssize_t *numbers, int most) {
    Py_ssize_t i, count;
    if (!tuple) return -1;
    count = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : -1;
    for (i = 0; i < count && i < most; i++) {
        numbers[i] = PyLong_AsSsize_t(PyTuple_GetItem(tuple, i));
        if (numbers[i] == -1 && PyErr_Occurred()) count = -1;
    }
    Py_DECREF(tuple);
    if (count < 0 && !PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "native: image must be a tensor");
    return (int)count;
}

/* Whether strides are those of these sizes, the last one first; of one alone, or of none, they mean nothing. */
static int is_dense(const Py_ssize_t *shape, const Py_ssize_t *stride, const int *order, int dimensions) {
    Py_ssize_t step = 1;
    int i;
    for (i = dimensions - 1; i >= 0; i--) {
        Py_ssize_t size = shape[order[i]];
        if (size > 1 && stride[order[i]] != step) return 0;
        step *= size;
    }
    return 1;
}

/* 1, 0 where it has neither memory format, -1 and an exception. */
static int image_of(PyObject *object, Image *image) {
    Py_ssize_t stride[MOST_DIMENSIONS];
    int i, n, order[MOST_DIMENSIONS];
    void *at;
    PyObject *pointer;
    n = numbers_of(PyObject_GetAttr(object, shape_name), image->shape, MOST_DIMENSIONS);
    if (n < 0) return -1;
    if (n < 3 || n > MOST_DIMENSIONS) return 0;
    if (numbers_of(PyObject_CallMethodObjArgs(object, stride_name, NULL), stride, MOST_DIMENSIONS) != n) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "native: image must be a tensor");
        return -1;
    }
    image->itemsize = number_of(PyObject_GetAttr(object, itemsize_name));
    if (image->itemsize <= 0) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "native: image must be a tensor");
        return -1;
    }
    pointer = PyObject_CallMethodObjArgs(object, pointer_name, NULL);
    if (!pointer) return -1;
    at = PyLong_AsVoidPtr(pointer);
    Py_DECREF(pointer);
    if (!at && PyErr_Occurred()) return -1;
    image->at = at;
    image->dimensions = n;
    image->values = 1;
    for (i = 0; i < n; i++) {
        image->values *= image->shape[i];
        order[i] = i;
    }
    image->height = image->shape[n - 2];
    image->width = image->shape[n - 1];
    image->interleaved = !is_dense(image->shape, stride, order, n);
    if (image->interleaved) {
        order[n - 3] = n - 2;
        order[n - 2] = n - 1;
        order[n - 1] = n - 3;
        if (!is_dense(image->shape, stride, order, n)) return 0;
    }
    image->channels = image->interleaved ? image->shape[n - 3] : 1;
    image->planes = 1;
    for (i = 0; i < n - 2 - image->interleaved; i++) image->planes *= image->shape[i];
    return 1;
}

/* Both images, of one format and type; 1, 0 where they are not such, -1 and an exception. */
static int images_of(PyObject *out_object, PyObject *image_object, Image *out, Image *image) {
    int found = image_of(out_object, out);
    if (found == 1) found = image_of(image_object, image);
    if (found != 1) return found;
    if (out->interleaved != image->interleaved && out->values && image->values) {
        /* One channel, or one pixel, is of both formats: as planes its rows are the same. */
        return 0;
    }
    return out->itemsize == image->itemsize && out->dimensions == image->dimensions && out->planes == image->planes &&
           out->channels == image->channels;
}

/* From this many bytes on other threads may run meanwhile. */
#define LONG_WORK (1 << 16)

/* One plane or frame: rows of `row` bytes of the image, shown from (left, top) on; zeros outside. left in bytes. */
static void crop_plane(char *out, const char *in, Py_ssize_t out_height, Py_ssize_t out_row, Py_ssize_t height,
                       Py_ssize_t row, Py_ssize_t left, Py_ssize_t top) {
    Py_ssize_t y, start = left < 0 ? -left : 0, end = row - left;
    if (start > out_row) start = out_row;
    if (end > out_row) end = out_row;
    if (end < start) end = start;
    for (y = 0; y < out_height; y++, out += out_row) {
        Py_ssize_t from = y + top;
        if (from < 0 || from >= height || start == end) {
            memset(out, 0, (size_t)out_row);
            continue;
        }
        if (start) memset(out, 0, (size_t)start);
        memcpy(out + start, in + from * row + left + start, (size_t)(end - start));
        if (end < out_row) memset(out + end, 0, (size_t)(out_row - end));
    }
}

/* Coordinates beyond these say nothing more, and cannot overflow. */
static Py_ssize_t clamped(Py_ssize_t value) {
    const Py_ssize_t most = (Py_ssize_t)1 << 40;
    return value > most ? most : value < -most ? -most : value;
}

typedef struct {
    Image out, image;
    const int64_t *boxes; /* the left and the top of each of equal parts of the planes */
    Py_ssize_t per_box;
} Crop;

static void run_crop(void *job, Py_ssize_t start, Py_ssize_t stop) {
    const Crop *c = job;
    Py_ssize_t i, pixel = c->image.itemsize * c->image.channels;
    Py_ssize_t out_size = c->out.height * c->out.width * pixel, size = c->image.height * c->image.width * pixel;
    for (i = start; out_size && i < stop; i++) {
        const int64_t *box = c->boxes + i / c->per_box * 2;
        crop_plane(c->out.at + i * out_size, c->image.at + i * size, c->out.height, c->out.width * pixel, c->image.height,
                   c->image.width * pixel, clamped(box[0]) * pixel, clamped(box[1]));
    }
}

static PyObject *crop(PyObject *self, PyObject *args) {
    PyObject *out_object, *image_object;
    Crop job;
    int64_t box[2];
    Py_ssize_t left, top;
    int threads, found;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOnni", &out_object, &image_object, &left, &top, &threads)) return NULL;
    if ((found = images_of(out_object, image_object, &job.out, &job.image)) < 0) return NULL;
    if (!found) Py_RETURN_FALSE;
    box[0] = left;
    box[1] = top;
    job.boxes = box;
    job.per_box = job.out.planes ? job.out.planes : 1;
    if (job.out.planes * job.out.height * job.out.width * job.out.channels * job.out.itemsize < LONG_WORK) {
        run_crop(&job, 0, job.out.planes);
    } else {
        Py_BEGIN_ALLOW_THREADS
        in_parallel(threads, job.out.planes, run_crop, &job);
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_TRUE;
}

/* Each image of a batch by its own box: `boxes` has the left and the top of each, as int64. */
static PyObject *crop_each(PyObject *self, PyObject *args) {
    PyObject *out_object, *image_object, *boxes_object, *result = NULL;
    const Py_buffer *boxes;
    Arrays arrays = {0};
    Crop job;
    int threads, found;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOi", &out_object, &image_object, &boxes_object, &threads)) return NULL;
    if ((found = images_of(out_object, image_object, &job.out, &job.image)) < 0) return NULL;
    if (!found) Py_RETURN_FALSE;
    if (!(boxes = array_of(&arrays, boxes_object, "boxes", "q", 2, CONTIGUOUS)) ||
        !require(boxes->shape[1] == 2 && boxes->shape[0] > 0 && job.out.planes % boxes->shape[0] == 0,
                 "boxes must be those of equal parts of the planes"))
        goto end;
    job.boxes = boxes->buf;
    job.per_box = job.out.planes / boxes->shape[0];
    Py_BEGIN_ALLOW_THREADS
    in_parallel(threads, job.out.planes, run_crop, &job);
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_True);
end:
    release(&arrays);
    return result;
}

/* What the functions of bytes need: two images of one shape. */
static int bytes_of(PyObject *out_object, PyObject *image_object, Image *out, Image *image) {
    int i, found = images_of(out_object, image_object, out, image);
    if (found != 1) return found;
    for (i = 0; i < out->dimensions; i++) found = found && out->shape[i] == image->shape[i];
    return found && out->itemsize == 1;
}

static void look_up(char *out, const char *in, const uint8_t *table, Py_ssize_t values, Py_ssize_t period, int simd) {
    Color job = {out, in, table, values, 1, period, 0, 0};
    (simd == 2 ? passes[LUT_PASS].u8[2] : passes[LUT_PASS].u8[0])(&job);
}

static PyObject *levels(PyObject *self, PyObject *args) {
    PyObject *out_object, *image_object;
    const char *table;
    Py_ssize_t length;
    Image out, image;
    int found, simd;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOy#i", &out_object, &image_object, &table, &length, &simd)) return NULL;
    if (!require(length == 256, "a table must have 256 values")) return NULL;
    if ((found = bytes_of(out_object, image_object, &out, &image)) < 0) return NULL;
    if (!found) Py_RETURN_FALSE;
    simd = usable_simd(simd);
    if (out.values < LONG_WORK) {
        look_up(out.at, image.at, (const uint8_t *)table, out.values, 1, simd);
    } else {
        Py_BEGIN_ALLOW_THREADS
        look_up(out.at, image.at, (const uint8_t *)table, out.values, 1, simd);
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_TRUE;
}

/* PIL's table of a plane with these extremes, in its double arithmetic: nothing is fused. */
static void contrast_table(uint8_t *table, int low, int high) {
    double scale, offset;
    int i;
    for (i = 0; i < 256; i++) table[i] = (uint8_t)i;
    if (high <= low) return;
    scale = 255.0 / (double)(high - low);
    offset = -(double)low * scale;
    for (i = 0; i < 256; i++) {
        double level = (double)i * scale;
        level = level + offset;
        table[i] = level < 0.0 ? 0 : level > 255.0 ? 255 : (uint8_t)level;
    }
}

/* PIL's table of a plane in which levels occur so often. */
static void equal_table(uint8_t *table, const int64_t *counts) {
    int64_t total = 0, last = 0, step, before = 0;
    int i;
    for (i = 0; i < 256; i++) {
        total += counts[i];
        if (counts[i]) last = counts[i];
    }
    step = (total - last) / 255;
    for (i = 0; i < 256; i++) {
        int64_t level = step ? (before + step / 2) / step : i;
        table[i] = level > 255 ? 255 : (uint8_t)level;
        before += counts[i];
    }
}

enum { MOST_PERIOD = 4 };

static void stretch(const Image *out, const Image *image, int equalize, int simd) {
    Py_ssize_t pixels = image->height * image->width, size = pixels * image->channels, i, c;
    for (i = 0; i < image->planes; i++) {
        uint8_t tables[MOST_PERIOD * 256];
        for (c = 0; c < image->channels; c++) {
            int64_t counts[256];
            uint8_t ends[2];
            Color job = {equalize ? (void *)counts : (void *)ends,
                         image->at + i * size + c, NULL, pixels, image->channels, 0, 0, 0};
            passes[equalize ? HISTOGRAM_PASS : EXTREMES_PASS].u8[simd](&job);
            if (equalize)
                equal_table(tables + 256 * c, counts);
            else
                contrast_table(tables + 256 * c, ends[0], ends[1]);
        }
        look_up(out->at + i * size, image->at + i * size, tables, size, image->channels, simd);
    }
}

static PyObject *stretch_levels(PyObject *self, PyObject *args) {
    PyObject *out_object, *image_object;
    Image out, image;
    int found, simd, equalize;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOpi", &out_object, &image_object, &equalize, &simd)) return NULL;
    if ((found = bytes_of(out_object, image_object, &out, &image)) < 0) return NULL;
    if (!found || image.channels > MOST_PERIOD) Py_RETURN_FALSE;
    simd = usable_simd(simd);
    if (!out.values) {
    } else if (out.values < LONG_WORK) {
        stretch(&out, &image, equalize, simd);
    } else {
        Py_BEGIN_ALLOW_THREADS
        stretch(&out, &image, equalize, simd);
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_TRUE;
}

/* PIL's gray of three bytes a pixel, in three equal channels, in the frames that are chosen; the others are copied. */
static void gray_frames(const Image *out, const Image *image, const uint8_t *chosen, Py_ssize_t each, Py_ssize_t frames,
                        int simd) {
    Py_ssize_t pixels = image->height * image->width, i, at, n, k;
    uint8_t gray[STRIP];
    for (i = 0; i < frames; i++) {
        const uint8_t *in = (const uint8_t *)image->at + i * 3 * pixels;
        uint8_t *to = (uint8_t *)out->at + i * 3 * pixels;
        if (!chosen[i / each]) {
            memcpy(to, in, (size_t)(3 * pixels));
            continue;
        }
        for (at = 0; at < pixels; at += STRIP) {
            Py_ssize_t step = image->interleaved ? 3 : 1;
            n = pixels - at < STRIP ? pixels - at : STRIP;
            {
                Color job = {gray, in + at * step, NULL, n, step, image->interleaved ? 1 : pixels, 0, 0};
                passes[GRAY_PASS].u8[simd](&job);
            }
            if (image->interleaved)
                for (k = 0; k < n; k++) to[3 * (at + k)] = to[3 * (at + k) + 1] = to[3 * (at + k) + 2] = gray[k];
            else
                for (k = 0; k < 3; k++) memcpy(to + k * pixels + at, gray, (size_t)n);
        }
    }
}

static PyObject *gray(PyObject *self, PyObject *args) {
    PyObject *out_object, *image_object;
    const char *chosen;
    Py_ssize_t parts, frames;
    Image out, image;
    int found, simd;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOy#i", &out_object, &image_object, &chosen, &parts, &simd)) return NULL;
    if ((found = bytes_of(out_object, image_object, &out, &image)) < 0) return NULL;
    if (!found || image.shape[image.dimensions - 3] != 3) Py_RETURN_FALSE;
    simd = usable_simd(simd);
    if (!out.values) Py_RETURN_TRUE;
    frames = out.values / (3 * image.height * image.width);
    if (!require(parts > 0 && frames % parts == 0, "the chosen must be equal parts of the frames")) return NULL;
    if (out.values < LONG_WORK) {
        gray_frames(&out, &image, (const uint8_t *)chosen, frames / parts, frames, simd);
    } else {
        Py_BEGIN_ALLOW_THREADS
        gray_frames(&out, &image, (const uint8_t *)chosen, frames / parts, frames, simd);
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_TRUE;
}

/* A plane or frame as the resampling takes it: (1, height, width, channels), rows `row` bytes apart. */
static void as_frame(Py_buffer *view, Py_ssize_t *shape, Py_ssize_t *strides, char *at, Py_ssize_t planes, Py_ssize_t plane,
                     Py_ssize_t height, Py_ssize_t width, Py_ssize_t channels, Py_ssize_t row) {
    memset(view, 0, sizeof *view);
    shape[0] = planes, shape[1] = height, shape[2] = width, shape[3] = channels;
    strides[0] = plane, strides[1] = row, strides[2] = channels, strides[3] = 1;
    view->buf = at;
    view->itemsize = 1;
    view->ndim = 4;
    view->format = "B";
    view->shape = shape;
    view->strides = strides;
}

/* PIL's antialiased resize of what a box cuts out, of each of equal parts of a batch of bytes. Boxes are (parts, 4):
 * left, top, right, bottom. 0 without memory. */
static int resize_boxes(const Image *out, const Image *image, const int64_t *boxes, Py_ssize_t parts, size_t filter,
                        int shrinks_rows_first, int simd) {
    Py_ssize_t i, planes = image->planes / parts, channels = image->channels, row = image->width * channels;
    Py_ssize_t size = image->height * row, out_size = out->height * out->width * channels;
    for (i = 0; i < parts; i++, boxes += 4) {
        Py_ssize_t shape[4], strides[4], out_shape[4], out_strides[4];
        Py_ssize_t width = (Py_ssize_t)(boxes[2] - boxes[0]), height = (Py_ssize_t)(boxes[3] - boxes[1]), p;
        char *to = out->at + i * planes * out_size;
        char *from = image->at + i * planes * size + boxes[1] * row + boxes[0] * channels;
        Py_buffer target, source;
        Table ty = {0}, tx = {0};
        int rows_first, done;
        if (width == out->width && height == out->height) {
            for (p = 0; p < planes; p++)
                crop_plane(to + p * out_size, image->at + (i * planes + p) * size, height, width * channels, image->height, row,
                           (Py_ssize_t)boxes[0] * channels, (Py_ssize_t)boxes[1]);
            continue;
        }
        as_frame(&target, out_shape, out_strides, to, planes, out_size, out->height, out->width, channels, out->width * channels);
        as_frame(&source, shape, strides, from, planes, size, height, width, channels, row);
        rows_first = shrinks_rows_first && out->height < height && height - out->height > 2 * (width - out->width);
        done = pil_axis(&ty, filter, height, 0.0, (double)height, out->height, 1) &&
               pil_axis(&tx, filter, width, 0.0, (double)width, out->width, 1) &&
               resampled(&target, &source, &ty, &tx, rows_first, 1, simd);
        free((void *)ty.weight);
        free((void *)tx.weight);
        if (!done) return 0;
    }
    return 1;
}

static PyObject *resized_crops(PyObject *self, PyObject *args) {
    const char *name;
    PyObject *out_object, *image_object, *boxes_object, *result = NULL;
    const Py_buffer *boxes;
    Arrays arrays = {0};
    Image out, image;
    Py_ssize_t i;
    size_t filter;
    int found, simd, shrinks_rows_first, done = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOspi", &out_object, &image_object, &boxes_object, &name, &shrinks_rows_first, &simd))
        return NULL;
    for (filter = 0; filter < sizeof filters / sizeof *filters && strcmp(filters[filter].name, name); filter++) {
    }
    if (!require(filter < sizeof filters / sizeof *filters, "filter must be one of PIL's")) return NULL;
    if ((found = images_of(out_object, image_object, &out, &image)) < 0) return NULL;
    if (!found || out.itemsize != 1 || image.channels >= 1 << 20) Py_RETURN_FALSE;
    if (!(boxes = array_of(&arrays, boxes_object, "boxes", "q", 2, CONTIGUOUS)) ||
        !require(boxes->shape[1] == 4 && boxes->shape[0] > 0 && out.planes % boxes->shape[0] == 0,
                 "boxes must be those of equal parts of the planes") ||
        !require(out.values > 0 && image.height <= INT32_MAX && image.width <= INT32_MAX, "images must have pixels"))
        goto end;
    for (i = 0; i < boxes->shape[0]; i++) {
        const int64_t *box = (const int64_t *)boxes->buf + 4 * i;
        if (!require(0 <= box[0] && box[0] < box[2] && box[2] <= image.width && 0 <= box[1] && box[1] < box[3] &&
                         box[3] <= image.height,
                     "a box must have pixels and lie in the image"))
            goto end;
    }
    simd = usable_simd(simd);
    Py_BEGIN_ALLOW_THREADS
    done = resize_boxes(&out, &image, boxes->buf, boxes->shape[0], filter, shrinks_rows_first, simd);
    Py_END_ALLOW_THREADS
    result = PyBool_FromLong(done);
end:
    release(&arrays);
    return result;
}

/* Rows of bytes from their end, in the frames that are chosen; the others are copied. */
static void mirror_frames(const Image *out, const Image *image, const uint8_t *chosen, Py_ssize_t frames, int simd) {
    Py_ssize_t i, y, x, size = out->values / frames, pixel = out->channels, row = out->width * pixel;
    for (i = 0; i < frames; i++) {
        uint8_t *to = (uint8_t *)out->at + i * size;
        const uint8_t *from = (const uint8_t *)image->at + i * size;
        if (!chosen[i])
            memcpy(to, from, (size_t)size);
        else if (pixel == 1)
            mirror_rows(to, from, size / row, row, simd);
        else
            for (y = 0; y < size / row; y++, to += row, from += row)
                for (x = 0; x < out->width; x++) memcpy(to + x * pixel, from + row - (x + 1) * pixel, (size_t)pixel);
    }
}

static PyObject *mirror_chosen(PyObject *self, PyObject *args) {
    PyObject *out_object, *image_object;
    const char *chosen;
    Py_ssize_t frames;
    Image out, image;
    int found, simd;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOy#i", &out_object, &image_object, &chosen, &frames, &simd)) return NULL;
    if ((found = bytes_of(out_object, image_object, &out, &image)) < 0) return NULL;
    if (!found) Py_RETURN_FALSE;
    if (!require(frames > 0 && out.planes % frames == 0, "the frames must be equal parts of the planes")) return NULL;
    simd = usable_simd(simd);
    if (out.values) {
        Py_BEGIN_ALLOW_THREADS
        mirror_frames(&out, &image, (const uint8_t *)chosen, frames, simd);
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_TRUE;
}

/* ---- steps of color; some read more than one pixel -------------------------------------------------- */

enum { POSTERIZE = HUE_TURN + 1, SOLARIZE, INVERT, AUTOCONTRAST, EQUALIZE, SHARPNESS };

static void levels_of_step(uint8_t *table, int32_t kind, float amount) {
    int i;
    for (i = 0; i < 256; i++)
        table[i] = (uint8_t)(kind == POSTERIZE                          ? i & (256 - (256 >> (int)amount))
                             : kind == INVERT || amount <= (float)i ? 255 - i
                                                                        : i);
}

/* The levels of a step of one channel, which is its own luma; those of brightness are the same for any channels. */
static void levels_of_gray(uint8_t *table, int32_t kind, float amount, const uint8_t *in, Py_ssize_t values) {
    int64_t total = 0;
    int32_t from = 0;
    Py_ssize_t i;
    if (kind == CONTRAST) {
        for (i = 0; i < values; i++) total += in[i];
        from = (int32_t)((double)total / (double)values + 0.5);
    }
    for (i = 0; i < 256; i++)
        table[i] = kind == HUE_TURN ? (uint8_t)i : mix_u8(kind == SATURATION ? (int32_t)i : from, (int32_t)i, amount);
}

/* The steps of one frame; `spare` is as large. */
static void run_steps(uint8_t *out, const uint8_t *in, const Image *image, const int32_t *kinds, const float *amounts,
                      Py_ssize_t most, uint8_t *spare, int simd) {
    Py_ssize_t pixels = image->height * image->width, i = 0, j, planes = image->planes, size = pixels * image->channels;
    Py_ssize_t values = planes * size;
    const uint8_t *source = in;
    while (i < most && kinds[i] >= 0) {
        if (kinds[i] <= HUE_TURN && values == 3 * pixels) {
            for (j = i; j < most && kinds[j] >= 0 && kinds[j] <= HUE_TURN;) j++;
            sequences_u8[simd](out, source, pixels, image->interleaved ? 3 : 1, image->interleaved ? 1 : pixels, kinds + i,
                               amounts + i, (int)(j - i));
            i = j;
        } else if (kinds[i] <= INVERT) {
            uint8_t table[256];
            if (kinds[i] <= HUE_TURN)
                levels_of_gray(table, kinds[i], amounts[i], source, values);
            else
                levels_of_step(table, kinds[i], amounts[i]);
            look_up((char *)out, (const char *)source, table, values, 1, simd);
            i++;
        } else if (kinds[i] <= EQUALIZE) {
            Image to = *image, from = *image;
            to.at = (char *)out;
            from.at = (char *)source;
            stretch(&to, &from, kinds[i] == EQUALIZE, simd);
            i++;
        } else {
            if (source == out) { /* it reads neighbors of the pixel it writes */
                memcpy(spare, out, (size_t)values);
                source = spare;
            }
            for (j = 0; j < planes; j++)
                sharpens[simd](out + j * size, source + j * size, image->height, image->width, (int)image->channels, amounts[i]);
            i++;
        }
        source = out;
    }
    if (source == in && out != in) memcpy(out, in, (size_t)values);
}
