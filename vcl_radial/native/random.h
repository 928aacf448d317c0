/* Random words and standard normals that depend on a key alone. */

#ifndef VCL_RADIAL_RANDOM_H
#define VCL_RADIAL_RANDOM_H

#include "step.h"

/* Four words each of n <= CHUNK counters from `first` on. */
void vcl_philox(uint32_t words[4][CHUNK], uint64_t first, Count n, uint64_t seed);

/* n pairs of words to as many pairs of standard normals. */
void vcl_box_muller(const uint32_t *restrict a, const uint32_t *restrict b,
                    float *restrict z0, float *restrict z1, Count n);

#endif
