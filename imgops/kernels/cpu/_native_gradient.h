/* Gradients of the color steps and of the warps in real numbers. _native.c includes this file twice, with REAL as float and as double.
 *
 * The steps run again, strip by strip, and then backward: no step is stored for the whole image. A clamp passes nothing
 * at its ends, and equal extremes share their gradient, as in ATen.
 */
#define JOIN_(name, real) name##_##real
#define JOIN(name, real) JOIN_(name, real)
#define NAME(name) JOIN(name, REAL)
#define TAPE 256
#define TAPE_STEPS 8
#ifndef LAST_KIND
/* Conversions, which are the last step of a sequence. */
#define TO_HSV (HUE_TURN + 1)
#define TO_HLS (HUE_TURN + 2)
#define LAST_KIND TO_HLS
#endif

INLINE REAL NAME(unit)(REAL value) { return value < 0 ? 0 : value > 1 ? 1 : value; }

typedef struct {
    REAL at[3][TAPE];
} NAME(Strip);

/* The weights of the gray that saturation and contrast mix in. */
static const REAL NAME(luma_weights)[3] = {(REAL)0.299, (REAL)0.587, (REAL)0.114};

/* How far a channel is below the greatest one, at a place on the color circle, and the slope of this. */
INLINE REAL NAME(hue_fall)(REAL place, REAL *slope) {
    REAL left, least;
    place = place < 6 ? place : place - 6;
    left = 4 - place;
    least = place < left ? place : left;
    *slope = least <= 0 || least >= 1 ? 0 : place < left ? 1 : -1;
    return NAME(unit)(least);
}

/* The place of a color on the circle: the channel that is greatest, the first of equal ones, decides. */
#define HUE_PLACE                                                                                       \
    REAL r = in->at[0][i], g = in->at[1][i], b = in->at[2][i], ignored;                                  \
    REAL most = r > g ? r : g, least = r < g ? r : g, chroma, scale, red, green, blue, share, place;     \
    most = most > b ? most : b;                                                                          \
    least = least < b ? least : b;                                                                       \
    chroma = most - least;                                                                               \
    scale = 1 / (chroma == 0 ? 1 : chroma);                                                              \
    red = most == r ? 1 : 0;                                                                             \
    green = (most == g ? 1 : 0) * (1 - red);                                                             \
    blue = 1 - red - green;                                                                              \
    share = (red * (g - b) + green * (b - r) + blue * (r - g)) * scale;                                  \
    place = share + 2 * green + 4 * blue + 6 * amount;                                                   \
    place -= 6 * (REAL)floor(place * (REAL)(1.0 / 6.0));                                                 \
    (void)ignored;

INLINE void NAME(turn)(NAME(Strip) *out, const NAME(Strip) *in, Py_ssize_t n, REAL amount) {
    Py_ssize_t i;
    for (i = 0; i < n; i++) {
        HUE_PLACE
        out->at[0][i] = NAME(unit)(most - chroma * NAME(hue_fall)(place + 5, &ignored));
        out->at[1][i] = NAME(unit)(most - chroma * NAME(hue_fall)(place + 3, &ignored));
        out->at[2][i] = NAME(unit)(most - chroma * NAME(hue_fall)(place + 1, &ignored));
    }
}

/* The gradient of the input takes the place of that of the output; returns the gradient of the amount. */
INLINE REAL NAME(turn_back)(NAME(Strip) *grad, const NAME(Strip) *in, Py_ssize_t n, REAL amount) {
    REAL total = 0;
    Py_ssize_t i;
    for (i = 0; i < n; i++) {
        HUE_PLACE
        REAL to_most = 0, to_chroma = 0, to_place = 0, mr, mg, mb, lr, lg, lb;
        int c;
        for (c = 0; c < 3; c++) {
            REAL slope, fall = NAME(hue_fall)(place + (5 - 2 * c), &slope), value = most - chroma * fall;
            REAL own = value <= 0 || value >= 1 ? 0 : grad->at[c][i];
            to_most += own;
            to_chroma -= own * fall;
            to_place -= own * slope;
        }
        total += 6 * to_place * chroma;
        /* The gradient of the place is divided by the chroma that it was multiplied with. */
        to_place = chroma == 0 ? 0 : to_place;
        to_chroma -= to_place * share;
        mr = most == r ? 1 : 0, mg = most == g ? 1 : 0, mb = most == b ? 1 : 0;
        lr = least == r ? 1 : 0, lg = least == g ? 1 : 0, lb = least == b ? 1 : 0;
        to_most = (to_most + to_chroma) / (mr + mg + mb);
        to_chroma = -to_chroma / (lr + lg + lb); /* of the least channels */
        grad->at[0][i] = mr * to_most + lr * to_chroma + (blue - green) * to_place;
        grad->at[1][i] = mg * to_most + lg * to_chroma + (red - blue) * to_place;
        grad->at[2][i] = mb * to_most + lb * to_chroma + (green - red) * to_place;
    }
    return total;
}

INLINE void NAME(mix)(NAME(Strip) *out, const NAME(Strip) *in, Py_ssize_t n, int kind, REAL amount, REAL mean) {
    const REAL *w = NAME(luma_weights), rest = 1 - amount;
    Py_ssize_t i;
    for (i = 0; i < n; i++) {
        REAL r = in->at[0][i], g = in->at[1][i], b = in->at[2][i];
        REAL base = kind == BRIGHTNESS ? 0 : kind == CONTRAST ? mean : w[0] * r + w[1] * g + w[2] * b;
        out->at[0][i] = NAME(unit)(r * amount + base * rest);
        out->at[1][i] = NAME(unit)(g * amount + base * rest);
        out->at[2][i] = NAME(unit)(b * amount + base * rest);
    }
}

/* `through` is the gradient that reaches each pixel's gray by the mean. sums: the gradient of the amount, and the sum of
 * the gradients that reach the base, without its factor. */
INLINE void NAME(mix_back)(NAME(Strip) *grad, const NAME(Strip) *in, Py_ssize_t n, int kind, REAL amount, REAL mean,
                           REAL through, double *sums) {
    const REAL *w = NAME(luma_weights), rest = 1 - amount;
    REAL total = 0, every = 0;
    Py_ssize_t i;
    for (i = 0; i < n; i++) {
        REAL r = in->at[0][i], g = in->at[1][i], b = in->at[2][i];
        REAL base = kind == BRIGHTNESS ? 0 : kind == CONTRAST ? mean : w[0] * r + w[1] * g + w[2] * b;
        REAL x = r * amount + base * rest, y = g * amount + base * rest, z = b * amount + base * rest;
        REAL u = x <= 0 || x >= 1 ? 0 : grad->at[0][i], v = y <= 0 || y >= 1 ? 0 : grad->at[1][i];
        REAL t = z <= 0 || z >= 1 ? 0 : grad->at[2][i], sum = u + v + t;
        REAL gray = kind == BRIGHTNESS ? 0 : kind == CONTRAST ? through : rest * sum;
        total += u * (r - base) + v * (g - base) + t * (b - base);
        every += sum;
        grad->at[0][i] = amount * u + gray * w[0];
        grad->at[1][i] = amount * v + gray * w[1];
        grad->at[2][i] = amount * t + gray * w[2];
    }
    sums[0] += total;
    sums[1] += every;
}

/* Adds the gradient of the greatest of three values to theirs: of two equal ones each gets half, as from ATen's maximum. */
INLINE void NAME(greatest_back)(REAL to, REAL x, REAL y, REAL z, REAL *of_x, REAL *of_y, REAL *of_z) {
    REAL most = x > y ? x : y, last = z > most ? to : z == most ? to / 2 : 0, rest = to - last;
    REAL first = x > y ? rest : x == y ? rest / 2 : 0;
    *of_x += first;
    *of_y += rest - first;
    *of_z += last;
}

/* The gradient of RGB takes the place of that of HSV or HLS. */
INLINE void NAME(to_space_back)(NAME(Strip) *grad, const NAME(Strip) *in, Py_ssize_t n, int is_hls) {
    Py_ssize_t i;
    for (i = 0; i < n; i++) {
        REAL r = in->at[0][i], g = in->at[1][i], b = in->at[2][i];
        REAL most = r > g ? r : g, least = r < g ? r : g, apart, of_hue, of_apart, of_most = 0, of_least = 0;
        REAL of_share = grad->at[is_hls ? 2 : 1][i], of_light = grad->at[is_hls ? 1 : 2][i], of_r, of_g, of_b;
        int is_red, is_green, there;
        most = most > b ? most : b;
        least = least < b ? least : b;
        apart = most - least;
        there = apart > (is_hls ? (REAL)1.1920928955078125e-7 : 0);
        of_hue = there ? 60 * grad->at[0][i] / apart : 0;
        is_red = most == r;
        is_green = !is_red && most == g;
        of_r = is_red ? 0 : is_green ? -of_hue : of_hue;
        of_g = is_red ? of_hue : is_green ? 0 : -of_hue;
        of_b = is_red ? -of_hue : is_green ? of_hue : 0;
        of_apart = there ? -of_hue * (is_red ? g - b : is_green ? b - r : r - g) / apart : 0;
        if (is_hls) {
            REAL total = most + least, base = total >= 1 ? 2 - total : total, over = 1 / (base > 0 ? base : 1);
            REAL slope = there && base > 0 ? of_share * apart * over * over : 0;
            of_apart += there ? of_share * over : 0;
            of_least = of_light / 2 + (total >= 1 ? slope : -slope);
            of_most = of_least;
        } else {
            REAL over = most > 0 ? 1 / most : 0;
            of_apart += of_share * over;
            of_most = of_light - of_share * apart * over * over;
        }
        NAME(greatest_back)(of_most + of_apart, r, g, b, &of_r, &of_g, &of_b);
        NAME(greatest_back)(of_least - of_apart, -r, -g, -b, &of_r, &of_g, &of_b);
        grad->at[0][i] = of_r;
        grad->at[1][i] = of_g;
        grad->at[2][i] = of_b;
    }
}

/* The kind is a constant in each call, so that each loop is compiled for it. */
INLINE void NAME(forward)(NAME(Strip) *out, const NAME(Strip) *in, Py_ssize_t n, int kind, REAL amount, REAL mean) {
    if (kind == BRIGHTNESS)
        NAME(mix)(out, in, n, BRIGHTNESS, amount, 0);
    else if (kind == CONTRAST)
        NAME(mix)(out, in, n, CONTRAST, amount, mean);
    else if (kind == SATURATION)
        NAME(mix)(out, in, n, SATURATION, amount, 0);
    else
        NAME(turn)(out, in, n, amount);
}

INLINE void NAME(back)(NAME(Strip) *grad, const NAME(Strip) *in, Py_ssize_t n, int kind, REAL amount, REAL mean,
                       REAL through, double *sums) {
    if (kind == BRIGHTNESS)
        NAME(mix_back)(grad, in, n, BRIGHTNESS, amount, 0, 0, sums);
    else if (kind == CONTRAST)
        NAME(mix_back)(grad, in, n, CONTRAST, amount, mean, through, sums);
    else if (kind == SATURATION)
        NAME(mix_back)(grad, in, n, SATURATION, amount, 0, 0, sums);
    else if (kind == TO_HSV)
        NAME(to_space_back)(grad, in, n, 0);
    else if (kind == TO_HLS)
        NAME(to_space_back)(grad, in, n, 1);
    else
        sums[0] += NAME(turn_back)(grad, in, n, amount);
}

INLINE void NAME(read)(NAME(Strip) *to, const REAL *in, Py_ssize_t at, Py_ssize_t n, Py_ssize_t pixel_step,
                       Py_ssize_t channel_step) {
    Py_ssize_t i;
    int c;
    for (c = 0; c < 3; c++) LOAD(REAL, to->at[c], in, at, n, c);
}

/* The gradient of the steps for one image: `out` (or NULL) and, in `of_amounts`, one for each step. A contrast needs the sum
 * of the gradients that reach its mean, from the last contrast to the first, before the pass that writes. */
INLINE void NAME(sequence_back)(REAL *out, double *of_amounts, const REAL *in, const REAL *grad, Py_ssize_t pixels,
                                Py_ssize_t pixel_step, Py_ssize_t channel_step, const int32_t *kinds, const double *amounts,
                                int count) {
    NAME(Strip) tape[TAPE_STEPS], back;
    REAL mean[TAPE_STEPS] = {0}, through[TAPE_STEPS] = {0};
    Py_ssize_t at, i, n;
    int j, k, c;
    for (k = 0; k < count; k++) {
        double total = 0;
        if (kinds[k] != CONTRAST) continue;
        for (at = 0; at < pixels; at += TAPE) {
            const REAL *w = NAME(luma_weights);
            REAL part[8] = {0};
            n = pixels - at < TAPE ? pixels - at : TAPE;
            NAME(read)(&tape[0], in, at, n, pixel_step, channel_step);
            for (j = 0; j < k; j++) NAME(forward)(&tape[j + 1], &tape[j], n, kinds[j], (REAL)amounts[j], mean[j]);
            for (i = 0; i + 8 <= n; i += 8)
                for (c = 0; c < 8; c++)
                    part[c] += w[0] * tape[k].at[0][i + c] + w[1] * tape[k].at[1][i + c] + w[2] * tape[k].at[2][i + c];
            for (; i < n; i++) part[i % 8] += w[0] * tape[k].at[0][i] + w[1] * tape[k].at[1][i] + w[2] * tape[k].at[2][i];
            for (c = 0; c < 8; c++) total += part[c];
        }
        mean[k] = (REAL)(total / (double)pixels);
    }
    for (k = count; k-- > -1;) {
        double sums[TAPE_STEPS][2] = {{0}};
        int first = k < 0 ? 0 : k;
        if (k >= 0 && kinds[k] != CONTRAST) continue;
        for (at = 0; at < pixels; at += TAPE) {
            n = pixels - at < TAPE ? pixels - at : TAPE;
            NAME(read)(&tape[0], in, at, n, pixel_step, channel_step);
            NAME(read)(&back, grad, at, n, pixel_step, channel_step);
            for (j = 0; j + 1 < count; j++) NAME(forward)(&tape[j + 1], &tape[j], n, kinds[j], (REAL)amounts[j], mean[j]);
            for (j = count; j-- > first;)
                NAME(back)(&back, &tape[j], n, kinds[j], (REAL)amounts[j], mean[j], through[j], sums[j]);
            if (k < 0 && out)
                for (c = 0; c < 3; c++) STORE(REAL, out, at, n, c, back.at[c]);
        }
        if (k >= 0) through[k] = (REAL)((1 - amounts[k]) * sums[k][1] / (double)pixels);
        if (k < 0)
            for (j = 0; j < count; j++) of_amounts[j] = sums[j][0];
    }
}

#define SEQUENCE_BACK_ARGS                                                                                           \
    (REAL *out, double *of_amounts, const REAL *in, const REAL *grad, Py_ssize_t pixels, Py_ssize_t pixel_step,         \
     Py_ssize_t channel_step, const int32_t *kinds, const double *amounts, int count)
#define SEQUENCE_BACK_CALL (out, of_amounts, in, grad, pixels, pixel_step, channel_step, kinds, amounts, count)
static void NAME(portable_sequence_back) SEQUENCE_BACK_ARGS { NAME(sequence_back) SEQUENCE_BACK_CALL; }
#if X86
static AVX2 void NAME(avx2_sequence_back) SEQUENCE_BACK_ARGS { NAME(sequence_back) SEQUENCE_BACK_CALL; }
static AVX512_FMA_WIDE void NAME(avx512_sequence_back) SEQUENCE_BACK_ARGS { NAME(sequence_back) SEQUENCE_BACK_CALL; }
static void(*const NAME(sequences_back)[]) SEQUENCE_BACK_ARGS = {NAME(portable_sequence_back), NAME(avx2_sequence_back),
                                                                 NAME(avx512_sequence_back)};
#else
static void(*const NAME(sequences_back)[]) SEQUENCE_BACK_ARGS = {NAME(portable_sequence_back)};
#endif

/* ---- warps ---------------------------------------------------------------------------------------
 *
 * The transpose of a remap adds each value to the pixels that its position reads, with the same weights. `taps` along each
 * axis: 1 nearest, 2 bilinear, 4 bicubic.
 */
#ifndef FARTHEST
#define FARTHEST 1073741824.0 /* as FAR in decomposition/geometry.py */
enum { CONSTANT_BORDER, EDGE_BORDER, REFLECT_BORDER, SYMMETRIC_BORDER, WRAP_BORDER };

/* A position that fits into integers and shows the same pixel. */
INLINE double bounded(double position, double size, int border) {
    double period;
    if (position >= -FARTHEST && position <= FARTHEST) return position;
    if (position != position) return -FARTHEST;
    if (border <= EDGE_BORDER || position - position != 0) return position > 0 ? FARTHEST : -FARTHEST;
    period = border == WRAP_BORDER ? size : border == SYMMETRIC_BORDER ? 2 * size : size > 1 ? 2 * size - 2 : 1;
    return fmod(position, period);
}

/* The pixel that a border shows at i, -1 for none. */
static Py_ssize_t folded(Py_ssize_t i, Py_ssize_t size, int border) {
    Py_ssize_t period = border == WRAP_BORDER ? size : border == SYMMETRIC_BORDER ? 2 * size : size > 1 ? 2 * size - 2 : 1;
    if (i >= 0 && i < size) return i;
    if (border == CONSTANT_BORDER) return -1;
    if (border == EDGE_BORDER) return i < 0 ? 0 : size - 1;
    i = (i % period + period) % period;
    return i < size ? i : border == SYMMETRIC_BORDER ? period - 1 - i : period - i;
}

/* The first pixel of an axis; the weights and their derivatives. */
INLINE Py_ssize_t taps_of(double position, int taps, double *weight, double *slope) {
    double start = taps == 1 ? rint(position) : floor(position), f = position - start, g = 1 - f, e = f + 1, a = -0.75;
    if (taps == 1) {
        weight[0] = 1;
        slope[0] = 0;
    } else if (taps == 2) {
        weight[0] = g;
        weight[1] = f;
        slope[0] = -1;
        slope[1] = 1;
    } else {
        weight[0] = ((a * e - 5 * a) * e + 8 * a) * e - 4 * a;
        weight[1] = ((a + 2) * f - (a + 3)) * f * f + 1;
        weight[2] = ((a + 2) * g - (a + 3)) * g * g + 1;
        weight[3] = 1 - weight[0] - weight[1] - weight[2];
        slope[0] = (3 * a * e - 10 * a) * e + 8 * a;
        slope[1] = (3 * (a + 2) * f - 2 * (a + 3)) * f;
        slope[2] = -(3 * (a + 2) * g - 2 * (a + 3)) * g;
        slope[3] = -slope[0] - slope[1] - slope[2];
        start -= 1;
    }
    return (Py_ssize_t)start;
}

typedef struct {
    Py_ssize_t planes, height, width, count; /* count: positions */
    int border, single;                      /* single: whether positions and their slopes are of float, not of double */
} Warped;

INLINE double position_at(const void *map, const Warped *p, Py_ssize_t i) {
    return p->single ? (double)((const float *)map)[i] : ((const double *)map)[i];
}

INLINE void add_slope(void *slope, const Warped *p, Py_ssize_t i, double value) {
    if (p->single)
        ((float *)slope)[i] += (float)value;
    else
        ((double *)slope)[i] += value;
}
#endif

/* What one position adds to out, the gradient of the image, if it is wanted, and its own slope. `outside` has the color
 * beyond the image, or is NULL. */
INLINE void NAME(position_back)(REAL *out, void *slope, const REAL *grad, const REAL *image, const void *map,
                                const double *outside, const Warped *p, int taps, Py_ssize_t i) {
    Py_ssize_t plane = p->height * p->width, c;
    double wx[4], wy[4], sx[4], sy[4];
    Py_ssize_t column[4], row[4];
    Py_ssize_t x = taps_of(bounded(position_at(map, p, i), (double)p->width, p->border), taps, wx, sx);
    Py_ssize_t y = taps_of(bounded(position_at(map, p, p->count + i), (double)p->height, p->border), taps, wy, sy);
    int inside = x >= 0 && y >= 0 && x + taps <= p->width && y + taps <= p->height, j, k;
    REAL weight[4][4], to_x = 0, to_y = 0;
    if (!inside) {
        int seen = 0;
        for (j = 0; j < taps; j++) {
            column[j] = folded(x + j, p->width, p->border);
            row[j] = folded(y + j, p->height, p->border);
            seen += (column[j] >= 0) + (row[j] >= 0);
        }
        if (!seen && !slope) return;
    }
    if (out) {
        for (j = 0; j < taps; j++)
            for (k = 0; k < taps; k++) weight[j][k] = (REAL)(wy[j] * wx[k]);
        for (c = 0; c < p->planes; c++) {
            REAL value = grad[c * p->count + i], *to = out + c * plane;
            if (inside)
                for (j = 0; j < taps; j++)
                    for (k = 0; k < taps; k++) to[(y + j) * p->width + x + k] += weight[j][k] * value;
            else
                for (j = 0; j < taps; j++)
                    for (k = 0; k < taps; k++)
                        if (row[j] >= 0 && column[k] >= 0) to[row[j] * p->width + column[k]] += weight[j][k] * value;
        }
    }
    if (!slope) return;
    for (c = 0; c < p->planes; c++) {
        REAL value = grad[c * p->count + i], towards_x = 0, towards_y = 0;
        const REAL *from = image + c * plane;
        for (j = 0; j < taps; j++)
            for (k = 0; k < taps; k++) {
                REAL pixel = inside                          ? from[(y + j) * p->width + x + k]
                             : row[j] >= 0 && column[k] >= 0 ? from[row[j] * p->width + column[k]]
                             : outside                       ? (REAL)outside[c]
                                                             : 0;
                towards_x += pixel * (REAL)(sx[k] * wy[j]);
                towards_y += pixel * (REAL)(wx[k] * sy[j]);
            }
        to_x += value * towards_x;
        to_y += value * towards_y;
    }
    add_slope(slope, p, i, to_x);
    add_slope(slope, p, p->count + i, to_y);
}

#if defined(__GNUC__)
/* The positions of a strip whose four pixels are all inside of the image. Up to four planes lie side by side, so that one
 * load, and one store that the next position can wait for, has all of them: `onto` and `from` are such images, or NULL. */
typedef REAL NAME(Four) __attribute__((vector_size(4 * sizeof(REAL)), aligned(sizeof(REAL)), may_alias));

/* The values of up to four planes at each position of a strip, 0 where it is not seen. */
INLINE void NAME(gathered)(REAL given[TAPE][4], const REAL *grad, Py_ssize_t count, Py_ssize_t planes, Py_ssize_t n,
                             const int32_t *seen) {
    Py_ssize_t i, c;
    for (c = 0; c < 4; c++) {
        const REAL *own = grad + (c < planes ? c : 0) * count;
        for (i = 0; i < n; i++) given[i][c] = (c < planes) & seen[i] ? own[i] : 0;
    }
}

INLINE void NAME(strip_back)(NAME(Four) *onto, void *slope, const REAL *grad, const NAME(Four) *from, const void *map,
                             const Warped *p, Py_ssize_t at, Py_ssize_t n, Py_ssize_t planes, int32_t *seen) {
    int32_t place[TAPE], width = (int32_t)p->width;
    REAL fx[TAPE], fy[TAPE], to_x[TAPE], to_y[TAPE], given[TAPE][4];
    /* Every position is moved inside, so that no loop has a branch; one that moved is not seen. */
    const double right = (double)(p->width - 1) - 1e-6, bottom = (double)(p->height - 1) - 1e-6;
    Py_ssize_t i;
    for (i = 0; i < n; i++) {
        const double given_x = position_at(map, p, at + i), given_y = position_at(map, p, p->count + at + i);
        double x = given_x > 0 ? given_x : 0, y = given_y > 0 ? given_y : 0;
        int32_t column, row;
        x = x < right ? x : right;
        y = y < bottom ? y : bottom;
        column = (int32_t)x;
        row = (int32_t)y;
        fx[i] = (REAL)(x - column);
        fy[i] = (REAL)(y - row);
        place[i] = row * width + column;
        seen[i] = (x == given_x) & (y == given_y);
    }
    NAME(gathered)(given, grad + at, p->count, planes, n, seen);
    for (i = 0; onto && i < n; i++) {
        NAME(Four) *high = onto + place[i], *low = high + width, value = *(const NAME(Four) *)given[i];
        NAME(Four) under = value * fy[i], over = value - under, b = over * fx[i], d = under * fx[i];
        high[0] += over - b;
        high[1] += b;
        low[0] += under - d;
        low[1] += d;
    }
    if (!slope) return;
    for (i = 0; i < n; i++) {
        const NAME(Four) *high = from + place[i], *low = high + width, value = *(const NAME(Four) *)given[i];
        NAME(Four) across = high[1] - high[0], down = low[0] - high[0], twist = low[1] - low[0] - across;
        across = value * (across + fy[i] * twist);
        down = value * (down + fx[i] * twist);
        to_x[i] = (across[0] + across[1]) + (across[2] + across[3]);
        to_y[i] = (down[0] + down[1]) + (down[2] + down[3]);
    }
    for (i = 0; i < n; i++) {
        add_slope(slope, p, at + i, seen[i] ? to_x[i] : 0);
        add_slope(slope, p, p->count + at + i, seen[i] ? to_y[i] : 0);
    }
}

/* The weights of four pixels along an axis, and their derivatives, for positions that read pixels of the image alone. */
INLINE void NAME(cubic_axis)(REAL weight[4][TAPE], REAL slope[4][TAPE], int32_t *place, int32_t *seen, const void *map,
                             const Warped *p, Py_ssize_t at, Py_ssize_t n, Py_ssize_t size, int32_t step) {
    const double most = (double)(size - 2) - 1e-6;
    Py_ssize_t i, k;
    for (i = 0; i < n; i++) {
        const double position = position_at(map, p, at + i);
        double x = position > 1 ? position : 1, w[4], s[4];
        x = x < most ? x : most;
        place[i] += (int32_t)taps_of(x, 4, w, s) * step;
        seen[i] &= x == position;
        for (k = 0; k < 4; k++) weight[k][i] = (REAL)w[k], slope[k][i] = (REAL)s[k];
    }
}

/* As strip_back, for positions whose sixteen pixels are all inside of the image. */
INLINE void NAME(cubic_strip_back)(NAME(Four) *onto, void *slope, const REAL *grad, const NAME(Four) *from, const void *map,
                                   const Warped *p, Py_ssize_t at, Py_ssize_t n, Py_ssize_t planes, int32_t *seen) {
    int32_t place[TAPE];
    REAL wx[4][TAPE], wy[4][TAPE], sx[4][TAPE], sy[4][TAPE], given[TAPE][4];
    Py_ssize_t width = p->width, i, j, k;
    for (i = 0; i < n; i++) place[i] = 0, seen[i] = 1;
    NAME(cubic_axis)(wx, sx, place, seen, map, p, at, n, width, 1);
    NAME(cubic_axis)(wy, sy, place, seen, map, p, p->count + at, n, p->height, (int32_t)width);
    NAME(gathered)(given, grad + at, p->count, planes, n, seen);
    for (i = 0; onto && i < n; i++)
        for (j = 0; j < 4; j++) {
            NAME(Four) *row = onto + place[i] + j * width, value = *(const NAME(Four) *)given[i] * wy[j][i];
            for (k = 0; k < 4; k++) row[k] += value * wx[k][i];
        }
    for (i = 0; slope && i < n; i++) {
        NAME(Four) value = *(const NAME(Four) *)given[i], across = {0}, down = {0};
        for (j = 0; j < 4; j++) {
            const NAME(Four) *row = from + place[i] + j * width;
            NAME(Four) level = row[0] * wx[0][i], rate = row[0] * sx[0][i];
            for (k = 1; k < 4; k++) {
                level += row[k] * wx[k][i];
                rate += row[k] * sx[k][i];
            }
            across += rate * wy[j][i];
            down += level * sy[j][i];
        }
        across *= value;
        down *= value;
        if (!seen[i]) continue;
        add_slope(slope, p, at + i, (across[0] + across[1]) + (across[2] + across[3]));
        add_slope(slope, p, p->count + at + i, (down[0] + down[1]) + (down[2] + down[3]));
    }
}

/* `taps` is 2 or 4. Return 0 if nothing was done. */
INLINE int NAME(planes_back)(REAL *out, void *slope, const REAL *grad, const REAL *image, const void *map,
                             const double *outside, const Warped *p, int taps) {
    Py_ssize_t plane = p->height * p->width, first, i, c, n;
    NAME(Four) *mixed, *onto, *from;
    int32_t seen[TAPE];
    const double reach = taps / 2;
    if (p->width < taps || p->height < taps || plane > INT32_MAX) return 0;
    mixed = malloc((size_t)plane * ((out != NULL) + (slope != NULL)) * sizeof(NAME(Four)));
    if (!mixed) return 0;
    onto = out ? mixed : NULL;
    from = slope ? mixed + (out ? plane : 0) : NULL;
    for (first = 0; first < p->planes; first += 4) {
        Py_ssize_t planes = p->planes - first < 4 ? p->planes - first : 4;
        if (onto) memset(onto, 0, (size_t)plane * sizeof(NAME(Four)));
        for (c = 0; from && c < 4; c++) {
            const REAL *own = image + (first + (c < planes ? c : 0)) * plane;
            REAL *to = (REAL *)from + c;
            for (i = 0; i < plane; i++) to[4 * i] = own[i]; /* what is not a plane is multiplied by 0 */
        }
        for (i = 0; i < p->count; i += n) {
            n = p->count - i < TAPE ? p->count - i : TAPE;
            if (taps == 2)
                NAME(strip_back)(onto, slope, grad + first * p->count, from, map, p, i, n, planes, seen);
            else
                NAME(cubic_strip_back)(onto, slope, grad + first * p->count, from, map, p, i, n, planes, seen);
            for (c = i; !first && c < i + n; c++) {
                double x = position_at(map, p, c), y = position_at(map, p, p->count + c);
                int beyond = x <= -reach || y <= -reach || x >= (double)p->width + reach - 1 ||
                             y >= (double)p->height + reach - 1;
                if (!seen[c - i] && !(beyond && p->border == CONSTANT_BORDER && !outside))
                    NAME(position_back)(out, slope, grad, image, map, outside, p, taps, c);
            }
        }
        for (c = 0; onto && c < planes; c++) {
            const REAL *own = (const REAL *)onto + c;
            REAL *to = out + (first + c) * plane;
            for (i = 0; i < plane; i++) to[i] += own[4 * i];
        }
    }
    free(mixed);
    return 1;
}
#endif

/* One image. */
INLINE void NAME(remap_back)(REAL *out, void *slope, const REAL *grad, const REAL *image, const void *map,
                             const double *outside, const Warped *p, int taps) {
    Py_ssize_t i;
    if (out) memset(out, 0, (size_t)(p->planes * p->height * p->width) * sizeof(REAL));
    if (slope) memset(slope, 0, (size_t)(2 * p->count) * (p->single ? sizeof(float) : sizeof(double)));
#if defined(__GNUC__)
    if (taps > 1 && NAME(planes_back)(out, slope, grad, image, map, outside, p, taps)) return;
#endif
    for (i = 0; i < p->count; i++) NAME(position_back)(out, slope, grad, image, map, outside, p, taps, i);
}

#define REMAP_BACK_ARGS                                                                                              \
    (REAL *out, void *slope, const REAL *grad, const REAL *image, const void *map, const double *outside,          \
     const Warped *p, int taps)
/* The number of taps is a constant in each call. */
#define REMAP_BACK(prefix, target)                                                                                   \
    static target void NAME(prefix##_remap_back) REMAP_BACK_ARGS {                                                     \
        if (taps == 1)                                                                                               \
            NAME(remap_back)(out, slope, grad, image, map, outside, p, 1);                                            \
        else if (taps == 2)                                                                                          \
            NAME(remap_back)(out, slope, grad, image, map, outside, p, 2);                                            \
        else                                                                                                         \
            NAME(remap_back)(out, slope, grad, image, map, outside, p, 4);                                            \
    }
REMAP_BACK(portable, )
#if X86
REMAP_BACK(avx2, AVX2)
static void(*const NAME(remaps_back)[]) REMAP_BACK_ARGS = {NAME(portable_remap_back), NAME(avx2_remap_back),
                                                           NAME(avx2_remap_back)};
#else
static void(*const NAME(remaps_back)[]) REMAP_BACK_ARGS = {NAME(portable_remap_back)};
#endif

/* ---- the chosen pixel of a window, and the stretch of a plane -------------------------------------- */

/* The pixels of a window that equal its extreme or median get its gradient. If there are several, the last one gets half, the
 * one before it half of the rest, and so on, as in a chain of maxima; with `first`, the first one gets all of it. `wide`
 * and `back` are a plane with its border and the gradient of that; offsets are those of the members of the window in it. */
INLINE void NAME(select_back)(REAL *back, const REAL *wide, const REAL *chosen, const REAL *grad, Py_ssize_t height,
                              Py_ssize_t width, Py_ssize_t wide_width, const Py_ssize_t *offsets, Py_ssize_t count, int first) {
    Py_ssize_t y, at, i, n, t;
    for (y = 0; y < height; y++)
        for (at = 0; at < width; at += TAPE) {
            const REAL *wanted = chosen + y * width + at, *g = grad + y * width + at;
            REAL left[TAPE];
            int32_t place[TAPE];
            n = width - at < TAPE ? width - at : TAPE;
            for (i = 0; i < n; i++) left[i] = g[i], place[i] = -1;
            for (t = count; t-- > 0;) {
                const REAL *from = wide + y * wide_width + at + offsets[t];
                REAL *to = back + y * wide_width + at + offsets[t];
                for (i = 0; i < n; i++) {
                    int equal = from[i] == wanted[i];
                    REAL part = equal && !first ? left[i] * (REAL)0.5 : 0;
                    to[i] += part;
                    left[i] -= part;
                    place[i] = equal ? (int32_t)t : place[i];
                }
            }
            for (i = 0; i < n; i++)
                if (place[i] >= 0) back[y * wide_width + at + i + offsets[place[i]]] += left[i];
        }
}

/* A plane that is stretched so that its extremes become 0 and 1; equal extremes share what reaches them. */
INLINE void NAME(stretch_back)(REAL *out, const REAL *in, const REAL *grad, Py_ssize_t count) {
    REAL low = in[0], high = in[0], scale, to_low, to_high;
    double every = 0, slope = 0;
    Py_ssize_t lows = 0, highs = 0, at, i, n;
    for (i = 0; i < count; i++) {
        low = in[i] < low ? in[i] : low;
        high = in[i] > high ? in[i] : high;
    }
    if (!(high > low)) {
        memcpy(out, grad, (size_t)count * sizeof(REAL));
        return;
    }
    scale = 1 / (high - low);
    for (at = 0; at < count; at += TAPE) {
        REAL sum = 0, products = 0;
        int32_t least = 0, most = 0;
        n = count - at < TAPE ? count - at : TAPE;
        for (i = at; i < at + n; i++) {
            REAL place = (in[i] - low) * scale, own = place <= 0 || place >= 1 ? 0 : grad[i];
            out[i] = own * scale;
            sum += own;
            products += own * place;
            least += in[i] == low;
            most += in[i] == high;
        }
        every += sum;
        slope += products;
        lows += least;
        highs += most;
    }
    to_low = (REAL)((slope - every) * (double)scale / (double)lows);
    to_high = (REAL)(-slope * (double)scale / (double)highs);
    for (i = 0; i < count; i++) out[i] += in[i] == low ? to_low : in[i] == high ? to_high : 0;
}

#define SELECT_BACK_ARGS                                                                                             \
    (REAL *back, const REAL *wide, const REAL *chosen, const REAL *grad, Py_ssize_t height, Py_ssize_t width,          \
     Py_ssize_t wide_width, const Py_ssize_t *offsets, Py_ssize_t count, int first)
#define STRETCH_BACK_ARGS (REAL *out, const REAL *in, const REAL *grad, Py_ssize_t count)
#define PLANES_BACK(prefix, target)                                                                                  \
    static target void NAME(prefix##_select_back) SELECT_BACK_ARGS {                                                   \
        NAME(select_back)(back, wide, chosen, grad, height, width, wide_width, offsets, count, first);                 \
    }                                                                                                                \
    static target void NAME(prefix##_stretch_back) STRETCH_BACK_ARGS { NAME(stretch_back)(out, in, grad, count); }
PLANES_BACK(portable, )
#if X86
PLANES_BACK(avx2, AVX2)
static void(*const NAME(selects_back)[]) SELECT_BACK_ARGS = {NAME(portable_select_back), NAME(avx2_select_back),
                                                             NAME(avx2_select_back)};
static void(*const NAME(stretches_back)[]) STRETCH_BACK_ARGS = {NAME(portable_stretch_back), NAME(avx2_stretch_back),
                                                                NAME(avx2_stretch_back)};
#else
static void(*const NAME(selects_back)[]) SELECT_BACK_ARGS = {NAME(portable_select_back)};
static void(*const NAME(stretches_back)[]) STRETCH_BACK_ARGS = {NAME(portable_stretch_back)};
#endif
