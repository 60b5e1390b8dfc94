"""Graphs from features: nearest-neighbour graphs and learned graphs."""

from nodecopy.features.graphs import graph_from_features as graph_from_features
from nodecopy.features.graphs import read_feature_graph as read_feature_graph
