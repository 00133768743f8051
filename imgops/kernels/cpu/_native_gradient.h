/* Gradients of the color steps in real numbers. _native.c includes this file twice, with REAL as float and as double.
 *
 * The steps run again, strip by strip, and then backward: no step is stored for the whole image. A clamp passes nothing
 * at its ends, and equal extremes share their gradient, as in ATen.
 */
#define JOIN_(name, real) name##_##real
#define JOIN(name, real) JOIN_(name, real)
#define NAME(name) JOIN(name, REAL)
#define TAPE 256
#define TAPE_STEPS 8

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
