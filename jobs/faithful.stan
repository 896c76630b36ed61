// Minutes between eruptions of Old Faithful: two kinds of waiting.
data {
  int<lower=1> N;
  vector[N] minutes;
}
parameters {
  ordered[2] mean_wait;
  vector<lower=0>[2] sigma;
  real<lower=0, upper=1> short_share;
}
model {
  mean_wait ~ normal(70, 20);
  sigma ~ normal(0, 10);
  for (n in 1:N)
    target += log_mix(short_share, normal_lpdf(minutes[n] | mean_wait[1], sigma[1]),
                                   normal_lpdf(minutes[n] | mean_wait[2], sigma[2]));
}
generated quantities {
  array[N] int<lower=1, upper=2> kind;
  for (n in 1:N) {
    real first = log(short_share) + normal_lpdf(minutes[n] | mean_wait[1], sigma[1]);
    real second = log1m(short_share) + normal_lpdf(minutes[n] | mean_wait[2], sigma[2]);
    kind[n] = 1 + bernoulli_logit_rng(second - first);
  }
}
