/* One pass over the weights of a block of groups: draws, and Adam on a closed-form gradient.

   All arrays are float32, contiguous and of groups x D weights, unless said otherwise; what is summed
   over a group is summed in float64. The equations are those of `posteriors/radial_kl.py`,
   `posteriors/log_radius.py` and `nn/blocks.py`, against which this file is tested. */

#include "step.h"

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

/* A group's weights lie side by side in the block, but weight and bias of a layer are separate
   tensors: the first D_first of a group belong to the one, the rest to the other. */

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
