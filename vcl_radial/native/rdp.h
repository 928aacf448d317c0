/* One factor of a layer's weights under a radial and directional posterior (RDP). */

#ifndef VCL_RADIAL_RDP_H
#define VCL_RADIAL_RDP_H

#include "step.h"

/* Groups of D weights each; what is random in the draws, [draws, ...]. */
typedef struct {
    Count groups, D;
    int columns;                       /* whether a group is a column of the layer's weight */
    Adam direction;                    /* [groups, D], of any length */
    Adam log_concentration;            /* a scalar, float32 as all of them */
    Adam loc, rho;                     /* of log a_g, log b_g and the layer's, [2, groups + 1] */
    const float *factors, *tangents;   /* standard normal, [2, groups + 1] and [groups, D] a draw */
    const int64_t *keys;               /* of each draw's angles */
    /* The carried prior; or null, and the first one has these numbers. */
    const float *prior_direction, *prior_log_concentration, *prior_loc, *prior_rho;
    float prior_scale;
    double prior_concentration;
} Factor;

/* What a step of a factor works with. */
typedef struct {
    float *mean_direction, *tangent, *weights, *by_weights, *by_direction; /* [groups, D] */
    float *spread, *by_loc, *by_spread;                                    /* [2, groups + 1] */
    float *inverse_length, *radius, *cosine, *sine;                        /* [groups] */
    double *angle;                                                         /* [groups] */
    double kappa, by_kappa, A, A_slope; /* A(kappa) and its slope */
} FactorScratch;

Count vcl_factor_scratch(const Factor *factor);                          /* how many floats */
FactorScratch vcl_factor_laid_out(const Factor *factor, float *scratch); /* aligned as doubles */

/* Before the first draw of a step; then for each draw its weights, and what comes of `by_weights`. */
void vcl_factor_begin(const Factor *factor, FactorScratch *s);
void vcl_factor_draw(const Factor *factor, FactorScratch *s, Count draw);
void vcl_factor_add(const Factor *factor, FactorScratch *s, Count draw);

/* Adam on the gradients that were added, and on that of kl_factor KL(q || p). */
void vcl_factor_step(const Factor *factor, FactorScratch *s, float kl_factor, float step_size,
                     float root_correction, float beta1, float beta2, float epsilon);

#endif
