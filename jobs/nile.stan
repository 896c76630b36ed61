// A level that walks at random, seen with noise; the levels are integrated out (Kalman filter).
data {
  int<lower=2> T;
  vector[T] y;
  int<lower=1> ahead;
}
parameters {
  real<lower=0> noise, step;
}
transformed parameters {
  vector[T + 1] level, variance;  // of the level before each observation
  level[1] = 1000;
  variance[1] = 1e5;
  for (t in 1:T) {
    real gain = variance[t] / (variance[t] + square(noise));
    level[t + 1] = level[t] + gain * (y[t] - level[t]);
    variance[t + 1] = variance[t] * (1 - gain) + square(step);
  }
}
model {
  noise ~ normal(0, 200);
  step ~ normal(0, 100);
  y ~ normal(level[1:T], sqrt(variance[1:T] + square(noise)));
}
generated quantities {
  vector[ahead] future;
  {
    real now = normal_rng(level[T + 1], sqrt(variance[T + 1]));
    for (h in 1:ahead) {
      future[h] = normal_rng(now, noise);
      now = normal_rng(now, step);
    }
  }
}
