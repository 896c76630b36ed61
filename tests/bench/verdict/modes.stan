// A mixture of K normal laws in D dimensions.
data {
  int<lower=1> K;
  int<lower=1> D;
  vector[K] weight;
  array[K] vector[D] centre;
  array[K] vector<lower=0>[D] sd;
}
parameters {
  vector[D] x;
}
model {
  vector[K] lp = log(weight);
  for (k in 1:K)
    lp[k] += normal_lpdf(x | centre[k], sd[k]);
  target += log_sum_exp(lp);
}
