/* What the files of this folder share: elementary functions, Adam, and the step of a block. */

#ifndef VCL_RADIAL_STEP_H
#define VCL_RADIAL_STEP_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef ptrdiff_t Count;

/* Which Kullback-Leibler divergence the gradient is of. */
enum { KL_NONE = 0, KL_GAUSSIAN = 1, KL_QUADRATIC = 2, KL_RADIAL = 3 };

/* Sums run in float32 over so many weights, and in float64 over the partial sums. */
enum { CHUNK = 1024 };

/* So many weights a loop of the step has; a divisor of CHUNK. */
enum { PIECE = 128 };

/* --- elementary functions, accurate to a few units in the last place of float32 --------------- */

/* exp(x) for x <= 87, and exp(-87) below -87: 2^n exp(r) with |r| <= log(2) / 2 */
static inline float exp_negative(float x) {
    const float shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    x = x < -87.0f ? -87.0f : x;
    const float shifted = x * 1.44269504f + shift;
    const float n = shifted - shift;
    const float r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
    float p = 1.98756916e-4f;
    p = p * r + 1.39819994e-3f;
    p = p * r + 8.33345205e-3f;
    p = p * r + 4.16657962e-2f;
    p = p * r + 1.66666657e-1f;
    p = p * r + 5.00000000e-1f;
    p = p * r * r + r + 1.0f;
    const int32_t bits = ((int32_t)n + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

/* log(x) for x > 0 that is not subnormal: x = 2^n m with m in [sqrt(1/2), sqrt(2)), log m = 2 artanh((m-1)/(m+1)) */
static inline float log_positive(float x) {
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

/* log(1 + y) for 0 <= y <= 1 as 2 artanh(y / (2 + y)) */
static inline float log1p_unit(float y) {
    const float z = y / (2.0f + y), z2 = z * z;
    float p = 1.0f / 17;
    p = p * z2 + 1.0f / 15;
    p = p * z2 + 1.0f / 13;
    p = p * z2 + 1.0f / 11;
    p = p * z2 + 1.0f / 9;
    p = p * z2 + 1.0f / 7;
    p = p * z2 + 1.0f / 5;
    p = p * z2 + 1.0f / 3;
    return 2.0f * (z + z * z2 * p);
}

static inline float softplus(float rho) {
    const float y = exp_negative(-fabsf(rho));
    return (rho > 0.0f ? rho : 0.0f) + log1p_unit(y);
}

static inline float sigmoid(float rho) {
    const float y = exp_negative(-fabsf(rho));
    return (rho > 0.0f ? 1.0f : y) / (1.0f + y);
}

static inline float dot(const float *restrict a, const float *restrict b, Count n) {
    float total = 0.0f;
#pragma omp simd reduction(+ : total)
    for (Count i = 0; i < n; i++) total += a[i] * b[i];
    return total;
}

/* Over a group: A = sum a^2, S = sum s^2, mixed = sum a^2 s^2, fourth = sum s^4 */
typedef struct {
    double A, S, mixed, fourth;
} Sums;

typedef struct {
    float *value, *exp_avg, *exp_avg_sq, *max_exp_avg_sq; /* the last one null without AMSGrad */
    float step_size, root_correction; /* learning rate / (1 - beta1^step), 1 / sqrt(1 - beta2^step) */
} Adam;

static inline float adam(const Adam *p, Count i, float grad, float beta1, float beta2,
                         float epsilon, int amsgrad) {
    const float m = p->exp_avg[i] + (grad - p->exp_avg[i]) * (1.0f - beta1);
    const float v = beta2 * p->exp_avg_sq[i] + (1.0f - beta2) * grad * grad;
    p->exp_avg[i] = m;
    p->exp_avg_sq[i] = v;
    float v_used = v;
    if (amsgrad) {
        const float highest = p->max_exp_avg_sq[i];
        v_used = v > highest ? v : highest;
        p->max_exp_avg_sq[i] = v_used;
    }
    return p->value[i] - p->step_size * m / (sqrtf(v_used) * p->root_correction + epsilon);
}

typedef struct {
    Adam mean, rho;
    float *scale;                     /* softplus(rho), kept up to date */
    const float *prior_mean, *prior_scale;
    const float *stretch;             /* of mean - prior_mean in the KL; null: none */
    const float *grad_first, *grad_second; /* of the mean NLL with respect to the weights drawn */
    const float *grad_scale;          /* null: that with respect to the weights * noise */
    const float *noise;               /* null if grad_scale is given */
    Sums *sums;                       /* of the groups, for KL_RADIAL; else null */
    float *mean_count, *rho_count;    /* steps made, which grow by one; null: somebody else counts */
    Count groups, D, D_first;
    int divergence;
    int sums_known;                   /* from the last step, with nothing changed since */
    float kl_factor, mean_kl_factor;  /* KL weight / N, for the scales and for the means */
    float beta1, beta2, epsilon;
} Step;

/* One step of a block of groups. */
void vcl_step(const Step *step);

#endif
