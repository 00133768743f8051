/* PIL's filters as banded tables, in double precision and in PIL's order of operations, so that the integer weights
 * made of them are PIL's to the bit. Included by _native.c alone.
 */
static double sinc(double x) {
    if (x == 0.0) return 1.0;
    x *= 3.14159265358979323846;
    return sin(x) / x;
}
static double box_filter(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }
static double bilinear_filter(double x) {
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}
static double hamming_filter(double x) {
    x = fabs(x);
    if (x == 0.0) return 1.0; /* as in PIL; the sum of the two numbers below is not 1 */
    /* PIL writes the two numbers in single precision */
    return x < 1.0 ? sinc(x) * (0.54f + 0.46f * cos(x * 3.14159265358979323846)) : 0.0;
}
static double bicubic_filter(double x) {
    const double a = -0.5;
    x = fabs(x);
    if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    return x < 2.0 ? (((x - 5.0) * x + 8.0) * x - 4.0) * a : 0.0;
}
static double lanczos_filter(double x) { return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0; }

static const struct {
    const char *name;
    double (*weight)(double);
    double support;
} filters[] = {
    {"box", box_filter, 0.5},         {"bilinear", bilinear_filter, 1.0}, {"hamming", hamming_filter, 1.0},
    {"bicubic", bicubic_filter, 2.0}, {"lanczos", lanczos_filter, 3.0},
};

/* Row o: which inputs of `size` make sample o of `out` over [low, low + extent); `taps` weights, 0 from length on. */
static void pil_table(double (*filter)(double), double support, Py_ssize_t size, double low, double extent, Py_ssize_t out,
                      Py_ssize_t taps, int32_t *start, int32_t *length, double *weight) {
    double scale = extent / (double)out, stretch = scale < 1.0 ? 1.0 : scale, inverse = 1.0 / stretch;
    Py_ssize_t o, k;
    support *= stretch;
    for (o = 0; o < out; o++, weight += taps) {
        double center = low + ((double)o + 0.5) * scale, total = 0.0;
        int64_t first = (int64_t)(center - support + 0.5), last = (int64_t)(center + support + 0.5);
        if (first < 0) first = 0;
        if (first > size) first = size;
        if (last > size) last = size;
        if (last < first) last = first;
        if (last - first > taps) last = first + taps;
        start[o] = (int32_t)first;
        length[o] = (int32_t)(last - first);
        for (k = 0; k < last - first; k++) {
            weight[k] = filter(((double)(k + first) - center + 0.5) * inverse);
            total += weight[k];
        }
        for (; k < taps; k++) weight[k] = 0.0;
        if (total != 0.0)
            for (k = 0; k < last - first; k++) weight[k] /= total;
    }
}
