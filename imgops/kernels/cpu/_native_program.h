/* A program: steps that each image of a batch goes through before the next image begins, in memory that stays in the
 * cache. The steps are the functions of the other headers; a step that changes nothing is left out. Included by
 * _native.c alone.
 */
#if defined(_MSC_VER)
#include <intrin.h>
#define NEXT(counter) _InterlockedExchangeAdd64((volatile __int64 *)(counter), 1)
#else
#define NEXT(counter) __atomic_fetch_add((counter), 1, __ATOMIC_RELAXED)
#endif

/* The kinds of steps; native.py has the same order. The numbers of each are in the row of the image. */
enum {
    CROP_STEP,   /* nothing; a, b: left and top */
    RESIZE_STEP, /* a box; a: the filter, b: how the box is given, see below */
    MIRROR_STEP, /* whether: more than 0 */
    FLIP_STEP,   /* the same */
    COLOR_STEP,  /* the order, then the amount of each name; a: the length of the order, b: the kinds of the names. With
                    ONE_AMOUNT in a, one amount is that of all names */
    GRAY_STEP,   /* whether: more than 0 */
    BLUR_STEP,   /* sigma across and down; a, b: the width and the height of the kernel */
    WARP_STEP,   /* an affine matrix; a: the color outside, the first channel lowest, b: 0 for the nearest pixels, 1 for
                    bilinear weights */
    ERASE_STEP,  /* left, top, right, bottom; a: the color, the first channel lowest */
    SPLIT_STEP,  /* nothing: an interleaved frame becomes planar */
    PAD_STEP,    /* nothing; a, b: the border at the left and at the top, c: the rule in the upper half, see below, and the
                    color of CONSTANT in the lower one, the first channel lowest */
    WINDOW_STEP, /* see _native_sources.h: only the first step of images of different sizes */
    KINDS
};

/* How the box of RESIZE_STEP is given: left, top, right and bottom; not at all, for the whole image; top, left, height and
 * width; top and left of a box of the size of the result. */
enum { EDGES, WHOLE, SIDES, CORNER };

/* The numbers of WINDOW_STEP: a box, the size to which it is resized, and the corner of what is kept of that; a: the filter,
 * and from the ninth bit on the color outside. */
enum { BOX, TARGET_HEIGHT = 4, TARGET_WIDTH, WINDOW_LEFT, WINDOW_TOP, WINDOW_NUMBERS };

/* What a border shows: a color, the nearest pixel, or the image mirrored at its outermost pixels, which appear once or twice. */
enum { CONSTANT, EDGE, REFLECT, SYMMETRIC, RULES };

/* From this many bytes on a result does not stay in the cache. */
#define STREAMED ((Py_ssize_t)8 << 20)

/* The kinds of the names of a color step have four bits each, from the lowest on; 15 ends them. */
enum { MOST_STEPS = 256, MOST_ORDER = 64, MOST_NAMES = 15, MOST_CHANNELS = 4, LONGEST_WARP = 32766, ONE_AMOUNT = 1 << 16 };

/* `height` and `width` are those of the result. */
typedef struct {
    int64_t kind, column, height, width, a, b, c;
} Instruction;

typedef struct {
    const Instruction *steps;
    Py_ssize_t count, columns, channels;
    int interleaved, shrinks_rows_first, streams, simd;
} Program;

/* A whole number between two bounds; NaN is none. */
static int is_whole(double value, double least, double most) {
    return value >= least && value <= most && value == floor(value);
}

static int kind_of_name(const Instruction *s, int64_t name) { return (int)(s->b >> 4 * name & 15); }

static Py_ssize_t names_of(const Instruction *s) {
    Py_ssize_t count = 0;
    while (count < MOST_NAMES && kind_of_name(s, count) <= SHARPNESS) count++;
    return count;
}

/* Whether a color mixes channels, and so needs one or three. */
static int mixes(const Instruction *s) {
    Py_ssize_t i;
    for (i = names_of(s) - 1; i >= 0; i--) {
        int kind = kind_of_name(s, i);
        if (kind == CONTRAST || kind == SATURATION || kind == HUE_TURN) return 1;
    }
    return 0;
}

static Py_ssize_t length_of(const Instruction *s) { return (Py_ssize_t)(s->a & ~(int64_t)ONE_AMOUNT); }

/* The edges of the box of a resize; 0 where it does not lie in the image, or has no pixels. */
static int box_of(const Instruction *s, const double *n, Py_ssize_t height, Py_ssize_t width, int64_t *box) {
    double left = 0, top = 0, right = (double)width, bottom = (double)height;
    if (s->b == EDGES) {
        left = n[0], top = n[1], right = n[2], bottom = n[3];
    } else if (s->b == SIDES) {
        top = n[0], left = n[1], bottom = top + n[2], right = left + n[3];
    } else if (s->b == CORNER) {
        top = n[0], left = n[1], bottom = top + (double)s->height, right = left + (double)s->width;
    }
    if (!is_whole(left, 0, (double)width) || !is_whole(top, 0, (double)height) || !is_whole(right, left + 1, (double)width) ||
        !is_whole(bottom, top + 1, (double)height))
        return 0;
    box[0] = (int64_t)left, box[1] = (int64_t)top, box[2] = (int64_t)right, box[3] = (int64_t)bottom;
    return 1;
}

/* How many numbers a step has; -1 where its arguments are wrong. */
static Py_ssize_t numbers_of_step(const Instruction *s, Py_ssize_t channels) {
    const int64_t widest = 2 * MOST_WEIGHTS - 1, far = (int64_t)1 << 40, colors = (int64_t)1 << 8 * channels;
    switch (s->kind) {
    case CROP_STEP: return s->a >= -far && s->a <= far && s->b >= -far && s->b <= far ? 0 : -1;
    case RESIZE_STEP:
        if (s->a < 0 || s->a >= (int64_t)(sizeof filters / sizeof *filters) || s->b < EDGES || s->b > CORNER) return -1;
        return s->b == WHOLE ? 0 : s->b == CORNER ? 2 : 4;
    case MIRROR_STEP:
    case FLIP_STEP: return 1;
    case COLOR_STEP:
        if ((channels != 1 && channels != 3 && mixes(s)) || s->a <= 0 || length_of(s) <= 0 || length_of(s) > MOST_ORDER || s->b < 0) return -1;
        return length_of(s) + (s->a & ONE_AMOUNT ? 1 : names_of(s));
    case GRAY_STEP: return channels == 3 ? 1 : -1;
    case BLUR_STEP: return s->a > 0 && s->a <= widest && s->a % 2 && s->b > 0 && s->b <= widest && s->b % 2 ? 2 : -1;
    case WARP_STEP: return s->a >= 0 && s->a < colors && (s->b == 1 || (s->b == 0 && channels == 3)) ? 6 : -1;
    case ERASE_STEP: return s->a >= 0 && s->a < colors ? 4 : -1;
    case SPLIT_STEP: return 0;
    case WINDOW_STEP:
        if ((s->a & 255) >= (int64_t)(sizeof filters / sizeof *filters) || s->a < 0 || s->a >> 8 >= (int64_t)1 << 8 * channels)
            return -1;
        return WINDOW_NUMBERS;
    case PAD_STEP:
        return s->a >= 0 && s->a <= INT32_MAX && s->b >= 0 && s->b <= INT32_MAX && s->c >= 0 && s->c >> 32 < RULES &&
                       (s->c & 0xFFFFFFFF) < colors
                   ? 0
                   : -1;
    default: return -1;
    }
}

/* OpenCV's weights of a Gaussian on bytes, in 256ths, the middle one first: from the outside in, each is rounded with the
 * error of those before it, and the middle one takes what is missing. Returns how far they reach. */
static Py_ssize_t weights_of(int64_t size, double sigma, uint16_t *to) {
    const double no_blur = 0.02;
    double value[MOST_WEIGHTS], total = 0, error = 0;
    Py_ssize_t half = (Py_ssize_t)size / 2, x, reach = 0;
    int32_t sum = 0;
    to[0] = 256;
    if (!half || sigma <= no_blur) return 0;
    for (x = half; x > 0; x--) {
        value[x] = exp(-0.5 / (sigma * sigma) * (double)x * (double)x);
        total += value[x];
    }
    total = 2 * total + 1;
    for (x = half; x > 0; x--) {
        double exact = value[x] / total * 256 + error, whole = rint(exact);
        error = exact - whole;
        to[x] = (uint16_t)whole;
        sum += (int32_t)whole;
        if (!reach && to[x]) reach = x;
    }
    to[0] = (uint16_t)(256 - 2 * sum);
    return reach;
}

static int is_identity(const double *m) {
    return m[0] == 1 && m[1] == 0 && m[2] == 0 && m[3] == 0 && m[4] == 1 && m[5] == 0;
}

/* The inverse as OpenCV computes it; that of a singular matrix is 0. */
static void inverse_of(const double *m, float *to) {
    double determinant = m[0] * m[4] - m[1] * m[3], scale = determinant != 0 ? 1 / determinant : 0;
    double a = m[4] * scale, b = -m[1] * scale, c = -m[3] * scale, d = m[0] * scale;
    to[0] = (float)a;
    to[1] = (float)b;
    to[2] = (float)(-a * m[2] - b * m[5]);
    to[3] = (float)c;
    to[4] = (float)d;
    to[5] = (float)(-c * m[2] - d * m[5]);
}

/* The chosen colors in their order, with the amounts that levels take; returns how many. */
static int colors_of(const Instruction *s, const double *n, int32_t *kinds, float *amounts) {
    Py_ssize_t names = names_of(s), length = length_of(s), i;
    int count = 0;
    for (i = 0; i < length; i++) {
        int32_t kind;
        double amount;
        if (!(n[i] >= 0 && n[i] < (double)names)) continue;
        kind = kind_of_name(s, (int64_t)n[i]);
        amount = n[length + (s->a & ONE_AMOUNT ? 0 : (Py_ssize_t)n[i])];
        if (kind == HUE_TURN) { /* one of PIL's 256 hues */
            amount = trunc(amount * 255);
            amount = isfinite(amount) ? fmod(amount, 256) : 0;
            if (amount < 0) amount += 256;
        } else if (kind == POSTERIZE) {
            amount = amount >= 8 ? 8 : amount > 0 ? trunc(amount) : 0;
        } else if (kind == SOLARIZE) {
            amount = isnan(amount) || amount >= 256 ? 256 : amount > 0 ? ceil(amount) : 0;
        }
        kinds[count] = kind;
        amounts[count++] = (float)amount;
    }
    return count;
}

/* Whether a step can do what a row asks of it, for an image of this size. */
static int is_valid(const Instruction *s, const double *n, Py_ssize_t height, Py_ssize_t width, Py_ssize_t channels,
                    int interleaved) {
    if (s->kind == SPLIT_STEP || s->kind == RESIZE_STEP || s->kind == CROP_STEP || s->kind == WARP_STEP ||
        s->kind == PAD_STEP) {
        if (s->height <= 0 || s->width <= 0 || s->height > INT32_MAX || s->width > INT32_MAX / s->height) return 0;
    } else if (s->height != height || s->width != width)
        return 0;
    switch (s->kind) {
    case RESIZE_STEP: {
        int64_t box[4];
        return box_of(s, n, height, width, box);
    }
    case COLOR_STEP: return height >= 3 && width >= 3;
    case BLUR_STEP: return n[0] > 0 && n[1] > 0; /* without a sigma it follows from the size, which random ones never do */
    case WARP_STEP: /* OpenCV warps two interleaved channels in another way */
        if (interleaved && channels == 2) return 0;
        return height <= LONGEST_WARP && width <= LONGEST_WARP && s->height <= LONGEST_WARP &&
               s->width <= LONGEST_WARP && height * width < 1 << 24 && s->height * s->width < 1 << 24;
    case ERASE_STEP:
        return is_whole(n[0], 0, (double)width) && is_whole(n[1], 0, (double)height) &&
               is_whole(n[2], n[0], (double)width) && is_whole(n[3], n[1], (double)height);
    case SPLIT_STEP: return s->height == height && s->width == width && (!interleaved || channels == 3);
    case WINDOW_STEP: return 0; /* this is no first step */
    case PAD_STEP: return s->height >= height + s->b && s->width >= width + s->a;
    default: return 1;
    }
}

static int changes(const Instruction *s, const double *n, const Image *image) {
    switch (s->kind) {
    case CROP_STEP:
    case PAD_STEP: return s->a || s->b || s->height != image->height || s->width != image->width;
    case RESIZE_STEP:
    {
        int64_t box[4];
        return s->height != image->height || s->width != image->width ||
               !box_of(s, n, image->height, image->width, box) || box[0] || box[1] || box[2] != image->width ||
               box[3] != image->height;
    }
    case COLOR_STEP: {
        int32_t kinds[MOST_ORDER];
        float amounts[MOST_ORDER];
        return colors_of(s, n, kinds, amounts) > 0;
    }
    case BLUR_STEP: {
        uint16_t weights[MOST_WEIGHTS];
        return weights_of(s->a, n[0], weights) > 0 || weights_of(s->b, n[1], weights) > 0;
    }
    case WARP_STEP: return !is_identity(n) || s->height != image->height || s->width != image->width;
    case ERASE_STEP: return n[0] < n[2] && n[1] < n[3];
    case SPLIT_STEP: return image->interleaved;
    default: return n[0] > 0;
    }
}

static void flip_rows(uint8_t *out, const uint8_t *in, Py_ssize_t planes, Py_ssize_t height, Py_ssize_t row) {
    Py_ssize_t p, y;
    for (p = 0; p < planes; p++, out += height * row, in += height * row)
        for (y = 0; y < height; y++) memcpy(out + y * row, in + (height - 1 - y) * row, (size_t)row);
}

static void fill_pixels(uint8_t *out, Py_ssize_t count, Py_ssize_t pixel, const uint8_t *color) {
    Py_ssize_t done = pixel, n;
    if (pixel == 1)
        memset(out, color[0], (size_t)count);
    else if (count > 0) {
        memcpy(out, color, (size_t)pixel);
        for (; done < count * pixel; done += n) {
            n = count * pixel - done < done ? count * pixel - done : done;
            memcpy(out + done, out, (size_t)n);
        }
    }
}

/* The color of a plane, or of the channels of a pixel, from that of a step. */
static void color_of(int64_t color, Py_ssize_t plane, uint8_t *to) {
    int c;
    for (c = 0; c < MOST_CHANNELS; c++) to[c] = (uint8_t)(color >> 8 * ((plane + c) % MOST_CHANNELS));
}

static void erase_box(Image *image, const double *n, int64_t color) {
    Py_ssize_t left = (Py_ssize_t)n[0], top = (Py_ssize_t)n[1], right = (Py_ssize_t)n[2], bottom = (Py_ssize_t)n[3];
    Py_ssize_t pixel = image->channels, p, y;
    for (p = 0; p < image->planes; p++) {
        uint8_t levels[MOST_CHANNELS];
        color_of(color, p, levels);
        for (y = top; y < bottom; y++)
            fill_pixels((uint8_t *)image->at + ((p * image->height + y) * image->width + left) * pixel, right - left, pixel,
                        levels);
    }
}

/* The place in a row of `size` that a border shows at place `i`. */
INLINE Py_ssize_t shown_at(Py_ssize_t i, Py_ssize_t size, int64_t rule) {
    Py_ssize_t twice = rule == SYMMETRIC, period = 2 * size - 2 + 2 * twice, mirrored = i < 0 ? -i - twice : period - twice - i;
    if (i >= 0 && i < size) return i;
    if (rule == EDGE || size == 1) return i < 0 ? 0 : size - 1;
    if (mirrored >= 0 && mirrored < size) return mirrored;
    i %= period; /* a border may be wider than the image */
    if (i < 0) i += period;
    return i < size ? i : period - twice - i;
}

/* Pixels from..to - 1 of a row; all are outside of the image, whose row is `in`. */
INLINE void show_border(uint8_t *out, const uint8_t *in, Py_ssize_t from, Py_ssize_t to, Py_ssize_t left, Py_ssize_t width,
                        Py_ssize_t pixel, int64_t rule, const uint8_t *color) {
    Py_ssize_t turn = width - 1 + (rule == SYMMETRIC), period = 2 * turn, x, c; /* it runs forward up to `turn`, then backward */
    if (rule == CONSTANT || rule == EDGE || width == 1) {
        if (from < to)
            fill_pixels(out + from * pixel, to - from, pixel, rule == CONSTANT ? color : in + (from + left < 0 ? 0 : width - 1) * pixel);
        return;
    }
    while (from < to) {
        Py_ssize_t at = from + left, n, first, step;
        if (at < 0) at += period;
        if (at < 0 || at >= period) at = (at % period + period) % period;
        step = at < turn ? 1 : -1;
        first = at < turn ? at : period - (rule == SYMMETRIC) - at;
        n = (at < turn ? turn : period) - at;
        if (n > to - from) n = to - from;
        if (pixel == 1)
            for (x = 0; x < n; x++) out[from + x] = in[first + step * x];
        else
            for (x = 0; x < n; x++)
                for (c = 0; c < pixel; c++) out[(from + x) * pixel + c] = in[(first + step * x) * pixel + c];
        from += n;
    }
}

/* An image as seen from (left, top) on, with a border around it. */
static void show(Image *to, const Image *image, Py_ssize_t left, Py_ssize_t top, int64_t border) {
    Py_ssize_t pixel = image->channels, width = image->width, wide = to->width, row = wide * pixel, p, y;
    Py_ssize_t start = left < 0 ? (-left < wide ? -left : wide) : 0, end = width - left < wide ? width - left : wide;
    int64_t rule = border >> 32;
    int outside;
    if (end < start) end = start;
    for (p = 0; p < image->planes; p++) {
        uint8_t *out = (uint8_t *)to->at + p * to->height * row, color[MOST_CHANNELS];
        const uint8_t *in = (const uint8_t *)image->at + p * image->height * width * pixel;
        color_of(border, p, color);
        for (outside = 0; outside < 2; outside++) /* rows outside repeat others, which may have been made */
            for (y = 0; y < to->height; y++) {
                Py_ssize_t from = shown_at(y + top, image->height, rule), seen = from - top;
                uint8_t *line = out + y * row;
                if ((from != y + top) != outside) continue;
                if (outside && rule == CONSTANT)
                    fill_pixels(line, wide, pixel, color);
                else if (outside && seen >= 0 && seen < to->height)
                    memcpy(line, out + seen * row, (size_t)row);
                else {
                    const uint8_t *source = in + from * width * pixel;
                    show_border(line, source, 0, start, left, width, pixel, rule, color);
                    if (start < end) memcpy(line + start * pixel, source + (left + start) * pixel, (size_t)((end - start) * pixel));
                    show_border(line, source, end, wide, left, width, pixel, rule, color);
                }
            }
    }
}

/* One step from `now` to `to`, which may be one memory where the step reads no neighbors; 0 without memory. */
static int run_step(const Program *p, const Instruction *s, const double *n, Image *to, const Image *now, uint8_t *spare,
                    uint32_t *words) {
    uint8_t *out = (uint8_t *)to->at;
    const uint8_t *in = (const uint8_t *)now->at;
    Py_ssize_t pixel = now->channels, row = now->width * pixel, i;
    switch (s->kind) {
    case CROP_STEP:
        for (i = 0; i < now->planes; i++)
            crop_plane(to->at + i * to->height * to->width * pixel, now->at + i * now->height * row, to->height,
                       to->width * pixel, now->height, row, (Py_ssize_t)s->a * pixel, (Py_ssize_t)s->b);
        return 1;
    case RESIZE_STEP: {
        int64_t box[4];
        if (!box_of(s, n, now->height, now->width, box)) return 0; /* it was checked */
        return resize_boxes(to, now, box, 1, (size_t)s->a, p->shrinks_rows_first, p->simd);
    }
    case MIRROR_STEP: {
        const uint8_t yes = 1;
        mirror_frames(to, now, &yes, 1, p->simd);
        return 1;
    }
    case FLIP_STEP: flip_rows(out, in, now->planes, now->height, row); return 1;
    case COLOR_STEP: {
        int32_t kinds[MOST_ORDER];
        float amounts[MOST_ORDER];
        run_steps(out, in, now, kinds, amounts, colors_of(s, n, kinds, amounts), spare, p->simd);
        return 1;
    }
    case GRAY_STEP: {
        const uint8_t yes = 1;
        gray_frames(to, now, &yes, 1, 1, p->simd);
        return 1;
    }
    case BLUR_STEP: {
        uint16_t across[MOST_WEIGHTS], down[MOST_WEIGHTS];
        Py_ssize_t rx = weights_of(s->a, n[0], across), ry = weights_of(s->b, n[1], down);
        int (*pass) BLUR_ARGS = portable_blur;
#if X86
        if (p->simd) pass = avx2_blur;
#endif
        return pass(out, in, now->planes, now->height, now->width, pixel, 0, now->height, across, rx, down, ry);
    }
    case WARP_STEP: {
        float m[6];
        inverse_of(n, m);
        if (s->b) {
            Frame f = {now->height, now->width, p->channels, now->interleaved};
            blends[p->simd](out, in, words, &f, to->height, to->width, (uint32_t)s->a, m);
            return 1;
        }
        words[now->height * now->width] = (uint32_t)s->a;
        warps[p->simd](out, in, words, now->height, now->width, to->height, to->width, m, now->interleaved);
        return 1;
    }
    case PAD_STEP: show(to, now, -(Py_ssize_t)s->a, -(Py_ssize_t)s->b, s->c); return 1;
    case ERASE_STEP:
        if (out != in) memcpy(out, in, (size_t)(now->planes * now->height * row));
        erase_box(to, n, s->a);
        return 1;
    default: split_frame(out, in, now->height * now->width, p->simd); return 1;
    }
}

static void set_format(Image *image, Py_ssize_t channels, int interleaved) {
    image->interleaved = interleaved;
    image->planes = interleaved ? 1 : channels;
    image->channels = interleaved ? channels : 1;
    image->itemsize = 1;
    image->values = channels * image->height * image->width;
}

/* Look bytes up in tables of floats, for results so large that they are out of the cache before anybody reads them: the stores
 * go around it, and so do not read the memory first. */
#if X86
static __attribute__((target("avx2"))) void stream_floats(float *out, const float *in, Py_ssize_t count) {
    Py_ssize_t i = 0;
    for (; i < count && (uintptr_t)(out + i) % 32; i++) out[i] = in[i];
    for (; i + 8 <= count; i += 8) _mm256_stream_ps(out + i, _mm256_loadu_ps(in + i));
    for (; i < count; i++) out[i] = in[i];
}
#endif

static void look_up_floats(float *out, const char *in, const float *table, Py_ssize_t values, Py_ssize_t period, int streams,
                           int simd) {
    enum { PART = 3 << 10 }; /* whole pixels of any period up to 4 */
    Py_ssize_t at;
#if X86
    if (streams && simd) {
        float part[PART];
        for (at = 0; at < values; at += PART) {
            Py_ssize_t n = values - at < PART ? values - at : PART;
            Color job = {part, in + at, table, n, 1, period, 0, 0};
            passes[LUT_PASS].f32[simd](&job);
            stream_floats(out + at, part, n);
        }
        _mm_sfence();
        return;
    }
#endif
    {
        Color job = {out, in, table, values, 1, period, 0, 0};
        (void)at, (void)streams;
        passes[LUT_PASS].f32[simd](&job);
    }
}

/* Whether a step after a pad only crops, and all that it shows is in the padded image; if so, from where. */
static int crops(const Instruction *s, const double *n, const Instruction *pad, int64_t *box) {
    if (s->kind == RESIZE_STEP)
        return box_of(s, n, (Py_ssize_t)pad->height, (Py_ssize_t)pad->width, box) && box[2] - box[0] == s->width &&
               box[3] - box[1] == s->height;
    box[0] = s->a, box[1] = s->b;
    return s->kind == CROP_STEP && s->a >= 0 && s->b >= 0 && s->a + s->width <= pad->width && s->b + s->height <= pad->height;
}

enum { DONE = 1, UNCHANGED = 2 };

/* The last step that changes an image; -1 if none does. */
static Py_ssize_t last_change(const Program *p, const double *row, Image now) {
    Py_ssize_t i, last = -1;
    for (i = 0; i < p->count; i++) {
        const Instruction *s = p->steps + i;
        if (changes(s, row + s->column, &now)) last = i;
        now.height = (Py_ssize_t)s->height;
        now.width = (Py_ssize_t)s->width;
        if (s->kind == SPLIT_STEP) now.interleaved = 0;
    }
    return last;
}

/* One image through all steps. `out` gets the bytes, or what `tables` say of each. The image may lie in the first part of the
 * scratch, or be the caller's. 0 without memory. */
static int run_image(const Program *p, const double *row, Image now, char *out, const float *tables, int per_channel,
                     uint8_t *const *scratch, uint32_t *words) {
    Py_ssize_t i, last = last_change(p, row, now), c, which = 0;
    const char *callers = now.at == (char *)scratch[0] ? NULL : now.at;
    for (i = 0; i <= last; i++) {
        const Instruction *s = p->steps + i, *pad = NULL;
        int64_t box[4];
        Image to = now;
        int in_place = (s->kind == COLOR_STEP || s->kind == GRAY_STEP || s->kind == ERASE_STEP) && now.at != callers;
        if (!changes(s, row + s->column, &now)) continue;
        if (s->kind == PAD_STEP && i < last && crops(s + 1, row + s[1].column, s, box)) {
            pad = s++; /* no more of the border is made than the crop shows */
            i++;
        }
        to.height = (Py_ssize_t)s->height;
        to.width = (Py_ssize_t)s->width;
        set_format(&to, p->channels, now.interleaved && s->kind != SPLIT_STEP);
        if (i == last && !tables)
            to.at = out;
        else if (!in_place) {
            which = !which;
            to.at = (char *)scratch[which];
        }
        if (pad)
            show(&to, &now, (Py_ssize_t)(box[0] - pad->a), (Py_ssize_t)(box[1] - pad->b), pad->c);
        else if (!run_step(p, s, row + s->column, &to, &now, scratch[!which], words))
            return 0;
        now = to;
    }
    if (tables) {
        Py_ssize_t pixels = now.height * now.width;
        float *to = (float *)(void *)out;
        if (now.interleaved || !per_channel)
            look_up_floats(to, now.at, tables, now.values, per_channel ? p->channels : 1, p->streams, p->simd);
        else
            for (c = 0; c < p->channels; c++)
                look_up_floats(to + c * pixels, now.at + c * pixels, tables + 256 * c, pixels, 1, p->streams, p->simd);
    } else if (now.at != out)
        memcpy(out, now.at, (size_t)now.values);
    return last < 0 && !tables ? UNCHANGED : DONE;
}

/* Whether all steps are known, have their numbers in a row, and can run on an image of this size. */
static int check_row(const Program *p, const double *row, Py_ssize_t height, Py_ssize_t width) {
    Py_ssize_t i;
    int interleaved = p->interleaved;
    for (i = 0; i < p->count; i++) {
        const Instruction *s = p->steps + i;
        if (!is_valid(s, row + s->column, height, width, p->channels, interleaved)) return 0;
        height = (Py_ssize_t)s->height;
        width = (Py_ssize_t)s->width;
        if (s->kind == SPLIT_STEP) interleaved = 0;
    }
    return 1;
}

/* Check the steps and tables of a program for an image of some channels and for its result, and set how many pixels there are
 * at most between steps, and how many bytes of words. 1 if it can run, 0 if other code must, -1 with an exception. */
static int program_of(Program *p, Arrays *arrays, PyObject *steps_object, PyObject *tables_object, const Py_buffer **tables,
                      const Image *out, Py_ssize_t *most, Py_ssize_t *words_size) {
    const Py_buffer *steps;
    Py_ssize_t i, channels = out->shape[out->dimensions - 3], pixels = out->height * out->width;
    int has_words = 0, interleaved = p->interleaved;
    *tables = NULL;
    if (!(steps = array_of(arrays, steps_object, "steps", "q", 2, CONTIGUOUS)) ||
        (tables_object != Py_None && !(*tables = array_of(arrays, tables_object, "tables", "f", 2, CONTIGUOUS))))
        return -1;
    p->steps = steps->buf;
    p->count = steps->shape[0];
    p->streams = out->values * out->itemsize >= STREAMED;
    if (!require(steps->shape[1] == sizeof(Instruction) / sizeof(int64_t) && p->count > 0 && p->count <= MOST_STEPS,
                 "steps must be 1 to 256 rows of seven numbers") ||
        !require(!*tables || ((*tables)->shape[1] == 256 && ((*tables)->shape[0] == 1 || (*tables)->shape[0] == p->channels)),
                 "tables must be one for all channels or for each, of 256 values") ||
        !require(out->itemsize == (*tables ? 4 : 1), "out must be of floats with tables, else of bytes"))
        return -1;
    for (i = 0; i < p->count; i++) {
        const Instruction *s = p->steps + i;
        Py_ssize_t count = numbers_of_step(s, p->channels);
        if (!require(count >= 0, "a step must be known, with arguments in its range") ||
            !require(s->column >= 0 && count <= p->columns && s->column <= p->columns - count,
                     "a step must have its numbers in the row") ||
            !require(s->height > 0 && s->width > 0 && s->height <= INT32_MAX && s->width <= INT32_MAX / s->height,
                     "a step must have a size"))
            return -1;
        if (s->kind == WARP_STEP) has_words = 1;
        if (s->kind == SPLIT_STEP) interleaved = 0;
        if (s->height * s->width > *most) *most = (Py_ssize_t)(s->height * s->width);
    }
    if (!require(channels == p->channels && out->height == p->steps[p->count - 1].height &&
                     out->width == p->steps[p->count - 1].width,
                 "out must have the size of the last step"))
        return -1;
    *words_size = has_words ? 3 * (*most + 2) * (Py_ssize_t)sizeof(uint32_t) : 0; /* at least (height + 2) * (width + 2) words */
    /* One channel, or one pixel, has both formats. */
    return out->interleaved == interleaved || channels == 1 || pixels == 1;
}

static PyObject *run_program(PyObject *self, PyObject *args) {
    PyObject *out_object, *image_object, *steps_object, *numbers_object, *tables_object, *counter_object, *scratch_object;
    PyObject *result = NULL;
    const Py_buffer *numbers, *tables, *counter, *scratch;
    Arrays arrays = {0};
    Image out, image;
    Program p;
    Py_ssize_t i, rows, frames, per_row, size, out_size, most, words_size;
    int found, simd, done = UNCHANGED, one, shrinks_rows_first;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOOOOpi", &out_object, &image_object, &steps_object, &numbers_object, &tables_object,
                          &counter_object, &scratch_object, &shrinks_rows_first, &simd))
        return NULL;
    if ((found = image_of(out_object, &out)) == 1) found = image_of(image_object, &image);
    if (found < 0) return NULL;
    if (!found || image.itemsize != 1 || image.dimensions != out.dimensions) return PyLong_FromLong(0);
    if (!(numbers = array_of(&arrays, numbers_object, "numbers", "d", 2, CONTIGUOUS)) ||
        !(counter = array_of(&arrays, counter_object, "counter", "q", 1, CONTIGUOUS | WRITABLE)) ||
        !(scratch = array_of(&arrays, scratch_object, "scratch", "B", 1, CONTIGUOUS | WRITABLE)) ||
        !require(counter->shape[0] == 1, "counter must be one number"))
        goto end;
    memset(&p, 0, sizeof p);
    p.columns = numbers->shape[1];
    p.channels = image.shape[image.dimensions - 3];
    p.interleaved = image.interleaved;
    p.shrinks_rows_first = shrinks_rows_first;
    p.simd = usable_simd(simd);
    rows = numbers->shape[0];
    if (p.channels < 1 || p.channels > MOST_CHANNELS || !image.values || !out.values) {
        result = PyLong_FromLong(0);
        goto end;
    }
    frames = image.values / (p.channels * image.height * image.width);
    most = image.height * image.width;
    found = program_of(&p, &arrays, steps_object, tables_object, &tables, &out, &most, &words_size);
    if (found <= 0) {
        if (!found) result = PyLong_FromLong(0);
        goto end;
    }
    for (i = 0; i < image.dimensions - 3; i++)
        if (!require(out.shape[i] == image.shape[i], "out must have the batch of image")) goto end;
    size = p.channels * image.height * image.width;
    out_size = out.values / frames * out.itemsize;
    if (!require(rows > 0 && frames % rows == 0, "numbers must be those of equal parts of the images") ||
        !require((uintptr_t)scratch->buf % sizeof(uint32_t) == 0 && scratch->len >= words_size + 2 * most * p.channels,
                 "scratch must have room for two images, and for the words of a warp"))
        goto end;
    per_row = frames / rows;
    for (i = 0; i < rows; i++)
        if (!check_row(&p, (const double *)numbers->buf + i * p.columns, image.height, image.width)) {
            result = PyLong_FromLong(0);
            goto end;
        }
    Py_BEGIN_ALLOW_THREADS
    {
        uint32_t *words = scratch->buf;
        uint8_t *spare[2];
        spare[0] = (uint8_t *)scratch->buf + words_size;
        spare[1] = spare[0] + most * p.channels;
        while (done && (i = (Py_ssize_t)NEXT((int64_t *)counter->buf)) < frames && i >= 0) {
            Image frame = image;
            frame.at = image.at + i * size;
            set_format(&frame, p.channels, image.interleaved);
            one = run_image(&p, (const double *)numbers->buf + i / per_row * p.columns, frame, out.at + i * out_size,
                            tables ? tables->buf : NULL, tables && tables->shape[0] > 1, spare, words);
            if (one < done) done = one;
        }
    }
    Py_END_ALLOW_THREADS
    result = PyLong_FromLong(done);
end:
    release(&arrays);
    return result;
}
