/* Programs on images of different sizes: packed bytes, or regions of files. The first step is a window: PIL's antialiased
 * resize of a box to a size of the image's own, of which a part of one size for all images is kept. Only this part is
 * computed, and only the pixels that it needs are decoded. Included by _native.c alone.
 */

/* The decoder of _native_jpeg.c: a region (left, top, height, width, and the height and width of the whole image) of a file.
 * 0 where other code must decode the file. */
typedef int (*DecodeRegion)(uint8_t *pixels, const uint8_t *file, Py_ssize_t size, const int64_t *region, int channels,
                            int interleaved);
#define DECODER_NAME "imgops.decode_region"

/* The facts of an image: where its bytes begin and end, and its height and width. */
enum { START, STOP, HEIGHT, WIDTH, FACTS };

/* Images of which other code must decode the file. */
enum { NOT_DECODED = 2 };

/* What a window shows along one axis: `count` outputs from `first` on, behind `before` that lie outside, made of the inputs from
 * low to high. Without weights nothing is resampled. */
typedef struct {
    Py_ssize_t first, count, before, low, high;
    Table table;
} Axis;

static int axis_of(Axis *axis, size_t filter, Py_ssize_t size, Py_ssize_t target, int64_t corner, Py_ssize_t window) {
    int64_t last = corner + window < target ? corner + window : target;
    Py_ssize_t o;
    memset(axis, 0, sizeof *axis);
    axis->first = corner > 0 ? (Py_ssize_t)corner : 0;
    axis->before = corner < -window ? window : corner < 0 ? (Py_ssize_t)-corner : 0;
    if (last <= axis->first) return 1;
    axis->count = (Py_ssize_t)last - axis->first;
    if (!pil_axis(&axis->table, filter, size, 0.0, (double)size, target, 1)) return 0;
    if (!axis->table.weight) {
        axis->low = axis->first;
        axis->high = (Py_ssize_t)last;
        return 1;
    }
    axis->table.start += axis->first;
    axis->table.length += axis->first;
    axis->table.weight += axis->first * axis->table.taps;
    axis->table.out = axis->count;
    axis->low = size;
    for (o = 0; o < axis->count; o++) {
        Py_ssize_t start = axis->table.start[o], end = start + axis->table.length[o];
        if (start < axis->low) axis->low = start;
        if (end > axis->high) axis->high = end;
    }
    for (o = 0; o < axis->count; o++) ((int32_t *)axis->table.start)[o] -= (int32_t)axis->low;
    return 1;
}

static void free_axis(Axis *axis) {
    if (axis->table.weight) free((void *)(axis->table.weight - axis->first * axis->table.taps));
}

/* Whether the numbers of a window are those of a box with pixels in an image, and of a possible size. */
static int is_window(const double *n, int64_t height, int64_t width) {
    const double far = (double)((int64_t)1 << 40), most = INT32_MAX;
    return is_whole(n[BOX], 0, (double)width) && is_whole(n[BOX + 1], 0, (double)height) &&
           is_whole(n[BOX + 2], n[BOX] + 1, (double)width) && is_whole(n[BOX + 3], n[BOX + 1] + 1, (double)height) &&
           is_whole(n[TARGET_HEIGHT], 1, most) && is_whole(n[TARGET_WIDTH], 1, most) &&
           n[TARGET_HEIGHT] * n[TARGET_WIDTH] <= most && is_whole(n[WINDOW_LEFT], -far, far) &&
           is_whole(n[WINDOW_TOP], -far, far);
}

/* Put what is seen of a window in its place, and the color around it. */
static void place(Image *to, const char *seen, const Axis *y, const Axis *x, int64_t color) {
    Py_ssize_t pixel = to->channels, plane, row, i, c;
    for (plane = 0; plane < to->planes; plane++)
        for (row = 0; row < to->height; row++) {
            char *out = to->at + (plane * to->height + row) * to->width * pixel;
            Py_ssize_t from = row - y->before, start = x->before, end = x->before + x->count;
            if (from < 0 || from >= y->count) start = end = to->width;
            for (i = 0; i < to->width; i++) {
                if (i == start && start < end) i = end;
                if (i == to->width) break;
                for (c = 0; c < pixel; c++) out[i * pixel + c] = (char)(color >> 8 * (pixel > 1 ? c : plane) & 255);
            }
            if (start < end)
                memcpy(out + start * pixel, seen + (plane * y->count + from) * x->count * pixel,
                       (size_t)((end - start) * pixel));
        }
}

/* The memory of a thread: two images between steps, words of a warp, and room for a region. */
typedef struct {
    uint8_t *image[2], *region;
    uint32_t *words;
    Py_ssize_t room;
} Scratch;

/* The window of an image or file from `at` to `end`; 0 without memory, else DONE or NOT_DECODED. */
static int run_window(const Program *p, const double *n, const int64_t *facts, const uint8_t *data, DecodeRegion decode,
                      Image *to, const Scratch *scratch) {
    const Instruction *s = p->steps;
    Py_ssize_t height = (Py_ssize_t)(n[BOX + 3] - n[BOX + 1]), width = (Py_ssize_t)(n[BOX + 2] - n[BOX]);
    Py_ssize_t target_height = (Py_ssize_t)n[TARGET_HEIGHT], target_width = (Py_ssize_t)n[TARGET_WIDTH];
    size_t filter = (size_t)(s->a & 255);
    const uint8_t *from;
    uint8_t *region = NULL;
    char *seen = to->at;
    Axis y, x = {0};
    int done = axis_of(&y, filter, height, target_height, (int64_t)n[WINDOW_TOP], to->height) &&
               axis_of(&x, filter, width, target_width, (int64_t)n[WINDOW_LEFT], to->width);
    if (done && y.count && x.count) {
        int64_t where[] = {(int64_t)n[BOX] + x.low, (int64_t)n[BOX + 1] + y.low, y.high - y.low, x.high - x.low,
                           facts[HEIGHT], facts[WIDTH]};
        Py_ssize_t rows = (Py_ssize_t)where[2], columns = (Py_ssize_t)where[3];
        Py_ssize_t row = to->channels * (decode ? columns : (Py_ssize_t)facts[WIDTH]);
        Py_ssize_t plane = row * (decode ? rows : (Py_ssize_t)facts[HEIGHT]), i;
        int whole = y.count == to->height && x.count == to->width;
        if (!whole) seen = (char *)scratch->image[1];
        if (decode) {
            int fits = rows * columns * p->channels <= scratch->room;
            region = fits ? scratch->region : malloc((size_t)(rows * columns * p->channels));
            from = region;
            if (!region)
                done = 0;
            else if (!decode(region, data + facts[START], (Py_ssize_t)(facts[STOP] - facts[START]), where, (int)p->channels,
                             p->interleaved))
                done = NOT_DECODED;
            if (fits) region = NULL;
        } else
            from = data + facts[START] + where[1] * row + where[0] * to->channels;
        if (done == DONE && !y.table.weight && !x.table.weight) {
            for (i = 0; i < to->planes; i++)
                crop_plane(seen + i * y.count * x.count * to->channels, (const char *)from + i * plane, y.count,
                           x.count * to->channels, y.count, row, 0, 0);
        } else if (done == DONE) {
            Py_ssize_t shape[4], strides[4], seen_shape[4], seen_strides[4];
            Py_buffer target, source;
            as_frame(&target, seen_shape, seen_strides, seen, to->planes, y.count * x.count * to->channels, y.count, x.count,
                     to->channels, x.count * to->channels);
            as_frame(&source, shape, strides, (char *)from, to->planes, plane, rows, columns, to->channels, row);
            done = resampled(&target, &source, &y.table, &x.table,
                             p->shrinks_rows_first && target_height < height &&
                                 height - target_height > 2 * (width - target_width),
                             1, p->simd);
        }
        free(region);
        if (done == DONE && !whole) place(to, seen, &y, &x, s->a >> 8);
    } else if (done)
        place(to, seen, &y, &x, s->a >> 8);
    free_axis(&y);
    free_axis(&x);
    return done;
}

static PyObject *run_sources(PyObject *self, PyObject *args) {
    PyObject *out_object, *data_object, *facts_object, *decoder_object, *steps_object, *numbers_object, *tables_object;
    PyObject *done_object, *counter_object, *scratch_object, *result = NULL;
    const Py_buffer *data, *facts, *numbers, *tables, *done, *counter, *memory;
    DecodeRegion decode = NULL;
    Arrays arrays = {0};
    Image out;
    Program p, rest;
    Scratch scratch;
    Py_ssize_t i, frames, per_row, out_size, most = 0, words_size;
    int found, interleaved, shrinks_rows_first, simd, has_memory = 1;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOOOOOOOppi", &out_object, &data_object, &facts_object, &decoder_object, &steps_object,
                          &numbers_object, &tables_object, &done_object, &counter_object, &scratch_object, &interleaved,
                          &shrinks_rows_first, &simd))
        return NULL;
    if ((found = image_of(out_object, &out)) < 0) return NULL;
    if (!found || out.dimensions != 4 || !out.values || out.shape[1] > MOST_CHANNELS) return PyLong_FromLong(0);
    if (!(data = array_of(&arrays, data_object, "data", "B", 1, CONTIGUOUS)) ||
        !(facts = array_of(&arrays, facts_object, "facts", "q", 2, CONTIGUOUS)) ||
        !(numbers = array_of(&arrays, numbers_object, "numbers", "d", 2, CONTIGUOUS)) ||
        !(done = array_of(&arrays, done_object, "done", "B", 1, CONTIGUOUS | WRITABLE)) ||
        !(counter = array_of(&arrays, counter_object, "counter", "q", 1, CONTIGUOUS | WRITABLE)) ||
        !(memory = array_of(&arrays, scratch_object, "scratch", "B", 1, CONTIGUOUS | WRITABLE)))
        goto end;
    if (decoder_object != Py_None) {
        void *pointer = PyCapsule_GetPointer(decoder_object, DECODER_NAME);
        if (!pointer) goto end;
        memcpy(&decode, &pointer, sizeof decode);
    }
    memset(&p, 0, sizeof p);
    p.columns = numbers->shape[1];
    p.channels = out.shape[1];
    p.interleaved = interleaved && p.channels > 1;
    p.shrinks_rows_first = shrinks_rows_first;
    p.simd = usable_simd(simd);
    frames = out.shape[0];
    found = program_of(&p, &arrays, steps_object, tables_object, &tables, &out, &most, &words_size);
    if (found <= 0) {
        if (!found) result = PyLong_FromLong(0);
        goto end;
    }
    if (!require(p.steps[0].kind == WINDOW_STEP, "the first step must be a window") ||
        !require(facts->shape[0] == frames && facts->shape[1] == FACTS && done->shape[0] == frames && counter->shape[0] == 1,
                 "there must be facts of each image, and one counter") ||
        !require(numbers->shape[0] > 0 && frames % numbers->shape[0] == 0, "numbers must be those of equal parts of the images") ||
        !require((uintptr_t)memory->buf % sizeof(uint32_t) == 0 && memory->len >= words_size + 2 * most * p.channels,
                 "scratch must have room for two images, and for a word for each pixel of a warp"))
        goto end;
    rest = p;
    rest.steps++;
    rest.count--;
    per_row = frames / numbers->shape[0];
    for (i = 0; i < frames; i++) {
        const int64_t *fact = (const int64_t *)facts->buf + i * FACTS, size = fact[STOP] - fact[START];
        const double *row = (const double *)numbers->buf + i / per_row * p.columns;
        const int64_t longest = decode ? 65535 : INT32_MAX;
        if (!require(0 <= fact[START] && fact[START] <= fact[STOP] && fact[STOP] <= data->len && 0 < fact[HEIGHT] &&
                         fact[HEIGHT] <= longest && 0 < fact[WIDTH] && fact[WIDTH] <= longest,
                     "images must have pixels, and lie in data") ||
            (!decode && !require(fact[HEIGHT] <= size / fact[WIDTH] / p.channels &&
                                     fact[HEIGHT] * fact[WIDTH] * p.channels == size,
                                 "sizes must be those of images in data")))
            goto end;
        if (!is_window(row + p.steps[0].column, fact[HEIGHT], fact[WIDTH]) ||
            !check_row(&rest, row, (Py_ssize_t)p.steps[0].height, (Py_ssize_t)p.steps[0].width)) {
            result = PyLong_FromLong(0);
            goto end;
        }
    }
    out_size = out.values / frames * out.itemsize;
    scratch.words = memory->buf;
    scratch.image[0] = (uint8_t *)memory->buf + words_size;
    scratch.image[1] = scratch.image[0] + most * p.channels;
    scratch.region = scratch.image[1] + most * p.channels;
    scratch.room = memory->len - words_size - 2 * most * p.channels;
    Py_BEGIN_ALLOW_THREADS
    while (has_memory && (i = (Py_ssize_t)NEXT((int64_t *)counter->buf)) < frames && i >= 0) {
        const double *row = (const double *)numbers->buf + i / per_row * p.columns;
        char *to = out.at + i * out_size;
        Image image;
        int decoded;
        memset(&image, 0, sizeof image);
        image.height = (Py_ssize_t)p.steps[0].height;
        image.width = (Py_ssize_t)p.steps[0].width;
        set_format(&image, p.channels, p.interleaved);
        image.at = tables || last_change(&rest, row, image) >= 0 ? (char *)scratch.image[0] : to;
        decoded = run_window(&p, row + p.steps[0].column, (const int64_t *)facts->buf + i * FACTS, data->buf, decode, &image,
                             &scratch);
        if (decoded == DONE)
            has_memory = run_image(&rest, row, image, to, tables ? tables->buf : NULL, tables && tables->shape[0] > 1,
                                   scratch.image, scratch.words) > 0;
        else
            has_memory = decoded;
        ((uint8_t *)done->buf)[i] = has_memory && decoded == DONE;
    }
    Py_END_ALLOW_THREADS
    if (has_memory)
        result = PyLong_FromLong(1);
    else
        PyErr_NoMemory();
end:
    release(&arrays);
    return result;
}
