/* Registers the model `network`. */
#include "model/satellite.h"

#include <stddef.h>

extern const em_satellite em_network_satellite;
extern const em_model_ops em_model_network;

static const em_model_ops *const models[] = {&em_model_network};

const em_satellite em_network_satellite = {"network", 1, 0, models, NULL};
