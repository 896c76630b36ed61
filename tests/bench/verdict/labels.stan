// A mixture of K normal laws of equal weights, whose means have no order.
data {
  int<lower=1> N;
  int<lower=1> K;
  vector[N] y;
}
parameters {
  vector[K] mu;
}
model {
  mu ~ normal(0, 5);
  for (n in 1:N) {
    vector[K] lp;
    for (k in 1:K)
      lp[k] = normal_lpdf(y[n] | mu[k], 1);
    target += log_sum_exp(lp);
  }
}
