/* A small fully connected network, its data and what a step works with. */

#ifndef VCL_RADIAL_NETWORK_H
#define VCL_RADIAL_NETWORK_H

#include "rdp.h"

/* Rows of a batch that are taken through all layers together, so that they stay in the cache. */
enum { TILE = 128, MAX_BLOCKS = 2, MAX_FACTORS = 2 };

/* Groups of D weights side by side, from a layer's weight `at` on; the draws' noise is [steps,
   samples, groups, D]. Without rho they are point estimates, of which `precision` is the prior's. */
typedef struct {
    Count at, groups, D;
    Adam mean, rho;
    float *scale; /* softplus(rho), kept up to date */
    const float *noise, *prior_mean, *prior_scale;
    float precision;
    int divergence;
} Block;

/* A layer's weights, biases among them, are those of its blocks: with rows of `row` weights, weight
   (j, k) is at j row + k and bias j at bias + j bias_step. With factors the first outputs * inputs
   weights are the product of theirs. */
typedef struct {
    Count inputs, outputs, row, bias, bias_step, weights;
    Count blocks;
    Block block[MAX_BLOCKS];
    Count factors;
    Factor factor[MAX_FACTORS];
    const float *mask; /* of its inputs, [steps, samples, rows of the batch, inputs]; or null */
} Layer;

typedef struct {
    Layer *layers;
    Count depth;
    const float *x, *y;          /* [N, inputs], [N] */
    const int64_t *rows;         /* of the batch of each step, with this stride */
    Count stride, batch, samples, steps;
    const float *rates;          /* of each step */
    Count done;                  /* steps before these */
    float kl_factor, beta1, beta2, epsilon;
    /* The noise's precision: Gamma(shape, rate), see noise_precision.py. */
    float *noise_rate, noise_shape, prior_rate, half_points, noise_step;
    float *scratch;              /* of vcl_network_scratch() floats */
} Network;

typedef struct {
    float *weights, *gradient, *of_scale, *of_sample; /* of all layers' weights */
    float *inputs;                                /* of each layer, [inputs, TILE] */
    float *slope, *slope_before;                  /* in a layer's outputs, [outputs, TILE] */
    Sums *sums;                                   /* of all groups */
    FactorScratch *factors;                       /* of all factors */
} Scratch;

/* Adds the gradient of precision / 2 * mean of (f - y)^2 over batch and samples in the weights drawn;
   returns sum_b (f_b - y_b)^2 of one sample. */
double vcl_pass(const Network *net, Scratch s, Count draw, const int64_t *rows, float precision,
                float *gradient);

#endif
