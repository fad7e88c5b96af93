// Cavs: training of dynamic neural networks. The one header that users include.
//
// Declare a Model (F as vertex functions, and a head with losses), build InputGraphs (G) with a GraphBuilder, and run
// minibatches of them through a Session. samples/tree_lstm.cc is a whole program.
#pragma once

#include "backprop/optimizer.h"
#include "cavs/dataset.h"
#include "cavs/evaluate.h"
#include "cavs/graph_builder.h"
#include "cavs/model.h"
#include "cavs/session.h"
#include "cavs/trained_model.h"
#include "cavs/trainer.h"
#include "cavs/version.h"
#include "vertex/builder.h"
