/* JPEG files decoded by libjpeg-turbo into memory of any layout, whole or only a region of them, without the GIL.
 *
 * The module is optional: without libjpeg-turbo imgops calls Pillow, and gets the same pixels, later. It decodes only what
 * leaves no doubt. At the first error or warning of the library, and for every kind of file that is not ordinary, it
 * gives up, and Pillow decides.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#if !defined(LIBJPEG_TURBO_VERSION) || !defined(JCS_EXTENSIONS)
#error "imgops needs libjpeg-turbo, which can skip rows and columns; another libjpeg cannot"
#endif

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#include "_native_arrays.h"

#define TEXT_OF(name) #name
#define VERSION_TEXT(name) TEXT_OF(name)

enum { ROWS = 16 }; /* as many as a row of the largest blocks has */

/* Where the pixels go: the region from (left, top) on, which is height x width large. */
typedef struct {
    uint8_t *pixels;
    Py_ssize_t height, width, channels;
    Py_ssize_t row_step, channel_step;
    Py_ssize_t left, top, full_height, full_width;
    int planar;
} Target;

typedef struct {
    struct jpeg_decompress_struct jpeg; /* the first member, so that the library's pointer is one to this */
    struct jpeg_error_mgr errors;
    const uint8_t *scan; /* the data of the first scan */
    jmp_buf leave;
} Decoder;

static void on_error(j_common_ptr jpeg) { longjmp(((Decoder *)jpeg)->leave, 1); }

/* A negative level is a warning: data are missing or wrong, and the library would invent pixels. */
static void on_message(j_common_ptr jpeg, int level) {
    if (level < 0) longjmp(((Decoder *)jpeg)->leave, 1);
}

/* Split pixels of four bytes into three planes; the last byte of each is not used. */
static void split_row(const uint8_t *row, Py_ssize_t width, uint8_t *red, uint8_t *green, uint8_t *blue) {
    Py_ssize_t x = 0;
#if defined(__SSE2__)
    const __m128i low = _mm_set1_epi32(0xff);
    for (; x + 16 <= width; x += 16) {
        __m128i v[4], part[4];
        uint8_t *planes[3];
        int i, c;
        planes[0] = red, planes[1] = green, planes[2] = blue;
        for (i = 0; i < 4; i++) v[i] = _mm_loadu_si128((const __m128i *)(row + 4 * x) + i);
        for (c = 0; c < 3; c++) {
            for (i = 0; i < 4; i++) {
                part[i] = _mm_and_si128(v[i], low);
                v[i] = _mm_srli_epi32(v[i], 8);
            }
            _mm_storeu_si128((__m128i *)(planes[c] + x), _mm_packus_epi16(_mm_packs_epi32(part[0], part[1]),
                                                                         _mm_packs_epi32(part[2], part[3])));
        }
    }
#elif defined(__ARM_NEON)
    for (; x + 16 <= width; x += 16) {
        uint8x16x4_t v = vld4q_u8(row + 4 * x);
        vst1q_u8(red + x, v.val[0]);
        vst1q_u8(green + x, v.val[1]);
        vst1q_u8(blue + x, v.val[2]);
    }
#endif
    for (; x < width; x++) {
        red[x] = row[4 * x];
        green[x] = row[4 * x + 1];
        blue[x] = row[4 * x + 2];
    }
}

/* Whether every bit of every coefficient was sent. A progressive file that lacks its last scans is decoded without a
 * warning, only less sharp. */
static int all_sent(const struct jpeg_decompress_struct *jpeg) {
    int component, frequency;
    if (!jpeg->coef_bits) return 0;
    for (component = 0; component < jpeg->num_components; component++)
        for (frequency = 0; frequency < DCTSIZE2; frequency++)
            if (jpeg->coef_bits[component][frequency]) return 0;
    return 1;
}

/* Whether a marker has a fill byte before it: the format allows it, Pillow refuses it behind the data of a scan. */
static int has_fill(const uint8_t *at, const uint8_t *end) {
    while (at + 1 < end && (at = memchr(at, 0xff, (size_t)(end - 1 - at))))
        if (*++at == 0xff) return 1;
    return 0;
}

/* Read the header and begin; 0 where Pillow should decide. */
static int begin(Decoder *decoder, const uint8_t *data, Py_ssize_t size, const Target *target) {
    struct jpeg_decompress_struct *jpeg = &decoder->jpeg;
    jpeg_create_decompress(jpeg);
    jpeg_mem_src(jpeg, (unsigned char *)data, (unsigned long)size);
    jpeg_read_header(jpeg, TRUE);
    decoder->scan = jpeg->src->next_input_byte;
    if (jpeg->image_width != (JDIMENSION)target->full_width || jpeg->image_height != (JDIMENSION)target->full_height ||
        jpeg->data_precision != 8 || jpeg->arith_code || (jpeg->num_components != 1 && jpeg->num_components != 3) ||
        (target->channels == 1 && jpeg->num_components != 1) ||
        (jpeg_has_multiple_scans(jpeg) && !jpeg->progressive_mode))
        return 0;
    jpeg->out_color_space = target->channels == 1 ? JCS_GRAYSCALE : target->planar ? JCS_EXT_RGBX : JCS_RGB;
    jpeg_start_decompress(jpeg); /* reads the whole of a progressive file */
    return !jpeg->progressive_mode || all_sent(jpeg);
}

/* The library interpolates colors between blocks, so a region needs a block more on each side. */
static JDIMENSION skip(Decoder *decoder, const Target *target) {
    struct jpeg_decompress_struct *jpeg = &decoder->jpeg;
    Py_ssize_t across = 8 * jpeg->max_h_samp_factor, down = 8 * jpeg->max_v_samp_factor;
    Py_ssize_t left = target->left - across, top = target->top - down;
    Py_ssize_t right = target->left + target->width + across;
    JDIMENSION start, width;
    if (left < 0) left = 0;
    if (top < 0) top = 0;
    if (right > (Py_ssize_t)jpeg->output_width) right = jpeg->output_width;
    start = (JDIMENSION)left;
    width = (JDIMENSION)(right - left);
    if (width < jpeg->output_width) jpeg_crop_scanline(jpeg, &start, &width);
    if (top > 0) jpeg_skip_scanlines(jpeg, (JDIMENSION)top);
    return start;
}

/* 1 if the region was decoded, 0 if Pillow should decide. */
static int decode_region(Decoder *decoder, const uint8_t *data, Py_ssize_t size, const Target *target) {
    struct jpeg_decompress_struct *jpeg = &decoder->jpeg;
    Py_ssize_t bytes = target->channels == 1 ? 1 : target->planar ? 4 : 3;
    JSAMPROW rows[ROWS];
    JSAMPARRAY buffer;
    JDIMENSION start;
    Py_ssize_t bottom = target->top + target->height;
    int direct, i, count;
    if (!begin(decoder, data, size, target)) return 0;
    start = skip(decoder, target);
    /* The library writes to aligned rows past the cache, from which they are read at once: these rows are not aligned. */
    buffer = jpeg->mem->alloc_sarray((j_common_ptr)jpeg, JPOOL_IMAGE, jpeg->output_width * (JDIMENSION)bytes + 8, ROWS);
    for (i = 0; i < ROWS; i++) buffer[i] += 8;
    direct = (!target->planar || bytes == 1) && (Py_ssize_t)jpeg->output_width == target->width;
    while ((Py_ssize_t)jpeg->output_scanline < bottom) {
        Py_ssize_t y = (Py_ssize_t)jpeg->output_scanline - target->top, left = bottom - jpeg->output_scanline;
        int inside = direct && y >= 0;
        for (i = 0; i < ROWS && i < left; i++) rows[i] = inside ? target->pixels + (y + i) * target->row_step : buffer[i];
        count = (int)jpeg_read_scanlines(jpeg, rows, (JDIMENSION)i);
        if (!count) return 0;
        for (i = 0; i < count && !inside; i++) {
            uint8_t *out = target->pixels + (y + i) * target->row_step;
            const uint8_t *row = buffer[i] + (target->left - (Py_ssize_t)start) * bytes;
            if (y + i < 0) continue;
            if (bytes == 4)
                split_row(row, target->width, out, out + target->channel_step, out + 2 * target->channel_step);
            else
                memcpy(out, row, (size_t)(target->width * bytes));
        }
    }
    /* After the last row the end of the file must follow; of a region nothing below it is read. */
    if (jpeg->output_scanline == jpeg->output_height) jpeg_finish_decompress(jpeg);
    return !has_fill(decoder->scan, jpeg->src->next_input_byte);
}

static int run(const uint8_t *data, Py_ssize_t size, const Target *target) {
    Decoder decoder;
    int done;
    memset(&decoder, 0, sizeof decoder);
    decoder.jpeg.err = jpeg_std_error(&decoder.errors);
    decoder.errors.error_exit = on_error;
    decoder.errors.emit_message = on_message;
    done = setjmp(decoder.leave) ? 0 : decode_region(&decoder, data, size, target);
    jpeg_destroy_decompress(&decoder.jpeg);
    return done;
}

static PyObject *decode(PyObject *self, PyObject *args) {
    PyObject *out_object, *data_object, *result = NULL;
    const Py_buffer *out, *data;
    Target target = {0};
    Arrays arrays = {0};
    int done;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOnnnn", &out_object, &data_object, &target.left, &target.top, &target.full_height,
                          &target.full_width))
        return NULL;
    if (!(out = array_of(&arrays, out_object, "out", "B", 3, WRITABLE)) ||
        !(data = array_of(&arrays, data_object, "data", "B", 1, CONTIGUOUS)))
        goto end;
    target.pixels = out->buf;
    target.height = out->shape[0];
    target.width = out->shape[1];
    target.channels = out->shape[2];
    target.row_step = out->strides[0];
    target.channel_step = out->strides[2];
    target.planar = target.channels == 1 || out->strides[2] != 1;
    if (target.height == 1) target.row_step = target.width * (target.planar ? 1 : target.channels); /* it may be any */
    if (!require(target.channels == 1 || target.channels == 3, "out must have 1 or 3 channels") ||
        !require(target.height > 0 && target.width > 0, "out must have pixels") ||
        !require((target.width == 1 || out->strides[1] == (target.planar ? 1 : target.channels)) &&
                     target.row_step >= target.width * (target.planar ? 1 : target.channels) &&
                     (!target.planar || target.channels == 1 || target.channel_step >= target.row_step * target.height),
                 "out must have rows of pixels, or planes of such rows") ||
        !require(target.full_height <= 65535 && target.full_width <= 65535, "the image must be a possible JPEG") ||
        !require(target.left >= 0 && target.top >= 0 && target.width <= target.full_width - target.left &&
                     target.height <= target.full_height - target.top,
                 "the region must lie inside of the image"))
        goto end;
    Py_BEGIN_ALLOW_THREADS
    done = run(data->buf, data->len, &target);
    Py_END_ALLOW_THREADS
    result = PyBool_FromLong(done);
end:
    release(&arrays);
    return result;
}

/* The decoder that _native.c calls, of its type DecodeRegion: a region (left, top, height, width, and the height and width of the
 * whole image) of a file, into memory that has room for its pixels. The caller has checked the region. */
static int decode_to(uint8_t *pixels, const uint8_t *file, Py_ssize_t size, const int64_t *region, int channels, int interleaved) {
    Target target;
    memset(&target, 0, sizeof target);
    if (channels != 1 && channels != 3) return 0;
    target.pixels = pixels;
    target.left = (Py_ssize_t)region[0];
    target.top = (Py_ssize_t)region[1];
    target.height = (Py_ssize_t)region[2];
    target.width = (Py_ssize_t)region[3];
    target.full_height = (Py_ssize_t)region[4];
    target.full_width = (Py_ssize_t)region[5];
    target.channels = channels;
    target.planar = channels == 1 || !interleaved;
    target.row_step = target.planar ? target.width : target.width * channels;
    target.channel_step = target.planar ? target.width * target.height : 1;
    return run(file, size, &target);
}

static PyObject *decoder(void) {
    int (*function)(uint8_t *, const uint8_t *, Py_ssize_t, const int64_t *, int, int) = decode_to;
    void *pointer;
    memcpy(&pointer, &function, sizeof pointer);
    return PyCapsule_New(pointer, "imgops.decode_region", NULL);
}

/* What decode_each is told of each file; from LEFT on it is a region of decode_to. */
enum { OFFSET, LEFT, TOP, HEIGHT, WIDTH, FULL_HEIGHT, FULL_WIDTH, FACTS };

/* 1 if a region lies in its image and its pixels in the buffer; an exception otherwise. */
static int fits(const int64_t *facts, const Py_buffer *out, int channels) {
    int64_t offset = facts[OFFSET], height = facts[HEIGHT], width = facts[WIDTH];
    return require(0 < height && height <= facts[FULL_HEIGHT] && facts[FULL_HEIGHT] <= 65535 && 0 < width &&
                       width <= facts[FULL_WIDTH] && facts[FULL_WIDTH] <= 65535,
                   "a region must have pixels, and the image be a possible JPEG") &&
           require(0 <= facts[LEFT] && facts[LEFT] <= facts[FULL_WIDTH] - width && 0 <= facts[TOP] &&
                       facts[TOP] <= facts[FULL_HEIGHT] - height,
                   "the region must lie inside of the image") &&
           require(0 <= offset && offset <= out->len && height * width * channels <= out->len - offset,
                   "the region must lie inside of out");
}

static PyObject *decode_each(PyObject *self, PyObject *args) {
    PyObject *out_object, *files, *facts_object, *done_object, *result = NULL;
    const Py_buffer *out, *facts_view, *done;
    const int64_t *facts;
    Py_buffer *data = NULL;
    Arrays arrays = {0};
    Py_ssize_t i, first, last, opened = 0, count;
    int channels, interleaved;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOiinn", &out_object, &files, &facts_object, &done_object, &channels, &interleaved,
                          &first, &last))
        return NULL;
    if (!(out = array_of(&arrays, out_object, "out", "B", 1, CONTIGUOUS | WRITABLE)) ||
        !(facts_view = array_of(&arrays, facts_object, "facts", "q", 2, CONTIGUOUS)) ||
        !(done = array_of(&arrays, done_object, "done", "B", 1, CONTIGUOUS | WRITABLE)))
        goto end;
    if (!require(PyList_Check(files), "files must be a list")) goto end;
    count = PyList_Size(files);
    if (!require(facts_view->shape[0] == count && facts_view->shape[1] == FACTS && done->shape[0] == count,
                 "there must be facts for each file") ||
        !require(channels == 1 || channels == 3, "there must be 1 or 3 channels") ||
        !require(0 <= first && first <= last && last <= count, "the files must be files of the list"))
        goto end;
    facts = facts_view->buf;
    data = malloc((size_t)(last - first + 1) * sizeof *data);
    if (!data) {
        PyErr_NoMemory();
        goto end;
    }
    for (i = first; i < last; i++) {
        if (PyObject_GetBuffer(PyList_GetItem(files, i), &data[opened], PyBUF_SIMPLE) < 0) goto end;
        opened++;
        if (!fits(facts + i * FACTS, out, channels)) goto end;
    }
    Py_BEGIN_ALLOW_THREADS
    for (i = first; i < last; i++) {
        const int64_t *own = facts + i * FACTS;
        ((uint8_t *)done->buf)[i] = (uint8_t)decode_to((uint8_t *)out->buf + own[OFFSET], data[i - first].buf, data[i - first].len,
                                                       own + LEFT, channels, interleaved);
    }
    Py_END_ALLOW_THREADS
    result = Py_NewRef(Py_None);
end:
    while (opened) PyBuffer_Release(&data[--opened]);
    free(data);
    release(&arrays);
    return result;
}

/* ---- headers ----------------------------------------------------------------------------------- */

static int begins_with(const uint8_t *body, Py_ssize_t size, const char *text, Py_ssize_t length) {
    return size >= length && !memcmp(body, text, (size_t)length);
}

/* Whether a segment is one that Pillow reads without a doubt: it raises for some that are too short, and reads EXIF and
 * Photoshop's data, which can be wrong in many ways. `frames` counts the frame headers. */
static int is_ordinary_segment(int marker, const uint8_t *body, Py_ssize_t size, int *frames) {
    Py_ssize_t at;
    switch (marker) {
    case 0xc0: /* frames: baseline, extended, progressive */
    case 0xc1:
    case 0xc2:
        return !(*frames)++ && size >= 9 && body[0] == 8 && size == 6 + 3 * body[5] && (body[5] == 1 || body[5] == 3);
    case 0xdb: /* tables of quantization, of 8 or 16 bits */
        for (at = 0; at < size; at += body[at] >> 4 ? 129 : 65)
            if (body[at] >> 4 > 1) return 0;
        return at == size;
    case 0xc4: /* tables of codes */
    case 0xdd: /* restart interval */
    case 0xfe: /* comment */
        return 1;
    case 0xe0: return !begins_with(body, size, "JFIF", 4) || size >= 12;
    case 0xe1:
    case 0xed: return 0;
    case 0xe2: return !begins_with(body, size, "ICC_PROFILE", 12) || size >= 14;
    case 0xee: return !begins_with(body, size, "Adobe", 5) || size >= 12;
    default: return marker >= 0xe3 && marker <= 0xef;
    }
}

static PyObject *header(PyObject *self, PyObject *args) {
    PyObject *object, *result = NULL;
    const Py_buffer *data;
    Arrays arrays = {0};
    const uint8_t *raw, *body;
    Py_ssize_t at = 2, size, length;
    int height = 0, width = 0, channels = 0, frames = 0, complete = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "O", &object)) return NULL;
    if (!(data = array_of(&arrays, object, "data", "B", 1, CONTIGUOUS))) goto end;
    raw = data->buf;
    size = data->len;
    if (size > 2 && raw[0] == 0xff && raw[1] == 0xd8) {
        while (at + 4 <= size && raw[at] == 0xff) {
            int marker = raw[at + 1];
            body = raw + at + 4;
            length = raw[at + 2] << 8 | raw[at + 3];
            if (length < 2 || at + 2 + length > size) break;
            if (marker == 0xda) {
                complete = frames == 1 && height && width;
                break;
            }
            if (!is_ordinary_segment(marker, body, length - 2, &frames)) break;
            if (marker >= 0xc0 && marker <= 0xc2) {
                height = body[1] << 8 | body[2];
                width = body[3] << 8 | body[4];
                channels = body[5];
            }
            at += 2 + length;
        }
    }
    result = complete ? Py_BuildValue("iii", width, height, channels) : Py_NewRef(Py_None);
end:
    release(&arrays);
    return result;
}

static PyMethodDef methods[] = {
    {"header", header, METH_VARARGS,
     "header(data) -> (width, height, channels) or None\n\n"
     "Read the header of a JPEG. None where Pillow should read it: no JPEG, with EXIF data, or not ordinary."},
    {"decode", decode, METH_VARARGS,
     "decode(out, data, left, top, full_height, full_width) -> bool\n\n"
     "Decode the region of a JPEG that begins at (left, top) and has the size of `out` (height, width, channels), which may\n"
     "be interleaved or planar. False, with anything in `out`, where the library had an error or a warning, or the file\n"
     "is not ordinary: one of another size or with other channels, in several scans without being progressive, ..."},
    {"decode_each", decode_each, METH_VARARGS,
     "decode_each(out, files, facts, done, channels, interleaved, first, last)\n\n"
     "The same for the files from first to last of a list: facts (n, 7) are where in `out` (bytes) the region begins, its\n"
     "left, top, height and width, and the height and width of the whole image. done (n) tells which were decoded."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_native_jpeg", "JPEG files decoded by libjpeg-turbo.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native_jpeg(void) {
    PyObject *created = PyModule_Create(&module), *capsule = created ? decoder() : NULL;
    if (!capsule || PyModule_AddStringConstant(created, "version", VERSION_TEXT(LIBJPEG_TURBO_VERSION)) < 0 ||
        PyModule_AddObjectRef(created, "decoder", capsule) < 0)
        Py_CLEAR(created);
    Py_XDECREF(capsule);
    return created;
}
