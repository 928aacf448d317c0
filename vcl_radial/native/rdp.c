/* Draws of a factor of weights under an RDP, the gradient through them, and Adam.

   The equations are those of `posteriors/rdp.py`, `posteriors/vmf_angle.py`, `posteriors/bessel.py` and
   `posteriors/log_normal_radius.py`, which this file is tested against. Weights are float32; what one
   number stands for a group or for all of them is float64. */

#include "rdp.h"
#include "random.h"

/* --- random numbers of a key ---------------------------------------------------------------------- */

enum { AT_ONCE = 64 };

typedef struct {
    uint64_t key, counter;
    Count normals_left, uniforms_left;
    float normals[2 * AT_ONCE];
    uint32_t words[4][CHUNK];
} Stream;

static void refill(Stream *s) {
    vcl_philox(s->words, s->counter, AT_ONCE, s->key);
    vcl_box_muller(s->words[0], s->words[1], s->normals, s->normals + AT_ONCE, AT_ONCE);
    s->counter += AT_ONCE;
    s->normals_left = s->uniforms_left = 2 * AT_ONCE;
}

static double normal(Stream *s) {
    if (!s->normals_left) refill(s);
    return s->normals[--s->normals_left];
}

/* in (0, 1) */
static double uniform(Stream *s) {
    if (!s->uniforms_left) refill(s);
    const Count k = --s->uniforms_left;
    return ((double)s->words[2 + k % 2][k / 2] + 0.5) / 4294967296.0;
}

/* Gamma(shape, 1) by Marsaglia and Tsang 2000; at 1/2 half the square of a normal number. */
static double gamma_number(Stream *s, double shape) {
    if (shape < 1.0) {
        const double x = normal(s);
        return x * x / 2;
    }
    const double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        const double x = normal(s), root = 1 + c * x, v = root * root * root;
        if (v > 0 && log(uniform(s)) < x * x / 2 + d * (1 - v + log(v))) return d * v;
    }
}

/* --- the angle between a direction and its mean: posteriors/vmf_angle.py -------------------------- */

/* n draws, by the proposals of Wood (1994). */
void vcl_angles(double *angle, Count n, double kappa, Count D, uint64_t key) {
    Stream s;
    s.key = key, s.counter = 0, s.normals_left = s.uniforms_left = 0;
    const double m = (double)(D - 1), b = m / (2 * kappa + sqrt(4 * kappa * kappa + m * m));
    for (Count i = 0; i < n; i++) {
        angle[i] = NAN; /* no proposal would ever be accepted of a kappa that is not finite */
        while (isfinite(kappa)) {
            const double along = normal(&s);
            const double across2 = 2 * fmax(gamma_number(&s, m / 2), 1e-30);
            const double length = sqrt(along * along + across2);
            /* The two forms are equal; each is exact where the other cancels. */
            const double uniform2 = along > 0 ? across2 / ((length + along) * (length + along))
                                              : (length - along) * (length - along) / across2;
            const double stretched2 = b * uniform2;
            const double beyond = 2 * b / (1 + b) - 2 * stretched2 / (1 + stretched2);
            const double factor = (1 + b) / 2 + (1 - b * b) / 2 * uniform2 / (1 + stretched2);
            if (log(uniform(&s)) < kappa * beyond + m * log(factor)) {
                angle[i] = 2 * atan(sqrt(stretched2));
                break;
            }
        }
    }
}

/* sin and cos of |x| <= pi / 2 */
static inline float sine(float x) {
    const float y = x * x;
    float p = -2.50521084e-8f;
    p = p * y + 2.75573192e-6f;
    p = p * y - 1.98412698e-4f;
    p = p * y + 8.33333333e-3f;
    p = p * y - 1.66666667e-1f;
    return x + x * y * p;
}

static inline float cosine(float x) {
    const float y = x * x;
    float p = 2.08767570e-9f;
    p = p * y - 2.75573192e-7f;
    p = p * y + 2.48015873e-5f;
    p = p * y - 1.38888889e-3f;
    p = p * y + 4.16666667e-2f;
    p = p * y - 0.5f;
    return 1.0f + y * p;
}

/* Gauss and Legendre's on [0, 1] */
enum { NODES = 16 };
static const float node[NODES] = {
    0.0052995325f, 0.0277124885f, 0.0671843988f, 0.122297796f, 0.191061878f, 0.270991611f,
    0.359198225f,  0.452493745f,  0.547506255f,  0.640801775f, 0.729008389f, 0.808938122f,
    0.877702204f,  0.932815601f,  0.972287512f,  0.994700467f,
};
static const float node_weight[NODES] = {
    0.0135762297f, 0.031126762f,  0.0475792558f, 0.0623144856f, 0.0747979944f, 0.0845782597f,
    0.0913017075f, 0.0947253052f, 0.0947253052f, 0.0913017075f, 0.0845782597f, 0.0747979944f,
    0.0623144856f, 0.0475792558f, 0.031126762f,  0.0135762297f,
};

/* d theta / d kappa <= 0, with A = E cos theta: `angle_slope`. At t = theta + d all but the density
   comes from the sine and cosine of d / 2, so that nothing cancels where d is small. */
double vcl_angle_slope(double theta, double kappa, double A, Count D) {
    const int inwards = cos(theta) > A;
    const double reach = 7 / sqrt(fmax(kappa, D > 3 ? (double)(D - 2) : 1.0));
    const float span = (float)(inwards ? -fmin(theta, reach) : fmin(3.14159265358979324 - theta, reach));
    const float sin_theta = (float)sin(theta), cos_theta = (float)cos(theta);
    const float sin_half = (float)sin(theta / 2), cos_half = (float)cos(theta / 2);
    const float cotangent = cos_theta / sin_theta, beyond = (float)(1 - A);
    const float power = (float)(D - 2), twice_kappa = (float)(2 * kappa);
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (Count k = 0; k < NODES; k++) {
        const float half = span * node[k] / 2, s = sine(half), c = cosine(half);
        const float ratio = 1 - 2 * s * s + cotangent * 2 * s * c; /* sin t / sin theta */
        const float log_density = power * log_positive(ratio > 1e-30f ? ratio : 1e-30f) -
                                  twice_kappa * (sin_theta * c + cos_theta * s) * s;
        const float sin_t_half = sin_half * c + cos_half * s;
        sum += node_weight[k] * fabsf(beyond - 2 * sin_t_half * sin_t_half) * exp_negative(log_density);
    }
    return -(double)fabsf(span) * sum;
}

/* --- A(kappa) and its slope: posteriors/bessel.py -------------------------------------------------- */

void vcl_bessel_ratio(double v, double x, double *ratio, double *slope) {
    const int steps = (int)ceil(200 / (v + 10));
    const double y = x * x, high = v + steps, lam2 = (high - 0.5) * (high - 0.5);
    const double turn2 = 1 / (lam2 + y), half = (high - 0.5) / 2 * sqrt(turn2);
    const double delta = high - 0.5 + half, root = 1 / sqrt(delta * delta + y);
    const double top = delta + half * y * turn2, sharper = high - 0.5 + top * root / 2;
    const double sharper_root = sqrt(sharper * sharper + y);
    const double d_half = -half * turn2 / 2;
    const double d_top = d_half * (1 + y * turn2) + half * lam2 * turn2 * turn2;
    const double d_root = -(delta * d_half + 0.5) * root * root * root;
    const double d_sharper = (d_top * root + top * d_root) / 2;
    double r = 1 / (sharper + sharper_root); /* over x, and its slope in y */
    double by_y = -(d_sharper + (sharper * d_sharper + 0.5) / sharper_root) * r * r;
    for (int k = steps - 1; k >= 0; k--) {
        const double product_slope = r + y * by_y;
        r = 1 / (2 * (v + k) + y * r);
        by_y = -r * r * product_slope;
    }
    *ratio = x * r;
    *slope = r + 2 * y * by_y;
}

/* --- scratch ----------------------------------------------------------------------------------------- */

Count vcl_factor_scratch(const Factor *f) {
    const Count floats = 5 * f->groups * f->D + 6 * (f->groups + 1) + 6 * f->groups;
    return floats + floats % 2; /* keeps the alignment of doubles for the next part */
}

FactorScratch vcl_factor_laid_out(const Factor *f, float *scratch) {
    const Count weights = f->groups * f->D, radii = 2 * (f->groups + 1);
    FactorScratch s = {.angle = (double *)scratch};
    s.mean_direction = scratch + 2 * f->groups;
    s.tangent = s.mean_direction + weights;
    s.weights = s.tangent + weights;
    s.by_direction = s.weights + weights;
    s.by_weights = s.by_direction + weights;
    s.spread = s.by_weights + weights;
    s.by_loc = s.spread + radii;
    s.by_spread = s.by_loc + radii;
    s.inverse_length = s.by_spread + radii;
    s.radius = s.inverse_length + f->groups;
    s.cosine = s.radius + f->groups;
    s.sine = s.cosine + f->groups;
    return s;
}

/* --- draws and their gradient ------------------------------------------------------------------------ */

void vcl_factor_begin(const Factor *f, FactorScratch *s) {
    const Count D = f->D, radii = 2 * (f->groups + 1);
    for (Count g = 0; g < f->groups; g++) {
        const float *restrict direction = f->direction.value + g * D;
        float *restrict mu = s->mean_direction + g * D;
        const float length = sqrtf(dot(direction, direction, D));
        const float inverse = s->inverse_length[g] = 1.0f / (length > 1e-12f ? length : 1e-12f);
        for (Count i = 0; i < D; i++) mu[i] = direction[i] * inverse;
    }
    for (Count i = 0; i < radii; i++) s->spread[i] = softplus(f->rho.value[i]);
    memset(s->by_direction, 0, (size_t)(f->groups * D) * sizeof(float));
    memset(s->by_loc, 0, (size_t)radii * sizeof(float));
    memset(s->by_spread, 0, (size_t)radii * sizeof(float));
    s->kappa = exp((double)*f->log_concentration.value);
    s->by_kappa = 0.0;
    vcl_bessel_ratio((double)D / 2, s->kappa, &s->A, &s->A_slope);
}

/* w = r (cos(theta) mu + sin(theta) u),  2 log r = log a_g + log b_g + log a + log b */
void vcl_factor_draw(const Factor *f, FactorScratch *s, Count draw) {
    const Count D = f->D, G = f->groups, radii = 2 * (G + 1);
    const float *loc = f->loc.value, *factors = f->factors + draw * radii;
    const Count a = G, b = 2 * G + 1; /* of the layer */
    const float layer = loc[a] + s->spread[a] * factors[a] + loc[b] + s->spread[b] * factors[b];
    vcl_angles(s->angle, G, s->kappa, D, (uint64_t)f->keys[draw]);
    for (Count g = 0; g < G; g++) {
        const Count other = G + 1 + g;
        const float group = loc[g] + s->spread[g] * factors[g] + loc[other] +
                            s->spread[other] * factors[other];
        const float radius = s->radius[g] = expf((group + layer) / 2);
        const float c = s->cosine[g] = (float)cos(s->angle[g]);
        const float sn = s->sine[g] = (float)sin(s->angle[g]);
        const float *restrict noise = f->tangents + draw * G * D + g * D;
        const float *restrict mu = s->mean_direction + g * D;
        float *restrict u = s->tangent + g * D, *restrict w = s->weights + g * D;
        const float along = dot(noise, mu, D);
        for (Count i = 0; i < D; i++) u[i] = noise[i] - along * mu[i];
        const float length = sqrtf(dot(u, u, D)), inverse = 1.0f / (length > 1e-38f ? length : 1e-38f);
        for (Count i = 0; i < D; i++) {
            u[i] *= inverse;
            w[i] = radius * (c * mu[i] + sn * u[i]);
        }
    }
}

/* A change of mu by d turns u by -(u'd) mu. */
void vcl_factor_add(const Factor *f, FactorScratch *s, Count draw) {
    const Count D = f->D, G = f->groups, radii = 2 * (G + 1);
    const float *factors = f->factors + draw * radii;
    double of_all = 0.0;
    for (Count g = 0; g < G; g++) {
        const float *restrict by_w = s->by_weights + g * D, *restrict u = s->tangent + g * D;
        float *restrict by_mu = s->by_direction + g * D;
        const float radius = s->radius[g], c = s->cosine[g], sn = s->sine[g];
        const float along = radius * dot(by_w, s->mean_direction + g * D, D);
        const float across = radius * dot(by_w, u, D);
        for (Count i = 0; i < D; i++) by_mu[i] += c * radius * by_w[i] - sn * along * u[i];
        s->by_kappa += (c * across - sn * along) * vcl_angle_slope(s->angle[g], s->kappa, s->A, D);
        const float half = (c * along + sn * across) / 2; /* in 2 log r */
        const Count other = G + 1 + g;
        s->by_loc[g] += half;
        s->by_loc[other] += half;
        s->by_spread[g] += half * factors[g];
        s->by_spread[other] += half * factors[other];
        of_all += half;
    }
    for (Count i = G; i < radii; i += G + 1) {
        s->by_loc[i] += (float)of_all;
        s->by_spread[i] += (float)of_all * factors[i];
    }
}

/* --- the divergence and Adam ------------------------------------------------------------------------- */

static void add_divergence_of_directions(const Factor *f, FactorScratch *s, float kl_factor) {
    const Count D = f->D, G = f->groups;
    if (!f->prior_direction) {
        s->by_kappa += kl_factor * s->A_slope * (double)G * (s->kappa - f->prior_concentration);
        return;
    }
    const double kappa_p = exp((double)*f->prior_log_concentration);
    const float pull = (float)(kl_factor * kappa_p * s->A);
    double half_squares = 0.0;
    for (Count g = 0; g < G; g++) {
        const float *restrict mu = s->mean_direction + g * D;
        const float *restrict prior = f->prior_direction + g * D;
        float *restrict by_mu = s->by_direction + g * D;
        float squares = 0.0f;
        for (Count i = 0; i < D; i++) {
            const float off = mu[i] - prior[i];
            squares += off * off;
            by_mu[i] += pull * off;
        }
        half_squares += squares / 2;
    }
    s->by_kappa += kl_factor * s->A_slope * ((s->kappa - kappa_p) * (double)G + kappa_p * half_squares);
}

/* The divergence of log-normal factors from a log-normal, gamma or inverse gamma prior, shape 1/2. */
static void add_divergence_of_factors(const Factor *f, FactorScratch *s, float kl_factor) {
    const Count G = f->groups, radii = 2 * (G + 1);
    for (Count i = 0; i < radii; i++) {
        const float spread = s->spread[i], loc = f->loc.value[i];
        float by_loc, by_spread;
        if (f->prior_loc) {
            const float wide = softplus(f->prior_rho[i]), ratio = spread / wide;
            by_loc = (loc - f->prior_loc[i]) / (wide * wide);
            by_spread = (ratio - 1 / ratio) / wide;
        } else {
            const float sign = i <= G ? 1.0f : -1.0f;
            const float shift = i == G ? 2 * logf(f->prior_scale) : 0.0f;
            const float mean = expf(sign * (loc - shift) + spread * spread / 2);
            by_loc = sign * (mean - 0.5f);
            by_spread = spread * mean - 1 / spread;
        }
        s->by_loc[i] += kl_factor * by_loc;
        s->by_spread[i] += kl_factor * by_spread;
    }
}

void vcl_factor_step(const Factor *f, FactorScratch *s, float kl_factor, float step_size,
                     float root_correction, float beta1, float beta2, float epsilon) {
    const Count D = f->D, G = f->groups;
    Adam of[4] = {f->direction, f->log_concentration, f->loc, f->rho};
    for (int k = 0; k < 4; k++) of[k].step_size = step_size, of[k].root_correction = root_correction;
    add_divergence_of_directions(f, s, kl_factor);
    add_divergence_of_factors(f, s, kl_factor);
    for (Count g = 0; g < G; g++) {
        const float *restrict by_mu = s->by_direction + g * D;
        const float *restrict mu = s->mean_direction + g * D;
        const float along = dot(by_mu, mu, D), inverse = s->inverse_length[g];
#pragma omp simd
        for (Count i = 0; i < D; i++)
            of[0].value[g * D + i] = adam(&of[0], g * D + i, (by_mu[i] - along * mu[i]) * inverse,
                                          beta1, beta2, epsilon, 0);
    }
    of[1].value[0] = adam(&of[1], 0, (float)(s->by_kappa * s->kappa), beta1, beta2, epsilon, 0);
    for (Count i = 0; i < 2 * (G + 1); i++) {
        const float by_rho = s->by_spread[i] * sigmoid(f->rho.value[i]);
        of[2].value[i] = adam(&of[2], i, s->by_loc[i], beta1, beta2, epsilon, 0);
        of[3].value[i] = adam(&of[3], i, by_rho, beta1, beta2, epsilon, 0);
    }
}
