/* Training steps of a small fully connected network with one output and squared error.

   A network is trained for many steps in one call, with all it needs close by: at these sizes a pass
   over it takes microseconds, and calls from outside would take longer. The steps are those of
   `nn/lane_step.py`, which this file is tested against. All arrays are float32 and contiguous. */

#include "network.h"

/* --- scratch ------------------------------------------------------------------------------------ */

static Count widest(const Network *net) {
    Count most = 1;
    for (Count l = 0; l < net->depth; l++) {
        const Layer *layer = net->layers + l;
        most = layer->inputs > most ? layer->inputs : most;
        most = layer->outputs > most ? layer->outputs : most;
    }
    return most;
}

enum {
    SUMS_FLOATS = sizeof(Sums) / sizeof(float),
    FACTOR_FLOATS = sizeof(FactorScratch) / sizeof(float),
};

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
    Count floats = groups * SUMS_FLOATS + 4 * weights + (inputs + 2 * widest(net)) * TILE;
    for (Count l = 0; l < net->depth; l++)
        for (Count k = 0; k < net->layers[l].factors; k++)
            floats += FACTOR_FLOATS + vcl_factor_scratch(net->layers[l].factor + k);
    return floats;
}

static Scratch laid_out(const Network *net) {
    Count weights, inputs, groups;
    totals(net, &weights, &inputs, &groups);
    Scratch s;
    /* Parts with the alignment of doubles come first. */
    s.sums = (Sums *)net->scratch;
    s.factors = (FactorScratch *)(s.sums + groups);
    FactorScratch *made = s.factors;
    for (Count l = 0; l < net->depth; l++) made += net->layers[l].factors;
    s.weights = (float *)made;
    made = s.factors;
    for (Count l = 0; l < net->depth; l++)
        for (Count k = 0; k < net->layers[l].factors; k++, made++) {
            *made = vcl_factor_laid_out(net->layers[l].factor + k, s.weights);
            s.weights += vcl_factor_scratch(net->layers[l].factor + k);
        }
    s.gradient = s.weights + weights;
    s.of_scale = s.gradient + weights;
    s.of_sample = s.of_scale + weights;
    s.inputs = s.of_sample + weights;
    s.slope = s.inputs + inputs * TILE;
    s.slope_before = s.slope + widest(net) * TILE;
    return s;
}

/* --- steps --------------------------------------------------------------------------------------- */

/* The index of the layer's weight (j, k) among those of a factor. */
static inline Count in_factor(const Layer *layer, const Factor *factor, Count j, Count k) {
    return factor->columns ? k * layer->outputs + j : j * layer->inputs + k;
}

/* The product of a layer's factors without one of them; of all factors with -1. */
static inline float product(const Layer *layer, const FactorScratch *made, Count j, Count k,
                            Count without) {
    float w = 1.0f;
    for (Count m = 0; m < layer->factors; m++)
        if (m != without) w *= made[m].weights[in_factor(layer, layer->factor + m, j, k)];
    return w;
}

static void begin_factors(const Network *net, Scratch s) {
    FactorScratch *made = s.factors;
    for (Count l = 0; l < net->depth; l++)
        for (Count k = 0; k < net->layers[l].factors; k++)
            vcl_factor_begin(net->layers[l].factor + k, made++);
}

static void draw_factors(const Layer *layer, FactorScratch *made, Count draw, float *w) {
    if (!layer->factors) return;
    for (Count m = 0; m < layer->factors; m++) vcl_factor_draw(layer->factor + m, made + m, draw);
    for (Count j = 0; j < layer->outputs; j++)
        for (Count k = 0; k < layer->inputs; k++)
            w[j * layer->row + k] = product(layer, made, j, k, -1);
}

/* Add the gradient in the drawn weights to that in the parameters of the factors. */
static void add_factors(const Network *net, Scratch s, Count draw, const float *gradient) {
    FactorScratch *made = s.factors;
    for (Count l = 0; l < net->depth; l++) {
        const Layer *layer = net->layers + l;
        for (Count m = 0; m < layer->factors; m++) {
            const Factor *factor = layer->factor + m;
            for (Count j = 0; j < layer->outputs; j++)
                for (Count k = 0; k < layer->inputs; k++)
                    made[m].by_weights[in_factor(layer, factor, j, k)] =
                        gradient[j * layer->row + k] * product(layer, made, j, k, m);
            vcl_factor_add(factor, made + m, draw);
        }
        gradient += layer->weights;
        made += layer->factors;
    }
}

/* w = mean + scale * noise of the draw; point estimates are what they are */
static void draw_weights(const Network *net, Scratch s, Count draw) {
    float *layer_weights = s.weights;
    FactorScratch *made = s.factors;
    for (Count l = 0; l < net->depth; l++) {
        const Layer *layer = net->layers + l;
        draw_factors(layer, made, draw, layer_weights);
        made += layer->factors;
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

/* Add a sample's gradient in the drawn weights, and, times the noise, in the scales. */
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

/* Step point estimates; the objective is the loss + kl_factor * precision / 2 * w^2. */
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
    FactorScratch *made = s.factors;
    for (Count l = 0; l < net->depth; l++) {
        const Layer *layer = net->layers + l;
        for (Count k = 0; k < layer->factors; k++)
            vcl_factor_step(layer->factor + k, made++, net->kl_factor, size, root, net->beta1,
                            net->beta2, net->epsilon);
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
        begin_factors(net, s);
        for (Count k = 0; k < net->samples; k++) {
            const Count draw = t * net->samples + k;
            draw_weights(net, s, draw);
            if (net->samples == 1) {
                squares = vcl_pass(net, s, draw, rows, precision, s.gradient);
                add_factors(net, s, draw, s.gradient);
                continue;
            }
            memset(s.of_sample, 0, bytes);
            squares += vcl_pass(net, s, draw, rows, precision, s.of_sample);
            add_factors(net, s, draw, s.of_sample);
            add_sample(net, s, draw);
        }
        step_layers(net, s, t * net->samples, net->rates[t], net->done + t + 1, t > 0);
        const float mean = (float)(squares / (double)(net->samples * net->batch));
        const float optimum = net->prior_rate + net->half_points * mean;
        *net->noise_rate += net->noise_step * (optimum - *net->noise_rate);
    }
}
