/* One pass over the weights of a block of groups: draws, and Adam on a closed-form gradient.

   All arrays are float32, contiguous and of groups x D weights, unless said otherwise; what is summed
   over a group is summed in float64. The equations are those of `posteriors/radial_kl.py`,
   `posteriors/log_radius.py` and `nn/weights.py`, which are what this file is tested against. */

#include "step.h"

/* --- standard normals -------------------------------------------------------------------------- */

/* Lanes of Philox; wider than its words where the processor multiplies the low halves of wide lanes.
   What is left in the high halves is dropped in the end. */
#ifdef __AVX512F__
#include <immintrin.h>
typedef uint64_t Lanes __attribute__((vector_size(64)));
typedef uint32_t Words __attribute__((vector_size(32)));
static inline Lanes low_product(Lanes x, uint32_t factor) {
    return (Lanes)_mm512_mul_epu32((__m512i)x, _mm512_set1_epi64(factor));
}
#define COUNTERS ((Lanes){0, 1, 2, 3, 4, 5, 6, 7})
#define LOW(x) __builtin_convertvector(x, Words)
#else
typedef uint64_t Lanes;
typedef uint32_t Words;
static inline Lanes low_product(Lanes x, uint32_t factor) { return (x & 0xffffffffu) * factor; }
#define COUNTERS 0
#define LOW(x) (Words)(x)
#endif

/* Philox4x32-10 (Salmon et al. 2011): four random words each from n counters and a key. */
static void philox(uint32_t words[4][CHUNK], uint64_t first, Count n, uint64_t seed) {
    const Count lanes = sizeof(Lanes) / sizeof(uint64_t); /* divides CHUNK */
    const uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (Count i = 0; i < n; i += lanes) {
        const Lanes counter = first + (uint64_t)i + COUNTERS;
        Lanes x0 = counter, x1 = counter >> 32, x2 = counter ^ counter, x3 = x2;
#pragma GCC unroll 10
        for (uint32_t round = 0; round < 10; round++) {
            const Lanes p0 = low_product(x0, 0xD2511F53u), p1 = low_product(x2, 0xCD9E8D57u);
            x0 = (p1 >> 32) ^ x1 ^ (uint64_t)(k0 + round * 0x9E3779B9u);
            x2 = (p0 >> 32) ^ x3 ^ (uint64_t)(k1 + round * 0xBB67AE85u);
            x1 = p1;
            x3 = p0;
        }
        const Words low[4] = {LOW(x0), LOW(x1), LOW(x2), LOW(x3)};
        for (int k = 0; k < 4; k++) memcpy(words[k] + i, &low[k], sizeof(Words));
    }
}

/* log(x) for 0 < x <= 1: x = 2^n m with m in [sqrt(1/2), sqrt(2)), log m = 2 artanh((m-1)/(m+1)) */
static inline float log_unit(float x) {
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int32_t shifted = bits - 0x3f3504f3; /* the bits of sqrt(1/2) */
    const int32_t n = shifted >> 23;
    bits -= (int32_t)((uint32_t)n << 23);
    float m;
    memcpy(&m, &bits, sizeof m);
    const float z = (m - 1.0f) / (m + 1.0f), z2 = z * z;
    float p = 1.0f / 9;
    p = p * z2 + 1.0f / 7;
    p = p * z2 + 1.0f / 5;
    p = p * z2 + 1.0f / 3;
    return (float)n * 0.693147181f + 2.0f * (z + z * z2 * p);
}

/* Box and Muller 1958: n pairs of uniform words to as many pairs of independent standard normals. */
static void box_muller(const uint32_t *restrict a, const uint32_t *restrict b,
                       float *restrict z0, float *restrict z1, Count n) {
    const float unit = 1.0f / 16777216.0f;
#pragma omp simd
    for (Count i = 0; i < n; i++) {
        const float u = ((float)(int32_t)(a[i] >> 8) + 0.5f) * unit; /* in (0, 1) */
        const float length = sqrtf(-2.0f * log_unit(u));
        /* The angle is a quarter turn q plus r quarter turns with |r| <= 1/2. */
        const int32_t q = (int32_t)(b[i] >> 30);
        const float r = (float)(int32_t)((b[i] >> 6) & 0xffffffu) * unit - 0.5f;
        const float r2 = r * r;
        float sine = -4.68175414e-3f;
        sine = sine * r2 + 7.96926262e-2f;
        sine = sine * r2 - 6.45964097e-1f;
        sine = (sine * r2 + 1.57079633f) * r;
        float cosine = 9.19260274e-4f;
        cosine = cosine * r2 - 2.08634807e-2f;
        cosine = cosine * r2 + 2.53669508e-1f;
        cosine = cosine * r2 - 1.23370055f;
        cosine = cosine * r2 + 1.0f;
        const float x = q & 1 ? sine : cosine, y = q & 1 ? cosine : sine;
        z0[i] = q & 2 ? -(length * x) : length * x;
        z1[i] = (q + 1) & 2 ? -(length * y) : length * y;
    }
}

/* n standard normals that depend on the seed alone. Four streams of a quarter each, so that what a
   vector of counters yields lies side by side. */
void vcl_normal(float *restrict out, Count n, uint64_t seed) {
    const Count quarter = (n + 3) / 4;
    uint32_t words[4][CHUNK];
    float normals[4][CHUNK];
    for (Count start = 0; start < quarter; start += CHUNK) {
        const Count length = quarter - start < CHUNK ? quarter - start : CHUNK;
        float *at[4];
        for (int part = 0; part < 4; part++) /* right to their place, where it has room for all */
            at[part] = part * quarter + start + length <= n ? out + part * quarter + start
                                                            : normals[part];
        philox(words, (uint64_t)start, length, seed);
        box_muller(words[0], words[1], at[0], at[1], length);
        box_muller(words[2], words[3], at[2], at[3], length);
        for (int part = 0; part < 4; part++) {
            const Count room = n - (part * quarter + start);
            if (at[part] == normals[part] && room > 0)
                memcpy(out + part * quarter + start, normals[part], (size_t)room * sizeof(float));
        }
    }
}

/* --- draws ------------------------------------------------------------------------------------- */

static double sum_of_squares(const float *x, Count n) {
    double total = 0.0;
    for (Count start = 0; start < n; start += CHUNK) {
        const Count end = start + CHUNK < n ? start + CHUNK : n;
        float partial = 0.0f;
#pragma omp simd reduction(+ : partial)
        for (Count i = start; i < end; i++) partial += x[i] * x[i];
        total += partial;
    }
    return total;
}

/* A group's weights lie side by side in the block, but weight and bias of a layer are tensors of
   their own: the first D_first of a group belong to the one, the rest to the other. */

static void draw_part(float *restrict w, float *restrict noise, float factor,
                      const float *restrict mean, const float *restrict scale, Count n) {
#pragma omp simd
    for (Count i = 0; i < n; i++) {
        noise[i] *= factor;
        w[i] = mean[i] + scale[i] * noise[i];
    }
}

/* w = mean + scale * noise. With a radius per group the noise, standard normal on entry, becomes
   direction times radius first. */
void vcl_draw(float *restrict first, float *restrict second, float *restrict noise,
              const float *restrict radius, const float *restrict mean,
              const float *restrict scale, Count groups, Count D, Count D_first) {
    for (Count g = 0; g < groups; g++) {
        const Count at = g * D, rest = at + D_first;
        float factor = 1.0f;
        if (radius) {
            const double norm = sqrt(sum_of_squares(noise + at, D));
            factor = norm > 0.0 ? (float)(radius[g] / norm) : 0.0f;
        }
        draw_part(first + g * D_first, noise + at, factor, mean + at, scale + at, D_first);
        if (D_first < D)
            draw_part(second + g * (D - D_first), noise + rest, factor, mean + rest, scale + rest,
                      D - D_first);
    }
}

/* --- the gradient of the divergence ------------------------------------------------------------- */

/* With a = stretch (mean - prior_mean) / prior_scale, s = scale / prior_scale, n2 = inv_A a^2,
   t = inv_S s^2:
   dKL/da = a (a0 + a1 t),  dKL/ds = (t (s0 + s1 t + s2 n2) - 1) / s */
typedef struct {
    float a0, a1, s0, s1, s2, inv_A, inv_S;
} Coefficients;

/* Mills' ratio and what comes of it; see posteriors/log_radius.py. */
typedef struct {
    double mills, k1_over_x, k2, k1_slope, k2_slope;
} Moments;

static Moments radius_moments(double x) {
    const double half_pi = 1.57079632679489662, root_half = 0.70710678118654752;
    Moments k;
    if (x < 10.0) {
        const double x2 = x * x, m = sqrt(half_pi) * exp(x2 / 2) * erfc(x * root_half);
        k.mills = m;
        k.k1_over_x = (m * (1 + x2) - x) / 2;
        k.k2 = 1 + (x2 - x * m * (3 + x2)) / 2;
        k.k1_slope = (m * (1 + x2 * (4 + x2)) - x * (3 + x2)) / 2;
        k.k2_slope = (x * (5 + x2) - m * (3 + x2 * (6 + x2))) / 2;
        return k;
    }
    const double y = 1 / (x * x);
    double moment = 1.0, power = 1.0, m = 1.0, k1 = 0.0, k2 = 0.0, k1_slope = 0.0, k2_slope = 0.0;
    for (int n = 1; n <= 30; n++) {
        moment *= 2 * n - 1;
        power *= y;
        const double term = (n % 2 ? -moment : moment) * power;
        m += term;
        k1 += -n * term;
        k2 += (n - 1) * term;
        k1_slope += 2.0 * n * n * term;
        k2_slope += -2.0 * n * (n - 1) * term;
        /* The terms fall, and k2 is the smallest of the sums: what is left changes none of them. */
        if (2.0 * n * n * fabs(term) < 1e-17 * fabs(k2)) break;
    }
    k.mills = m / x;
    k.k1_over_x = k1 / x;
    k.k2 = k2;
    k.k1_slope = k1_slope / x;
    k.k2_slope = k2_slope / x;
    return k;
}

/* Adds those of n <= CHUNK weights. */
static inline __attribute__((always_inline)) void
add_sums(Sums *sums, const float *restrict mean, const float *restrict scale,
         const float *restrict prior_mean, const float *restrict prior_scale,
         const float *restrict stretch, Count n) {
    float pA = 0.0f, pS = 0.0f, pm = 0.0f, pf = 0.0f;
#pragma omp simd reduction(+ : pA, pS, pm, pf)
    for (Count i = 0; i < n; i++) {
        const float inverse = 1.0f / prior_scale[i];
        const float per_shift = stretch ? stretch[i] * inverse : inverse;
        const float a = (mean[i] - prior_mean[i]) * per_shift, s = scale[i] * inverse;
        const float a2 = a * a, s2 = s * s;
        pA += a2;
        pS += s2;
        pm += a2 * s2;
        pf += s2 * s2;
    }
    sums->A += pA;
    sums->S += pS;
    sums->mixed += pm;
    sums->fourth += pf;
}

static Sums sums_of_group(const float *mean, const float *scale, const float *prior_mean,
                          const float *prior_scale, const float *stretch, Count D) {
    Sums sums = {0.0, 0.0, 0.0, 0.0};
    for (Count start = 0; start < D; start += CHUNK)
        add_sums(&sums, mean + start, scale + start, prior_mean + start, prior_scale + start,
                 stretch ? stretch + start : NULL, start + CHUNK < D ? CHUNK : D - start);
    return sums;
}

/* One group of a radial to a radial: posteriors/radial_kl.py's `gradient_coefficients`. */
static Coefficients radial_coefficients(Sums sums, Count D) {
    double A = sums.A;
    const double S = sums.S / D;
    const double smallest = 4 * 1.17549435e-38; /* a shift too small to be squared is none */
    const int shifted = A > smallest;
    if (!shifted) A = 0.0;
    const double beta = shifted ? sums.mixed / (A * S) : 0.0;
    const double unequal = sums.fourth / D / (S * S) - 1.0;
    const double spread = unequal > 0.0 ? unequal : 0.0;

    const double delta = sqrt(A / S);
    const Moments k = radius_moments(delta);
    const double k1 = delta * k.k1_over_x;
    const double slope = k.mills - beta / D * k.k1_slope - spread / (2 * (D + 2.0)) * k.k2_slope;
    const double per_radius = shifted ? (D - 1) / sqrt(S * A) : 0.0;
    const double share = (D - 1) / (double)D;
    const double growth = -slope * delta + 2 * k1 * beta / D + 2 * k.k2 * spread / (D + 2.0);
    const double s1 = -2 * share / (D + 2.0) * k.k2;
    Coefficients c;
    c.a0 = (float)(1 + per_radius * (slope + 2 * k.k1_over_x * beta / D));
    c.a1 = (float)(per_radius * (-2.0 / D) * k.k1_over_x);
    c.s0 = (float)(1 + (S - 1) / D + share * growth - s1);
    c.s1 = (float)s1;
    c.s2 = (float)(-2 * share * k1);
    c.inv_A = shifted ? (float)(1 / A) : 0.0f;
    c.inv_S = (float)(1 / S);
    return c;
}

/* --- the step ------------------------------------------------------------------------------------ */

/* n <= CHUNK weights of one group, from `at` on; their gradient lies by itself. What is constant in
   the calls below is folded into a loop of its own. */
static inline __attribute__((always_inline)) void
step_chunk(const Step *step, Coefficients c, Count at, Count n, const float *restrict grad,
           const int amsgrad, const int given_scale, const int stretched, Sums *sums) {
    const Adam M = step->mean, R = step->rho;
    float *const restrict mean = M.value, *const restrict rho = R.value;
    float *const restrict scale = step->scale;
    const float *const restrict prior_mean = step->prior_mean;
    const float *const restrict prior_scale = step->prior_scale;
    const float *const restrict stretch = step->stretch;
    const float *const restrict grad_scale = step->grad_scale;
    const float *const restrict noise = step->noise;
    const float beta1 = step->beta1, beta2 = step->beta2, epsilon = step->epsilon;
    const float kl_factor = step->kl_factor, mean_kl_factor = step->mean_kl_factor;
    /* In one loop the chain from a gradient to the next scale would be longer than a processor looks
       ahead, and its units would wait. */
    for (Count piece = at; piece < at + n; piece += PIECE) {
        const Count end = piece + PIECE < at + n ? piece + PIECE : at + n;
        float slope[PIECE];
#pragma omp simd
        for (Count i = piece; i < end; i++) slope[i - piece] = sigmoid(rho[i]);
#pragma omp simd
        for (Count i = piece; i < end; i++) {
            const float sigma = scale[i], inverse = 1.0f / prior_scale[i];
            const float per_shift = stretched ? stretch[i] * inverse : inverse;
            const float a = (mean[i] - prior_mean[i]) * per_shift, s = sigma * inverse;
            const float n2 = c.inv_A * a * a, t = c.inv_S * s * s;
            const float kl_a = a * (c.a0 + c.a1 * t);
            const float kl_s = (t * (c.s0 + c.s1 * t + c.s2 * n2) - 1.0f) / s;
            const float g = grad[i - at];
            const float g_mean = g + mean_kl_factor * per_shift * kl_a;
            const float g_scale = (given_scale ? grad_scale[i] : g * noise[i]) +
                                  kl_factor * inverse * kl_s;
            const float g_rho = g_scale * slope[i - piece];
            mean[i] = adam(&M, i, g_mean, beta1, beta2, epsilon, amsgrad);
            rho[i] = adam(&R, i, g_rho, beta1, beta2, epsilon, amsgrad);
        }
#pragma omp simd
        for (Count i = piece; i < end; i++) scale[i] = softplus(rho[i]);
    }
    if (sums) /* what the next step begins with, while it is at hand */
        add_sums(sums, mean + at, scale + at, prior_mean + at, prior_scale + at,
                 stretched ? stretch + at : NULL, n);
}

#define FOLDED(AMSGRAD, GIVEN, STRETCHED)                                                          \
    case AMSGRAD | GIVEN << 1 | STRETCHED << 2:                                                    \
        if (sums) step_chunk(step, c, i, m, g, AMSGRAD, GIVEN, STRETCHED, sums);                   \
        else step_chunk(step, c, i, m, g, AMSGRAD, GIVEN, STRETCHED, NULL);                        \
        break;

static void step_part(const Step *step, Coefficients c, Count at, Count n,
                      const float *restrict grad, Sums *sums) {
    const int amsgrad = step->mean.max_exp_avg_sq != NULL, given = step->grad_scale != NULL;
    const int stretched = step->stretch != NULL;
    for (Count start = 0; start < n; start += CHUNK) {
        const Count i = at + start, m = start + CHUNK < n ? CHUNK : n - start;
        const float *g = grad + start;
        switch (amsgrad | given << 1 | stretched << 2) {
            FOLDED(0, 0, 0)
            FOLDED(1, 0, 0)
            FOLDED(0, 1, 0)
            FOLDED(1, 1, 0)
            FOLDED(0, 0, 1)
            FOLDED(1, 0, 1)
            FOLDED(0, 1, 1)
            FOLDED(1, 1, 1)
        }
    }
}

void vcl_step(const Step *step) {
    const Count D = step->D, D_first = step->D_first;
    for (Count g = 0; g < step->groups; g++) {
        const Count at = g * D;
        Coefficients c = {1, 0, 1, 0, 0, 0, 1};
        Sums *const sums = step->sums ? step->sums + g : NULL;
        if (step->divergence == KL_QUADRATIC) c.inv_S = 1.0f / (float)D;
        if (step->divergence == KL_RADIAL) {
            if (!step->sums_known)
                *sums = sums_of_group(step->mean.value + at, step->scale + at,
                                      step->prior_mean + at, step->prior_scale + at,
                                      step->stretch ? step->stretch + at : NULL, D);
            c = radial_coefficients(*sums, D);
            *sums = (Sums){0.0, 0.0, 0.0, 0.0};
        }
        step_part(step, c, at, D_first, step->grad_first + g * D_first, sums);
        if (D_first < D)
            step_part(step, c, at + D_first, D - D_first, step->grad_second + g * (D - D_first),
                      sums);
    }
    if (step->mean_count) *step->mean_count += 1.0f, *step->rho_count += 1.0f;
}

void vcl_steps(const Step *const *steps, Count n) {
    for (Count i = 0; i < n; i++) vcl_step(steps[i]);
}
