/*
 * All capabilities of models. Each header begins with what the capability is for and with a
 * complete example. A model points to the tables of those that it has (emass/model.h).
 */
#pragma once

#include "emass/model/averages.h"
#include "emass/model/commands.h"
#include "emass/model/counts.h"
#include "emass/model/latent.h"
#include "emass/model/metric.h"
#include "emass/model/minibatch.h"
#include "emass/model/prediction.h"
#include "emass/model/prior.h"
#include "emass/model/ranges.h"
#include "emass/model/rows.h"
#include "emass/model/summary.h"
