/* A batch through a small network and back. Units lie [units, TILE], so that rows are side by side. */

#include "network.h"

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

double vcl_pass(const Network *net, Scratch s, Count draw, const int64_t *rows, float precision,
                float *gradient) {
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
