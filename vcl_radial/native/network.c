/* Training steps of a small fully connected network with one output and squared error.

   A network is trained for many steps in one call, with all it needs close by: at these sizes a pass
   over it takes microseconds, and calls from outside would take longer. The steps are those of
   `nn/lane_step.py`, which this file is tested against. All arrays are float32 and contiguous. */

#include "step.h"

/* Rows of a batch that are taken through all layers together, so that they stay in the cache. */
enum { TILE = 128, MAX_BLOCKS = 2 };

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
   (j, k) is at j row + k and bias j at bias + j bias_step. */
typedef struct {
    Count inputs, outputs, row, bias, bias_step, weights;
    Count blocks;
    Block block[MAX_BLOCKS];
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

/* --- scratch ------------------------------------------------------------------------------------ */

typedef struct {
    float *weights, *gradient, *of_scale, *of_sample; /* of all layers' weights */
    float *inputs;                                /* of each layer, [inputs, TILE] */
    float *slope, *slope_before;                  /* in a layer's outputs, [outputs, TILE] */
    Sums *sums;                                   /* of all groups */
} Scratch;

static Count widest(const Network *net) {
    Count most = 1;
    for (Count l = 0; l < net->depth; l++) {
        const Layer *layer = net->layers + l;
        most = layer->inputs > most ? layer->inputs : most;
        most = layer->outputs > most ? layer->outputs : most;
    }
    return most;
}

static void totals(const Network *net, Count *weights, Count *inputs, Count *groups) {
    *weights = *inputs = *groups = 0;
    for (Count l = 0; l < net->depth; l++) {
        const Layer *layer = net->layers + l;
        *weights += layer->weights;
        *inputs += layer->inputs;
        for (Count k = 0; k < layer->blocks; k++) *groups += layer->block[k].groups;
    }
}

Count vcl_network_scratch(const Network *net) {
    Count weights, inputs, groups;
    totals(net, &weights, &inputs, &groups);
    const Count of_sums = groups * (Count)(sizeof(Sums) / sizeof(float));
    return of_sums + 4 * weights + (inputs + 2 * widest(net)) * TILE;
}

static Scratch laid_out(const Network *net) {
    Count weights, inputs, groups;
    totals(net, &weights, &inputs, &groups);
    Scratch s;
    s.sums = (Sums *)net->scratch; /* first: it is aligned as doubles are */
    s.weights = net->scratch + groups * (Count)(sizeof(Sums) / sizeof(float));
    s.gradient = s.weights + weights;
    s.of_scale = s.gradient + weights;
    s.of_sample = s.of_scale + weights;
    s.inputs = s.of_sample + weights;
    s.slope = s.inputs + inputs * TILE;
    s.slope_before = s.slope + widest(net) * TILE;
    return s;
}

/* --- forward and backward ------------------------------------------------------------------------ */

/* z_j = b_j + sum_k w_jk h_k, of n rows */
static void forward(const Layer *layer, const float *w, const float *h, float *z, Count n) {
    for (Count j = 0; j < layer->outputs; j++) {
        const float *row = w + j * layer->row;
        const float bias = w[layer->bias + j * layer->bias_step];
        float *restrict to = z + j * TILE;
        for (Count b = 0; b < n; b++) to[b] = bias;
        Count k = 0;
        for (; k + 4 <= layer->inputs; k += 4) {
            const float w0 = row[k], w1 = row[k + 1], w2 = row[k + 2], w3 = row[k + 3];
            const float *restrict h0 = h + k * TILE, *restrict h1 = h0 + TILE;
            const float *restrict h2 = h1 + TILE, *restrict h3 = h2 + TILE;
#pragma omp simd
            for (Count b = 0; b < n; b++)
                to[b] += (w0 * h0[b] + w1 * h1[b]) + (w2 * h2[b] + w3 * h3[b]);
        }
        for (; k < layer->inputs; k++) {
            const float wk = row[k];
            const float *restrict hk = h + k * TILE;
#pragma omp simd
            for (Count b = 0; b < n; b++) to[b] += wk * hk[b];
        }
    }
}

static float dot(const float *restrict a, const float *restrict b, Count n) {
    float total = 0.0f;
#pragma omp simd reduction(+ : total)
    for (Count i = 0; i < n; i++) total += a[i] * b[i];
    return total;
}

/* gw_jk += sum_b g_jb h_kb, and of the bias sum_b g_jb */
static void add_gradient(const Layer *layer, const float *g, const float *h, float *gw, Count n) {
    for (Count j = 0; j < layer->outputs; j++) {
        const float *restrict gj = g + j * TILE;
        float *row = gw + j * layer->row;
        Count k = 0;
        for (; k + 4 <= layer->inputs; k += 4) {
            const float *restrict h0 = h + k * TILE, *restrict h1 = h0 + TILE;
            const float *restrict h2 = h1 + TILE, *restrict h3 = h2 + TILE;
            float s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
            for (Count b = 0; b < n; b++) {
                s0 += gj[b] * h0[b];
                s1 += gj[b] * h1[b];
                s2 += gj[b] * h2[b];
                s3 += gj[b] * h3[b];
            }
            row[k] += s0, row[k + 1] += s1, row[k + 2] += s2, row[k + 3] += s3;
        }
        for (; k < layer->inputs; k++) row[k] += dot(gj, h + k * TILE, n);
        float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
        for (Count b = 0; b < n; b++) sum += gj[b];
        gw[layer->bias + j * layer->bias_step] += sum;
    }
}

/* g_k = sum_j w_jk g_j where the rectifier let something through */
static void backward(const Layer *layer, const float *w, const float *g, const float *h,
                     float *before, Count n) {
    for (Count k = 0; k < layer->inputs; k++) {
        float *restrict to = before + k * TILE;
        for (Count b = 0; b < n; b++) to[b] = 0.0f;
        for (Count j = 0; j < layer->outputs; j++) {
            const float wj = w[j * layer->row + k];
            const float *restrict gj = g + j * TILE;
#pragma omp simd
            for (Count b = 0; b < n; b++) to[b] += wj * gj[b];
        }
        const float *restrict hk = h + k * TILE;
#pragma omp simd
        for (Count b = 0; b < n; b++) to[b] = hk[b] > 0.0f ? to[b] : 0.0f;
    }
}

static void rectify(float *h, Count units, Count n) {
    for (Count k = 0; k < units; k++)
#pragma omp simd
        for (Count b = 0; b < n; b++) h[k * TILE + b] = h[k * TILE + b] > 0.0f ? h[k * TILE + b] : 0.0f;
}

/* h_k times the mask of n rows [n, inputs] */
static void drop(const Layer *layer, const float *mask, float *h, Count n) {
    for (Count k = 0; k < layer->inputs; k++)
        for (Count b = 0; b < n; b++) h[k * TILE + b] *= mask[b * layer->inputs + k];
}

/* Adds the gradient of precision / 2 * mean of (f - y)^2 over batch and samples in the weights drawn;
   returns sum_b (f_b - y_b)^2 of one sample. */
static double pass(const Network *net, Scratch s, Count draw, const int64_t *rows,
                   float precision, float *gradient) {
    const Count features = net->layers[0].inputs, depth = net->depth;
    const float share = precision / (float)(net->samples * net->batch);
    double squares = 0.0;
    for (Count start = 0; start < net->batch; start += TILE) {
        const Count n = net->batch - start < TILE ? net->batch - start : TILE;
        for (Count b = 0; b < n; b++)
            for (Count k = 0; k < features; k++)
                s.inputs[k * TILE + b] = net->x[rows[start + b] * features + k];
        float *h = s.inputs;
        const float *w = s.weights;
        for (Count l = 0; l < depth; l++) {
            const Layer *layer = net->layers + l;
            const Count inputs = layer->inputs;
            if (l) rectify(h, inputs, n);
            if (layer->mask) drop(layer, layer->mask + (draw * net->batch + start) * inputs, h, n);
            float *to = l + 1 < depth ? h + inputs * TILE : s.slope;
            forward(layer, w, h, to, n);
            h = to;
            w += layer->weights;
        }
        for (Count b = 0; b < n; b++) {
            const float residual = s.slope[b] - net->y[rows[start + b]];
            squares += (double)residual * residual;
            s.slope[b] = share * residual;
        }
        float *g = s.slope, *before = s.slope_before, *gw = gradient;
        for (Count l = 0; l < depth; l++) gw += net->layers[l].weights;
        h = s.inputs;
        for (Count l = 0; l < depth; l++) h += net->layers[l].inputs * TILE;
        for (Count l = depth; l-- > 0;) {
            const Layer *layer = net->layers + l;
            gw -= layer->weights;
            w -= layer->weights;
            h -= layer->inputs * TILE;
            add_gradient(layer, g, h, gw, n);
            if (!l) break;
            backward(layer, w, g, h, before, n);
            if (layer->mask)
                drop(layer, layer->mask + (draw * net->batch + start) * layer->inputs, before, n);
            float *const free = g;
            g = before;
            before = free;
        }
    }
    return squares;
}

/* --- steps --------------------------------------------------------------------------------------- */

/* w = mean + scale * noise of the draw; point estimates are what they are */
static void draw_weights(const Network *net, Scratch s, Count draw) {
    float *layer_weights = s.weights;
    for (Count l = 0; l < net->depth; l++) {
        const Layer *layer = net->layers + l;
        for (Count k = 0; k < layer->blocks; k++) {
            const Block *block = layer->block + k;
            const Count n = block->groups * block->D;
            const float *restrict mean = block->mean.value;
            float *restrict w = layer_weights + block->at;
            if (!block->rho.value) {
                memcpy(w, mean, (size_t)n * sizeof(float));
                continue;
            }
            const float *restrict noise = block->noise + draw * n;
            const float *restrict scale = block->scale;
#pragma omp simd
            for (Count i = 0; i < n; i++) w[i] = mean[i] + scale[i] * noise[i];
        }
        layer_weights += layer->weights;
    }
}

/* A sample's gradient in the weights drawn, and times the noise that in the scales. */
static void add_sample(const Network *net, Scratch s, Count draw) {
    Count from = 0;
    for (Count l = 0; l < net->depth; l++) {
        const Layer *layer = net->layers + l;
        for (Count i = from; i < from + layer->weights; i++) s.gradient[i] += s.of_sample[i];
        for (Count k = 0; k < layer->blocks; k++) {
            const Block *block = layer->block + k;
            const Count n = block->groups * block->D, at = from + block->at;
            if (!block->rho.value) continue;
            const float *restrict noise = block->noise + draw * n;
#pragma omp simd
            for (Count i = 0; i < n; i++) s.of_scale[at + i] += s.of_sample[at + i] * noise[i];
        }
        from += layer->weights;
    }
}

/* Of point estimates, whose gradient is that of the loss + kl_factor * precision / 2 * w^2. */
static void step_points(const Block *block, Adam point, const float *restrict grad,
                        const Network *net) {
    const float factor = net->kl_factor * block->precision;
    float *const restrict value = point.value;
    const Count n = block->groups * block->D;
#pragma omp simd
    for (Count i = 0; i < n; i++) {
        const float g = grad[i] + factor * value[i];
        value[i] = adam(&point, i, g, net->beta1, net->beta2, net->epsilon, 0);
    }
}

static void step_layers(const Network *net, Scratch s, Count draw, float rate, Count number,
                        int sums_known) {
    const float size = rate / (float)(1.0 - pow(net->beta1, (double)number));
    const float root = (float)(1.0 / sqrt(1.0 - pow(net->beta2, (double)number)));
    Count from = 0;
    Sums *sums = s.sums;
    for (Count l = 0; l < net->depth; l++) {
        const Layer *layer = net->layers + l;
        for (Count k = 0; k < layer->blocks; k++) {
            const Block *block = layer->block + k;
            const Count n = block->groups * block->D, at = from + block->at;
            Adam mean = block->mean, rho = block->rho;
            mean.step_size = rho.step_size = size;
            mean.root_correction = rho.root_correction = root;
            if (!rho.value) {
                step_points(block, mean, s.gradient + at, net);
                continue;
            }
            const Step step = {
                .mean = mean,
                .rho = rho,
                .scale = block->scale,
                .prior_mean = block->prior_mean,
                .prior_scale = block->prior_scale,
                .grad_first = s.gradient + at,
                .grad_scale = net->samples > 1 ? s.of_scale + at : NULL,
                .noise = net->samples > 1 ? NULL : block->noise + draw * n,
                .sums = block->divergence == KL_RADIAL ? sums : NULL,
                .groups = block->groups,
                .D = block->D,
                .D_first = block->D,
                .divergence = block->divergence,
                .sums_known = sums_known,
                .kl_factor = net->kl_factor,
                .mean_kl_factor = net->kl_factor,
                .beta1 = net->beta1,
                .beta2 = net->beta2,
                .epsilon = net->epsilon,
            };
            vcl_step(&step);
            sums += block->groups;
        }
        from += layer->weights;
    }
}

/* The steps, in place. */
void vcl_network_train(const Network *net) {
    const Scratch s = laid_out(net);
    Count weights = 0;
    for (Count l = 0; l < net->depth; l++) weights += net->layers[l].weights;
    const size_t bytes = (size_t)weights * sizeof(float);
    for (Count t = 0; t < net->steps; t++) {
        const float precision = net->noise_shape / *net->noise_rate;
        const int64_t *rows = net->rows + t * net->stride;
        double squares = 0.0;
        memset(s.gradient, 0, bytes);
        memset(s.of_scale, 0, bytes);
        for (Count k = 0; k < net->samples; k++) {
            const Count draw = t * net->samples + k;
            draw_weights(net, s, draw);
            if (net->samples == 1) {
                squares = pass(net, s, draw, rows, precision, s.gradient);
                continue;
            }
            memset(s.of_sample, 0, bytes);
            squares += pass(net, s, draw, rows, precision, s.of_sample);
            add_sample(net, s, draw);
        }
        step_layers(net, s, t * net->samples, net->rates[t], net->done + t + 1, t > 0);
        const float mean = (float)(squares / (double)(net->samples * net->batch));
        const float optimum = net->prior_rate + net->half_points * mean;
        *net->noise_rate += net->noise_step * (optimum - *net->noise_rate);
    }
}
