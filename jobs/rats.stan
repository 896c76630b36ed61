// Weights of young rats (Gelfand, Hills, Racine-Poon & Smith 1990): a line for each rat, whose
// intercepts and slopes are correlated.
data {
  int<lower=1> N, R;
  array[N] int<lower=1, upper=R> rat;
  vector[N] day, weight;
}
transformed data {
  real middle = mean(day);
}
parameters {
  vector[2] line;                 // of the population: weight at the middle, growth a day
  vector<lower=0>[2] spread;
  cholesky_factor_corr[2] L;
  matrix[2, R] z;
  real<lower=0> sigma;
}
transformed parameters {
  matrix[2, R] lines = rep_matrix(line, R) + diag_pre_multiply(spread, L) * z;
}
model {
  line[1] ~ normal(250, 50);
  line[2] ~ normal(6, 3);
  spread ~ normal(0, 20);
  L ~ lkj_corr_cholesky(2);
  to_vector(z) ~ std_normal();
  sigma ~ normal(0, 20);
  weight ~ normal(lines[1, rat]' + lines[2, rat]' .* (day - middle), sigma);
}
generated quantities {
  real correlation = L[2, 1];
  vector[N] log_lik;
  for (n in 1:N)
    log_lik[n] = normal_lpdf(weight[n] | lines[1, rat[n]] + lines[2, rat[n]] * (day[n] - middle), sigma);
}
