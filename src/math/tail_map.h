/*
 * A monotone function that gives a normal variate z a long tail on one side and a short one on the
 * other:
 *
 *     T(z) = Q(z) - Q(0),    Q(z) = q - a e^(-2 q),    q = asinh(z - 1/2),    a >= 0
 *     T(z) = -T(-z) of |a|                                                    a < 0
 *
 * For a > 0, T(z) is about -4 a z^2 on the left, so its left tail is that of an exponential
 * distribution with mean 8 a; on the right it is about log(2 z), so that e^T(z) is linear in z. The
 * logarithm of a positive parameter that may be almost 0 has such a law. With 1/2 the law of log
 * gamma variates is met for shapes from 0.05 on. Local.
 */
#pragma once

/* T(z). *slope: T'(z) > 0; *log_slope_by: the derivative of log T'(z) by z. */
double em_tail_map(double a, double z, double *slope, double *log_slope_by);

/* The z with T(z) = t. */
double em_tail_map_inverse(double a, double t);
