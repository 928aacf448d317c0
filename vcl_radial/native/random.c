/* Random words and standard normals that depend on a key alone. */

#include "random.h"

/* Lanes of Philox; wider than its words where the processor multiplies the low halves of wide lanes.
   The high halves are dropped in the end. */
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
void vcl_philox(uint32_t words[4][CHUNK], uint64_t first, Count n, uint64_t seed) {
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

/* Box and Muller 1958: n pairs of uniform words to as many pairs of independent standard normals. */
void vcl_box_muller(const uint32_t *restrict a, const uint32_t *restrict b,
                    float *restrict z0, float *restrict z1, Count n) {
    const float unit = 1.0f / 16777216.0f;
#pragma omp simd
    for (Count i = 0; i < n; i++) {
        const float u = ((float)(int32_t)(a[i] >> 8) + 0.5f) * unit; /* in (0, 1) */
        const float length = sqrtf(-2.0f * log_positive(u));
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
        for (int part = 0; part < 4; part++) /* write directly to the output where there is room */
            at[part] = part * quarter + start + length <= n ? out + part * quarter + start
                                                            : normals[part];
        vcl_philox(words, (uint64_t)start, length, seed);
        vcl_box_muller(words[0], words[1], at[0], at[1], length);
        vcl_box_muller(words[2], words[3], at[2], at[3], length);
        for (int part = 0; part < 4; part++) {
            const Count room = n - (part * quarter + start);
            if (at[part] == normals[part] && room > 0)
                memcpy(out + part * quarter + start, normals[part], (size_t)room * sizeof(float));
        }
    }
}
